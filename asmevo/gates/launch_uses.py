"""What a kernel's control flow and lane masks depend on, compared with the original's.

Equality on tested launches cannot vouch for others: a kernel that behaves differently from M = 1000
on passes every smaller launch. So a candidate may decide nothing that the original does not decide:
each value that a conditional branch tests or that becomes EXEC, and that depends on arguments, ids,
memory or the hardware's state, must be one that the original tests or makes as well, and none may
be lost. Values are compared by `asmevo.isa.values`, so that order, registers and the way they are
computed do not matter. What depends on nothing of the launch is free.

Selections, comparisons, shifts to the right, masks, minima and maxima of what arguments and ids
decide must also be the original's: they decide without a branch. Loaded data are left out here, as
inputs vary them; and what work-item ids alone make in vector operations that do not compare.

Where the launch decides how often a loop is run, it also decides what a counter of constants holds:
such values are treated as the launch's.
"""

from __future__ import annotations

from collections.abc import Container, Iterator
from dataclasses import dataclass

from asmevo.gates.lane_masks import LeavingLanes
from asmevo.isa.addresses import high_without_turns, signed, without_turns
from asmevo.isa.instruction import Instruction, Unit
from asmevo.isa.lane_skips import skips_nothing
from asmevo.isa.program import Program
from asmevo.isa.registers import EXEC_HI, EXEC_LO, EXEC_MASK, SCC, SCC_MASK, VCC_LO, VGPR0, members
from asmevo.isa.turns import is_sign_of_turn
from asmevo.isa.value_numbers import Numbers, Taint
from asmevo.isa.values import Values

# Scalar operations that lose part of what they are given, and vector ones that compare integers.
# What scalar comparisons find is looked at where it is used.
_NARROWING = (
    "s_min_", "s_max_", "s_lshr_", "s_ashr_", "s_bfe_", "s_and_b",
    "s_andn2_b", "s_or_b", "s_mul_hi", "s_absdiff", "s_abs_", "s_ff", "s_flbit", "s_bcnt", "s_sext",
    "s_cselect", "s_cmov", "s_addc", "s_subb", "v_cmp_", "v_cmpx_",
    "v_min_u32", "v_max_u32", "v_min_i32", "v_max_i32",
    "v_med3_u32", "v_med3_i32", "v_min3_u32", "v_max3_u32", "v_sub_co", "v_add_co", "v_subrev_co",
)
_NARROWING_VECTOR = (
    "v_lshrrev", "v_ashrrev", "v_and_", "v_bfe_", "v_bfi_", "v_mul_hi", "v_perm_", "v_alignb",
    "v_mul_u32_u24", "v_mul_i32_i24", "v_mad_u32_u24", "v_mad_i32_i24",
    "v_max_f", "v_min_f", "v_med3_f", "v_cvt_", "v_ffb", "v_bcnt", "v_sad_", "v_or_b32",
)
# A carry tells how two numbers compare; those of addresses change with the order of additions.
_CARRYING = ("s_addc_u32", "s_subb_u32")
_VECTOR_CARRIES = ("v_add_co", "v_sub_co", "v_subrev_co", "v_addc_co", "v_subb_co", "v_subbrev_co")
_CARRIES = (*_CARRYING, *_VECTOR_CARRIES)
# By how many turns of the loop a condition on its counter may move.
_MOST_TURNS = 64
NARROWING = (*_NARROWING, *_NARROWING_VECTOR)
_UNIFORM = Taint.KERNARG | Taint.WORKGROUP | Taint.HARDWARE
_LOADED = Taint.MEMORY | Taint.LDS
_MOST_NAMED = 4


@dataclass(frozen=True, slots=True)
class Use:
    """One place where the launch decides something; ``values`` are numbers of `Numbers`."""

    kind: str
    values: tuple[int, ...]

    @property
    def is_skip(self) -> bool:
        """A jump over code that no lane would execute."""
        return self.kind == "skip"


