"""Cheaper arithmetic: divisions, products with constants."""

from __future__ import annotations

import operator
import random
from collections.abc import Callable
from typing import Any

import pytest

from asmevo.isa.parse import parse
from asmevo.propose.rules.fast_division import FastDivision
from asmevo.propose.rules.fold_offsets import FoldOffsets
from asmevo.propose.rules.pack_math import PackMath
from asmevo.propose.rules.shift_multiplies import ShiftMultiplies, product

STORE = "global_store_dword v[0:1], v2, off\ns_endpgm"
# clang 19's `1 - 2 / (x + 1)`, from KernelBench's GELU.
DIVISION = """
v_add_f32_e32 v2, 1.0, v2
v_div_scale_f32 v4, s[0:1], v2, v2, 2.0
v_rcp_f32_e32 v5, v4
v_div_scale_f32 v6, vcc, 2.0, v2, 2.0
v_fma_f32 v7, -v4, v5, 1.0
v_fmac_f32_e32 v5, v7, v5
v_mul_f32_e32 v7, v6, v5
v_fma_f32 v8, -v4, v7, v6
v_fmac_f32_e32 v7, v8, v5
v_fma_f32 v4, -v4, v7, v6
v_div_fmas_f32 v4, v4, v5, v7
v_div_fixup_f32 v2, v4, v2, 2.0
"""


def test_a_division_becomes_a_product(kernels: Any) -> None:
    text = f"{DIVISION}{STORE}"
    plain, corrected = (kernels.edited(text, p) for p in kernels.proposals(FastDivision(), text))
    work = [x for x in plain if not x.startswith("s_nop")]
    assert work == ["v_add_f32_e32 v2, 1.0, v2", "v_rcp_f32_e32 v5, v2",
                    "v_mul_f32_e32 v7, 2.0, v5", "v_div_fixup_f32 v2, v7, v2, 2.0",
                    *STORE.split("\n")]
    work = [x for x in corrected if not x.startswith("s_nop")]
    assert work[3:6] == ["v_fma_f32 v8, -v2, v7, 2.0", "v_fmac_f32_e32 v7, v8, v5",
                         "v_div_fixup_f32 v2, v7, v2, 2.0"]
    assert all("last bit" in p.assumption for p in kernels.proposals(FastDivision(), text))


def test_flags_that_wait_for_their_turn_go_too(kernels: Any) -> None:
    text = DIVISION.replace("v6, vcc, 2.0", "v6, s[4:5], 2.0").replace(
        "v_div_fmas", "s_mov_b64 vcc, s[4:5]\nv_div_fmas") + STORE
    edited = kernels.first(FastDivision(), text)
    assert not any("vcc" in line or "s[4:5]" in line for line in edited)


@pytest.mark.parametrize(("old", "new"), [
    ("v_div_fmas_f32 v4, v4, v5, v7", "v_div_fmas_f32 v4, v4, v7, v5"),
    ("v_fma_f32 v8, -v4, v7, v6", "v_fma_f32 v8, v4, v7, v6"),
    ("v_div_fixup_f32 v2, v4, v2, 2.0", "v_div_fixup_f32 v2, v4, v2, 1.0"),
    ("v_div_fixup", "v_mov_b32_e32 v7, 0\nv_div_fixup"),             # the quotient is overwritten
    ("v_rcp", "v_mov_b32_e32 v9, v4\nglobal_store_dword v[0:1], v9, off\nv_rcp"),
    ("v_mul_f32_e32 v7", "s_mov_b64 exec, s[8:9]\nv_mul_f32_e32 v7"),
    ("v_mul_f32_e32 v7", "again:\nv_mul_f32_e32 v7"),
    ("v_rcp_f32_e32 v5, v4", "v_rcp_f32_e32 v5, v4\nv_mov_b32_e32 v2, 0"),
])
def test_divisions_that_stay(kernels: Any, old: str, new: str) -> None:
    text = DIVISION.replace(old, new) + STORE
    if "again" in new:
        text = text.replace("s_endpgm", "s_cbranch_scc1 again\ns_endpgm")
    assert kernels.proposals(FastDivision(), text) == []


