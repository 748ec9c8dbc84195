"""Integer vector and scalar operations against AMD's own pseudo-code, run as Python.

The `tinygrad` wheel carries the pseudo-code of AMD's CDNA ISA document as text. Its subset for
integers is translated statement by statement; what it says with floats, lanes or loops over memory
is tested elsewhere.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import cache
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
import pytest
from tinygrad.runtime.autogen.amd.cdna.str_pcode import PCODE

from asmevo.device.emulator.record import OPERATIONS

if TYPE_CHECKING:
    from tests.device.emulator.conftest import Bench

U32 = npt.NDArray[np.uint32]

def _names(text: str) -> list[str]:
    return text.split()


VECTOR = _names("""
    v_not_b32 v_and_b32 v_or_b32 v_xor_b32 v_xnor_b32 v_lshlrev_b32 v_lshrrev_b32
    v_ashrrev_i32 v_add_u32 v_sub_u32 v_subrev_u32 v_min_i32 v_max_i32 v_min_u32 v_max_u32
    v_mul_lo_u32 v_mul_hi_u32 v_mul_hi_i32 v_mul_u32_u24 v_mul_hi_u32_u24 v_mul_i32_i24
    v_mul_hi_i32_i24 v_mad_u32_u24 v_mad_i32_i24 v_add3_u32 v_lshl_add_u32 v_add_lshl_u32
    v_lshl_or_b32 v_and_or_b32 v_or3_b32 v_xad_u32 v_bfi_b32 v_alignbit_b32 v_alignbyte_b32
    v_add_u16 v_sub_u16 v_subrev_u16 v_mul_lo_u16 v_lshlrev_b16 v_lshrrev_b16 v_ashrrev_i16
    v_max_u16 v_max_i16 v_min_u16 v_min_i16 v_add_i32 v_sub_i32 v_add_i16 v_sub_i16
    v_lshlrev_b64 v_lshrrev_b64 v_ashrrev_i64 v_lshl_add_u64 v_mad_u32_u16 v_mad_i32_i16
    v_bcnt_u32_b32""")
SCALAR = _names("""
    s_add_u32 s_sub_u32 s_add_i32 s_sub_i32 s_addc_u32 s_subb_u32 s_min_i32 s_min_u32
    s_max_i32 s_max_u32 s_and_b32 s_and_b64 s_or_b32 s_or_b64 s_xor_b32 s_xor_b64 s_andn2_b32
    s_andn2_b64 s_orn2_b32 s_orn2_b64 s_nand_b32 s_nand_b64 s_nor_b32 s_nor_b64 s_xnor_b32
    s_xnor_b64 s_lshl_b32 s_lshl_b64 s_lshr_b32 s_lshr_b64 s_ashr_i32 s_ashr_i64 s_bfm_b32
    s_bfm_b64 s_mul_i32 s_bfe_u32 s_bfe_u64 s_mul_hi_u32 s_mul_hi_i32 s_lshl1_add_u32
    s_lshl2_add_u32 s_lshl3_add_u32 s_lshl4_add_u32 s_pack_ll_b32_b16 s_pack_lh_b32_b16
    s_pack_hh_b32_b16 s_cselect_b32 s_cselect_b64 s_mov_b32 s_mov_b64 s_not_b32 s_not_b64
    s_abs_i32 s_absdiff_i32 s_quadmask_b32 s_quadmask_b64 s_bitreplicate_b64_b32
    s_bcnt0_i32_b32 s_bcnt0_i32_b64 s_bcnt1_i32_b32 s_bcnt1_i32_b64 s_cmp_eq_i32 s_cmp_lg_i32
    s_cmp_gt_i32 s_cmp_ge_i32 s_cmp_lt_i32 s_cmp_le_i32 s_cmp_eq_u32 s_cmp_lg_u32 s_cmp_gt_u32
    s_cmp_ge_u32 s_cmp_lt_u32 s_cmp_le_u32 s_cmp_eq_u64 s_cmp_lg_u64 s_bitcmp0_b32
    s_bitcmp1_b32 s_bitcmp0_b64 s_bitcmp1_b64""")


class Value(int):
    """An integer of the pseudo-code: unbounded, cut to a type where one is written."""

    def cut(self, kind: str, bits: int) -> Value:
        raw = int(self) & (1 << bits) - 1
        return Value(raw - (1 << bits) if kind == "i" and raw >> bits - 1 else raw)

    def field(self, high: int, low: int) -> Value:
        return Value(int(self) >> low & (1 << high - low + 1) - 1)


_TYPED = re.compile(r"\b(S0|S1|S2|D0|tmp|SIMM16)\.([biu])(\d+)\b")


@cache
def _text(op: str) -> str:
    for key, code in PCODE.items():
        if re.sub(r"_e(?:32|64)$", "", key.name.lower()) == op:
            return str(code)
    raise KeyError(op)


def _expression(text: str) -> str:
    """C-like to Python; types become calls and bit ranges fields."""
    text = re.sub(r"\b(\d+)'([UIB])\(", lambda m: f"_as_{m[2].lower()}({m[1]}, ", text)
    text = re.sub(r"\b(?:\d+)'([0-9][0-9A-Fa-fx]*)U?\b", r"\1", text)
    text = re.sub(r"\b(0x[0-9a-fA-F]+|\d+)(?:ULL|LL|U)\b", r"\1", text)
    text = _TYPED.sub(lambda m: f"_typed({m[1]}, '{m[2]}', {m[3]})", text)
    # x[h : l].type, x[h : l] and x[bit].
    name = r"(_typed\([^()]*\)|\b(?:S0|S1|S2|tmp)\b)"
    text = re.sub(name + r"\[(\d+) : (\d+)\]\.([biu])(\d+)",
                  r"_typed(_field(\1, \2, \3), '\4', \5)", text)
    text = re.sub(name + r"\[(\d+) : (\d+)\]", r"_field(\1, \2, \3)", text)
    text = re.sub(name + r"\[([^\]+]+) \+: (\d+)\]", r"(_field(\1, (\2) + \3 - 1, \2))", text)
    text = re.sub(name + r"\[((?:[^\[\]]|\[[^\]]*\])+)\]", r"_field(\1, \2, \2)", text)
    text = re.sub(r"_typed\(_typed\(([^()]*)\), '([biu])', (\d+)\)", r"_typed(\1, '\2', \3)", text)
    text = re.sub(r"(_field\([^()]*(?:\([^()]*\)[^()]*)*\))\.([biu])(\d+)",
                  r"_typed(\1, '\2', \3)", text)
    text = re.sub(r"\bSCC\.[biu]\d+", "SCC", text).replace("<>", "!=")
    text = text.replace("!=", "@@").replace("&&", " and ").replace("||", " or ")
    text = re.sub(r"!(?=[\w(])", " not ", text).replace("@@", "!=")
    match = re.fullmatch(r"(.+?) \? (.+?) : (.+)", text.strip())
    if match:
        return f"(({match[2]}) if ({match[1]}) else ({match[3]}))"
    braces = re.fullmatch(r"\{ (.+?), (.+?) \}", text.strip())
    if braces:
        return f"_concatenated({braces[1]}, {braces[2]})"
    return text.strip()


def _statements(code: str) -> list[str]:
    lines: list[str] = []
    indent = 0
    for raw in re.split(r"[;\n]", re.sub(r"//.*", "", code)):
        text = raw.strip()
        if not text or text.startswith("declare"):
            continue
        if text in ("endif", "endfor"):
            indent -= 1
            continue
        loop = re.fullmatch(r"for (\w+) in (?:\d+'U?)?(\w+) : (?:\d+'U?)?(\w+) do", text)
        if loop:
            lines.append("    " * indent + f"for {loop[1]} in range({loop[2].rstrip('U')}, "
                         f"{loop[3].rstrip('U')} + 1):")
            indent += 1
        elif text.startswith("if "):
            lines.append("    " * indent + f"if {_expression(text[3:].removesuffix(' then'))}:")
            indent += 1
        elif text.startswith("elsif "):
            lines.append("    " * (indent - 1)
                         + f"elif {_expression(text[6:].removesuffix(' then'))}:")
        elif text == "else":
            lines.append("    " * (indent - 1) + "else:")
        else:
            lines.append("    " * indent + _assignment(text))
    return lines


def _assignment(text: str) -> str:
    match = re.fullmatch(r"(.+?) ([+]?)= (.+)", text)
    assert match is not None, text
    target, update, value = match[1].strip(), match[2], _expression(match[3])
    typed = re.fullmatch(r"(D0|tmp|SCC)(?:\.([biu])(\d+))?", target)
    if typed:
        name = typed[1]
        value = f"{name} + ({value})" if update else value
        return f"{name} = _cut({value}, '{typed[2] or 'b'}', {typed[3] or 128})"
    part = re.fullmatch(r"(D0|tmp)(?:\.[biu]\d+)?\[(.+?)(?: : (.+?))?\](?:\.[biu]\d+)?", target)
    assert part is not None, text
    high, low = _expression(part[2]), _expression(part[3] or part[2])
    return f"{part[1]} = _replaced({part[1]}, {high}, {low}, {value})"


def _typed(x: int, kind: str, bits: int) -> Value:
    return Value(x).cut(kind, bits)


def _field(x: int, high: int, low: int) -> Value:
    return Value(x).field(high, low)


def _replaced(x: int, high: int, low: int, value: int) -> Value:
    mask = (1 << high - low + 1) - 1
    return Value(x & ~(mask << low) | (int(value) & mask) << low)


_NAMES: dict[str, Any] = {
    "_typed": _typed, "_cut": _typed, "_field": _field, "_replaced": _replaced,
    "_as_u": lambda bits, x: Value(x).cut("u", bits),
    "_as_i": lambda bits, x: Value(x).cut("i", bits),
    "_as_b": lambda bits, x: Value(x).cut("u", bits),
    "_concatenated": lambda a, b: Value(int(a) << 32 | int(b) & 0xFFFFFFFF),
    "signext": lambda x: x, "abs": abs}


@cache
def _program(op: str) -> Callable[..., tuple[int, int]]:
    """(S0, S1, S2, SCC) -> (D0, SCC)."""
    code = _text(op)
    if "_b16" in op or "_u16" in op or "_i16" in op:
        # Packing of halves is written as two 16-bit values.
        half = r"(S\d\[[^\]]*\]\.u16)"
        code = re.sub(rf"\{{ {half}, {half} \}}", r"((\1 << 16) | \2)", code)
    # A 64-bit concatenation inside an expression, as of the alignments.
    code = re.sub(r"\{ S0\.u32, S1\.u32 \}", "((S0.u32 << 32) | S1.u32)", code)
    source = "\n".join(["def run(S0, S1, S2, SCC):", "    D0 = tmp = 0",
                        *("    " + line for line in _statements(code)), "    return D0, SCC"])
    names = dict(_NAMES)
    exec(source, names)
    run: Callable[..., tuple[int, int]] = names["run"]
    return run


def _column(bench: Bench, count: int, words: int, slot: int) -> list[U32]:
    return [np.roll(bench.integers(1, 40 + 3 * slot + w)[0], 7 * slot)[:count]
            for w in range(words)]


@pytest.mark.parametrize("op", VECTOR)
def test_vector(bench: Bench, op: str) -> None:
    facts = OPERATIONS[op]
    columns = bench.integers(3, 30)
    count = len(columns[0])
    vector: dict[int, U32] = {}
    sources: list[list[int]] = []
    texts: list[str] = []
    for slot, words in enumerate(w for w in facts.src_words if w):
        first = 2 + 4 * slot
        parts = [columns[slot], *_column(bench, count, words - 1, slot)]
        vector |= {first + w: part for w, part in enumerate(parts)}
        sources.append([sum(int(p) << 32 * w for w, p in enumerate(values))
                        for values in zip(*(p.tolist() for p in parts), strict=True)])
        texts.append(f"v[{first}:{first + words - 1}]" if words > 1 else f"v{first}")
    dst = "v[20:21]" if facts.dst_words == 2 else "v20"
    out = bench.run([f"{op} {dst}, {', '.join(texts)}"], vector=vector, vector_out=[20, 21]).vector
    found = out[20].astype(np.uint64)
    if facts.dst_words == 2:
        found |= out[21].astype(np.uint64) << np.uint64(32)
    sources += [[0] * count] * (3 - len(sources))
    mask = (1 << 32 * facts.dst_words) - 1
    # 16-bit results leave zeros above them.
    if re.search(r"_[biu]16$", op) and not op.startswith("v_mad_u32") and "_i32_" not in op:
        mask = 0xFFFF
    run = _program(op)
    expected = [int(run(Value(a), Value(b), Value(c), 0)[0]) & mask
                for a, b, c in zip(*sources, strict=True)]
    np.testing.assert_array_equal(found, np.array(expected, np.uint64))


_EDGES = [0, 1, 2, 31, 32, 0x7FFFFFFF, 0x80000000, 0xFFFFFFFF, 0x12345678, 0x0005_0003, 0xFFFF8000]


@pytest.mark.parametrize("op", SCALAR)
@pytest.mark.parametrize("scc", [0, 1])
def test_scalar(bench: Bench, op: str, scc: int) -> None:
    facts = OPERATIONS[op]
    rng = np.random.default_rng(2)
    body: list[str] = []
    expected: list[tuple[int, int]] = []
    run = _program(op)
    pairs = [(int(rng.choice(_EDGES)), int(rng.choice(_EDGES))) for _ in range(24)]
    scalar_out: list[int] = []
    scalars: dict[int, int] = {}
    for a, b in pairs[:12]:
        high = int(rng.choice(_EDGES)), int(rng.choice(_EDGES))
        values = [(v | h << 32 if w == 2 else v)
                  for v, h, w in zip((a, b), high, facts.src_words[:2], strict=True)]
        operands = []
        for slot, words in enumerate(w for w in facts.src_words if w):
            first = 4 + 4 * slot
            body += [f"s_mov_b32 s{first}, {values[slot] & 0xFFFFFFFF:#x}",
                     f"s_mov_b32 s{first + 1}, {values[slot] >> 32:#x}"]
            operands.append(f"s[{first}:{first + 1}]" if words == 2 else f"s{first}")
        at = 16 + 4 * (len(expected))
        if facts.dst_words:
            operands.insert(0, f"s[{at}:{at + 1}]" if facts.dst_words == 2 else f"s{at}")
        body += [f"s_cmp_lg_u32 s0, {1 - scc}", f"{op} {', '.join(operands)}",
                 f"s_cselect_b32 s{at + 2}, 1, 0"]
        scalar_out += [at, at + 1, at + 2]
        result, after = run(Value(values[0]), Value(values[1]), Value(0), scc)
        expected.append((int(result) & (1 << 32 * facts.dst_words) - 1, int(after) & 1))
    scalars[0] = 1
    out = bench.run(body, scalar=scalars, scalar_out=[r for r in scalar_out if r < 64], waves=1)
    for index, (result, after) in enumerate(expected):
        at = 16 + 4 * index
        found = int(out.scalar[at][0]) | int(out.scalar[at + 1][0]) << 32
        found &= (1 << 32 * facts.dst_words) - 1
        assert (found, int(out.scalar[at + 2][0])) == (result, after), pairs[index]


def test_a_wrong_operation_would_be_seen() -> None:
    assert _program("v_alignbit_b32")(Value(1), Value(0x80000000), Value(31), 0)[0] == 3
    assert _program("s_add_i32")(Value(0x7FFFFFFF), Value(1), Value(0), 0)[1] == 1
    assert _program("v_mad_i32_i24")(Value(0xFFFFFF), Value(2), Value(5), 0)[0] == 3
