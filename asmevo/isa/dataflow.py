"""Liveness, definitions and uses of registers over all paths."""

from __future__ import annotations

from asmevo.isa.cfg import Cfg
from asmevo.isa.effects import effects, has_side_effects
from asmevo.isa.program import Program
from asmevo.isa.registers import EVERYTHING, EXEC_MASK, MODE_MASK
from asmevo.isa.violation import Violation

ENTRY = -1


def liveness(program: Program, *, full_exec: bool = True) -> tuple[int, ...]:
    """The registers live *after* each instruction, as masks.

    Nothing is live after ``s_endpgm``. A vector write ends the life of the old value only where all
    lanes are known to be on (see :func:`asmevo.isa.effects.machine_states` for ``full_exec``).
    Unreachable instructions have nothing live. Raises ControlFlowError.
    """
    return _live(program, full_exec=full_exec, needed=False)


def useful(program: Program) -> tuple[int, ...]:
    """The registers after each instruction on which what the program does may depend: those that
    are live, but for what is read to no effect."""
    return _live(program, full_exec=True, needed=True)


def _live(program: Program, *, full_exec: bool, needed: bool) -> tuple[int, ...]:
    cfg = Cfg.of(program)
    facts = effects(program, cfg, full_exec=full_exec)
    live_in = dict.fromkeys(cfg.order, 0)
    after = [0] * len(program)
    changed = True
    while changed:
        changed = False
        for number in reversed(cfg.order):
            block = cfg.blocks[number]
            live = 0
            for successor in block.successors:
                live |= live_in[successor]
            for index in range(block.end - 1, block.start - 1, -1):
                after[index] = live
                fact = facts[index]
                if needed and not fact.writes & live and not has_side_effects(
                        program.instructions[index]):
                    continue
                live = live & ~fact.kills | fact.reads
            if live != live_in[number]:
                live_in[number] = live
                changed = True
    return tuple(after)


def users(program: Program, index: int, *, full_exec: bool = True) -> tuple[int, ...]:
    """Instructions that may read what ``index`` writes, ascending.

    Raises ControlFlowError.
    """
    cfg = Cfg.of(program)
    facts = effects(program, cfg, full_exec=full_exec)
    found: set[int] = set()
    # Registers still holding the value on arrival, per instruction.
    arrived: dict[int, int] = {}
    pending = [(following, facts[index].writes) for following in cfg.next_indices(index)]
    while pending:
        here, registers = pending.pop()
        known = arrived.get(here, 0)
        if registers | known == known:
            continue
        arrived[here] = known | registers
        if facts[here].reads & registers:
            found.add(here)
        remaining = registers & ~facts[here].kills
        if remaining:
            pending += [(following, remaining) for following in cfg.next_indices(here)]
    return tuple(sorted(found))


def reaching_definitions(program: Program, index: int, registers: int, *,
                         full_exec: bool = True) -> tuple[int, ...]:
    """Instructions whose write to ``registers`` may still stand just before ``index``, ascending.

    :data:`ENTRY` stands for the value at kernel entry. Raises ControlFlowError.
    """
    cfg = Cfg.of(program)
    facts = effects(program, cfg, full_exec=full_exec)
    found: set[int] = set()
    # Wanted registers with which each block was entered from behind.
    arrived: dict[int, int] = {}
    pending = [(cfg.block_of[index], index, registers)]
    while pending:
        number, end, wanted = pending.pop()
        start = cfg.blocks[number].start
        # The entry's block is entered in front of its first instruction.
        for here in range(end - 1, start - 1, -1):
            fact = facts[here]
            if fact.writes & wanted:
                found.add(here)
                wanted &= ~fact.kills
                if not wanted:
                    break
        if not wanted:
            continue
        if start == program.entry:
            found.add(ENTRY)
        for previous in cfg.blocks[number].predecessors:
            last = cfg.blocks[previous].end
            known = arrived.get(previous, 0)
            if wanted & ~known and cfg.reachable(last - 1):
                arrived[previous] = known | wanted
                pending.append((previous, last, wanted))
    return tuple(sorted(found))


def defined_before_use(program: Program, entry_defined: int) -> tuple[Violation, ...]:
    """Reads of registers that some path from the entry never wrote.

    ``entry_defined`` are the registers the launch initialises; EXEC and MODE always are. A write
    under a partial EXEC counts as a definition, and operands moved by VGPR indexing are not looked
    at: what they reach is known only at run time. Unknown code counts as reading every register
    and writing none. Each violation has kind ``undefined-read`` and
    producer :data:`ENTRY`. Raises ControlFlowError.
    """
    cfg = Cfg.of(program)
    defined_out = dict.fromkeys(cfg.order, EVERYTHING)
    defined_in = dict.fromkeys(cfg.order, EVERYTHING)
    written: dict[int, int] = {}
    for number in cfg.order:
        block = cfg.blocks[number]
        total = 0
        for index in range(block.start, block.end):
            total |= 0 if index in cfg.unknown else program.instructions[index].writes
        written[number] = total
    changed = True
    while changed:
        changed = False
        for number in cfg.order:
            defined = EVERYTHING
            if number == cfg.entry:
                defined = entry_defined | EXEC_MASK | MODE_MASK
            for previous in cfg.blocks[number].predecessors:
                defined &= defined_out.get(previous, EVERYTHING)
            defined_in[number] = defined
            if defined_out[number] != defined | written[number]:
                defined_out[number] = defined | written[number]
                changed = True
    violations = []
    for number in sorted(cfg.order):
        defined = defined_in[number]
        for index in range(cfg.blocks[number].start, cfg.blocks[number].end):
            instruction = program.instructions[index]
            unknown = index in cfg.unknown
            undefined = (EVERYTHING if unknown else instruction.reads) & ~defined
            if undefined:
                violations.append(Violation(
                    "undefined-read", ENTRY, index, "", instruction.text, undefined, 0, 0))
            if not unknown:
                defined |= instruction.writes
    return tuple(violations)
