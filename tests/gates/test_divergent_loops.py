"""Loops whose lanes leave one by one: pipelined and unrolled, and cheats by their masks.

The original copies ``s6`` words, each lane every ``s7``-th or 256th one.
"""

from __future__ import annotations

import pytest

from tests.gates.test_launch_uses import codes

ORIGINAL = """
    s_load_dwordx4 s[8:11], s[0:1], 0x0
    s_load_dword s6, s[0:1], 0x10
    s_load_dword s7, s[0:1], 0x14
    s_waitcnt lgkmcnt(0)
    s_lshl_b32 s3, s2, 8
    v_add_u32_e32 v1, s3, v0
    v_cmp_gt_u32_e32 vcc, s6, v1
    s_and_saveexec_b64 s[14:15], vcc
    s_cbranch_execz end
    v_lshlrev_b32_e32 v2, 2, v1
    s_mov_b64 s[16:17], 0
    again:
    global_load_dword v3, v2, s[10:11]
    v_add_u32_e32 v1, 0x100, v1
    v_cmp_le_u32_e32 vcc, s6, v1
    s_or_b64 s[16:17], vcc, s[16:17]
    s_waitcnt vmcnt(0)
    global_store_dword v2, v3, s[8:9]
    v_add_u32_e32 v2, 0x400, v2
    s_andn2_b64 exec, exec, s[16:17]
    s_cbranch_execnz again
    end:
    s_endpgm
"""
POINTERS = (0, 4, 8, 12)
BODY = ORIGINAL[ORIGINAL.index("    global_load"):ORIGINAL.index("    s_cbranch_execnz")]
FETCH = ("v_mov_b32_e32 v{0}, v2\n global_load_dword v{1}, v2, s[10:11]\n"
         "v_add_u32_e32 v1, 0x100, v1\n v_cmp_le_u32_e32 vcc, s6, v1\n"
         "s_or_b64 s[16:17], vcc, s[16:17]\n v_add_u32_e32 v2, 0x400, v2\n"
         "s_andn2_b64 exec, exec, s[16:17]\n")
USE = "s_waitcnt vmcnt(0)\n global_store_dword v{0}, v{1}, s[8:9]\n"


def changed(*changes: tuple[str, str]) -> str:
    text = ORIGINAL
    for old, new in changes:
        assert text.count(old) == 1, old
        text = text.replace(old, new)
    return text


LOOP = "    again:\n" + BODY + "    s_cbranch_execnz again\n"
FIRST = ("v_mov_b32_e32 v20, v2\n v_mov_b32_e32 v22, v2\n global_load_dword v21, v2, s[10:11]\n"
         "global_load_dword v23, v2, s[10:11]\n")
PIPELINED = (
    FIRST + FETCH.format(20, 21).split("\n", 2)[2].replace(
        " global_load_dword v21, v2, s[10:11]\n", "") + "s_cbranch_execz drain\n"
    + FETCH.format(22, 23) + "s_cbranch_execz drain\n"
    + "again:\n" + USE.format(20, 21) + FETCH.format(20, 21) + "s_cbranch_execz drain\n"
    + USE.format(22, 23) + FETCH.format(22, 23) + "s_cbranch_execnz again\n"
    + "drain:\n s_or_b64 exec, exec, s[16:17]\n" + USE.format(20, 21) + USE.format(22, 23))

STORE = "    global_store_dword v2, v3, s[8:9]\n"

HONEST = {
    "itself": (),
    "unrolled": ((LOOP, "again:\n" + BODY + "s_cbranch_execz end\n" + BODY
                  + "s_cbranch_execnz again\n"),),
    "peeled": ((LOOP, BODY + "s_cbranch_execz end\n" + LOOP),),
    "pipelined": ((LOOP, PIPELINED),),
    "an address copied with its neighbour": (
        (STORE, "v_pk_mov_b32 v[10:11], v[2:3], v[2:3] op_sel:[0,1]\n"
                + STORE.replace("v2,", "v10,")),),
    "masks in other registers": (
        ("s_mov_b64 s[16:17], 0", "s_mov_b64 s[20:21], 0"),
        ("s_or_b64 s[16:17], vcc, s[16:17]", "s_or_b64 s[20:21], vcc, s[20:21]"),
        ("s_andn2_b64 exec, exec, s[16:17]", "s_andn2_b64 exec, exec, s[20:21]")),
}


@pytest.mark.parametrize("name", HONEST)
def test_other_ways_to_write_a_divergent_loop(name: str) -> None:
    assert codes(changed(*HONEST[name]), ORIGINAL, POINTERS) == set()


