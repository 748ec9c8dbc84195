"""What is done on scalars, what stays vector work, and that results stay what they were."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from asmevo.codeobject.container import CodeObject
from asmevo.codeobject.disassemble import program
from asmevo.codeobject.recover import recover
from asmevo.codeobject.source import InstalledFile
from asmevo.isa.hazards import hazards
from asmevo.isa.parse import parse
from asmevo.isa.waits import missing_waits
from asmevo.propose.proposal import Evidence
from asmevo.propose.rule import RuleContext
from asmevo.propose.rules.scalarise import Scalarise
from asmevo.propose.uniform_ops import SCALAR_FORMS
from tests.propose.emulated import INPUT, OUTPUT, stored

# s0 and s6 to s9 are arguments; what {body} leaves in v5 is stored.
KERNEL = """
v_lshlrev_b32_e32 v1, 2, v0
v_cvt_f32_u32_e32 v5, v0
{body}
global_store_dword v1, v5, {OUTPUT}
s_mov_b32 s30, 0
s_mov_b32 s31, 0
s_endpgm
"""
ADD = "v_add_u32_e32 v5, v9, v0"
ARGUMENTS = ({0: 77, 6: 3, 7: 5, 8: 0x0F0F0F0F, 9: 0xFF},
             {0: 1, 6: 0x80000001, 7: 0xFFFFFFFD, 8: 1, 9: 0})


def changed(kernels: Any, body: str) -> list[str]:
    """What stands in place of the body after the first proposal; each proposal has to keep waits,
    hazards and what the kernel stores."""
    text = KERNEL.format(body=body, OUTPUT=OUTPUT)
    context: RuleContext = kernels.context(text)
    before = [x.strip() for x in text.strip().split("\n")]
    proposals = list(Scalarise().matches(context))
    for proposal in proposals:
        assert not proposal.assumption
        preview = context.preview.apply(proposal.edits)
        assert not missing_waits(preview.program)
        assert not hazards(preview.program)
        after = kernels.edited(text, proposal)
        for scalars in ARGUMENTS:
            assert np.array_equal(stored(before, scalars), stored(after, scalars))
    if not proposals:
        return []
    return list(kernels.edited(text, proposals[0])[2:-4])


@pytest.mark.parametrize(("body", "expected"), [
    (f"v_mov_b32_e32 v9, s6\n{ADD}", ["v_add_u32_e32 v5, s6, v0"]),
    (f"v_mov_b32_e32 v9, 3\n{ADD}", ["v_add_u32_e32 v5, 3, v0"]),
    ("v_mov_b32_e32 v9, 0.5\nv_mul_f32_e32 v5, v5, v9", ["v_mul_f32_e32 v5, 0.5, v5"]),
    ("v_mov_b32_e32 v9, s6\nv_sub_u32_e32 v5, v0, v9", ["v_subrev_u32_e32 v5, s6, v0"]),
    ("v_mov_b32_e32 v9, s6\nv_lshlrev_b32_e32 v5, v0, v9", ["v_lshlrev_b32_e64 v5, v0, s6"]),
    ("v_mov_b32_e32 v9, s6\nv_fma_f32 v5, v5, -v9, |v9|", ["v_fma_f32 v5, v5, -s6, |s6|"]),
    ("v_lshlrev_b32_e32 v9, 3, v0\nv_mov_b32_e32 v10, s7\nv_add_u32_e32 v5, v10, v9",
     ["v_lshlrev_b32_e32 v9, 3, v0", "v_add_u32_e32 v5, s7, v9"]),
    # A chain, one register after the other.
    (f"v_mul_lo_u32 v9, s6, s6\nv_lshl_add_u32 v9, v9, 2, v9\n{ADD}",
     ["s_mul_i32 s0, s6, s6", "s_lshl_b32 s1, s0, 2", "s_add_i32 s1, s1, s0",
      "v_add_u32_e32 v5, s1, v0"]),
    ("v_mov_b32_e32 v8, 1.0\nv_xor_b32_e32 v9, 0x1234, v8\nv_readfirstlane_b32 s10, v9\n"
     "v_add_u32_e32 v5, s10, v0",
     ["s_xor_b32 s0, 0x1234, 1.0", "s_mov_b32 s10, s0", "v_add_u32_e32 v5, s10, v0"]),
    ("v_and_b32_e64 v9, s6, s6\nv_cmp_gt_u32_e32 vcc, v9, v0\nv_cndmask_b32_e32 v5, 0, v5, vcc",
     ["s_and_b32 s0, s6, s6", "v_cmp_gt_u32_e32 vcc, s0, v0", "v_cndmask_b32_e32 v5, 0, v5, vcc"]),
    # The argument does not stay what it is: the copy is one of a scalar.
    (f"v_add_u32_e64 v9, s6, 1\ns_mov_b32 s6, 0\n{ADD}",
     ["s_add_i32 s0, s6, 1", "s_mov_b32 s6, 0", "v_add_u32_e32 v5, s0, v0"]),
])
def test_what_is_done_on_scalars(kernels: Any, body: str, expected: list[str]) -> None:
    found = changed(kernels, body)
    assert [x for x in found if not x.startswith("s_nop")] == expected


@pytest.mark.parametrize("body", [
    f"v_mul_f32_e64 v9, s6, s6\n{ADD}",                           # no scalar floating point
    f"v_add_u32_e64 v9, s6, 1 clamp\n{ADD}",
    f"v_mov_b32_e64 v9, -s6\n{ADD}",
    f"v_add_u32_e32 v9, s6, v0\n{ADD}",                           # not alike in all lanes
    # A second scalar, or a literal where there is no place for it.
    "v_add_u32_e64 v9, s6, 1\nv_add3_u32 v5, v9, s7, v0",
    "v_add_u32_e64 v9, s6, 1\nv_mul_u32_u24_e32 v5, 0x123, v9",
    "v_add_u32_e64 v9, s6, 1\nv_cmp_lt_u32_e32 vcc, v0, v1\nv_cndmask_b32_e32 v5, v9, v5, vcc",
    # Uses that take no scalar.
    f"v_add_u32_e64 v9, s6, 1\nglobal_store_dword v1, v9, {OUTPUT} offset:256",
    "v_add_u32_e64 v9, s6, 1\nv_mov_b32_dpp v5, v9 row_ror:4 row_mask:0xf bank_mask:0xf",
    "v_mov_b32_e32 v9, s6\nv_mov_b32_e32 v9, s6\nv_fmac_f32_e32 v9, v0, v0\nv_mov_b32_e32 v5, v9",
    "v_mov_b32_e32 v9, s6\nv_mov_b32_e32 v10, s7\nv_pk_add_f32 v[10:11], v[10:11], v[0:1]\n"
    "v_lshl_add_u64 v[8:9], v[8:9], 0, v[10:11]\nv_mov_b32_e32 v5, v8",
    # SCC is needed behind.
    "s_cmp_eq_u32 s6, 3\nv_add_u32_e64 v9, s6, 1\ns_cselect_b32 s10, 1, 0\n"
    "v_add_u32_e32 v9, v9, v0\nv_add_u32_e32 v5, s10, v9",
    # Lanes read that did not write.
    f"v_mov_b32_e32 v9, v0\ns_mov_b64 s[12:13], exec\ns_mov_b64 exec, s[8:9]\n"
    f"v_add_u32_e64 v9, s6, 1\ns_mov_b64 exec, s[12:13]\n{ADD}",
    # Others come from elsewhere.
    "v_mov_b32_e32 v9, v0\ns_cmp_eq_u32 s6, 3\ns_cbranch_scc1 over\nv_add_u32_e64 v9, s6, 1\n"
    f"over:\n{ADD}",
    # Which lane is the first, when none is on?
    "s_mov_b64 exec, s[8:9]\nv_add_u32_e64 v9, s6, 1\nv_readfirstlane_b32 s10, v9\n"
    "s_mov_b64 exec, -1\nv_add_u32_e32 v5, s10, v0",
])
def test_what_stays(kernels: Any, body: str) -> None:
    assert changed(kernels, body) == []


def test_under_one_exec_only_some_lanes_need_it(kernels: Any) -> None:
    body = (f"s_mov_b64 s[12:13], exec\ns_mov_b64 exec, s[8:9]\nv_add_u32_e64 v9, s6, 1\n{ADD}\n"
            "s_mov_b64 exec, s[12:13]")
    assert changed(kernels, body)[2:4] == ["s_add_i32 s0, s6, 1", "v_add_u32_e32 v5, s0, v0"]


def test_in_another_block_when_all_lanes_were_on(kernels: Any) -> None:
    body = (f"v_add_u32_e64 v9, s6, 1\ns_cmp_eq_u32 s6, 3\ns_cbranch_scc1 over\n{ADD}\nover:")
    found = changed(kernels, body)
    assert found[0] == "s_add_i32 s0, s6, 1"
    assert "v_add_u32_e32 v5, s0, v0" in found


def test_a_copy_keeps_its_argument_alive(kernels: Any) -> None:
    # s0 is dead behind the copy for everybody else: what comes next must not take it.
    body = ("v_mov_b32_e32 v9, s0\nv_add_u32_e64 v10, s6, 1\nv_add_u32_e32 v5, v10, v0\n"
            "v_add_u32_e32 v5, v9, v5")
    assert "v_add_u32_e32 v5, s0, v5" in changed(kernels, body)


@pytest.mark.parametrize("loop", [True, False])
def test_a_copy_of_a_literal_moves_only_out_of_loops(kernels: Any, loop: bool) -> None:
    body = f"again:\nv_mov_b32_e32 v9, 0x1234\n{ADD}\n"
    body += "s_add_i32 s6, s6, -1\ns_cmp_lt_i32 s6, 2\n"
    body += "s_cbranch_scc0 again" if loop else "s_cbranch_scc0 over\nover:"
    text = KERNEL.format(body=body, OUTPUT=OUTPUT)
    found = kernels.first(Scalarise(), text)
    assert (found is not None and "s_mov_b32 s0, 0x1234" in found) == loop


_SOURCES = {1: ("s6",), 2: ("s6", "s7"), 3: ("s6", "4", "s6")}


@pytest.mark.parametrize("op", SCALAR_FORMS)
def test_both_units_compute_the_same(op: str) -> None:
    """Each operation on the vector unit and in its scalar form, by the emulator."""
    count = next(n for n in (1, 2, 3) if _parses(op, n))
    sources = _SOURCES[count]
    vector = [f"v_mov_b32_e32 v{20 + k}, {s}" for k, s in enumerate(sources)]
    suffix = "_e32" if parse(f"{op} v5, v20" + (", v21" if count > 1 else "") + (
        ", v22" if count > 2 else "")).encoding == "e32" else ""
    vector.append(f"{op}{suffix} v5, " + ", ".join(f"v{20 + k}" for k in range(count)))
    scalar = [*SCALAR_FORMS[op].texts("s0", sources), "v_mov_b32_e32 v5, s0"]
    for given in ({6: a, 7: b} for a in _WORDS for b in _WORDS):
        one, two = (stored(KERNEL.format(body="\n".join(lines), OUTPUT=OUTPUT).strip().split("\n"),
                           given) for lines in (vector, scalar))
        assert np.array_equal(one, two), given


_WORDS = (0, 1, 5, 31, 33, 0x7FFFFFFF, 0x80000000, 0xFFFFFFFE)


def _parses(op: str, count: int) -> bool:
    try:
        i = parse(f"{op} v5, " + ", ".join(f"v{20 + k}" for k in range(count)))
    except Exception:
        return False
    return len(i.operands) == count + 1


def test_loads_are_waited_for(kernels: Any) -> None:
    body = (f"s_load_dword s10, {INPUT}, 0x10\ns_waitcnt lgkmcnt(0)\nv_mov_b32_e32 v9, s10\n{ADD}")
    assert changed(kernels, body)[1:] == ["s_waitcnt lgkmcnt(0)", "v_add_u32_e32 v5, s10, v0"]


def test_all_reduce_starts_its_sums_without_registers() -> None:
    code = CodeObject.parse(
        InstalledFile("amd-aiter", "aiter_meta/hsa/gfx942/all_reduce.co").read())
    symbol = code.kernel().symbol
    lines = tuple(x.text for x in recover(code).body(symbol).lines if x.text)
    context = RuleContext(Evidence(symbol, program(code), lines, (), (), 1.0))
    proposal = next(iter(Scalarise().matches(context)))
    after = context.preview.apply(proposal.edits)
    zeros = [x for x in context.lines if x.startswith("v_mov_b32_e32 v4") and x.endswith(", 0")]
    assert len(zeros) == 8
    assert not set(zeros) & set(after.lines)
    assert "v_add_f32_e32 v40, 0, v48" in after.lines
    known = {v.signature for v in (*missing_waits(context.program), *hazards(context.program))}
    assert {v.signature for v in (*missing_waits(after.program), *hazards(after.program))} <= known
