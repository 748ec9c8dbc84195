"""Two versions of a code object compared as assembly."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from asmevo.errors import AsmEvoError
from asmevo.registry.browse.assembly_text import Function, comparable, functions
from asmevo.registry.catalog.identities import Identity, Kind
from asmevo.registry.errors import RegistryError
from asmevo.report import assembly_diff
from asmevo.report.assembly_diff import Row

if TYPE_CHECKING:
    from asmevo.codeobject.assembly import Assembly
    from asmevo.registry.registry import Registry

_WIDTH = re.compile(r"_e(32|64)$")


@dataclass(frozen=True, slots=True)
class Side:
    """One version: what it is called, its text and where that comes from, its object if stored."""

    identity: Identity
    told: str
    text: str
    origin: str
    object_sha256: str | None

    def document(self) -> dict[str, Any]:
        """The side as a part of a document."""
        return {"kind": self.identity.kind.value, "id": self.identity.id, "text": self.origin,
                "object_sha256": self.object_sha256}


@dataclass(frozen=True, slots=True)
class Change:
    """One function of both versions; ``rows`` hold all lines, the unchanged ones too."""

    symbol: str
    old: Function
    new: Function
    rows: tuple[Row, ...]
    resources: tuple[tuple[str, str, str], ...]

    @property
    def counts(self) -> Mapping[str, int]:
        """Lines by what became of them; a moved or changed one counts once."""
        found = assembly_diff.counts(self.rows)
        return {kind.value: found[kind] for kind in assembly_diff.Kind}

    @property
    def same(self) -> bool:
        """Whether nothing differs but, perhaps, resources."""
        return all(row.same for row in self.rows)

    def mnemonics(self, kind: assembly_diff.Kind) -> Counter[str]:
        """How many of which instruction were removed, added or moved."""
        found: Counter[str] = Counter()
        for row in self.rows:
            for half, lines in ((row.old, self.old.lines), (row.new, self.new.lines)):
                moved_twice = kind is assembly_diff.Kind.MOVED and half is row.new
                if half is not None and half.kind is kind and not moved_twice:
                    found[_WIDTH.sub("", lines[half.index].split(maxsplit=1)[0])] += 1
        return found

    def directives(self) -> Iterator[tuple[str, str | None, str | None]]:
        """Settings of the descriptor that differ: name, before and after."""
        for name in {**self.old.directives, **self.new.directives}:
            values = self.old.directives.get(name), self.new.directives.get(name)
            if values[0] != values[1]:
                yield name, *values


@dataclass(frozen=True, slots=True)
class Comparison:
    """All functions that both versions have, and those that only one has; sizes in bytes."""

    old: Side
    new: Side
    changes: tuple[Change, ...]
    gone: tuple[str, ...]
    added: tuple[str, ...]
    sizes: tuple[int | None, int | None]

    def document(self) -> dict[str, Any]:
        """``diff``: unchanged lines are left out."""
        from asmevo.registry.browse.documents import SCHEMA_VERSION

        return {
            "schema_version": SCHEMA_VERSION, "old": self.old.document(),
            "new": self.new.document(), "gone": list(self.gone), "added": list(self.added),
            "bytes": {"old": self.sizes[0], "new": self.sizes[1]},
            "functions": [_change_entry(change) for change in self.changes]}


def compare(registry: Registry, old: Identity, new: Identity,
            kernel: str | None = None) -> Comparison:
    """Compare two objects or candidates, or only one ``kernel`` of them. Raises `RegistryError`."""
    sides = side(registry, old), side(registry, new)
    before, after = functions(sides[0].text), functions(sides[1].text)
    if kernel is not None:
        for found, at in ((before, sides[0]), (after, sides[1])):
            if kernel not in found:
                raise RegistryError(f"{at.told} has no function '{kernel}', it has "
                                    f"{', '.join(found) or 'none'}")
        before, after = {kernel: before[kernel]}, {kernel: after[kernel]}
    pairs = [(symbol, before[symbol], after[symbol]) for symbol in before if symbol in after]
    if not pairs and len(before) == len(after) == 1:
        # Two kernels of different names, which somebody wants to see beside each other.
        pairs = [(f"{a} / {b}", before[a], after[b]) for a in before for b in after]
    done = {function.symbol for _, *both in pairs for function in both}
    data = [None if s.object_sha256 is None else registry.load_object(s.object_sha256)
            for s in sides]
    return Comparison(
        *sides, tuple(_change(pair, data) for pair in pairs),
        tuple(symbol for symbol in before if symbol not in done),
        tuple(symbol for symbol in after if symbol not in done),
        (None if data[0] is None else len(data[0]), None if data[1] is None else len(data[1])))


def side(registry: Registry, identity: Identity) -> Side:
    """One version, its text recovered or edited again where it is not stored."""
    if identity.kind is Kind.CANDIDATE:
        record = registry.candidate(identity.id)
        if record.assembly_sha256 is not None:
            return Side(identity, f"candidate {record.id}",
                        registry.load_text(record.assembly_sha256), "stored",
                        record.object_sha256)
        return Side(identity, f"candidate {record.id}", _edited(registry, record.id).text(),
                    "edited again", record.object_sha256)
    told = f"object {identity.id}"
    for replacement in registry.replacements(object_sha256=identity.id):
        made = registry.candidate(replacement.candidate_id)
        if made.assembly_sha256 is not None:
            return Side(identity, told, registry.load_text(made.assembly_sha256), "stored",
                        identity.id)
    if recovered := registry.recovered(identity.id):
        return Side(identity, told, registry.load_text(recovered[-1].assembly_sha256), "stored",
                    identity.id)
    return Side(identity, told, _recovered(registry, identity.id).text(), "recovered again",
                identity.id)


def _recovered(registry: Registry, sha256: str) -> Assembly:
    from asmevo.codeobject.container import CodeObject
    from asmevo.codeobject.recover import recover

    return recover(CodeObject.parse(registry.load_object(sha256)))


def _edited(registry: Registry, candidate_id: str) -> Assembly:
    """Rejected candidates are kept as edits of their parent only."""
    from asmevo.registry.browse.ancestry import ancestry

    steps = ancestry(registry, candidate_id)
    assembly = _recovered(registry, steps[0].record.original_sha256)
    for step in steps:
        assembly = assembly.apply(step.record.edits)
    return assembly


def _change(pair: tuple[str, Function, Function], data: Sequence[bytes | None]) -> Change:
    symbol, old, new = pair
    lines = comparable(old, new)
    return Change(symbol, old, new, assembly_diff.compared(*lines), _resources(data, old, new))


def _resources(data: Sequence[bytes | None], old: Function,
               new: Function) -> tuple[tuple[str, str, str], ...]:
    from asmevo.codeobject.container import CodeObject
    from asmevo.codeobject.resource_change import ResourceChange

    before, after = data
    if before is None or after is None or old.symbol != new.symbol:
        return ()
    try:
        return ResourceChange.between(CodeObject.parse(before), CodeObject.parse(after),
                                      old.symbol).rows()
    except AsmEvoError:  # a device function, or a processor of unknown occupancy
        return ()


def _change_entry(change: Change) -> dict[str, Any]:
    kinds = assembly_diff.Kind
    return {
        "symbol": change.symbol,
        "instructions": {"old": len(change.old.lines), "new": len(change.new.lines)},
        "counts": dict(change.counts),
        "removed": dict(change.mnemonics(kinds.GONE)),
        "added": dict(change.mnemonics(kinds.NEW)),
        "moved": dict(change.mnemonics(kinds.MOVED)),
        "resources": [{"name": name, "old": a, "new": b} for name, a, b in change.resources],
        "directives": [{"name": name, "old": a, "new": b} for name, a, b in change.directives()],
        "lines": [_line_entry(change, row) for row in change.rows if not row.same],
    }


def _line_entry(change: Change, row: Row) -> dict[str, Any]:
    return {side: None if half is None else {
        "index": half.index, "text": lines[half.index], "kind": half.kind.value,
        "other": half.other}
        for side, half, lines in (("old", row.old, change.old.lines),
                                  ("new", row.new, change.new.lines))}
