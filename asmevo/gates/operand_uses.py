"""Which values of the launch reach vector and memory instructions, compared with the original's.

Branches, masks and selections (`asmevo.gates.launch_uses`) are not the only way to treat a size
apart from the tested ones: a buffer's length can shrink with the number of rows, and a polynomial
can be zero at every tested number of them. So a scalar that depends on arguments or ids may be an
operand of such an instruction only where the original computes the same value, be it elsewhere; the
address of a buffer may depend on what the original makes it depend on; and what was read from
memory or LDS may come back as a scalar only where the original's instructions of that kind take
such scalars.
"""

from __future__ import annotations

from collections.abc import Container, Iterator
from dataclasses import dataclass

from asmevo.isa.instruction import Instruction, Unit
from asmevo.isa.program import Program
from asmevo.isa.registers import SGPR_LIMIT, members
from asmevo.isa.value_numbers import Form, Numbers, Taint
from asmevo.isa.values import KERNARG_POINTER, Values

_SCALARS = (1 << SGPR_LIMIT) - 1
_UNIFORM = Taint.KERNARG | Taint.WORKGROUP | Taint.HARDWARE
_LOADED = Taint.MEMORY | Taint.LDS
_LAUNCH = ("kernarg", "launch")

# A kind of instruction and what its address is made of.
Address = tuple[str, frozenset[Form]]


@dataclass(frozen=True)
class OperandUses:
    """Scalars that other than scalar instructions read, by what they are; where they do first.

    ``plain`` are numbers that depend on the launch alone, ``addresses`` what pointers are combined
    with, ``loaded`` kinds of instructions and taints. ``computed`` are the numbers of all scalars
    that scalar arithmetic makes: an argument that nothing uses is not among them.
    """

    plain: dict[int, int]
    addresses: dict[Address, int]
    loaded: dict[tuple[str, Taint], int]
    computed: frozenset[int]

    @staticmethod
    def of(values: Values, pointers: Container[int], *, original: bool) -> OperandUses:
        """Only of an ``original`` are the ``computed`` found."""
        numbers = values.numbers
        plain: dict[int, int] = {}
        addresses: dict[Address, int] = {}
        loaded: dict[tuple[str, Taint], int] = {}
        computed: set[int] = set()
        for index, i in enumerate(values.program.instructions):
            if not values.cfg.reachable(index):
                continue
            if original and i.unit is Unit.SALU:
                computed.update(values.after(index, r) for r in members(i.writes & _SCALARS))
            kind = _kind(i)
            if kind is None:
                continue
            for register in members(i.reads & _SCALARS):
                number = values.before(index, register)
                taint = numbers.taints[number]
                if taint & _LOADED:
                    loaded.setdefault((kind, taint & _LOADED), index)
                elif taint & _UNIFORM:
                    found = _address(number, numbers, pointers)
                    if found is None:
                        plain.setdefault(number, index)
                    else:
                        addresses.setdefault((kind, found), index)
        return OperandUses(plain, addresses, loaded, frozenset(computed))


def _kind(i: Instruction) -> str | None:
    if i.unit is Unit.SMEM:
        return "scalar memory"
    if i.accesses_memory:
        return "vector memory"
    return None if i.unit is Unit.SALU or i.is_branch else "vector arithmetic"


def _address(number: int, numbers: Numbers, pointers: Container[int]) -> frozenset[Form] | None:
    """What a value with a pointer in it is made of; None for one without."""
    leaves = frozenset(form for form in numbers.leaves(number) if form[0] in _LAUNCH)
    for form in leaves:
        if (form[0] == "kernarg" and form[1] in pointers) or (
                form[0] == "launch" and str(form[1]).startswith(KERNARG_POINTER)):
            return leaves
    return None


def changed_operands(
    original: OperandUses, candidate: OperandUses, program: Program
) -> Iterator[tuple[str, str]]:
    """``new-launch-operand`` and a sentence for each use that the original does not have."""
    def where(index: int) -> str:
        return f"'{program.instructions[index].text}' at {program.offsets[index]:#x}"

    for number, index in candidate.plain.items():
        if number not in original.plain and number not in original.computed:
            yield "new-launch-operand", (
                f"{where(index)} takes a value of arguments or ids that the original does not "
                "compute")
    for (kind, leaves), index in candidate.addresses.items():
        if not any(kind == other and leaves <= known for other, known in original.addresses):
            yield "new-launch-operand", (
                f"{where(index)} takes an address that depends on more than the original's")
    for (kind, taint), index in candidate.loaded.items():
        if not any(kind == other and taint in known for other, known in original.loaded):
            yield "new-launch-operand", (
                f"{where(index)} takes a scalar that was read from memory or LDS, which no such "
                "instruction of the original does")