@dataclass(frozen=True, slots=True)
class Bound:
    """A condition's number and constant, and by how much a turn of a loop moves what it tests."""

    condition: int
    constant: int
    turn: int
    shifted: bool = False  # by constants on both sides, which may overflow on one

    def is_turn_of(self, other: Bound) -> bool:
        """Whether it is another one some whole turns earlier or later.

        Part of a turn would treat a remainder in another way, which tested sizes may not have.
        """
        distance = abs(self.constant - other.constant)
        return self.condition == other.condition or (
            not self.shifted and other.turn > 0 and not distance % other.turn
            and distance <= _MOST_TURNS * other.turn)


@dataclass(frozen=True)
class LaunchUses:
    """All such places of one kernel: where each use is first, and by what it was moved.

    ``bounds`` are the constants of conditions that a loop's counter decides, ``idle`` jumps that
    make no difference wherever they are (`asmevo.isa.lane_skips`).
    """

    first: dict[Use, int]
    narrowed: dict[int, int]
    bounds: dict[Use, set[Bound]]
    idle: frozenset[Use] = frozenset()

    @staticmethod
    def of(values: Values, pointers: Container[int] = ()) -> LaunchUses:
        """``pointers`` are the offsets of the kernarg's words that are parts of pointers.

        Raises `ControlFlowError` for code that cannot be followed.
        """
        program, numbers = values.program, values.numbers
        first: dict[Use, int] = {}
        bounds: dict[Use, set[Bound]] = {}
        narrowed: dict[int, int] = {}
        skips: set[Use] = set()
        idle: set[Use] = set()
        counters = Counters(values)
        for index, instruction in enumerate(program.instructions):
            if not values.cfg.reachable(index):
                continue
            use = _use(values, index, instruction)
            if use is not None and _decides(use, values, counters, index):
                if use.kind == "branch" and len(use.values) == 1:
                    use, bound = _condition(use.values[0], numbers)
                    bounds.setdefault(use, set()).add(bound)
                if use.is_skip:
                    (idle if skips_nothing(program, index) else skips).add(use)
                first.setdefault(use, index)
            if not instruction.op.startswith(NARROWING):
                continue
            for number in _narrowed(values, index, instruction):
                taint = numbers.taints[number]
                if taint & _LOADED or not (taint & _UNIFORM or (
                        taint & Taint.PATH and counters.decide(index))):
                    continue
                if not (instruction.op.startswith(_CARRIES)
                        and _is_address(number, numbers, pointers)):
                    narrowed.setdefault(number, index)
        return LaunchUses(first, narrowed, bounds, frozenset(idle - skips))


def decides(values: Values, index: int) -> bool:
    """Whether the launch decides what a branch tests, and it makes a difference."""
    if skips_nothing(values.program, index):
        return False
    use = _use(values, index, values.program.instructions[index])
    return use is not None and _decides(use, values, Counters(values), index)


def other_skips(values: Values, original: LaunchUses) -> Iterator[int]:
    """The branches on EXEC that find lanes where none of the original's does."""
    for index, i in enumerate(values.program.instructions):
        if i.is_branch and i.reads & EXEC_MASK and values.cfg.reachable(index):
            use = _use(values, index, i)
            if use is not None and use.is_skip and use not in original.first:
                yield index


def _decides(use: Use, values: Values, counters: Counters, index: int) -> bool:
    taint = 0
    for number in use.values:
        taint |= values.numbers.taints[number]
    return bool(taint & ~Taint.PATH or (taint and counters.decide(index)))


class Counters:
    """Tells whether the launch decides how often what an instruction reads was changed."""

    def __init__(self, values: Values) -> None:
        self._values = values
        self._known: dict[int, bool] = {}
        self._blocks: frozenset[int] | None = None
        self.asked = 0

    def decide(self, index: int) -> bool:
        self.asked += 1
        known = self._known.get(index)
        if known is None:
            if self._blocks is None:
                self._blocks = _launched_loops(self._values)
            block_of = self._values.cfg.block_of
            known = self._known[index] = bool(self._blocks) and any(
                block_of[origin] in self._blocks for origin in self._values.origins(index))
        return known


