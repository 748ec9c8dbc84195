"""Which items of a trace must keep their order."""

from __future__ import annotations

from collections.abc import Set
from dataclasses import dataclass

from asmevo.isa.cfg import Cfg
from asmevo.isa.dependence import address_base, address_extent, address_operands, address_resource
from asmevo.isa.instruction import Instruction, Unit
from asmevo.isa.program import Program
from asmevo.isa.registers import EXEC_MASK, mask, members
from asmevo.propose.scheduler.trace import Trace

_GLOBAL = (Unit.VMEM, Unit.FLAT)
# Cache bits by which an access takes part in an order between waves or devices.
_COHERENT = ("sc0", "sc1")
_EXCHANGES = ("ds_bpermute", "ds_permute", "ds_swizzle")


def touches_memory(i: Instruction) -> bool:
    """Whether an instruction reads or writes memory; exchanges between lanes do not, though LDS
    hardware makes them.
    """
    return i.accesses_memory and not i.op.startswith(_EXCHANGES)


def stores_before(program: Program, cfg: Cfg) -> frozenset[int]:
    """Instructions that a wave may reach after it has written global memory."""
    def writes(index: int) -> bool:
        i = program.instructions[index]
        return i.unit in _GLOBAL and (i.is_store or i.is_atomic)

    reached: set[int] = set()
    found: set[int] = set()
    pending: list[int] = []
    for number in cfg.order:
        block = cfg.blocks[number]
        first = next((i for i in range(block.start, block.end) if writes(i)), None)
        if first is not None:
            found.update(range(first + 1, block.end))
            pending += block.successors
    while pending:
        number = pending.pop()
        if number not in reached:
            reached.add(number)
            block = cfg.blocks[number]
            found.update(range(block.start, block.end))
            pending += block.successors
    return frozenset(found)


@dataclass(frozen=True, slots=True)
class _Access:
    """A memory access, with the values of its address registers at its place in the trace."""

    item: int
    instruction: Instruction
    resource: tuple[object, ...]
    base: tuple[object, ...]
    extent: tuple[int, int] | None
    exposed: bool  # a store may precede it in its wave


class OrderConstraints:
    """``before[k]`` are the items that must stay in front of item ``k`` of a trace.

    Registers, implicit ones included, memory accesses that may overlap, barriers and fences decide.
    A load of global memory may be issued in front of a barrier that it follows when no store can
    precede it. With ``assume_disjoint`` accesses through different resources, and through the same
    address at disjoint offsets, are taken not to overlap, and loads of global memory not to depend
    on barriers at all. Nothing crosses pinned items with instructions that are not among ``seen``.
    """

    def __init__(self, program: Program, trace: Trace, *, fences: Set[int], guards: Set[int],
                 exposed: Set[int], placed: Set[int], assume_disjoint: bool = False,
                 seen: Set[int] | None = None) -> None:
        self._program = program
        self._assume = assume_disjoint
        self.before: list[set[int]] = []
        writer: dict[int, int] = {}
        readers: dict[int, list[int]] = {}
        versions: dict[int, int] = {}
        accesses: list[_Access] = []
        barrier = fence = pin = -1
        instructions = program.instructions
        for k, item in enumerate(trace.items):
            before: set[int] = set()
            kept = item.kept
            if not kept or kept[0] in placed:
                # Nothing is executed here, or a wait that is put anew.
                self.before.append({pin} if item.pinned and pin >= 0 else set())
                pin = k if item.pinned else pin
                continue
            reads = writes = 0
            for index in kept:
                reads |= instructions[index].reads
                writes |= instructions[index].writes
            if len(kept) > 1 and not item.pinned:
                # Lanes are switched back on: behind it EXEC is what it was.
                writes &= ~EXEC_MASK
            for register in members(reads):
                if register in writer:
                    before.add(writer[register])
            for register in members(writes):
                if register in writer:
                    before.add(writer[register])
                before.update(readers.get(register, ()))
            is_barrier = any(instructions[i].unit is Unit.BARRIER or i in guards for i in kept)
            own = [self._access(k, i, versions, i in exposed) for i in kept
                   if touches_memory(instructions[i])]
            if own or is_barrier:
                if barrier >= 0 and (is_barrier or not all(map(self._free_to_rise, own))):
                    before.add(barrier)
                for access in accesses:
                    if (is_barrier and not self._free_to_sink(access)) or any(
                            self._ordered(access, mine) for mine in own):
                        before.add(access.item)
                accesses += own
            if is_barrier:
                barrier = k
            if item.pinned:
                if pin >= 0:
                    before.add(pin)
                pin = k
            if fence >= 0:
                before.add(fence)
            closed = seen is not None and item.pinned and any(i not in seen for i in kept)
            if closed or (any(i in fences for i in kept) and item.pinned and not all(
                    instructions[i].is_branch for i in kept if i in fences) and len(kept) == 1):
                before.update(range(max(fence, 0), k))
                fence = k
            before.discard(k)
            self.before.append(before)
            for register in members(reads):
                readers.setdefault(register, []).append(k)
            for register in members(writes):
                writer[register] = k
                readers[register] = [k] if reads >> register & 1 else []
                versions[register] = k
        last = len(trace.items) - 1
        if trace.items[last].pinned and last:
            # Behind the end of the trace nothing is executed.
            self.before[last] |= set(range(last))

    def _access(self, k: int, index: int, versions: dict[int, int], exposed: bool) -> _Access:
        i = self._program.instructions[index]
        values = tuple((r, versions.get(r, -1)) for first, count in address_operands(i)
                       for r in members(mask(first, count)))
        return _Access(k, i, address_resource(i), (address_base(i), values), address_extent(i),
                       exposed)

    def _free_to_rise(self, access: _Access) -> bool:
        """Whether a load sees the same in front of a barrier as behind it."""
        i = access.instruction
        if (i.unit is Unit.SMEM and i.is_load) or i.is_atomic or i.is_store:
            return i.unit is Unit.SMEM and i.is_load
        return (i.unit in _GLOBAL and not i.modifier("lds") and "_lds_" not in i.op
                and not any(i.modifier(m) for m in _COHERENT)
                and (self._assume or not access.exposed))

    def _free_to_sink(self, access: _Access) -> bool:
        return self._assume and self._free_to_rise(access)

    def _ordered(self, first: _Access, second: _Access) -> bool:
        a, b = first.instruction, second.instruction
        to_lds = bool(a.modifier("lds") or b.modifier("lds")) or "_lds_" in a.op or "_lds_" in b.op
        if a.is_atomic or b.is_atomic:
            return a.unit is b.unit or Unit.FLAT in (a.unit, b.unit) or (
                Unit.SMEM in (a.unit, b.unit))
        if a.is_load and b.is_load:
            return to_lds
        if {a.unit, b.unit} == {Unit.LDS, Unit.VMEM} or Unit.SMEM in (a.unit, b.unit):
            # The scalar cache is not coherent with vector stores: no kernel may rely on an order.
            return to_lds
        if Unit.FLAT in (a.unit, b.unit) or to_lds or not self._assume:
            return True
        if first.resource != second.resource:
            return False
        if first.base != second.base or first.extent is None or second.extent is None:
            return True
        return first.extent[0] < second.extent[1] and second.extent[0] < first.extent[1]
