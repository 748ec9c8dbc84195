"""Programs that make no sense: whatever they do, the sanitizer stays within its shadow state.

The run with AddressSanitizer (`.ci/sanitize`) is what makes this a test of memory safety.
"""

from __future__ import annotations

import random
import re

import asmevo_core as core
import numpy as np
import pytest

from asmevo.device.emulator.checked import check_records
from asmevo.device.emulator.lower import lower
from asmevo.device.emulator.sanitizer import Kind
from tests.device.emulator.conftest import assemble
from tests.device.emulator.sanitizer_bench import Kernel
from tests.device.emulator.test_kernels import load

NAMES = ("layer_norm", "topksoftmax/topksoftmax_12x256x6", "gemm_a8w8_m128_noSplitK",
         "pa/pa_bf16_noquant_gqa8_1tg_4w", "fmoe_b16")


@pytest.mark.parametrize("name", NAMES)
def test_shuffled_production_code(name: str) -> None:
    """Instructions of a real kernel in random order, on undefined registers."""
    kernel, _ = load(name)
    texts = sorted({i.text for i in kernel.program.instructions
                    if not i.is_branch and not i.ends_program})
    rng = random.Random(name)
    reported = 0
    for _ in range(25):
        found = Kernel(waves=2, lds=4096).check(rng.choices(texts, k=60))
        reported += len(found.reports)
    assert reported > 25


def test_records_that_do_not_fit_are_refused() -> None:
    program = assemble(["v_mov_b32_e32 v1, v0", "ds_read_b32 v2, v1", "s_endpgm"])
    lowered = core.Program(lower(program), vgprs=4, agprs=0, mode=0xF0)
    good = check_records(program)
    size = core.CHECK_RECORD_SIZE

    def make(records: np.ndarray[tuple[int], np.dtype[np.uint8]], lds_bytes: int = 512) -> None:
        core.Sanitizer(lowered, records, hazards=[], regions=[], lds_bytes=lds_bytes)

    make(good)
    rng = np.random.default_rng(1)
    refused = 0
    for _ in range(300):
        records = good.copy()
        records[rng.integers(len(records), size=4)] = rng.integers(256, size=4)
        try:
            make(records)
        except ValueError:
            refused += 1
    assert refused > 30
    for bad in (good[:-1], good[size:]):
        with pytest.raises(ValueError, match="record"):
            make(np.ascontiguousarray(bad))
    with pytest.raises(ValueError, match="64 KiB"):
        make(good, 65540)
    with pytest.raises(ValueError, match="hazard"):
        core.Sanitizer(lowered, good, hazards=[(0, 9, 1)], regions=[], lds_bytes=0)
    with pytest.raises(ValueError, match="region"):
        core.Sanitizer(lowered, good, hazards=[], lds_bytes=0,
                       regions=[(0x1000, 16, 0x1008, 16, True, True, True)])


def test_a_record_may_not_return_more_than_its_registers_hold() -> None:
    """An atomic's old value goes to the registers of the record, whatever the record says."""
    program = assemble(["v_mov_b32_e32 v1, v0", "ds_add_rtn_u32 v3, v1, v0", "s_endpgm"])
    lowered = core.Program(lower(program), vgprs=4, agprs=0, mode=0xF0)
    records = check_records(program)
    atomic = records[core.CHECK_RECORD_SIZE:2 * core.CHECK_RECORD_SIZE]
    assert (atomic[20], atomic[21]) == (4, 1)  # bytes of a part, parts
    atomic[20] = 64
    atomic[44:46] = 255  # no data
    with pytest.raises(ValueError, match="loaded data"):
        core.Sanitizer(lowered, records, hazards=[], regions=[], lds_bytes=512)


@pytest.mark.parametrize("load", ["s_load_dword s8, s[0:1], 0x0", "flat_load_dword v2, v[4:5]"])
def test_loads_that_no_one_waits_for_do_not_pile_up(load: str) -> None:
    """A counter holds 63 at most; nor may the cost of one more grow with how many there were."""
    body = ["v_mov_b32_e32 v4, s0", "v_mov_b32_e32 v5, s1", "s_movk_i32 s9, 1000", "top:", load,
            "s_sub_u32 s9, s9, 1", "s_cmp_lg_u32 s9, 0", "s_cbranch_scc1 top"]
    found = Kernel().check(body)
    assert 900 < sum(r.count for r in found.reports) < 1000 * 2 * 65


def test_lds_of_no_bytes() -> None:
    found = Kernel(lds=0).check(["ds_read_b32 v2, v1", "ds_write_b32 v1, v0", "s_mov_b32 m0, 0",
                                 "s_waitcnt lgkmcnt(0)", "global_load_lds_dword v1, s[0:1]"])
    assert {r.kind for r in found.reports} == {"lds-out-of-bounds"}


@pytest.mark.parametrize(("write", "read", "shift"), [
    ("ds_write_b32 v2, v0 offset:16", "ds_read_b32 v3, v2 offset:16", 2),
    ("ds_write_b8 v2, v0 offset:16", "ds_read_u8 v3, v2 offset:16", 0),
    ("ds_write_b16 v2, v0 offset:16", "ds_read_i16 v3, v2 offset:16", 1),
    ("ds_write_b64 v2, v[0:1] offset:16", "ds_read_b64 v[4:5], v2 offset:16", 3),
    ("ds_write2_b32 v2, v0, v1 offset0:4 offset1:5",
     "ds_read2_b32 v[4:5], v2 offset0:4 offset1:5", 3),
    ("ds_write2st64_b32 v2, v0, v0 offset0:1 offset1:1",
     "ds_read2st64_b32 v[4:5], v2 offset0:1 offset1:1", 2),
    ("ds_write_b32 v2, v0 offset:16", "ds_add_u32 v2, v0 offset:16", 2),
    ("ds_write_b32 v2, v0 offset:16", "ds_add_rtn_u32 v3, v2, v0 offset:16", 2),
    ("ds_write_b64 v2, v[0:1] offset:16", "ds_add_u64 v2, v[0:1] offset:16", 3),
    ("ds_write_b32 v2, v0 offset:16", "ds_max_f32 v2, v1 offset:16", 2),
])
def test_lds_addresses_wrap(write: str, read: str, shift: int) -> None:
    """The register's part may be negative."""
    below = 256 if "st64" in write else 16
    setup = [f"v_lshlrev_b32_e32 v2, {shift}, v0", f"v_subrev_u32_e32 v2, {below:#x}, v2"]
    wait = "s_waitcnt lgkmcnt(0)"
    Kernel().clean([*setup, write, wait, read, wait])
    # Without the offset the first lanes are far outside.
    far = re.sub(r" offset\w*:\d+", "", write)
    report = Kernel().only([*setup, far, wait], Kind.LDS_OUT_OF_BOUNDS)
    assert report.address == 2**32 - below


@pytest.mark.parametrize("flow", ["read_lane", "read_first_lane"])
def test_a_lane_is_read_to_a_scalar_register(flow: str) -> None:
    program = assemble(["v_mov_b32_e32 v3, v2", "s_endpgm"])
    lowered = core.Program(lower(program), vgprs=4, agprs=0, mode=0xF0)
    records = check_records(program)
    records[0] = core.CHECK_FLOWS.index(flow)
    with pytest.raises(ValueError, match="lane result"):
        core.Sanitizer(lowered, records, hazards=[], regions=[], lds_bytes=0)
