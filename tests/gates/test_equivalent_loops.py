"""Loops that are written in another way: unrolled, peeled, pipelined, counted down, reduced.

The original sums up a row of ``s6`` elements, each found by an index that is read from memory.
"""

from __future__ import annotations

import pytest

from tests.gates.test_launch_uses import codes

ORIGINAL = """
    s_load_dwordx2 s[4:5], s[0:1], 0x0
    s_load_dwordx2 s[8:9], s[0:1], 0x8
    s_load_dword s6, s[0:1], 0x10
    s_load_dword s7, s[0:1], 0x14
    s_waitcnt lgkmcnt(0)
    v_mov_b32_e32 v9, 0
    s_mov_b32 s10, 0
    v_lshlrev_b32_e32 v1, 2, v0
    again:
    global_load_dword v2, v1, s[8:9]
    s_waitcnt vmcnt(0)
    v_and_b32_e32 v2, 0xffffff, v2
    v_mul_lo_u32 v3, v2, s7
    v_lshlrev_b32_e32 v3, 2, v3
    global_load_dword v4, v3, s[4:5]
    global_load_dword v5, v3, s[4:5] offset:4
    s_waitcnt vmcnt(0)
    v_add_f32_e32 v9, v9, v4
    v_add_f32_e32 v9, v9, v5
    s_add_u32 s8, s8, 0x100
    s_addc_u32 s9, s9, 0
    s_add_u32 s10, s10, 64
    s_cmp_lt_u32 s10, s6
    s_cbranch_scc1 again
    v_lshlrev_b32_e32 v7, 2, v0
    global_store_dword v7, v9, s[4:5]
    s_endpgm
"""
POINTERS = (0, 4, 8, 12)
TURN = ORIGINAL[ORIGINAL.index("    global_load_dword v2"):ORIGINAL.index("    s_add_u32 s10")]


def changed(*changes: tuple[str, str]) -> str:
    text = ORIGINAL
    for old, new in changes:
        assert text.count(old) == 1, old
        text = text.replace(old, new)
    return text


