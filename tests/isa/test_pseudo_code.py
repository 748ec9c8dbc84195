"""The opcode table against AMD's pseudo-code of every scalar and vector ALU operation.

The `tinygrad` wheel carries the pseudo-code of AMD's CDNA4 ISA document as text. Which registers it
reads and writes is derived here, by other rules than those the table was written by.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, fields, replace
from functools import cache

import pytest
from tinygrad.runtime.autogen.amd.cdna.operands import OPERANDS
from tinygrad.runtime.autogen.amd.cdna.str_pcode import PCODE

from asmevo.isa import opcodes
from asmevo.isa.form import Form
from asmevo.isa.instruction import Unit
from asmevo.isa.registers import EXEC_MASK, M0_MASK, SCC_MASK, VCC_MASK

_ALU = frozenset({Unit.SALU, Unit.BRANCH, Unit.VALU, Unit.TRANS, Unit.MFMA})
_IMPLICIT = {"SCC": SCC_MASK, "VCC": VCC_MASK, "EXEC": EXEC_MASK, "M0": M0_MASK}
# The matrix operations' pseudo-code names whole matrices.
_SOURCES = {"S0": 0, "S1": 1, "S2": 2, "SRC0": 0, "SRC1": 1, "SRC2": 2, "A": 0, "B": 1, "C": 2,
            "SIMM16": 3, "SIMM32": 4}
_ASSIGNMENT = re.compile(r"(?<![=!<>+\-*|&^])([+\-*|&^]?)=(?!=)")
_WORD = re.compile(r"\b[A-Z][A-Z0-9]*\b")
_RANGE = re.compile(r"^D0?(?:\.\w+)?\[(\d+)\s*:\s*(\d+)\]")


@dataclass(frozen=True)
class Facts:
    """What an operation does: ``keeps`` says that bits of the old destination survive or count."""

    sources: int
    writes: bool
    keeps: bool
    second: bool
    reads_state: frozenset[str]
    writes_state: frozenset[str]


def _from_text(code: str, width: int) -> Facts:
    sources: set[int] = set()
    reads: set[str] = set()
    writes: set[str] = set()
    covered, whole, keeps, depth = 0, False, False, 0
    for statement in re.split(r"[;\n]", _plain(code)):
        text = statement.strip()
        if text.startswith(("if ", "for ")):
            depth += 1
        elif text.startswith(("endif", "endfor")):
            depth -= 1
        targets, value = _split(text)
        words = set(_WORD.findall(value))
        sources |= {_SOURCES[w] for w in words if w in _SOURCES}
        reads |= {w.removesuffix("Z") for w in words} & set(_IMPLICIT) - writes
        keeps |= bool(words & {"D0", "D"}) and not whole and not covered
        for target in targets:
            sources |= {_SOURCES[w] for w in _WORD.findall(target.partition("[")[2])
                        if w in _SOURCES}
            name = target.partition(".")[0].partition("[")[0].strip()
            writes.add(name)
            if name not in ("D0", "D"):
                continue
            found = _RANGE.match(target)
            if found is not None:
                covered |= (1 << int(found[1]) + 1) - (1 << int(found[2]))
            elif "[" in target and "laneId" not in target:
                keeps = True
            elif depth and "else" not in code:
                keeps |= not whole
            else:
                whole = True
    written = bool(writes & {"D0", "D"})
    if written and covered and not whole:
        keeps |= covered != (1 << width) - 1
    keeps |= "preserved" in code.lower()
    state = frozenset(writes & set(_IMPLICIT))
    return Facts(len(sources) + ("VCC" in reads), written, written and keeps,
                 "D1" in writes or "VCC" in writes, frozenset(reads - {"VCC"}), state - {"VCC"})


def _plain(code: str) -> str:
    """Without comments, and with the destination named as such where it is reached by number."""
    text = re.sub(r"//.*", "", code)
    text = re.sub(r"VGPR\[laneId\]\[VDST\.u32\]", "D0", text)
    return re.sub(r"VGPR\[[^]]*\]\[VDST\.u32\]", "D0[lane]", text)


def _split(statement: str) -> tuple[list[str], str]:
    """Left-hand sides and the value of ``a = b = value``; an updating ``+=`` reads what it sets."""
    if re.match(r"(?:if|elsif|while|for|declare)\b", statement):
        return [], statement
    parts = _ASSIGNMENT.split(statement)
    targets = [part.strip() for part in parts[:-1:2]]
    updated = [target for target, sign in zip(targets, parts[1::2], strict=True) if sign]
    named = [name.strip() for target in targets for name in target.strip("{} ").split(",")]
    return named, " ".join([*updated, parts[-1]])


def _from_table(form: Form) -> Facts:
    first = form.roles[:1]
    return Facts(
        sources=sum(role in "rit" for role in form.roles) + form.roles[1:].count("x")
        + bool(form.reads & VCC_MASK),
        writes=first in ("w", "x"), keeps=first == "x", second=form.roles[1:2] == "w",
        reads_state=_state(form.reads, form), writes_state=_state(form.writes, form))


def _state(registers: int, form: Form) -> frozenset[str]:
    names = {name for name, registers_of in _IMPLICIT.items() if registers & registers_of}
    # EXEC masks every vector operation without being mentioned.
    hidden = {"VCC", "EXEC"} if form.unit in (Unit.VALU, Unit.TRANS, Unit.MFMA) else {"VCC"}
    if form.writes & EXEC_MASK and registers == form.writes:
        hidden = {"VCC"}
    return frozenset(names - hidden)


@cache
def _operations() -> dict[str, tuple[Facts, Facts]]:
    """Operation -> (from AMD's text, from the table), for those both have."""
    found: dict[str, tuple[Facts, Facts]] = {}
    for key, code in PCODE.items():
        name = re.sub(r"_e(?:32|64)$", "", key.name.lower())
        entry = opcodes.OPCODES.get(name)
        if entry is not None and entry.unit in _ALU and name not in found:
            widths = [bits for field, (_, bits, _) in OPERANDS.get(key, {}).items()
                      if field in ("vdst", "sdst")]
            amd = _from_text(code, widths[0] if widths else 32)
            if entry.unit is Unit.VALU:
                # The one operation whose text names the EXEC that masks them all.
                amd = replace(amd, reads_state=amd.reads_state - {"EXEC"})
            found[name] = amd, _from_table(entry)
    return found


# Known differences: (what, why, operations).
_DIFFERENCES = (
    ("sources", "a comparison that is always false or true has operands all the same", {
        f"v_cmp{x}_{condition}" for x in ("", "x") for condition in (
            *(f"{c}_{t}" for c in ("f", "tru") for t in ("f16", "f32", "f64")),
            *(f"{c}_{t}" for c in ("f", "t")
              for t in ("i16", "u16", "i32", "u32", "i64", "u64")))}),
    ("sources", "the text leaves out the index of the sparse matrix",
     {op for op in opcodes.OPCODES if op.startswith("v_smfmac_")}),
    ("keeps", "the text says nothing of bits that op_sel or the byte select leaves alone", {
        "v_cvt_pk_u8_f32", "v_mad_f16", "v_mad_u16", "v_mad_i16", "v_fma_f16", "v_div_fixup_f16",
        "v_bitop3_b16", "v_cvt_scalef32_f16_fp8", "v_cvt_scalef32_f16_bf8", "v_ashr_pk_i8_i32",
        "v_ashr_pk_u8_i32"}),
    ("keeps", "only with op_sel, which the parser looks at", {
        "v_mad_legacy_f16", "v_mad_legacy_u16", "v_mad_legacy_i16", "v_fma_legacy_f16",
        "v_div_fixup_legacy_f16"}),
    ("keeps", "a loop writes every bit", {"s_bitreplicate_b64_b32"}),
    ("keeps", "the text leaves out that an unscaled value is passed on",
     {"v_div_scale_f32", "v_div_scale_f64"}),
    ("reads_state", "the other bits of M0 survive", {"s_set_gpr_idx_idx", "s_set_gpr_idx_mode"}),
)


def test_amd_describes_most_of_the_table() -> None:
    assert len(_operations()) > 750


@pytest.mark.parametrize("what", [f.name for f in fields(Facts)])
def test_the_table_does_what_amd_describes(what: str) -> None:
    different = {op for op, (amd, table) in _operations().items()
                 if getattr(amd, what) != getattr(table, what)}
    known: set[str] = set()
    for field, _, operations in _DIFFERENCES:
        known |= operations if field == what else set()
    assert different == known & set(_operations())


@pytest.mark.parametrize(("op", "wrong"), [
    ("s_addc_u32", replace(opcodes.OPCODES["s_addc_u32"], reads=0)),
    ("s_and_b32", replace(opcodes.OPCODES["s_and_b32"], writes=0)),
    ("v_fmac_f32", replace(opcodes.OPCODES["v_fmac_f32"], roles="wrr")),
    ("v_cvt_pk_fp8_f32", replace(opcodes.OPCODES["v_cvt_pk_fp8_f32"], roles="wrr")),
    ("v_cmpx_lt_f32", replace(opcodes.OPCODES["v_cmpx_lt_f32"], writes=0)),
    ("v_div_fmas_f32", replace(opcodes.OPCODES["v_div_fmas_f32"], reads=0))])
def test_a_wrong_row_would_be_seen(op: str, wrong: Form) -> None:
    amd, table = _operations()[op]
    assert amd == table
    assert amd != _from_table(wrong)
