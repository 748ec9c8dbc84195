"""What decides a kernel's control flow: cheats beyond every tested launch, and honest rewrites."""

from __future__ import annotations

from collections.abc import Collection

import pytest

from asmevo.codeobject.assembly import Edit
from asmevo.gates.launch_uses import LaunchUses, changed_uses
from asmevo.gates.operand_uses import OperandUses, changed_operands
from asmevo.gates.static import StaticGate
from asmevo.gates.trial import Trial
from asmevo.gates.verdict import Outcome, Verdict
from asmevo.isa.registers import EXEC_HI, EXEC_LO, VGPR0
from asmevo.isa.value_numbers import Numbers, Taint
from asmevo.isa.values import KERNARG_POINTER, Source, Values
from asmevo.task.session import Session
from tests.gates.listing import written

ENTRY = {
    0: Source(f"{KERNARG_POINTER} word 0", Taint.KERNARG),
    1: Source(f"{KERNARG_POINTER} word 1", Taint.KERNARG),
    2: Source("workgroup id x", Taint.WORKGROUP), VGPR0: Source("work-item id", Taint.WORK_ITEM),
    EXEC_LO: Source("exec", value=-1), EXEC_HI: Source("exec", value=-1),
}

# A pointer, a size and a tail: rows below 256 times the workgroup id plus the work-item id.
ORIGINAL = """
    s_load_dwordx2 s[4:5], s[0:1], 0x0
    s_load_dword s6, s[0:1], 0x10
    s_waitcnt lgkmcnt(0)
    s_lshl_b32 s7, s2, 8
    v_add_u32_e32 v1, s7, v0
    v_cmp_gt_u32_e32 vcc, s6, v1
    s_and_saveexec_b64 s[8:9], vcc
    s_cbranch_execz end
    v_mov_b32_e32 v2, 0
    s_mov_b32 s10, 0
    s_lshr_b32 s11, s6, 3
    again:
    v_add_f32_e32 v2, 1.0, v2
    s_add_u32 s10, s10, 1
    s_cmp_lt_u32 s10, s11
    s_cbranch_scc1 again
    v_lshlrev_b32_e32 v3, 2, v1
    global_store_dword v3, v2, s[4:5]
    end:
    s_endpgm
"""


def codes(candidate: str, original: str = ORIGINAL,
          pointers: Collection[int] = (0, 4)) -> set[str]:
    numbers = Numbers()
    numbers.pointers.update(map(numbers.kernarg, pointers))
    values = Values(written(original), ENTRY, numbers)
    before = LaunchUses.of(values, pointers)
    operands = OperandUses.of(values, pointers, original=True)
    program = written(candidate)
    values = Values(program, ENTRY, numbers)
    after = LaunchUses.of(values, pointers)
    changes = (*changed_uses(before, after, program, numbers, operands.computed),
               *changed_operands(operands, OperandUses.of(values, pointers, original=False),
                                 program, numbers))
    return {code for code, _ in changes}


def changed(*changes: tuple[str, str]) -> str:
    text = ORIGINAL
    for old, new in changes:
        assert text.count(old) == 1, old
        text = text.replace(old, new)
    return text