_OPERATIONS: dict[str, Callable[..., int]] = {
    "v_mov_b32": lambda a: a,
    "v_lshlrev_b32": lambda k, a: a << k,
    "v_lshl_add_u32": lambda a, k, b: (a << k) + b,
    "v_sub_u32": operator.sub,
}


@pytest.mark.parametrize("spare", ["v9", "v1"])
@pytest.mark.parametrize("constant", [0, 1, 2, 3, 5, 7, 34, 48, 255, 0x11000, 1 << 31, 0xFFFFFFFF])
def test_shifts_and_additions_multiply(constant: int, spare: str) -> None:
    texts = product("v1", "v2", constant, spare)
    assert texts is not None
    for value in (0, 1, 0xFFFFFFFF, *random.Random(0).choices(range(1 << 32), k=20)):
        state = {"v2": value}
        for text in texts:
            i = parse(text)
            read = [state.get(o.text, o.value) for o in i.operands[1:]]
            state[i.operands[0].text] = _OPERATIONS[i.op](*read) & 0xFFFFFFFF
        assert state["v1"] == value * constant & 0xFFFFFFFF


def test_constants_are_followed_to_their_move(kernels: Any) -> None:
    text = f"s_movk_i32 s4, 0x88\nv_mul_lo_u32 v2, v3, s4\n{STORE}"
    assert kernels.first(ShiftMultiplies(), text) == [
        "s_movk_i32 s4, 0x88", "v_lshlrev_b32_e32 v2, 3, v3", "v_lshl_add_u32 v2, v3, 7, v2",
        *STORE.split("\n")]


@pytest.mark.parametrize("text", [
    "v_mul_lo_u32 v2, v3, s4",                                  # an argument
    "s_mov_b32 s4, s5\nv_mul_lo_u32 v2, v3, s4",
    "s_movk_i32 s4, 0x88\ns_addk_i32 s4, 1\nv_mul_lo_u32 v2, v3, s4",
    "v_mul_lo_u32 v2, 11, v3",                                  # three bits
    "again:\nv_mul_lo_u32 v2, v3, s4\ns_movk_i32 s4, 0x88\ns_cbranch_scc1 again",
])
def test_products_that_stay(kernels: Any, text: str) -> None:
    assert kernels.proposals(ShiftMultiplies(), f"{text}\n{STORE}") == []


ADD = "v_add_u32_e32 v6, 0x440, v5"


@pytest.mark.parametrize(("constant", "access", "expected"), [
    ("0x440", "ds_read_b32 v2, v6 offset:8", "ds_read_b32 v2, v5 offset:1096"),
    ("0x440", "ds_write_b32 v6, v2", "ds_write_b32 v5, v2 offset:1088"),
    ("-8", "ds_read_b32 v2, v6 offset:8", "ds_read_b32 v2, v5"),
    ("16", "ds_read2_b32 v[2:3], v6 offset0:1 offset1:9",
     "ds_read2_b32 v[2:3], v5 offset0:5 offset1:13"),
    ("0", "ds_write2st64_b64 v6, v[2:3], v[8:9] offset1:8",
     "ds_write2st64_b64 v5, v[2:3], v[8:9] offset1:8"),
    ("0x440", "ds_read2_b32 v[2:3], v6 offset1:1", "ds_read_b64 v[2:3], v5 offset:1088"),
    ("64", "buffer_load_dword v2, v6, s[4:7], 0 offen offset:4",
     "buffer_load_dword v2, v5, s[4:7], 0 offen offset:68"),
])
def test_constants_move_into_offsets(
    kernels: Any, constant: str, access: str, expected: str,
) -> None:
    text = f"v_add_u32_e32 v6, {constant}, v5\n{access}\ns_waitcnt vmcnt(0) lgkmcnt(0)\n{STORE}"
    (proposal,) = kernels.proposals(FoldOffsets(), text)
    edited = kernels.edited(text, proposal)
    assert _same_text(edited[0], expected)
    assert "s_waitcnt" in edited[1]
    assert bool(proposal.assumption) == ("b64 v[2:3]" in expected or "buffer" in expected)


