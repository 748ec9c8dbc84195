"""Export, import and push: what arrives is what was sent, once, and in any order."""

from __future__ import annotations

import io
from collections import Counter
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest
import sqlalchemy as sa

from asmevo.registry.database.models import Table
from asmevo.registry.delivery.pull import pull
from asmevo.registry.parcel.errors import ParcelError, ParcelFault
from asmevo.registry.parcel.export import export
from asmevo.registry.parcel.gather import Selection
from asmevo.registry.parcel.load import load, push
from asmevo.registry.parcel.stage import TABLES
from asmevo.registry.signing.keys import load_signing_key

if TYPE_CHECKING:
    from asmevo.registry.records import ReplacementRecord
    from asmevo.registry.registry import Registry
    from tests.registry.populated import Populated


def rows(registry: Registry) -> dict[str, Counter[str]]:
    """The digests of all rows, by table."""
    with registry.database.read() as session:
        return {table.name: Counter(session.connection().execute(
            sa.select(table.c.digest)).scalars()) for table in TABLES}


def exported(registry: Registry, selection: Selection | None = None) -> bytes:
    out = io.BytesIO()
    export(registry, out, selection)
    return out.getvalue()


def numberless(registry: Registry) -> list[ReplacementRecord]:
    """Replacements without the numbers that a database gave out."""
    return [replace(record, id=0) for record in registry.replacements()]


def test_all_of_it_arrives(populated: Populated, target: Registry, parcel: bytes) -> None:
    """All tables are the same, but for what no replacement rests on."""
    received = load(target, io.BytesIO(parcel))
    assert received.replacements == 3
    sent, got = rows(populated.registry), rows(target)
    for name in sent:
        extra = {"candidate": 1, "verdict": 1}.get(name, 0)  # the rejected one's
        assert got[name] <= sent[name]
        assert sent[name].total() - got[name].total() == extra
        assert sent[name], f"nothing of table {name} was tried"
    assert numberless(target) == numberless(populated.registry)
    for record in target.replacements():
        assert target.load_object(record.object_sha256) == populated.registry.load_object(
            record.object_sha256)


def test_twice_is_once(target: Registry, parcel: bytes) -> None:
    load(target, io.BytesIO(parcel))
    before = rows(target)
    assert load(target, io.BytesIO(parcel)).added == {}
    assert rows(target) == before


def test_the_same_content_has_the_same_bytes(populated: Populated, target: Registry,
                                             parcel: bytes) -> None:
    """From whatever registry, and in whatever order it got there."""
    for name in ("lone", "child"):
        push(populated.registry, target, Selection(candidates=[name]))
    again = io.BytesIO()
    export(target, again, key=load_signing_key(populated.key))
    assert again.getvalue() == parcel


def test_what_arrived_can_be_pulled(populated: Populated, target: Registry, parcel: bytes) -> None:
    load(target, io.BytesIO(parcel))
    found = pull(target, original=populated.original.sha256, trust=f"{populated.key}.pub")
    assert found.record.candidate_id == populated.child
    assert found.data == populated.registry.load_object(found.record.object_sha256)


def test_lineage_comes_along(populated: Populated, target: Registry) -> None:
    push(populated.registry, target, Selection(candidates=[populated.child]))
    assert [r.candidate_id for r in target.replacements()] == ["child", "parent"]
    assert [c.id for c in target.lineage(populated.run_id)] == ["parent", "child"]
    assert target.search_events(populated.run_id) == populated.registry.search_events(
        populated.run_id)
    with pytest.raises(ParcelError) as caught:
        exported(populated.registry, Selection(candidates=["nobody"]))
    assert caught.value.code is ParcelFault.NOTHING


def test_push_copies_what_is_missing(populated: Populated, target: Registry) -> None:
    first = push(populated.registry, target, Selection(candidates=["lone"]))
    second = push(populated.registry, target)
    assert first.blobs > second.blobs > 0
    third = push(populated.registry, target)
    assert (third.blobs, third.added) == (0, {})
    assert {t: c for t, c in rows(target).items() if t != "x"}["replacement"].total() == 3


def test_schema_is_not_carried() -> None:
    """A table that is added is carried unless it is named here."""
    left: set[Any] = set(Table.metadata.tables) - {t.name for t in TABLES}
    assert left == {"registry_schema"}
