"""Waits, wait states, bounds, LDS races, workgroup order: each kind with and without its cause."""

from __future__ import annotations

import pytest

from asmevo.device.device import UnsupportedError
from asmevo.device.emulator.lower import lower
from asmevo.device.emulator.sanitizer import Kind
from tests.device.emulator.conftest import assemble
from tests.device.emulator.sanitizer_bench import Kernel

WAIT = Kind.USE_BEFORE_WAIT
DONE = "s_waitcnt vmcnt(0) lgkmcnt(0)"
LOAD = "global_load_dword v5, v1, s[0:1]"
USE = "v_add_u32_e32 v6, v5, v0"
# A buffer of 4096 bytes over the input.
RESOURCE = ["s_mov_b32 s20, s0", "s_mov_b32 s21, s1", "s_mov_b32 s22, 0x1000",
            "s_mov_b32 s23, 0x20000"]
TO_LDS = "buffer_load_dword v1, s[20:23], 0 offen lds"
M0 = ["s_mov_b32 m0, 0", "s_nop 0"]


@pytest.mark.parametrize(("producer", "between", "consumer"), [
    (LOAD, [], USE),
    (LOAD, ["s_waitcnt lgkmcnt(0)"], USE),
    (LOAD, ["global_load_dword v8, v1, s[0:1]", "s_waitcnt vmcnt(2)"], USE),
    (LOAD, ["s_nop 15"], "v_mov_b32_e32 v5, 1"),  # the load would overwrite it
    (LOAD, [], "global_store_dword v1, v5, s[2:3]"),
    ("ds_bpermute_b32 v5, v1, v0", ["s_waitcnt vmcnt(0)"], USE),
    ("ds_bpermute_b32 v5, v1, v0", ["ds_bpermute_b32 v8, v1, v0", "s_waitcnt lgkmcnt(2)"], USE),
    ("s_load_dword s20, s[0:1], 0x0", ["s_waitcnt lgkmcnt(1)"], "s_add_u32 s21, s20, 1"),
    ("s_load_dwordx2 s[20:21], s[0:1], 0x0", [], "s_mov_b32 s21, 1"),
    # Scalar loads return in any order, even into one register.
    ("s_load_dword s20, s[0:1], 0x0", [], "s_load_dword s20, s[0:1], 0x4"),
])
def test_use_before_wait(producer: str, between: list[str], consumer: str) -> None:
    report = Kernel().only([producer, *between, consumer, DONE], WAIT)
    assert (report.pc, report.text) == (8 * (len(between) + 2), consumer)
    assert (report.producer_pc, report.producer_text) == (8, producer)
    assert report.register in ("v5", "s20", "s21")


@pytest.mark.parametrize("body", [
    [LOAD, "s_waitcnt vmcnt(0)", USE],
    [LOAD, "global_load_dword v8, v1, s[0:1]", "s_waitcnt vmcnt(1)", USE],
    [LOAD, LOAD],  # vector loads return in order
    [LOAD, "v_add_u32_e32 v6, v1, v0"],
    ["ds_bpermute_b32 v5, v1, v0", "ds_bpermute_b32 v8, v1, v0", "s_waitcnt lgkmcnt(1)", USE],
    ["s_load_dword s20, s[0:1], 0x0", "s_waitcnt lgkmcnt(0)", "s_add_u32 s21, s20, 1"],
    # Stores read their data when they issue: gfx942 has no expcnt for them.
    ["v_mov_b32_e32 v5, 1", "global_store_dword v1, v5, s[2:3]", "v_mov_b32_e32 v5, 2"],
    # A full counter holds the next load back until the oldest returns.
    [LOAD, *["global_load_dword v8, v1, s[0:1]"] * 63, USE],
])
def test_waited_for(body: list[str]) -> None:
    Kernel().clean([*body, DONE])


def test_lanes_that_the_load_does_not_write_are_free() -> None:
    halves = ["v_mov_b32_e32 v5, 3", "s_mov_b32 s20, -1", "s_mov_b32 s21, 0",
              "s_mov_b64 exec, s[20:21]", LOAD, "s_not_b64 exec, exec"]
    Kernel().clean([*halves, USE, DONE])
    report = Kernel().only([*halves, "s_mov_b64 exec, -1", USE, DONE], WAIT)
    assert report.lane == 0