HONEST = {
    "itself": (),
    "wider loads": (
        ("global_load_dword v4, v3, s[4:5]\n    global_load_dword v5, v3, s[4:5] offset:4",
         "global_load_dwordx2 v[4:5], v3, s[4:5]"),),
    "wider scalar loads": (
        ("s_load_dwordx2 s[4:5], s[0:1], 0x0\n    s_load_dwordx2 s[8:9], s[0:1], 0x8\n"
         "    s_load_dword s6, s[0:1], 0x10\n    s_load_dword s7, s[0:1], 0x14",
         "s_load_dwordx4 s[20:23], s[0:1], 0x0\n s_load_dwordx2 s[6:7], s[0:1], 0x10\n"
         "s_waitcnt lgkmcnt(0)\n s_mov_b64 s[4:5], s[20:21]\n s_mov_b64 s[8:9], s[22:23]"),),
    "the index moves, not the pointer": (
        ("s_add_u32 s8, s8, 0x100\n    s_addc_u32 s9, s9, 0\n", "v_add_u32_e32 v1, 0x100, v1\n"),),
    "the index made from the counter": (
        ("global_load_dword v2, v1", "s_lshl_b32 s20, s10, 2\n v_add_u32_e32 v6, s20, v1\n"
                                     "global_load_dword v2, v6"),
        ("s_add_u32 s8, s8, 0x100\n    s_addc_u32 s9, s9, 0\n", "")),
    "counted down": (
        ("s_mov_b32 s10, 0", "s_mov_b32 s10, s6"),
        ("s_add_u32 s10, s10, 64", "s_sub_u32 s10, s10, 64"),
        ("s_cmp_lt_u32 s10, s6", "s_cmp_gt_i32 s10, 0")),
    "the exit tested with the opposite branch": (
        ("s_cmp_lt_u32 s10, s6\n    s_cbranch_scc1 again",
         "s_cmp_ge_u32 s10, s6\n s_cbranch_scc1 out\n s_branch again\n out:"),),
    "unrolled with an exit between": (
        ("s_cmp_lt_u32 s10, s6\n    s_cbranch_scc1 again",
         "s_cmp_ge_u32 s10, s6\n s_cbranch_scc1 out\n" + TURN
         + "s_add_u32 s10, s10, 64\n s_cmp_lt_u32 s10, s6\n s_cbranch_scc1 again\n out:"),),
    "unrolled, the second turn tested ahead": (
        ("s_cmp_lt_u32 s10, s6\n    s_cbranch_scc1 again",
         "s_add_u32 s20, s10, 64\n s_cmp_lt_u32 s20, s6\n s_cbranch_scc0 rest\n" + TURN
         + "s_add_u32 s10, s10, 64\n rest:\n s_cmp_lt_u32 s10, s6\n s_cbranch_scc1 again"),),
    "unrolled, one pointer for both": (
        ("s_cmp_lt_u32 s10, s6\n    s_cbranch_scc1 again",
         "s_cmp_ge_u32 s10, s6\n s_cbranch_scc1 out\n"
         + TURN.replace("v1, s[8:9]", "v1, s[8:9] offset:256").replace(
             "s_add_u32 s8, s8, 0x100", "s_add_u32 s8, s8, 0x200")
         + "s_add_u32 s10, s10, 64\n s_cmp_lt_u32 s10, s6\n s_cbranch_scc1 again\n out:"),
    ),
    "peeled": (("    again:\n", TURN + "s_add_u32 s10, s10, 64\n s_cmp_ge_u32 s10, s6\n"
                               "s_cbranch_scc1 out\n again:\n"),
               ("s_cbranch_scc1 again\n", "s_cbranch_scc1 again\n out:\n")),
    "pipelined: the next index is read ahead": (
        ("    again:\n    global_load_dword v2, v1, s[8:9]\n    s_waitcnt vmcnt(0)\n",
         "global_load_dword v6, v1, s[8:9]\n again:\n s_waitcnt vmcnt(0)\n v_mov_b32_e32 v2, v6\n"
         "s_add_u32 s8, s8, 0x100\n s_addc_u32 s9, s9, 0\n global_load_dword v6, v1, s[8:9]\n"),
        ("v_add_f32_e32 v9, v9, v5\n    s_add_u32 s8, s8, 0x100\n    s_addc_u32 s9, s9, 0\n",
         "v_add_f32_e32 v9, v9, v5\n")),
    "the product's address in 64 bits": (
        ("v_lshlrev_b32_e32 v3, 2, v3\n    global_load_dword v4, v3, s[4:5]",
         "v_lshlrev_b32_e32 v3, 2, v3\n v_mov_b32_e32 v10, v3\n v_mov_b32_e32 v11, 0\n"
         "v_lshl_add_u64 v[10:11], v[10:11], 0, s[4:5]\n global_load_dword v4, v[10:11], off"),),
    "the same with a carry": (
        ("v_lshlrev_b32_e32 v3, 2, v3\n    global_load_dword v4, v3, s[4:5]",
         "v_lshlrev_b32_e32 v3, 2, v3\n v_add_co_u32_e32 v10, vcc, s4, v3\n v_mov_b32_e32 v11, s5\n"
         "v_addc_co_u32_e32 v11, vcc, 0, v11, vcc\n global_load_dword v4, v[10:11], off"),),
    "a field for the mask": (("v_and_b32_e32 v2, 0xffffff, v2", "v_bfe_u32 v2, v2, 0, 24"),),
    "the mask by shifts": (("v_and_b32_e32 v2, 0xffffff, v2",
                            "v_lshlrev_b32_e32 v2, 8, v2\n v_lshrrev_b32_e32 v2, 8, v2"),),
    "the factor in front": (("v_mul_lo_u32 v3, v2, s7\n    v_lshlrev_b32_e32 v3, 2, v3",
                             "s_lshl_b32 s20, s7, 2\n v_mul_lo_u32 v3, v2, s20"),),
    "a branch more on the same condition": (
        ("v_lshlrev_b32_e32 v7, 2, v0", "s_cmp_lt_u32 s10, s6\n s_cbranch_scc1 on\n on:\n"
                                        "v_lshlrev_b32_e32 v7, 2, v0"),),
}


@pytest.mark.parametrize("name", HONEST)
def test_other_ways_to_write_a_loop(name: str) -> None:
    assert codes(changed(*HONEST[name]), ORIGINAL, POINTERS) == set()


