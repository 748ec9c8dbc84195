"""Turns at SQLite's write lock, which SQLite itself hands out unfairly."""

from __future__ import annotations

import random
import sqlite3
import time

LONGEST_PAUSE_S = 0.004


def take_turn(connection: sqlite3.Connection, timeout_s: float) -> None:
    """Begin a writing transaction as soon as no other process is in one.

    SQLite's own busy handler asks ever more rarely, at last ten times a second (sqlite3.c,
    sqliteDefaultBusyCallback), so that among many writers whoever has waited longest is the least
    likely to be next: of eight, one waited for 5 s while the others wrote 150 times. Here all ask
    equally often. Raises `sqlite3.OperationalError` (``SQLITE_BUSY``) after ``timeout_s`` seconds.
    """
    deadline = time.monotonic() + timeout_s
    (usual_ms,) = connection.execute("PRAGMA busy_timeout").fetchone()
    connection.execute("PRAGMA busy_timeout = 0")
    try:
        while True:
            try:
                connection.execute("BEGIN IMMEDIATE")
                return
            except sqlite3.OperationalError as error:
                busy = error.sqlite_errorname.startswith("SQLITE_BUSY")
                if not busy or time.monotonic() >= deadline:
                    raise
            time.sleep(random.uniform(LONGEST_PAUSE_S / 4, LONGEST_PAUSE_S))  # noqa: S311
    finally:
        connection.execute(f"PRAGMA busy_timeout = {int(usual_ms)}")