def test_barrier_in_front_of_the_wait() -> None:
    """The barrier orders only what the writing wave had waited for."""
    write, read = "ds_write_b32 v1, v0", "ds_read_b32 v5, v20"
    address = "v_xor_b32_e32 v20, 0x100, v1"
    kernel = Kernel(waves=2)
    kernel.clean([address, write, DONE, "s_barrier", read, DONE])
    report = kernel.only([address, write, "s_barrier", DONE, read, DONE], WAIT)
    assert (report.text, report.producer_text) == (read, write)


@pytest.mark.parametrize(("body", "rule", "needed", "found"), [
    (["v_readlane_b32 s20, v0, 3", "v_mov_b32_e32 v5, s20"], "valu-sgpr-constant", 2, 0),
    (["v_readlane_b32 s20, v0, 3", "s_nop 0", "v_mov_b32_e32 v5, s20"], "valu-sgpr-constant", 2, 1),
    (["v_exp_f32_e32 v5, v0", "v_add_f32_e32 v6, v5, v5"], "trans-valu", 1, 0),
    (["v_mov_b32_e32 v5, 1", "v_mov_b32_dpp v6, v5 quad_perm:[0,0,0,0] row_mask:0xf bank_mask:0xf"],
     "valu-dpp", 2, 0),
])
def test_hazards(body: list[str], rule: str, needed: int, found: int) -> None:
    report = Kernel().only(body, Kind.HAZARD)
    assert report.detail == f"{rule} needs {needed} wait states, found {found}"
    assert (report.producer_text, report.text) == (body[0], body[-1])
    Kernel().clean([*body[:-1], f"s_nop {needed - found - 1}", body[-1]])


def test_hazards_count_on_the_executed_path_only() -> None:
    body = ["v_readlane_b32 s20, v0, 3", "s_cmp_eq_u32 s6, {group}", "s_cbranch_scc1 near",
            "s_nop 7", "near:", "v_mov_b32_e32 v5, s20"]
    near = [line.format(group=0) for line in body]
    # The compare and the branch are two wait states; one less is too few.
    del near[1]
    taken = ["s_cmp_eq_u32 s6, 0", *near]
    assert Kernel().only(taken, Kind.HAZARD).detail.endswith("found 1")
    Kernel().clean(["s_cmp_eq_u32 s6, 1", *near])


def test_dpp_hazard_is_about_the_permuted_source() -> None:
    Kernel().clean(["v_mov_b32_e32 v6, 0", "s_nop 1", "v_mov_b32_e32 v5, 1",
                    "v_add_u32_dpp v6, v0, v5 quad_perm:[0,0,0,0] row_mask:0xf bank_mask:0xf"])


def test_guard_read() -> None:
    load = "global_load_dword v5, v1, s[0:1] offset:-4"
    report = Kernel().only([load], Kind.OUT_OF_BOUNDS)
    assert (report.lane, report.address) == (0, 0x7E00_0000_0000 - 4)
    assert "0x4 bytes before 'in' of 0x1000 bytes (in its guard)" in report.detail
    Kernel().clean(["global_load_dword v5, v1, s[0:1] offset:3840"])
    report = Kernel().only(["global_load_dword v5, v1, s[0:1] offset:3844"], Kind.OUT_OF_BOUNDS)
    assert report.lane == 63
    assert "0x0 bytes behind 'in'" in report.detail


def test_access_outside_every_region_is_reported_and_faults() -> None:
    found = Kernel().check(["s_add_u32 s1, s1, 16", LOAD])
    (report,) = found.reports
    assert report.kind is Kind.OUT_OF_BOUNDS
    assert report.address == 0x7E10_0000_0000
    assert "behind 'inout'" in report.detail
    assert found.fault is not None


def test_store_to_input() -> None:
    found = Kernel().check(["global_store_dword v1, v0, s[0:1]"])
    (report,) = found.reports
    assert report.kind is Kind.STORE_TO_INPUT
    assert "'in' + 0x0" in report.detail
    assert found.fault is not None


