"""Turns at SQLite's write lock, which SQLite itself hands out unfairly."""

from __future__ import annotations

import random
import sqlite3
import time
from typing import cast

from sqlalchemy import Connection

LONGEST_PAUSE_S = 0.004


def take_turn(connection: Connection, timeout_s: float) -> None:
    """Begin a writing transaction as soon as no other process is in one.

    SQLite's own busy handler asks ever more rarely, at last ten times a second (sqlite3.c,
    sqliteDefaultBusyCallback), so that among many writers whoever has waited longest is the least
    likely to be next: of eight, one waited for 5 s while the others wrote 150 times. Here all ask
    equally often. Raises what `sqlalchemy` makes of ``SQLITE_BUSY`` after ``timeout_s`` seconds.
    """
    driver = cast(sqlite3.Connection, connection.connection.driver_connection)
    deadline = time.monotonic() + timeout_s
    (usual_ms,) = driver.execute("PRAGMA busy_timeout").fetchone()
    driver.execute("PRAGMA busy_timeout = 0")
    try:
        while time.monotonic() < deadline:
            try:
                driver.execute("BEGIN IMMEDIATE")
                return
            except sqlite3.OperationalError as error:
                if not error.sqlite_errorname.startswith("SQLITE_BUSY"):
                    break
            time.sleep(random.uniform(LONGEST_PAUSE_S / 4, LONGEST_PAUSE_S))  # noqa: S311
        connection.exec_driver_sql("BEGIN IMMEDIATE")
    finally:
        driver.execute(f"PRAGMA busy_timeout = {int(usual_ms)}")