SHIFTED = "v_add_u32_e32 v9, {0}, v1\n v_cmp_le_u32_e32 vcc, s6, v9\n"
STORED = "s_mov_b64 s[20:21], exec\n{0}" + STORE + "s_mov_b64 exec, s[20:21]\n"

CHEATS = {
    "lanes with many turns left do not store": (
        (STORE, STORED.format(SHIFTED.format("0x4000") + "s_and_b64 exec, exec, vcc\n")),),
    "lanes with some turns left do not store": (
        (STORE, STORED.format(SHIFTED.format("0x800") + "s_and_b64 exec, exec, vcc\n")),),
    "the same, among those that have left": (
        (STORE, STORED.format(
            SHIFTED.format("0x800") + "s_or_b64 s[22:23], vcc, s[16:17]\n"
            "s_and_b64 exec, exec, s[22:23]\n")),),
    "lanes of two spans do not store": (
        (STORE, STORED.format(
            "s_mov_b64 s[22:23], exec\n" + SHIFTED.format("0x1000")
            + "s_andn2_b64 exec, exec, vcc\n" + SHIFTED.format("0x2000")
            + "s_andn2_b64 exec, s[22:23], vcc\n")),),
    "the counter moved by less than a turn": (
        ("v_cmp_le_u32_e32 vcc, s6, v1", SHIFTED.format("0x80").rstrip()),),
    "the bound moved by a turn": (
        ("v_cmp_le_u32_e32 vcc, s6, v1", "s_add_u32 s20, s6, 0x100\n"
                                         "v_cmp_le_u32_e32 vcc, s20, v1"),),
    "both sides moved": (
        ("v_cmp_le_u32_e32 vcc, s6, v1", "s_add_u32 s20, s6, 0x400\n"
                                         + SHIFTED.format("0x400").replace("s6", "s20").rstrip()),),
    "another bound": (("v_cmp_le_u32_e32 vcc, s6, v1", "v_cmp_le_u32_e32 vcc, s7, v1"),),
    "a constant bound besides": (
        ("s_or_b64 s[16:17], vcc, s[16:17]",
         "s_or_b64 s[16:17], vcc, s[16:17]\n v_cmp_lt_u32_e32 vcc, 0x4000, v1\n"
         "s_or_b64 s[16:17], vcc, s[16:17]"),),
    "as numbers with a sign": (("v_cmp_le_u32_e32 vcc, s6, v1", "v_cmp_le_i32_e32 vcc, s6, v1"),),
    "a step of its own": (
        ("s_mov_b64 s[16:17], 0", "s_mov_b64 s[16:17], 0\n v_mov_b32_e32 v9, v1"),
        ("v_cmp_le_u32_e32 vcc, s6, v1", "v_add_u32_e32 v9, 0x180, v9\n"
                                         "v_cmp_le_u32_e32 vcc, s6, v9")),
    "turns counted in masks": (
        ("s_mov_b64 s[16:17], 0", "s_mov_b64 s[16:17], 0\n s_mov_b64 s[20:21], 0\n"
                                  "s_mov_b64 s[22:23], 0"),
        (STORE, "s_and_b64 s[24:25], s[20:21], exec\n s_xor_b64 s[20:21], s[20:21], exec\n"
                "s_xor_b64 s[22:23], s[22:23], s[24:25]\n"
                + STORED.format("s_andn2_b64 exec, exec, s[22:23]\n").replace(
                    "s[20:21]", "s[26:27]"))),
    "no test of the size at the start": (("s_and_saveexec_b64 s[14:15], vcc",
                                          "s_and_saveexec_b64 s[14:15], -1"),),
    "lanes switched on that were off": (
        (STORE, STORED.format("s_not_b64 exec, s[16:17]\n")),),
    "words copied crosswise": (
        (STORE, "v_pk_mov_b32 v[10:11], v[2:3], v[2:3] op_sel:[1,0]\n"
                + STORE.replace("v2,", "v10,")),),
    "a turn without a branch of its own": (
        (STORE, STORED.format(SHIFTED.format("0x100") + "s_andn2_b64 exec, exec, vcc\n")),),
    "a mask that is lost": (
        ("s_andn2_b64 exec, exec, s[16:17]\n    s_cbranch_execnz again",
         "s_andn2_b64 s[20:21], exec, s[16:17]\n s_cmp_lg_u64 s[20:21], 0\n"
         "s_cbranch_scc1 again"),),
}


@pytest.mark.parametrize("name", CHEATS)
def test_masks_that_the_original_does_not_have(name: str) -> None:
    assert codes(changed(*CHEATS[name]), ORIGINAL, POINTERS)
