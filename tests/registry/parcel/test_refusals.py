"""What is not taken, and that it leaves nothing behind but blobs that nothing names."""

from __future__ import annotations

import hashlib
import io
import json
import struct
from collections import Counter
from collections.abc import Callable, Mapping
from contextlib import suppress
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
import zstandard
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from asmevo.gates.verdict import Gate, Outcome, Verdict
from asmevo.registry.audit.verify import verify
from asmevo.registry.database.models import Table, UtcDateTime
from asmevo.registry.database.row_digest import values_digest
from asmevo.registry.errors import RegistryError
from asmevo.registry.parcel.coding import carried
from asmevo.registry.parcel.errors import ParcelError, ParcelFault
from asmevo.registry.parcel.format import (
    END,
    MAGIC,
    Head,
    ParcelReader,
    write_parcel,
)
from asmevo.registry.parcel.gather import Selection
from asmevo.registry.parcel.load import load, push
from asmevo.registry.records import RunStatus
from asmevo.registry.registry import Registry
from asmevo.registry.signing.keys import generate, load_signing_key
from asmevo.registry.signing.trust import load_trust
from tests.registry.parcel.test_exchange import exported, rows

if TYPE_CHECKING:
    from tests.registry.populated import Populated


def refusal(target: Registry, data: bytes, **options: Any) -> ParcelFault:
    """Why a bundle is refused, after looking that nothing of it is in the registry."""
    before = rows(target) if target.database.exists() else None
    with pytest.raises(ParcelError) as caught:
        load(target, io.BytesIO(data), **options)
    assert "\n" not in str(caught.value)
    if before is not None:
        assert rows(target) == before
        assert verify(target, quick=True).findings == []
    else:
        assert not target.database.exists()
    return caught.value.code


# -- signatures -----------------------------------------------------------------------------------


def test_signatures(populated: Populated, target: Registry, parcel: bytes, tmp_path: Path) -> None:
    generate(tmp_path / "foreign")
    ours, foreign = load_trust(Path(f"{populated.key}.pub")), load_trust(tmp_path / "foreign.pub")
    unsigned = exported(populated.registry)
    assert refusal(target, unsigned, trust=ours) is ParcelFault.UNSIGNED
    assert refusal(target, parcel, trust=foreign) is ParcelFault.UNTRUSTED
    assert not (target.path / "blobs").exists()
    assert load(target, io.BytesIO(parcel), trust=ours).signer in ours.keys
    assert load(target, io.BytesIO(unsigned)).added == {}


def test_a_signature_of_something_else(target: Registry, parcel: bytes) -> None:
    at = parcel.index(b"\1", len(MAGIC) + 4 + head_size(parcel))
    for position in (at + 1, at + 33, len(MAGIC) + 10):
        damaged = bytearray(parcel)
        damaged[position] ^= 1
        assert refusal(target, bytes(damaged)) is ParcelFault.SIGNATURE_INVALID


def test_the_signature_can_be_checked_by_others(populated: Populated, parcel: bytes,
                                                tmp_path: Path) -> None:
    """By whoever has the file, the public key and the text of docs/registry.md."""
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

    size = head_size(parcel)
    start = len(MAGIC) + 4
    head, rest = parcel[start:start + size], parcel[start + size:]
    assert rest[0] == 1
    message = b"asmevo-bundle-v1\n" + hashlib.sha256(head).hexdigest().encode() + b"\n"
    Ed25519PublicKey.from_public_bytes(rest[1:33]).verify(rest[33:97], message)
    assert rest[1:33].hex() == load_signing_key(populated.key).public_key


def head_size(parcel: bytes) -> int:
    [size] = struct.unpack_from("<I", parcel, len(MAGIC))
    return int(size)


# -- conflicts ------------------------------------------------------------------------------------


def changed(registry: Registry, table: str, key: str, **values: object) -> None:
    """Change a row as somebody would who recomputes its digest."""
    described = Table.metadata.tables[table]
    [column] = described.primary_key.columns
    of = described.c.get("candidate_id", column) if table == "replacement" else column
    with registry.database.write() as session:
        [row] = session.connection().execute(
            described.select().where(of == key)).mappings()
        new: dict[str, Any] = {**row, **values}
        new["digest"] = values_digest(described, new)
        session.connection().execute(described.update().where(of == key).values(**new))