def _same_text(a: str, b: str) -> bool:
    """Modifiers may come in any order."""
    return a.split(" ")[:3] == b.split(" ")[:3] and sorted(a.split()) == sorted(b.split())


@pytest.mark.parametrize("text", [
    f"{ADD}\nds_read_b32 v2, v6 offset:65000",                          # beyond 16 bits
    f"{ADD}\nds_read2_b32 v[2:3], v6 offset1:2",                        # beyond 8 bits
    "v_add_u32_e32 v6, 0x444, v5\nds_read2_b32 v[2:3], v6 offset1:1",   # odd words
    "v_add_u32_e32 v6, 6, v5\nds_read2_b32 v[2:3], v6 offset1:2",
    "v_add_u32_e32 v6, 0x1000, v5\nbuffer_load_dword v2, v6, s[4:7], 0 offen",
    f"{ADD}\nds_write_b32 v6, v6",                                      # also data
    f"{ADD}\nds_read_b32 v2, v6\nv_mov_b32_e32 v2, v6",                 # also elsewhere
    f"{ADD}\nv_mov_b32_e32 v5, 0\nds_read_b32 v2, v6",
    f"{ADD}\ns_mov_b64 exec, s[8:9]\nds_read_b32 v2, v6",
    f"{ADD}\nagain:\nds_read_b32 v2, v6\ns_cbranch_scc1 again",
    "v_add_u32_e32 v6, s4, v5\nds_read_b32 v2, v6",
])
def test_constants_that_stay(kernels: Any, text: str) -> None:
    assert kernels.proposals(
        FoldOffsets(), f"{text}\ns_waitcnt vmcnt(0) lgkmcnt(0)\n{STORE}") == []


def test_an_address_that_is_advanced_in_place_is_left_where_it_was(kernels: Any) -> None:
    text = f"v_add_u32_e32 v6, 4, v6\nds_read_b32 v2, v6\ns_waitcnt lgkmcnt(0)\n{STORE}"
    assert kernels.first(FoldOffsets(), text)[0] == "ds_read_b32 v2, v6 offset:4"


@pytest.mark.parametrize(("else_", "folds"), [("", False), ("v_mov_b32_e32 v6, 0", True)])
def test_an_address_that_one_path_leaves_undefined_keeps_its_addition(
        kernels: Any, else_: str, folds: bool) -> None:
    """As in Triton's awq_gemm_kernel; G1 refuses an access by an undefined register."""
    text = (f"{else_}\ns_cbranch_scc1 over\nv_mov_b32_e32 v6, 8\nover:\nv_add_u32_e32 v7, 0, v6\n"
            f"ds_read_b32 v2, v7 offset:4\ns_waitcnt lgkmcnt(0)\n{STORE}")
    assert bool(kernels.proposals(FoldOffsets(), text)) == folds


PAIR_STORE = "global_store_dwordx2 v[0:1], v[2:3], off\ns_endpgm"