def _launched_loops(values: Values) -> frozenset[int]:
    """The blocks of loops that a branch leaves which depends on more than the path."""
    cfg, program, taints = values.cfg, values.program, values.numbers.taints
    found: set[int] = set()
    for loop in cfg.loops():
        for block in loop.blocks:
            if not set(cfg.blocks[block].successors) - set(loop.blocks):
                continue
            last = cfg.blocks[block].end - 1
            use = _use(values, last, program.instructions[last])
            if use is not None and any(taints[v] & ~Taint.PATH for v in use.values):
                found.update(loop.blocks)
                break
    return frozenset(found)


def _is_address(number: int, numbers: Numbers, pointers: Container[int]) -> bool:
    return any(form[0] == "kernarg" and form[1] in pointers for form in numbers.leaves(number))


def _use(values: Values, index: int, i: Instruction) -> Use | None:
    numbers = values.numbers
    if i.writes & EXEC_MASK:
        made = (values.after(index, r) for r in (EXEC_LO, EXEC_HI) if i.writes >> r & 1)
        return Use("mask", tuple(made))
    if not i.is_branch or not (i.is_conditional or i.op == "s_setpc_b64"):
        return None
    if i.reads & SCC_MASK:
        return Use("branch", (numbers.without_negation(values.before(index, SCC)),))
    if i.reads & EXEC_MASK:
        return Use("skip", (values.before(index, EXEC_LO), values.before(index, EXEC_HI)))
    registers = tuple(members(i.reads)) or (VCC_LO,)
    return Use("branch", tuple(values.before(index, r) for r in registers))


def _condition(number: int, numbers: Numbers) -> tuple[Use, Bound]:
    """A condition without its constants, and these.

    A loop that is unrolled, peeled or counted down leaves by the same condition some turns earlier
    or later.
    """
    exact = Use("branch", (number,)), Bound(number, 0, 0)
    form = numbers.forms[number]
    if form[0] not in ("eq", "lt"):
        return exact
    parts = numbers.parts(number)
    difference = parts[0] if form[0] == "eq" else numbers.subtract(*parts)
    rest, constant, by = without_turns(difference, numbers)
    if rest.base == numbers.zero:
        return exact
    # d < 0 is not -1 - d < 0.
    opposite = (numbers.complement(difference) if form[0] == "lt"
                else numbers.subtract(numbers.zero, difference))
    turned, other, _ = without_turns(opposite, numbers)
    if turned.base < rest.base:
        rest, constant = turned, other
    use = Use("branch", (rest.base, *(n for n, _ in rest.steps)))
    shifts = [number for number in map(numbers.linear, parts if form[0] == "lt" else ())
              if number[0] > 1 or (number[0] and number[1])]
    return use, Bound(number, signed(constant), by, len(shifts) > 1)


def _narrowed(values: Values, index: int, i: Instruction) -> Iterator[int]:
    if i.op in _CARRYING:
        yield values.before(index, SCC)
    elif i.unit is Unit.SALU:
        yield from (values.after(index, r) for r in members(i.writes & ~SCC_MASK))
    elif (sign := turned_sign(values, index, i)) is not None:
        yield sign
    elif not any(values.from_memory(index, r) for r in members(i.writes)):
        carries = i.op.startswith(_VECTOR_CARRIES)
        yield from (values.after(index, r) for r in members(i.writes)
                    if not carries or r < VGPR0)


def turned_sign(values: Values, index: int, i: Instruction) -> int | None:
    """The upper word of an index that a loop moves; after how many of its turns is left open, as
    it is for the address that is made of it (`asmevo.gates.address_uses`)."""
    if i.op != "v_ashrrev_i32" or i.operands[1].text != "31" or i.encoding in ("dpp", "sdwa"):
        return None
    numbers = values.numbers
    number = values.before(index, i.operands[2].first)
    if not any(numbers.forms[term][0] == "trip" for term, _ in numbers.linear(number)[1]):
        return None
    return numbers.atom(("sign", high_without_turns(number, numbers)), (number,))