@pytest.mark.parametrize(("table", "values", "named"), [
    ("run", {"seed": 99}, "run '{run}'"),
    ("candidate", {"rationale": "another"}, "candidate 'child'"),
    ("candidate", {"status": "rejected"}, "candidate 'child'"),
    ("replacement", {"speedup": 9.0}, "candidate 'child'"),
    ("judgement", {"data": {}}, "candidate 'child'"),
])
def test_other_content_under_the_same_name(
        populated: Populated, target: Registry, parcel: bytes, table: str,
        values: Mapping[str, object], named: str) -> None:
    push(populated.registry, target, Selection(candidates=["child"]))
    changed(target, table, populated.run_id if table == "run" else "child", **values)
    before, blobs = rows(target), set(target.path.rglob("*.zst"))
    with pytest.raises(ParcelError, match="already; nothing was changed") as caught:
        load(target, io.BytesIO(parcel))
    assert caught.value.code is ParcelFault.CONFLICT
    assert named.format(run=populated.run_id) in str(caught.value)
    assert rows(target) == before
    assert set(target.path.rglob("*.zst")) == blobs
    with pytest.raises(ParcelError, match="nothing was changed"):
        push(populated.registry, target)


# -- what only one of two registries knows --------------------------------------------------------


def test_a_run_that_went_on(populated: Populated, target: Registry) -> None:
    """Either way round, the state after more events counts."""
    early = exported(populated.registry, Selection(candidates=["lone"]))
    run_id = next(r.run_id for r in populated.registry.replacements() if r.candidate_id == "lone")
    load(target, io.BytesIO(early))
    assert target.run(run_id).status is RunStatus.RUNNING
    populated.registry.record_search(run_id, [{"number": 0, "kind": "ended", "why": "seconds"}])
    populated.registry.finish_run(run_id, RunStatus.COMPLETED)
    assert push(populated.registry, target).added["search_event"] > 0
    assert target.run(run_id) == populated.registry.run(run_id)
    assert load(target, io.BytesIO(early)).added == {}
    assert target.run(run_id).status is RunStatus.COMPLETED


def test_a_later_second_timing_counts(populated: Populated, target: Registry) -> None:
    early = exported(populated.registry)
    load(target, io.BytesIO(early))
    populated.registry.record_second_timing(
        "child", 0.99, Verdict(Gate.G3, Outcome.FAIL, "slower", "again"), confirmed=False)
    with pytest.raises(ParcelError, match="no replacement is meant"):
        exported(populated.registry, Selection(kernels=["nothing"]))
    push(populated.registry, target, Selection(candidates=["child"]))
    again = {r.candidate_id: r for r in target.replacements()}["child"]
    assert (again.withdrawn, again.speedup_again) == (True, 0.99)
    assert verify(target).findings == []
    load(target, io.BytesIO(early))  # from before, which takes nothing back
    assert {r.candidate_id: r.withdrawn for r in target.replacements()}["child"]
    left = exported(target)
    assert b"asmevo parcel" in left
    assert "child" not in {r.candidate_id for r in _imported(left, target)}


def _imported(data: bytes, registry: Registry) -> tuple[Any, ...]:
    other = Registry(registry.path.with_name("third"))
    try:
        load(other, io.BytesIO(data))
        return other.replacements()
    finally:
        other.close()


def test_signatures_come_together(populated: Populated, target: Registry, tmp_path: Path) -> None:
    push(populated.registry, target)
    generate(tmp_path / "second")
    second = load_signing_key(tmp_path / "second")
    populated.registry.sign(["child"], second)
    assert push(populated.registry, target).added == {"signature": 1}
    assert verify(target, trust=load_trust(tmp_path / "second.pub")).findings != []  # the others'
    assert {f.subject for f in verify(
        target, trust=load_trust(tmp_path / "second.pub")).findings} == {
            "replacement lone", "replacement parent"}


def test_held_out_anywhere_is_held_out(populated: Populated, target: Registry) -> None:
    from tests.registry.conftest import make_dispatch

    target.record_dispatches([make_dispatch(populated.kernel, name="mine", fill=2)])
    push(populated.registry, target)
    assert verify(target).findings == []
    with target.database.read() as session:
        held = session.connection().execute(
            Table.metadata.tables["dispatch"].select()).mappings().all()
    assert {row["name"]: row["held_out"] for row in held} == {"m4": False, "held": True}


# -- damage ---------------------------------------------------------------------------------------


