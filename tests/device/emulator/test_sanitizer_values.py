"""Undefined registers, LDS and memory: what is reported, where, and what is not."""

from __future__ import annotations

import pytest

from asmevo.device.emulator.sanitizer import Kind
from tests.device.emulator.sanitizer_bench import Kernel

REGISTER = Kind.UNINITIALISED_REGISTER
DONE = "s_waitcnt vmcnt(0) lgkmcnt(0)"


def store(register: str) -> str:
    return f"global_store_dword v1, {register}, s[2:3]"


def test_store_of_a_register_no_one_wrote() -> None:
    report = Kernel().only([store("v5")], REGISTER)
    assert (report.pc, report.text) == (8, store("v5"))
    assert (report.producer_pc, report.register, report.lane) == (None, "v5", 0)
    assert "producer: launch" in str(report)
    assert report.to_dict()["kind"] == "uninitialised-register"


def test_copies_propagate_and_the_use_is_reported() -> None:
    body = ["v_mov_b32_e32 v6, v5", "v_add_f32_e32 v7, v6, v6", "v_mov_b32_e32 v8, v9"]
    report = Kernel().only([*body, store("v7")], REGISTER)
    assert report.pc == 32
    assert report.register == "v7"
    assert "from v5" in report.detail


def test_only_undefined_lanes_count() -> None:
    head = ["v_cmp_gt_u32_e32 vcc, 8, v0", "s_mov_b64 s[20:21], exec", "s_mov_b64 exec, vcc",
            "v_mov_b32_e32 v5, 1"]
    Kernel().clean([*head, store("v5")])
    report = Kernel().only([*head, "s_mov_b64 exec, s[20:21]", store("v5")], REGISTER)
    assert report.lane == 8


