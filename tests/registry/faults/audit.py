"""Whether a registry on disk is whole, found out without any of the registry's own code."""

from __future__ import annotations

import hashlib
import json
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import zstandard

BLOBS = {
    "code_object": ("sha256",),
    "recovered_object": ("assembly_sha256",),
    "dispatch": ("content_sha256",),
    "capture": ("content_sha256",),
    "run": ("config_sha256",),
    "candidate": ("assembly_sha256", "object_sha256"),
    "replacement": ("object_sha256",),
    "statement": ("statement_sha256",),
    "signature": ("statement_sha256",),
}
"""Columns that name blobs."""

NO_BLOBS = {
    "recovered_object": ("code_object_sha256", "toolchain_sha256"),
    "dispatch": ("sha256",),
    "capture": ("sha256", "original_sha256", "dispatch_sha256"),
    "candidate": ("original_sha256",),
    "timing": ("original_sha256", "dispatch_sha256"),
    "replacement": ("original_sha256",),
}
"""Columns of hashes that are keys of rows, or of what is no blob."""

VERDICTS = 7


def audited(registry: Path) -> list[str]:
    """What is wrong with a registry, one sentence each; nothing if it is whole."""
    with closing(sqlite3.connect(f"file:{registry / 'asmevo.db'}?mode=rw", uri=True)) as database:
        return list(_problems(database, registry / "blobs"))


def _problems(database: sqlite3.Connection, blobs: Path) -> Iterator[str]:
    for (found,) in database.execute("PRAGMA integrity_check"):
        if found != "ok":
            yield f"integrity: {found}"
    for row in database.execute("PRAGMA foreign_key_check"):
        yield f"foreign key: {row}"
    yield from _unclassified(database)
    seen: dict[str, bytes | None] = {}
    for table, columns in BLOBS.items():
        for column in columns:
            if column not in _columns(database, table):
                continue
            for (sha256,) in database.execute(
                    f"SELECT DISTINCT {column} FROM {table} WHERE {column} IS NOT NULL"):
                data = _blob(blobs, sha256, seen)
                if data is None:
                    yield f"{table}.{column}: no intact blob {sha256}"
                elif table in ("dispatch", "capture") and column == "content_sha256":
                    for inner in _named(table, json.loads(data)):
                        if _blob(blobs, inner, seen) is None:
                            yield f"{table} {sha256}: no intact blob {inner}"
    yield from _parts(database)


def _parts(database: sqlite3.Connection) -> Iterator[str]:
    """A transaction of the registry is there with all its rows."""
    for sentence, query in (
        ("verdicts", f"""SELECT id FROM candidate WHERE {VERDICTS} <>
            (SELECT count(*) FROM verdict WHERE candidate_id = candidate.id)"""),
        ("timing", """SELECT id FROM candidate WHERE 1 <>
            (SELECT count(*) FROM timing WHERE candidate_id = candidate.id)"""),
        ("replacement", """SELECT id FROM candidate WHERE (status = 'committed') <>
            EXISTS (SELECT 1 FROM replacement WHERE candidate_id = candidate.id)"""),
        ("judgement", """SELECT candidate_id FROM replacement WHERE NOT
            EXISTS (SELECT 1 FROM judgement
                    WHERE judgement.candidate_id = replacement.candidate_id)"""),
        ("statement", """SELECT candidate_id FROM replacement WHERE NOT
            EXISTS (SELECT 1 FROM statement
                    WHERE statement.candidate_id = replacement.candidate_id)"""),
        ("event", """SELECT run_id FROM search_event GROUP BY run_id
            HAVING count(*) <> max(number) + 1"""),
    ):
        for (key,) in database.execute(query):
            yield f"{key} lacks its {sentence}"


def _unclassified(database: sqlite3.Connection) -> Iterator[str]:
    """A new column of hashes must be looked at here, or this check would silently skip it."""
    for (table,) in database.execute("SELECT name FROM sqlite_master WHERE type = 'table'"):
        known = {*BLOBS.get(table, ()), *NO_BLOBS.get(table, ())}
        for column in _columns(database, table):
            if column.endswith("sha256") and column not in known:
                yield f"column {table}.{column} is not known to this check"


def _columns(database: sqlite3.Connection, table: str) -> set[str]:
    return {row[1] for row in database.execute(f"PRAGMA table_info({table})")}


def _named(table: str, document: dict[str, Any]) -> Iterator[str]:
    if table == "dispatch":
        for region in document["regions"]:
            yield region["data"]
        return
    for allocation in document["allocations"]:
        for segment in allocation["segments"]:
            yield from (segment["pre"], segment["post"])


def _blob(blobs: Path, sha256: str, seen: dict[str, bytes | None]) -> bytes | None:
    if sha256 not in seen:
        seen[sha256] = _read(blobs / sha256[:2] / f"{sha256}.zst")
    return seen[sha256]


def _read(file: Path) -> bytes | None:
    try:
        data = zstandard.ZstdDecompressor().decompressobj().decompress(file.read_bytes())
    except (OSError, zstandard.ZstdError):
        return None
    return data if hashlib.sha256(data).hexdigest() == file.stem else None
