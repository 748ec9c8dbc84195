"""What the emulator runs of gfx942: ``python -m asmevo.device.emulator.coverage`` prints the page.

Every mnemonic that LLVM knows is lowered and validated by the core, by example; the page lists what
is refused and why. docs/emulator-coverage.md is this output.
"""

from __future__ import annotations

import re
import sys
from collections import defaultdict
from dataclasses import dataclass

import asmevo_core as core

from asmevo.device.device import UnsupportedError
from asmevo.device.emulator import lower
from asmevo.isa.errors import ParseError
from asmevo.isa.gfx942 import Example, examples
from asmevo.isa.program import Program

_ENCODINGS = {
    "SOP1": "scalar, one source", "SOP2": "scalar, two sources", "SOPK": "scalar, 16-bit immediate",
    "SOPC": "scalar compare", "SOPP": "program control", "SMEM": "scalar memory",
    "VOP1": "vector, one source", "VOP2": "vector, two sources", "VOPC": "vector compare",
    "VOP3": "vector, three sources", "VOP3P": "packed and matrix", "DS": "LDS",
    "FLAT": "flat, global, scratch", "MUBUF": "buffer", "MTBUF": "typed buffer"}
_WORD = 4
_ADDRESS = 0x1000


@dataclass(frozen=True, slots=True)
class Coverage:
    """One mnemonic and why it is refused; an empty ``refusal`` means it runs."""

    example: Example
    refusal: str


def coverage() -> tuple[Coverage, ...]:
    """Every mnemonic of gfx942, in the order of formats and opcodes."""
    return tuple(Coverage(example, _refusal(example)) for example in examples())


def _refusal(example: Example) -> str:
    # A branch of offset 0 goes to the instruction behind it.
    rows = [(0, _WORD, example.text), (_WORD, _WORD, "s_endpgm")]
    try:
        program = Program.from_disassembly(rows, {})
    except ParseError:
        return "not in the instruction model (asmevo.isa.opcodes.UNMODELLED)"
    try:
        core.Program(lower.lower(program, _ADDRESS), vgprs=256, agprs=256, mode=0,
                     addresses=[_ADDRESS, _ADDRESS + _WORD])
    except UnsupportedError as error:
        reason = str(error).rpartition(" at offset 0x0: ")[2]
        return re.sub(r"^operation '\w+' is not modelled$", "not modelled", reason)
    except core.InvalidRecordError as error:
        return str(error.args[1])
    return ""


def page() -> str:
    """The page in Markdown."""
    rows = coverage()
    run = sum(not row.refusal for row in rows)
    lines = [
        "# Emulator coverage of gfx942",
        "",
        "Made by `python -m asmevo.device.emulator.coverage`; do not edit.",
        "",
        f"LLVM knows {len(rows)} mnemonics of gfx942; an operation counts once for each encoding "
        f"(e32, e64, DPP, SDWA). The emulator runs {run} of them and refuses {len(rows) - run} by "
        "name.",
        "",
        "| encoding | | mnemonics | run | refused |", "|---|---|--:|--:|--:|"]
    for encoding, meaning in _ENCODINGS.items():
        of_it = [row for row in rows if row.example.encoding == encoding]
        refused = sum(bool(row.refusal) for row in of_it)
        lines.append(f"| {encoding} | {meaning} | {len(of_it)} | {len(of_it) - refused} | "
                     f"{refused} |")
    lines += ["", "## Refused", ""]
    by_reason: dict[str, list[str]] = defaultdict(list)
    for row in rows:
        if row.refusal:
            by_reason[row.refusal].append(row.example.mnemonic)
    for reason, mnemonics in sorted(by_reason.items()):
        lines.append(f"- {reason}: {', '.join(f'`{m}`' for m in mnemonics)}")
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    sys.stdout.write(page())
