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
from asmevo.registry.signing import load_signing_key
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