def test_scalar_load_of_a_guard() -> None:
    report = Kernel().only(["s_load_dwordx2 s[20:21], s[0:1], 0xffc", DONE], Kind.OUT_OF_BOUNDS)
    assert report.address == 0x7E00_0000_0FFC
    Kernel().clean(["s_load_dwordx2 s[20:21], s[0:1], 0xff8", DONE])


def test_buffer_bounds_are_legal_but_must_fit_the_region() -> None:
    far = ["v_add_u32_e32 v7, 0xfc0, v1", "buffer_load_dword v5, v7, s[20:23], 0 offen"]
    Kernel().clean([*RESOURCE, *far])
    larger = [line.replace("0x1000", "0x2000") for line in RESOURCE]
    report = Kernel().only([*larger, *far], Kind.OUT_OF_BOUNDS)
    assert report.lane == 16


def test_lds_beyond_the_allocation() -> None:
    Kernel(lds=256).clean(["ds_write_b32 v1, v0"])
    report = Kernel(lds=252).only(["ds_write_b32 v1, v0"], Kind.LDS_OUT_OF_BOUNDS)
    assert (report.lane, report.address) == (63, 252)


def test_races() -> None:
    kernel = Kernel(waves=2)
    other = "v_xor_b32_e32 v20, 0x100, v1"
    # Read of what the other wave writes.
    write, read = "ds_write_b32 v1, v0", "ds_read_b32 v5, v20"
    found = kernel.check([other, write, DONE, read, DONE]).reports
    races = [r for r in found if r.kind is Kind.LDS_RACE]
    assert races
    assert all({r.text, r.producer_text} == {write, read} for r in races)
    # Write of what the other wave has read, without a barrier behind the read.
    again = [other, write, DONE, "s_barrier", read, DONE, write]
    late = kernel.reports(again, Kind.LDS_RACE)
    # As the waves run in turn, one meets the race as a write, the other as a read.
    assert {(r.text, r.producer_text) for r in late} == {(write, read), (read, write)}
    assert {r.pc for r in late} == {40, 56}
    assert all("with no barrier between" in r.detail for r in late)
    kernel.clean([*again[:-1], "s_barrier", write])
    # Both write the same word.
    both = ["v_and_b32_e32 v20, 0xff, v1", "ds_write_b32 v20, v0"]
    report = kernel.only(both, Kind.LDS_RACE)
    assert "wrote" in report.detail
    kernel.clean([both[0], "v_mov_b32_e32 v5, 7", "ds_write_b32 v20, v5"])


@pytest.mark.parametrize("body", [
    # Bytes of their own in one word.
    ["v_lshrrev_b32_e32 v21, 6, v0", "v_and_b32_e32 v20, 63, v0", "v_lshl_add_u32 v20, v20, 2, v21",
     "ds_write_b8 v20, v0"],
    # Atomics order themselves.
    ["v_and_b32_e32 v20, 0xff, v1", "v_mov_b32_e32 v5, 0", "v_cmp_gt_u32_e32 vcc, 64, v0",
     "s_mov_b64 s[20:21], exec", "s_mov_b64 exec, vcc", "ds_write_b32 v20, v5",
     "s_mov_b64 exec, s[20:21]", DONE, "s_barrier", "ds_add_u32 v20, v0"],
], ids=["bytes", "atomics"])
def test_no_race(body: list[str]) -> None:
    try:
        lower(assemble(body))
    except UnsupportedError as refusal:
        pytest.skip(str(refusal))
    Kernel(waves=2).clean(body)