def is_made_of(number: int, known: Container[int], numbers: Numbers) -> bool:
    """Whether a value is a sum of products of known ones, and so treats none of them apart."""
    pending = [number]
    while pending:
        here = pending.pop()
        if here in known:
            continue
        form = numbers.forms[here]
        if form[0] not in ("linear", "mul", "trip", "kernarg", "launch"):
            return False
        pending += numbers.parts(here)
    return True


def changed_uses(
    original: LaunchUses, candidate: LaunchUses, program: Program, numbers: Numbers,
    computed: Container[int] = (),
) -> Iterator[tuple[str, str]]:
    """A code and a sentence for each use that is new or lost.

    ``computed`` are values that the original computes. Codes are ``new-launch-branch``,
    ``new-launch-mask`` and ``new-launch-selection``, and ``lost-launch-branch`` and
    ``lost-launch-mask``. The same use more often is a matter of which code is reached
    (`asmevo.gates.reach`).
    """
    leaving = LeavingLanes(
        [use.values for use in original.first if use.kind == "mask"],
        [use.values for use in original.first if use.is_skip],
        [use.values for use in candidate.first if use.is_skip], numbers)
    for use, at in candidate.first.items():
        if use in original.first and all(
                any(bound.is_turn_of(known) for known in original.bounds[use])
                for bound in candidate.bounds.get(use, ())):
            continue
        if (use.kind == "mask" and leaving.is_mask(use.values)) or (
                use.is_skip and (use in candidate.idle or leaving.is_skip(use.values))):
            continue
        kind = "mask" if use.kind == "mask" else "branch"
        yield f"new-launch-{kind}", (
            f"'{program.instructions[at].text}' at {program.offsets[at]:#x} depends on "
            f"{_sources(use.values, numbers)} in a way that the original does not")
    for number, at in candidate.narrowed.items():
        if any(is_sign_of_turn(number, known, numbers) for known in original.narrowed):
            continue
        if number not in original.narrowed and not is_made_of(number, computed, numbers) and (
                not leaving.is_step(number)):
            yield "new-launch-selection", (
                f"'{program.instructions[at].text}' at {program.offsets[at]:#x} decides by "
                f"{_sources((number,), numbers)} in a way that the original does not")
    for use in original.first:
        found = {bound.condition for bound in candidate.bounds.get(use, ())}
        if use in candidate.first and all(
                bound.turn or bound.condition in found for bound in original.bounds.get(use, ())):
            continue
        if use.kind == "mask" and leaving.is_kept(
                use.values, (known.values for known in candidate.first if known.kind == "mask")):
            continue
        if not use.is_skip and any(numbers.taints[v] & ~Taint.PATH for v in use.values):
            yield f"lost-launch-{use.kind}", (
                f"no {use.kind} depends on {_sources(use.values, numbers)} as one of the "
                "original does")


def _sources(values: tuple[int, ...], numbers: Numbers) -> str:
    """What values depend on, in words."""
    found: dict[str, None] = {}
    taint = 0
    for value in values:
        taint |= numbers.taints[value]
        for form in numbers.leaves(value):
            if form[0] == "kernarg":
                found[f"the kernarg at {form[1]:#x}"] = None
            elif form[0] == "launch":
                found[f"the {form[1]}"] = None
    named = sorted(found)
    for bit, name in ((Taint.MEMORY, "memory"), (Taint.LDS, "LDS"),
                      (Taint.HARDWARE, "the hardware's state"),
                      (Taint.UNDEFINED, "undefined registers"),
                      (Taint.PATH, "the path taken")):
        if taint & bit:
            named.append(name)
    more = len(named) - _MOST_NAMED
    return ", ".join(named[:_MOST_NAMED]) + (f" and {more} more" if more > 0 else "")