DEFINED_BITS = [
    (["v_mov_b32_e32 v5, 1", "v_cmp_gt_u32_e32 vcc, 99, v0", "v_cndmask_b32_e32 v6, v9, v5, vcc"],
     True),
    (["v_mov_b32_e32 v5, 1", "v_cmp_gt_u32_e32 vcc, 8, v0", "v_cndmask_b32_e32 v6, v9, v5, vcc"],
     False),
    (["v_and_b32_e32 v6, 0, v9"], True),
    (["v_and_b32_e32 v6, 1, v9"], False),
    (["v_or_b32_e32 v6, -1, v9"], True),
    (["v_xor_b32_e32 v6, v9, v9"], True),
    (["v_xor_b32_e32 v6, v0, v9"], False),
    # Packing: each half comes from one source.
    (["v_cvt_pkrtz_f16_f32 v6, v0, v9", "v_and_b32_e32 v6, 0xffff, v6"], True),
    (["v_cvt_pkrtz_f16_f32 v6, v0, v9", "v_lshrrev_b32_e32 v6, 16, v6"], False),
    (["v_cvt_pk_fp8_f32 v6, v0, v0"], False),
    (["v_cvt_pk_fp8_f32 v6, v0, v0", "v_cvt_pk_fp8_f32 v6, v0, v0 op_sel:[0,0,1]"], True),
    (["v_cvt_pk_fp8_f32 v6, v0, v9", "v_cvt_pk_fp8_f32 v6, v0, v0 op_sel:[0,0,1]"], False),
    # Bytes of v9:v0 that the selector leaves out do not count.
    (["s_mov_b32 s20, 0x03020100", "v_perm_b32 v6, v9, v0, s20"], True),
    (["s_mov_b32 s20, 0x03020104", "v_perm_b32 v6, v9, v0, s20"], False),
    (["v_lshl_or_b32 v6, v9, 16, v0", "v_and_b32_e32 v6, 0xffff, v6"], True),
    (["v_lshl_or_b32 v6, v9, 16, v0"], False),
    (["v_lshlrev_b32_e32 v7, 16, v9", "v_bfe_u32 v6, v7, 4, 12"], True),
    (["v_lshlrev_b32_e32 v7, 16, v9", "v_bfe_u32 v6, v7, 4, 13"], False),
    # Carries run upwards only.
    (["v_lshlrev_b32_e32 v7, 16, v9", "v_add_u32_e32 v7, v7, v0",
      "v_and_b32_e32 v6, 15, v7"], True),
    (["v_mov_b32_e32 v8, 1", "v_mad_u64_u32 v[6:7], s[20:21], v0, v0, v[8:9]"], True),
    (["v_mov_b32_e32 v8, 1", "v_mad_u64_u32 v[6:7], s[20:21], v0, v9, v[8:9]"], False),
    (["v_add_u32_e32 v7, v9, v0", "v_and_b32_e32 v6, 0x100, v7"], False),
    (["v_mov_b32_sdwa v6, v0 dst_sel:WORD_0 dst_unused:UNUSED_PRESERVE src0_sel:DWORD"], False),
    (["v_mov_b32_sdwa v6, v0 dst_sel:WORD_0 dst_unused:UNUSED_PRESERVE src0_sel:DWORD",
      "s_nop 0", "v_and_b32_e32 v6, 0xffff, v6"], True),
    (["v_cvt_f32_ubyte1_e32 v6, v9"], False),
    (["v_lshlrev_b32_e32 v7, 16, v9", "v_cvt_f32_ubyte1_e32 v6, v7"], True),
    (["v_pk_mov_b32 v[6:7], v[0:1], v[8:9] op_sel:[0,1]"], True),
    (["v_pk_mov_b32 v[6:7], v[8:9], v[0:1] op_sel:[0,1]"], False),
    # Lanes: a row shift brings 0 where there is no source, with bound_ctrl.
    (["v_mov_b32_e32 v6, 0", "v_mov_b32_dpp v6, v0 row_shr:1 row_mask:0xf bank_mask:0xf"], True),
    (["v_mov_b32_dpp v6, v0 row_shr:1 row_mask:0xf bank_mask:0xf"], False),
    (["v_mov_b32_dpp v6, v0 row_shr:1 row_mask:0xf bank_mask:0xf bound_ctrl:0"], True),
    (["v_mov_b32_e32 v6, 0", "v_readlane_b32 s20, v9, 3", "s_nop 3", "v_writelane_b32 v6, s20, 2"],
     False),
    (["v_mov_b32_e32 v6, 0", "s_mov_b32 s20, 7", "v_writelane_b32 v6, s20, 2"], True),
    (["s_and_b32 s20, s30, 0", "v_mov_b32_e32 v6, s20"], True),
    (["s_or_b64 s[20:21], s[30:31], -1", "v_mov_b32_e32 v6, s21"], True),
    (["s_add_u32 s20, s30, 1", "v_mov_b32_e32 v6, s20"], False),
    (["s_cmp_eq_u32 s6, 0", "s_cselect_b32 s20, s6, s30", "v_mov_b32_e32 v6, s20"], True),
    (["s_cmp_eq_u32 s6, 1", "s_cselect_b32 s20, s6, s30", "v_mov_b32_e32 v6, s20"], False),
    (["ds_bpermute_b32 v6, v1, v0", DONE], True), (["ds_bpermute_b32 v6, v1, v9", DONE], False),
]


@pytest.mark.parametrize(("body", "defined"), DEFINED_BITS, ids=lambda x: x[-1] if isinstance(
    x, list) else str(x))
def test_bits(body: list[str], defined: bool) -> None:
    if defined:
        Kernel().clean([*body, store("v6")])
        return
    report = Kernel().only([*body, store("v6")], REGISTER)
    assert report.pc == 8 * (len(body) + 1)
    assert report.register == "v6"
    assert report.producer_pc is None


@pytest.mark.parametrize(("body", "at", "register"), [
    (["global_load_dword v5, v9, s[0:1]"], 0, "v9"),
    (["global_load_dword v5, v1, s[30:31]"], 0, "s30"),
    (["buffer_load_dword v5, off, s[20:23], 0"], 0, "s20"),
    (["ds_write_b32 v9, v0"], 0, "v9"),
    (["s_load_dword s20, s[30:31], 0x0"], 0, "s30"),
    (["s_cmp_eq_u32 s30, 0", "s_cbranch_scc1 end", "end:"], 1, "scc"),
    (["s_cbranch_vccz end", "end:"], 0, "vcc_lo"),
    (["v_cmp_eq_u32_e32 vcc, v9, v0", "s_nop 4", "s_cbranch_vccnz end", "end:"], 2, "vcc_lo"),
    (["s_mov_b64 exec, s[30:31]"], 0, "exec_lo"),
    (["s_and_saveexec_b64 s[20:21], s[30:31]"], 0, "exec_lo"),
    (["v_cmpx_eq_u32_e32 vcc, v9, v0"], 0, "exec_lo"),
    (["global_atomic_add v1, v9, s[4:5]"], 0, "v9"),
])
def test_uses(body: list[str], at: int, register: str) -> None:
    found = Kernel().check(body)
    report = found.reports[0]
    assert (report.kind, report.pc, report.register) == (REGISTER, 8 * (at + 1), register)