def test_cut_off_anywhere(target: Registry, parcel: bytes) -> None:
    for size in {*range(80), *range(0, len(parcel), 997), len(parcel) - 1}:
        assert refusal(target, parcel[:size]) in (
            ParcelFault.TRUNCATED, ParcelFault.NOT_A_BUNDLE, ParcelFault.DAMAGED)
    assert refusal(target, parcel + b"\0") is ParcelFault.DAMAGED


def test_files_of_another_kind(target: Registry) -> None:
    for data in (b"", b"\x7fELF" * 100, b"PK\3\4" * 100, b"asmevo parcel 2\n" + b"\0" * 100):
        assert refusal(target, data) is ParcelFault.NOT_A_BUNDLE


# A registry that is opened once for all examples; none of them may change it.
@settings(max_examples=60, deadline=None, derandomize=True,
          suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_any_change_of_a_signed_file(target: Registry, parcel: bytes, data: st.DataObject) -> None:
    """It is refused, or makes no difference: the signature is of what is compressed."""
    damaged = bytearray(parcel)
    for _ in range(data.draw(st.integers(1, 4))):
        at = data.draw(st.integers(0, len(damaged) - 1))
        match data.draw(st.sampled_from(["flip", "insert", "remove", "repeat"])):
            case "flip":
                damaged[at] ^= data.draw(st.integers(1, 255))
            case "insert":
                damaged[at:at] = data.draw(st.binary(min_size=1, max_size=8))
            case "remove":
                del damaged[at:at + data.draw(st.integers(1, 64))]
            case "repeat":
                damaged[at:at] = damaged[at:at + data.draw(st.integers(1, 64))]
    taken = False
    with suppress(ParcelError):
        load(target, io.BytesIO(bytes(damaged)))
        taken = True
    assert target.database.exists() == taken
    if taken:
        assert verify(target).findings == []
        target.close()
        (target.path / "asmevo.db").unlink()


# -- files that somebody made ---------------------------------------------------------------------


Records = list[Any]
_VALUE: Mapping[type, Callable[[Any], Any]] = {
    UtcDateTime: lambda value: None if value is None else datetime.fromisoformat(value)}


def forged(parcel: bytes, change: Callable[[Records], object]) -> bytes:
    """An unsigned bundle of the same records after a change, in which all lengths are right."""
    reader = ParcelReader(io.BytesIO(parcel))
    records = [json.loads(line) for line in reader.lines()]
    held = {r[1]: b"".join(reader.blob(r[1])) for r in records if r[0] == "blob"}
    change(records)
    counts: Counter[str] = Counter()
    for record in records:
        if isinstance(record, list) and record[0] != "blob":
            name, row = record
            counts[name] += 1
            if row.get("digest") == "new":
                table = Table.metadata.tables[name]
                row["digest"] = values_digest(table, {
                    c.name: _VALUE.get(type(c.type), lambda value: value)(row[c.name])
                    for c in carried(table)})
    lines = [json.dumps(r, sort_keys=True, separators=(",", ":")).encode() for r in records]
    content = b"".join(line + b"\n" for line in lines)
    listed = [r[1] for r in records if isinstance(r, list) and r[0] == "blob"]
    head = Head(len(content), hashlib.sha256(content).hexdigest(), counts, len(listed))
    out = io.BytesIO()
    write_parcel(out, head.to_bytes(), None, lines, ([held.get(name, b"")] for name in listed))
    return out.getvalue()


def test_the_forger_can_write_what_is_true(target: Registry, parcel: bytes) -> None:
    """Otherwise the tests below would show nothing."""
    assert load(target, io.BytesIO(forged(parcel, lambda records: None))).replacements == 3


def one(records: Records, table: str, **values: Any) -> dict[str, Any]:
    found: dict[str, Any] = next(
        r[1] for r in records if r[0] == table
        and all(r[1][name] == value for name, value in values.items()))
    return found


def without(records: Records, table: str) -> None:
    records.remove(next(r for r in records if r[0] == table))


LIES: Mapping[str, Callable[[Records], object]] = {
    "another digest": lambda r: one(r, "run").update(seed=5),
    "another speedup": lambda r: one(r, "replacement").update(speedup=9.5, digest="new"),
    "another isa": lambda r: one(r, "code_object").update(isa="gfx950", digest="new"),
    "another size": lambda r: one(r, "code_object").update(size=1, digest="new"),
    "other kernels": lambda r: one(r, "code_object").update(kernels=["k"], digest="new"),
    "a shown dispatch": lambda r: one(r, "dispatch", held_out=True).update(
        held_out=False, digest="new"),
    "another kernel": lambda r: one(r, "capture").update(kernel="k", digest="new"),
    "another verdict": lambda r: one(r, "verdict").update(reason="", digest="new"),
    "another attempt": lambda r: one(r, "verdict", gate="G2", attempt=3).update(
        attempt=4, digest="new"),
    "another timing": lambda r: one(r, "timing").update(samples=[1.0], digest="new"),
    "another signature": lambda r: one(r, "signature").update(signature="0" * 128, digest="new"),
    "no parent": lambda r: r.remove(next(x for x in r if x[1] == one(
        r, "candidate", id="parent"))),
    "its own parent": lambda r: one(r, "candidate", id="parent").update(
        parent_id="parent", digest="new"),
    "a column more": lambda r: one(r, "run").update(more=1),
    "a column less": lambda r: one(r, "run").pop("seed"),
    "a table that is none": lambda r: r.insert(0, ["sqlite_master", {"digest": "x"}]),
    "the version": lambda r: r.insert(0, ["registry_schema", {"digest": "x"}]),
    "a number": lambda r: r.insert(0, 7),
    "nothing": lambda r: r.clear(),
    "a row twice": lambda r: r.insert(0, r[0]),
    "too large a number": lambda r: one(r, "run").update(seed=1 << 70),
    "a text that is a number": lambda r: one(r, "run").update(device=7),
    "half a character": lambda r: one(r, "run").update(device="\ud800"),
    "another order of blobs": lambda r: r.append(r.pop(-2)),
    "a blob that is no name": lambda r: r.append(["blob", "../../etc/passwd"]),
    "a blob more": lambda r: r.append(["blob", "f" * 64]),
    "a blob less": lambda r: r.pop(),
    **{f"no {name}": lambda r, name=name: without(r, name)  # type: ignore[misc]
       for name in ("code_object", "dispatch", "run", "replacement", "statement", "verdict",
                    "timing", "judgement", "second_timing", "search_event")},
}


@pytest.mark.parametrize("lie", LIES)
def test_lies(target: Registry, parcel: bytes, lie: str) -> None:
    assert refusal(target, forged(parcel, LIES[lie])) in (
        ParcelFault.UNSOUND, ParcelFault.DAMAGED, ParcelFault.NOTHING)


def test_bombs(target: Registry, parcel: bytes) -> None:
    """A small file that would take much memory or disk."""
    bomb = zstandard.ZstdCompressor(level=3).compress(bytes(1 << 28))
    pieces = struct.pack("<I", len(bomb)) + bomb + bytes(4)
    for size in (1 << 27, 1 << 40):
        head = Head(size, "0" * 64, {"run": 1}, 1).to_bytes()
        data = MAGIC + struct.pack("<I", len(head)) + head + b"\0" + pieces + END
        assert refusal(target, data) is ParcelFault.TOO_LARGE
    deep = b"[" * (1 << 20)
    head = Head(len(deep) + 1, hashlib.sha256(deep + b"\n").hexdigest(), {}, 0).to_bytes()
    out = io.BytesIO()
    write_parcel(out, head, None, [deep], [])
    assert refusal(target, out.getvalue()) is ParcelFault.UNSOUND
    assert refusal(target, parcel, max_bytes=1000) is ParcelFault.TOO_LARGE
    huge = MAGIC + struct.pack("<I", 0xFFFFFFFF)
    assert refusal(target, huge) is ParcelFault.DAMAGED


# -- sources that are not sound -------------------------------------------------------------------


def test_nothing_unsound_is_sent(populated: Populated, target: Registry) -> None:
    changed(populated.registry, "replacement", "child", speedup=9.0)
    for send in (lambda: exported(populated.registry), lambda: push(populated.registry, target)):
        with pytest.raises(ParcelError, match="replacement child") as caught:
            send()
        assert caught.value.code is ParcelFault.UNSOUND
    assert exported(populated.registry, Selection(candidates=["lone"]))


def test_damaged_blobs_are_not_sent(populated: Populated) -> None:
    record = populated.registry.replacements()[0]
    [path] = populated.registry.path.rglob(f"{record.object_sha256}.zst")
    path.write_bytes(path.read_bytes()[:-3])
    with pytest.raises(RegistryError, match="blob"):
        exported(populated.registry)