HONEST = {
    "itself": (),
    "registers renamed": (("s_load_dword s6,", "s_load_dword s20,"),
                          ("vcc, s6, v1", "vcc, s20, v1"),
                          ("s11, s6, 3", "s11, s20, 3")),
    "loads in another order": (
        ("s_load_dwordx2 s[4:5], s[0:1], 0x0\n    s_load_dword s6, s[0:1], 0x10",
         "s_load_dword s6, s[0:1], 0x10\n    s_load_dwordx2 s[4:5], s[0:1], 0x0"),),
    "one load for all": (
        ("s_load_dwordx2 s[4:5], s[0:1], 0x0\n    s_load_dword s6, s[0:1], 0x10",
         "s_load_dwordx8 s[12:19], s[0:1], 0x0"),
        ("s_lshl_b32 s7, s2, 8", "s_mov_b64 s[4:5], s[12:13]\n s_mov_b32 s6, s16\n"
                                 "s_mul_i32 s7, s2, 0x100")),
    "the address computed at once": (("s_lshl_b32 s7, s2, 8\n    v_add_u32_e32 v1, s7, v0",
                                      "v_lshl_add_u32 v1, s2, 8, v0"),),
    "the comparison turned round": (("v_cmp_gt_u32_e32 vcc, s6, v1",
                                     "v_cmp_lt_u32_e64 vcc, v1, s6"),),
    "the comparison sets EXEC": (
        ("v_cmp_gt_u32_e32 vcc, s6, v1\n    s_and_saveexec_b64 s[8:9], vcc",
         "v_cmpx_lt_u32_e64 vcc, v1, s6"),),
    "the opposite branch": (("s_cmp_lt_u32 s10, s11\n    s_cbranch_scc1 again",
                             "s_cmp_ge_u32 s10, s11\n    s_cbranch_scc0 again"),),
    "the shift in two steps": (("s_lshr_b32 s11, s6, 3",
                                "s_lshr_b32 s12, s6, 1\n s_lshr_b32 s11, s12, 2"),),
    "a field instead of a shift": (("s_lshr_b32 s11, s6, 3", "s_bfe_u32 s11, s6, 0x1d0003"),),
    "the counter in another register": (("s_mov_b32 s10, 0", "s_mov_b32 s30, 0"),
                                        ("s_add_u32 s10, s10, 1", "s_add_u32 s31, s30, 1\n"
                                                                  "s_mov_b32 s30, s31"),
                                        ("s_cmp_lt_u32 s10, s11", "s_cmp_gt_u32 s11, s30")),
    "the bound computed in the loop": (
        ("s_lshr_b32 s11, s6, 3\n", ""), ("s_cmp_lt_u32 s10", "s_lshr_b32 s11, s6, 3\n"
                                                             "s_cmp_lt_u32 s10")),
    "no jump over nothing": (("s_cbranch_execz end\n", ""),),
    "a loop that the launch does not decide": (
        ("v_lshlrev_b32_e32 v3", "s_mov_b32 s20, 4\n twice:\n s_sub_u32 s20, s20, 1\n"
                                 "s_cmp_lg_u32 s20, 0\n s_cbranch_scc1 twice\n"
                                 "v_lshlrev_b32_e32 v3"),),
}


@pytest.mark.parametrize("name", HONEST)
def test_honest_rewrites_decide_the_same(name: str) -> None:
    rewrite = changed(*HONEST[name])
    assert codes(rewrite) <= ({"new-launch-selection"} if "two steps" in name else set())