def test_matrix_product_spoils_the_row_and_the_column_only() -> None:
    lane_5 = ["v_mov_b32_e32 v10, 0", "v_mov_b32_e32 v11, 0", "v_mov_b32_e32 v12, 0",
              "v_mov_b32_e32 v13, 0", "v_readlane_b32 s20, v9, 0", "s_nop 4",
              "v_writelane_b32 v10, s20, 5", "s_nop 4"]
    # Row 5 of 16: word 1 of lanes 16 to 31.
    as_a = [*lane_5, "v_mfma_f32_16x16x16_f16 v[20:23], v[10:11], v[12:13], 0", "s_nop 10"]
    Kernel().clean([*as_a, store("v20"), store("v22"), store("v23")])
    report = Kernel().only([*as_a, store("v21")], REGISTER)
    assert report.lane == 16
    # Column 5: lanes 5, 21, 37, 53 of every word.
    as_b = [*lane_5, "v_mfma_f32_16x16x16_f16 v[20:23], v[12:13], v[10:11], 0", "s_nop 10"]
    report = Kernel().only([*as_b, store("v20")], REGISTER)
    assert report.lane == 5
    # EXEC does not matter to it: without lane 5 the row is spoilt all the same.
    masked = ["s_mov_b64 exec, 1", *as_a[-2:], "s_mov_b64 exec, -1", store("v21")]
    assert Kernel().only([*as_a[:-2], *masked], REGISTER).lane == 16


def test_accumulator_registers() -> None:
    Kernel().clean(["v_accvgpr_write_b32 a3, v0", "v_accvgpr_read_b32 v6, a3", store("v6")])
    report = Kernel().only(["v_accvgpr_read_b32 v6, a3", store("v6")], REGISTER)
    assert "from a3" in report.detail


def test_lds_word_no_one_wrote() -> None:
    report = Kernel().only(["ds_read_b32 v5, v1", DONE, store("v5")], Kind.UNINITIALISED_LDS)
    assert (report.pc, report.producer_pc, report.producer_text) == (24, 8, "ds_read_b32 v5, v1")
    Kernel().clean(["ds_write_b32 v1, v0", "ds_read_b32 v5, v1", DONE, store("v5")])
    # Undefined data comes back as what it was.
    report = Kernel().only(["ds_write_b32 v1, v9", "ds_read_b32 v5, v1", DONE, store("v5")],
                           REGISTER)
    assert "from v9" in report.detail


def test_output_read_before_it_is_written() -> None:
    load = "global_load_dword v5, v1, s[2:3]"
    report = Kernel().only([load, DONE, store("v5")], Kind.UNINITIALISED_MEMORY)
    assert (report.pc, report.producer_pc) == (24, 8)
    Kernel().clean([store("v0"), DONE, load, DONE, store("v5")])
    Kernel().clean(["global_load_dword v5, v1, s[4:5]", DONE, store("v5")])


def test_gpr_index_moves_the_register() -> None:
    body = ["v_mov_b32_e32 v12, 1", "s_mov_b32 s20, 2", "s_set_gpr_idx_on s20, gpr_idx(SRC0)",
            "v_mov_b32_e32 v6, v10", "s_set_gpr_idx_off"]
    Kernel().clean([*body, store("v6")])
    report = Kernel().only(["s_mov_b32 s20, 3", *body[2:], store("v6")], REGISTER)
    assert "from v13" in report.detail


def test_counts_and_bound() -> None:
    """One entry a pair with its count, and never more than a thousand entries."""
    loop = ["s_mov_b32 s20, 0", "loop:", store("v5"), "s_add_u32 s20, s20, 1",
            "s_cmp_lt_u32 s20, 10", "s_cbranch_scc1 loop"]
    assert Kernel().only(loop, REGISTER).count == 10
    found = Kernel().check([store("v5")] * 1200)
    assert len(found.reports) == 1000
    assert found.dropped == 200
    assert len(found.summary()) == 1