def test_load_to_lds() -> None:
    """Its words are there behind vmcnt, for other waves behind a barrier too."""
    setup = [*RESOURCE, *M0, TO_LDS]
    read = "ds_read_b32 v5, v1"
    store = "global_store_dword v1, v5, s[2:3]"
    Kernel().clean([*setup, "s_waitcnt vmcnt(0)", read, DONE, store])
    report = Kernel().only([*setup, "s_waitcnt lgkmcnt(0)", read, DONE, store], WAIT)
    assert (report.text, report.producer_text) == (read, TO_LDS)
    report = Kernel().only([*setup, "ds_write_b32 v1, v0", DONE], Kind.LDS_ORDER)
    assert (report.text, report.producer_text) == ("ds_write_b32 v1, v0", TO_LDS)
    Kernel().clean([*setup, "s_waitcnt vmcnt(0)", "ds_write_b32 v1, v0", DONE])
    # The read in front of it has to be done.
    first = ["ds_write_b32 v1, v0", DONE, read]
    report = Kernel().only([*first, *setup, DONE], WAIT)
    assert (report.text, report.producer_text) == (TO_LDS, read)
    Kernel().clean([*first, DONE, *setup, DONE])


def test_workgroups_that_write_one_dword() -> None:
    """Different values are reported, equal ones are not; so is reading another's."""
    kernel = Kernel(groups=2)
    store = "global_store_dword v1, v5, s[2:3]"
    kernel.clean(["v_mov_b32_e32 v5, 7", store])
    report = kernel.only(["v_mov_b32_e32 v5, s6", store], Kind.CROSS_WORKGROUP)
    assert (report.text, report.producer_text, report.workgroup) == (store, store, 1)
    assert "workgroup 0 wrote" in report.detail
    own = ["s_lshl_b32 s20, s6, 8", "v_add_u32_e32 v20, s20, v1"]
    kernel.clean([*own, "v_mov_b32_e32 v5, s6", "global_store_dword v20, v5, s[2:3]", DONE,
                  "global_load_dword v6, v20, s[2:3]"])
    swapped = [*own, "v_xor_b32_e32 v21, 0x100, v20", "global_load_dword v6, v21, s[4:5]", DONE,
               "global_store_dword v20, v0, s[4:5]"]
    found = kernel.reports(swapped, Kind.CROSS_WORKGROUP)
    # Workgroup 0 reads what 1 writes later; workgroup 1 reads what 0 wrote.
    assert {(r.text.split()[0], r.producer_text.split()[0]) for r in found} == {
        ("global_load_dword", "global_store_dword"), ("global_store_dword", "global_load_dword")}


def test_a_workgroup_that_waits_for_a_later_one() -> None:
    """It needs both to run at the same time, which no launch promises."""
    body = ["v_mov_b32_e32 v20, 0", "s_cmp_lg_u32 s6, 0", "s_cbranch_scc1 set",
            "v_mov_b32_e32 v21, 3", "spin:", "global_load_dword v5, v20, s[4:5] sc1",
            "s_waitcnt vmcnt(0)", "v_cmp_ne_u32_e32 vcc, v5, v21", "s_cbranch_vccnz spin",
            "s_branch out", "set:", "v_mov_b32_e32 v5, 3",
            "global_store_dword v20, v5, s[4:5] sc1", "out:"]
    found = Kernel(groups=2, resident=2).check(body)
    assert found.fault is None
    pairs = {(r.kind, r.workgroup, r.text.split()[0]) for r in found.reports}
    assert pairs == {(Kind.CROSS_WORKGROUP, 1, "global_store_dword"),
                     (Kind.CROSS_WORKGROUP, 0, "global_load_dword")}


def test_atomics_of_several_workgroups() -> None:
    kernel = Kernel(groups=2)
    kernel.clean(["global_atomic_add v1, v0, s[4:5]"])
    report = kernel.only(["global_atomic_add_f32 v1, v0, s[4:5]"], Kind.ATOMIC_ORDER)
    assert report.kind.is_information
    assert kernel.check(["global_atomic_add_f32 v1, v0, s[4:5]"]).errors == ()
    for op in ("max", "min"):  # neither rounds
        kernel.clean(["v_lshlrev_b32_e32 v20, 3, v0", "v_cvt_f64_u32_e32 v[22:23], v0",
                      f"global_atomic_{op}_f64 v20, v[22:23], s[4:5]"])
    mixed = ["global_atomic_add v1, v0, s[4:5]", DONE, "global_load_dword v5, v1, s[4:5]"]
    assert kernel.reports(mixed, Kind.CROSS_WORKGROUP)