CHEATS = {
    "the index without its upper bits": (("0xffffff", "0x7f"),),
    "a bound on the index": (("v_and_b32_e32 v2, 0xffffff, v2",
                              "v_min_u32_e32 v2, 0x7f, v2"),),
    "the index of one byte": (("global_load_dword v2, v1", "global_load_ubyte v2, v1"),),
    "lanes with large indices off": (
        ("v_mul_lo_u32 v3, v2, s7", "v_cmp_gt_u32_e32 vcc, 0x80, v2\n s_and_b64 exec, exec, vcc\n"
                                    "v_mul_lo_u32 v3, v2, s7"),),
    "another stride of the loop": (("s_add_u32 s8, s8, 0x100\n    s_addc_u32 s9, s9, 0",
                                    "s_lshl_b32 s20, s7, 25\n s_addk_i32 s20, 0x100\n"
                                    "s_add_u32 s8, s8, s20\n s_addc_u32 s9, s9, 0"),),
    "another argument": (("v_mul_lo_u32 v3, v2, s7", "v_mul_lo_u32 v3, v2, s6"),),
    "the upper word moved by the size": (
        ("s_addc_u32 s9, s9, 0", "s_addc_u32 s9, s9, 0\n s_lshr_b32 s20, s6, 10\n"
                                 "s_add_u32 s9, s9, s20"),),
    "a store that moves": (("global_store_dword v7", "v_lshl_add_u32 v7, s6, 22, v7\n"
                                                     "global_store_dword v7"),),
    "an exit for large sizes": (
        ("s_cmp_lt_u32 s10, s6\n", "s_sub_u32 s20, s6, 0x4000\n s_cmp_lt_i32 s10, s20\n"),),
    "a bound of less than a turn": (
        ("s_cmp_lt_u32 s10, s6\n", "s_sub_u32 s20, s6, 1\n s_cmp_lt_u32 s10, s20\n"),),
    "a comparison that overflows for large sizes": (
        ("s_cmp_lt_u32 s10, s6\n", "s_sub_u32 s20, s6, 0x400\n s_sub_u32 s21, s10, 0x400\n"
                                   "s_cmp_lt_u32 s21, s20\n"),),
    "the same, counted down": (
        ("s_cmp_lt_u32 s10, s6\n", "s_sub_u32 s20, s6, s10\n s_sub_u32 s20, s20, 0x440\n"
                                   "s_cmp_ge_u32 s20, 0xfffffc01\n"),),
    "the size added to data": (
        ("v_add_f32_e32 v9, v9, v4", "s_sub_u32 s20, s6, 64\n s_sub_u32 s21, s6, 0x80\n"
                                     "s_mul_i32 s20, s20, s21\n v_add_u32_e32 v4, s20, v4\n"
                                     "v_add_f32_e32 v9, v9, v4"),),
    "the same from a vector register": (
        ("v_add_f32_e32 v9, v9, v4", "v_mov_b32_e32 v20, s6\n v_subrev_u32_e32 v21, 64, v20\n"
                                     "v_mul_lo_u32 v20, v20, v21\n v_xor_b32_e32 v4, v20, v4\n"
                                     "v_add_f32_e32 v9, v9, v4"),),
    "the same, hidden in an address": (
        ("v_add_f32_e32 v9, v9, v4", "s_sub_u32 s20, s6, 64\n s_mul_i32 s20, s20, s6\n"
                                     "v_mov_b32_e32 v20, v4\n v_add_u32_e32 v4, s20, v4\n"
                                     "v_sub_u32_e32 v20, v4, v20\n v_subrev_u32_e32 v20, s20, v20\n"
                                     "v_add_u32_e32 v1, v1, v20\n v_add_f32_e32 v9, v9, v4"),),
    "an exit by the index": (
        ("v_mul_lo_u32 v3, v2, s7", "v_readfirstlane_b32 s20, v2\n s_cmp_gt_u32 s20, 0x80\n"
                                    "s_cbranch_scc1 out\n v_mul_lo_u32 v3, v2, s7"),
        ("v_lshlrev_b32_e32 v7", "out:\n v_lshlrev_b32_e32 v7")),
    "two counters compared": (
        ("s_mov_b32 s10, 0", "s_mov_b32 s10, 0\n s_mov_b32 s20, 0\n warm:\n"
                             "s_add_u32 s20, s20, 64\n s_cmp_lt_u32 s20, 0x1000\n"
                             "s_cbranch_scc1 warm\n s_mov_b32 s21, 0"),
        ("s_cmp_lt_u32 s10, s6\n", "s_add_u32 s21, s21, 64\n s_cmp_eq_u32 s20, s21\n"
                                   "s_cbranch_scc1 out\n s_cmp_lt_u32 s10, s6\n"),
        ("v_lshlrev_b32_e32 v7", "out:\n v_lshlrev_b32_e32 v7")),
    "an LDS address by the index": (
        ("v_mul_lo_u32 v3, v2, s7", "v_lshrrev_b32_e32 v8, 7, v2\n ds_read_b32 v8, v8\n"
                                    "v_mul_lo_u32 v3, v2, s7"),),
}


@pytest.mark.parametrize("name", CHEATS)
def test_what_larger_inputs_would_show(name: str) -> None:
    assert codes(changed(*CHEATS[name]), ORIGINAL, POINTERS)


@pytest.mark.parametrize(("first", "step"), [
    ("v_mov_b32_e32 v20, s6", "v_mul_lo_u32 v20, v20, v20"),
    ("v_mov_b32_e32 v20, s6", "v_add_u32_e32 v20, v20, v0\n v_mul_lo_u32 v20, v20, v20"),
    ("s_mov_b64 s[20:21], s[4:5]\n s_mov_b64 s[22:23], s[8:9]",
     "s_add_u32 s20, s20, s22\n s_addc_u32 s21, s21, s23\n"
     "s_add_u32 s22, s20, s22\n s_addc_u32 s23, s21, s23"),
])
def test_values_that_grow_without_bound_are_compared_in_time(first: str, step: str) -> None:
    """Powers of two and of the golden ratio: 2^60 factors, were they multiplied out."""
    chain = "\n".join((first, *[step] * 60))
    target = "v_mov_b32_e32 v20, s20\n" if "s20" in step else ""
    cheat = chain + "\n" + target + "v_add_u32_e32 v7, v20, v7\n global_store_dword v7"
    assert codes(changed(("global_store_dword v7", cheat)), ORIGINAL, POINTERS)