@pytest.mark.parametrize(("low", "high", "expected"), [
    ("v_mul_f32_e32 v2, v4, v6", "v_mul_f32_e32 v3, v5, v7",
     "v_pk_mul_f32 v[2:3], v[4:5], v[6:7]"),
    ("v_mul_f32_e32 v3, v4, v7", "v_mul_f32_e32 v2, v5, v7",       # high first, halves crossed
     "v_pk_mul_f32 v[2:3], v[4:5], v[6:7] op_sel:[1,1] op_sel_hi:[0,1]"),
    ("v_add_f32_e32 v2, 1.0, v4", "v_add_f32_e32 v3, 1.0, v5",
     "v_pk_add_f32 v[2:3], 1.0, v[4:5] op_sel_hi:[0,1]"),
    ("v_fma_f32 v2, v4, s5, -v9", "v_fma_f32 v3, v5, s5, -v9",
     "v_pk_fma_f32 v[2:3], v[4:5], s[4:5], v[8:9] op_sel:[0,1,1] neg_lo:[0,0,1] neg_hi:[0,0,1]"),
    ("v_sub_f32_e32 v2, v4, v6", "v_sub_f32_e32 v3, v5, v7",
     "v_pk_add_f32 v[2:3], v[4:5], v[6:7] neg_lo:[0,1] neg_hi:[0,1]"),
    ("v_fmac_f32_e32 v2, v4, v6", "v_fmac_f32_e32 v3, v4, v7",
     "v_pk_fma_f32 v[2:3], v[4:5], v[6:7], v[2:3] op_sel_hi:[0,1,1]"),
])
def test_operations_on_neighbours_pack(kernels: Any, low: str, high: str, expected: str) -> None:
    text = f"{low}\nv_mov_b32_e32 v20, v21\n{high}\n{PAIR_STORE}"
    assert kernels.first(PackMath(), text) == [
        expected, "v_mov_b32_e32 v20, v21", *PAIR_STORE.split("\n")]


@pytest.mark.parametrize(("else_", "packs"), [("", False), ("v_mov_b32_e32 v6, 0", True)])
def test_operations_on_what_one_path_leaves_undefined_do_not_pack(
        kernels: Any, else_: str, packs: bool) -> None:
    text = (f"{else_}\ns_cbranch_scc1 over\nv_mov_b32_e32 v6, 8\nover:\n"
            f"v_mul_f32_e32 v2, v4, v6\nv_mul_f32_e32 v3, v5, v7\n{PAIR_STORE}")
    assert bool(kernels.proposals(PackMath(), text)) == packs


@pytest.mark.parametrize(("low", "high"), [
    ("v_mul_f32_e32 v2, v4, v6", "v_mul_f32_e32 v3, v5, v8"),         # not one pair
    ("v_mul_f32_e32 v2, v5, v6", "v_mul_f32_e32 v3, v6, v7"),         # not an aligned pair
    ("v_mul_f32_e32 v2, v4, v6", "v_mul_f32_e32 v3, v2, v7"),         # one needs the other
    ("v_mul_f32_e32 v2, v4, v6", "v_add_f32_e32 v3, v5, v7"),
    ("v_mul_f32_e32 v2, 0x3d372713, v6", "v_mul_f32_e32 v3, 0x3d372713, v7"),
    ("v_mul_f32_e32 v2, 0.5, v6", "v_mul_f32_e32 v3, 1.0, v7"),
    ("v_mul_f32_e64 v2, |v4|, v6", "v_mul_f32_e64 v3, |v5|, v7"),
    ("v_mul_f32_e64 v2, v4, v6 clamp", "v_mul_f32_e64 v3, v5, v7 clamp"),
    ("v_mul_f32_e32 v2, v4, v6", "v_mov_b32_e32 v5, 0\nv_mul_f32_e32 v3, v5, v7"),
    ("v_mul_f32_e32 v2, v4, v6", "v_mov_b32_e32 v8, v3\nv_mul_f32_e32 v3, v5, v7"),
    ("v_mul_f32_e32 v2, v4, v6", "s_mov_b64 exec, s[8:9]\nv_mul_f32_e32 v3, v5, v7"),
    ("v_mul_f32_e32 v2, v4, v6", "again:\nv_mul_f32_e32 v3, v5, v7\ns_cbranch_scc1 again"),
    ("v_fma_f32 v2, v4, s4, s4", "v_fma_f32 v3, v5, s4, s6"),
])
def test_operations_that_do_not_pack(kernels: Any, low: str, high: str) -> None:
    assert kernels.proposals(PackMath(), f"{low}\n{high}\n{PAIR_STORE}") == []
