"""From SQLite to PostgreSQL and back: neither changes what is carried."""

from __future__ import annotations

import io
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from asmevo.registry.audit.finding import FindingCode
from asmevo.registry.audit.verify import verify
from asmevo.registry.parcel.errors import ParcelError
from asmevo.registry.parcel.export import export
from asmevo.registry.parcel.load import load, push
from asmevo.registry.registry import Registry
from asmevo.registry.retention.retention import Retention
from asmevo.registry.signing.keys import load_signing_key
from tests.registry.parcel.test_exchange import rows

if TYPE_CHECKING:
    from tests.registry.populated import Populated
    from tests.registry.postgresql import Server


def test_there_and_back(populated: Populated, parcel: bytes, tmp_path: Path,
                        postgresql: Server) -> None:
    database = postgresql.clean_database()
    there = Registry(tmp_path / "there", postgresql.url(database))
    received = load(there, io.BytesIO(parcel))
    assert received.replacements == 3
    assert verify(there).findings == []
    assert push(populated.registry, there).added == {}
    again = io.BytesIO()
    export(there, again, key=load_signing_key(populated.key))
    assert again.getvalue() == parcel

    postgresql.execute("UPDATE run SET seed = 77", database)
    codes = {f.code for f in verify(there).findings}
    assert {FindingCode.ROW_ALTERED, FindingCode.STATEMENT_MISMATCH} <= codes
    before = rows(there)
    with pytest.raises(ParcelError, match="nothing was changed"):
        load(there, io.BytesIO(parcel))
    assert rows(there) == before
    there.close()


def test_blobs_elsewhere(populated: Populated, parcel: bytes, tmp_path: Path) -> None:
    there = Registry(tmp_path / "there", blobs_url=f"memory://{tmp_path.name}-{id(parcel)}")
    assert push(populated.registry, there).replacements == 3
    assert verify(there).findings == []
    again = io.BytesIO()
    export(there, again, key=load_signing_key(populated.key))
    assert again.getvalue() == parcel
    [first, *_] = there.blobs.list()
    there.blobs.delete(first)
    assert f"blob {first.sha256}" in {f.subject for f in verify(there).findings}
    load(there, io.BytesIO(parcel))
    assert verify(there).findings == []
    there.close()


def test_gc_leaves_what_is_carried(populated: Populated, parcel: bytes) -> None:
    assert len(verify(populated.registry).garbage) == 1
    populated.registry.collect(Retention(rejected_days=0.0, grace_s=0.0), apply=True)
    audit = verify(populated.registry)
    assert (audit.findings, audit.garbage) == ([], [])
    assert populated.registry.replacements()