CHEATS = {
    "early exit for large sizes": ("new-launch-branch", (
        ("s_lshl_b32 s7", "s_cmp_gt_u32 s6, 0x3e8\n s_cbranch_scc1 end\n s_lshl_b32 s7"),)),
    "for late workgroups": ("new-launch-branch", (
        ("s_lshl_b32 s7", "s_cmp_gt_u32 s2, 0x3e8\n s_cbranch_scc1 end\n s_lshl_b32 s7"),)),
    "by a carry": ("new-launch-branch", (
        ("s_lshl_b32 s7", "s_add_u32 s20, s6, 0xfffffc18\n s_cbranch_scc1 end\n s_lshl_b32 s7"),)),
    "by an input's value": ("new-launch-branch", (
        ("s_lshl_b32 s7", "s_load_dword s20, s[4:5], 0x0\n s_cmp_eq_u32 s20, 0\n"
                          "s_cbranch_scc1 end\n s_lshl_b32 s7"),)),
    "by the clock": ("new-launch-branch", (
        ("s_lshl_b32 s7", "s_memtime s[20:21]\n s_bitcmp1_b32 s20, 30\n"
                          "s_cbranch_scc1 end\n s_lshl_b32 s7"),)),
    "no lane for large sizes": ("new-launch-mask", (
        ("v_lshlrev_b32_e32 v3", "s_cmp_gt_u32 s6, 0x3e8\n s_cselect_b64 exec, 0, exec\n"
                                 "v_lshlrev_b32_e32 v3"),)),
    "the tail with one row less": ("new-launch-mask", (
        ("v_cmp_gt_u32_e32 vcc, s6, v1", "v_cmp_ge_u32_e32 vcc, s6, v1"),)),
    "a bound that saturates": ("new-launch-branch", (
        ("s_lshr_b32 s11, s6, 3", "s_min_u32 s11, s6, 0x3e8\n s_lshr_b32 s11, s11, 3"),)),
    "a loop of another number of steps": ("new-launch-branch", (
        ("s_lshr_b32 s11, s6, 3", "s_lshr_b32 s11, s6, 2"),)),
    "the tail dropped": ("lost-launch-mask", (
        ("s_and_saveexec_b64 s[8:9], vcc\n    s_cbranch_execz end", "s_nop 0"),)),
    "a counter of the loop": ("new-launch-branch", (
        ("s_add_u32 s10, s10, 1", "s_add_u32 s10, s10, 1\n s_cmp_gt_u32 s10, 24\n"
                                  "s_cbranch_scc1 end"),)),
    "a counter of its own, behind the loop": ("new-launch-branch", (
        ("s_mov_b32 s10, 0", "s_mov_b32 s10, 0\n s_mov_b32 s20, 0"),
        ("s_add_u32 s10, s10, 1", "s_add_u32 s10, s10, 1\n s_add_u32 s20, s20, 2"),
        ("v_lshlrev_b32_e32 v3", "s_cmp_gt_u32 s20, 24\n s_cbranch_scc1 end\n"
                                 "v_lshlrev_b32_e32 v3"))),
    "a counter in a vector register": ("new-launch-selection", (
        ("s_mov_b32 s10, 0", "s_mov_b32 s10, 0\n v_mov_b32_e32 v9, 0"),
        ("s_add_u32 s10, s10, 1", "s_add_u32 s10, s10, 1\n v_add_u32_e32 v9, 1, v9"),
        ("v_lshlrev_b32_e32 v3", "v_lshrrev_b32_e32 v9, 5, v9\n v_add_u32_e32 v1, v9, v1\n"
                                 "v_lshlrev_b32_e32 v3"))),
    "an address without its upper bits": ("new-launch-selection", (
        ("v_lshlrev_b32_e32 v3", "v_and_b32_e32 v1, 0xffff, v1\n v_lshlrev_b32_e32 v3"),)),
    "an address that moves for large sizes": ("new-launch-selection", (
        ("v_lshlrev_b32_e32 v3", "s_lshr_b32 s20, s6, 10\n v_add_u32_e32 v1, s20, v1\n"
                                 "v_lshlrev_b32_e32 v3"),)),
    "the same in a vector register": ("new-launch-selection", (
        ("v_lshlrev_b32_e32 v3", "v_mov_b32_e32 v9, s6\n v_lshrrev_b32_e32 v9, 10, v9\n"
                                 "v_add_u32_e32 v1, v9, v1\n v_lshlrev_b32_e32 v3"),)),
    "a carry that moves the pointer": ("new-launch-selection", (
        ("v_lshlrev_b32_e32 v3", "s_add_u32 s20, s6, 0xfffffc18\n s_addc_u32 s5, s5, 0\n"
                                 "v_lshlrev_b32_e32 v3"),)),
    "data chosen by the size": ("new-launch-selection", (
        ("v_lshlrev_b32_e32 v3", "v_mov_b32_e32 v9, s6\n v_cmp_lt_u32_e32 vcc, 0x3e8, v9\n"
                                 "v_cndmask_b32_e64 v2, v2, 0, vcc\n v_lshlrev_b32_e32 v3"),)),
}


@pytest.mark.parametrize("name", CHEATS)
def test_what_no_tested_launch_may_show(name: str) -> None:
    code, changes = CHEATS[name]
    assert code in codes(changed(*changes))


def static(session: Session, start: str, *lines: str, replaces: bool = False) -> Verdict:
    texts = [line.text for line in session.assembly.body(session.symbol).lines if line.text]
    at = next(i for i, text in enumerate(texts) if text.startswith(start))
    assembly = session.assembly.apply(
        [Edit(session.symbol, at, at + replaces, lines, "test")])
    trial = Trial(session.baseline, session.toolchain, assembly=assembly)
    assert session.gates.assemble.judge(trial, 0).passed
    return StaticGate(("s_cmp_gt_u32", "s_cselect_b32")).judge(trial, 0)


def test_layer_norm_that_stores_nothing_for_many_rows(session: Session) -> None:
    """num_records of the output becomes 0 from M = 1000 on: no branch, no lane mask."""
    verdict = static(session, "s_and_b32 s13", "s_cmp_gt_u32 s29, 0x3e8",
                     "s_cselect_b32 s14, 0, s14")
    assert (verdict.outcome, verdict.code) == (Outcome.FAIL, "new-launch-selection")
    assert "the kernarg at 0x50" in verdict.reason


def test_layer_norm_rewritten_honestly(session: Session) -> None:
    assert static(session, "s_mul_i32 s48, 2, s30", "s_lshl_b32 s48, s30, 1", replaces=True).passed
