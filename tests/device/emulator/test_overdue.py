"""What hardware has long returned arrives without a wait: production kernels rely on it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import asmevo_core as core
import numpy as np
import pytest

if TYPE_CHECKING:
    from tests.device.emulator.conftest import Bench

STALE = 0x5A5A
FRESH = np.arange(1000, 1064, dtype=np.uint32)
IN, OUT = 0x7F00_0000_0000, 0x7F80_0000_0000


def value(bench: Bench, body: list[str], pause: int, poison: int) -> list[int]:
    """v20 ``pause`` instructions after ``body``."""
    body = [f"v_mov_b32_e32 v20, {STALE:#x}", *body, *["s_nop 0"] * pause, "v_mov_b32_e32 v50, v20"]
    out = bench.run(body, vector={2: FRESH}, vector_out=[50], lds_bytes=512, poison=poison)
    return [int(x) for x in np.unique(out.vector[50])]


LDS_READ = ["v_lshlrev_b32_e32 v40, 2, v0", "ds_write_b32 v40, v2", "s_waitcnt lgkmcnt(0)",
            "ds_read_b32 v20, v40"]
LOAD = ["global_load_dword v20, v1, s[70:71]"]


# The poison decides where turns end.
@pytest.mark.parametrize("poison", [0, 1, 7])
@pytest.mark.parametrize(("body", "pause", "arrived"), [
    (LDS_READ, 90, False), (LDS_READ, 230, True), (LOAD, 370, False), (LOAD, 520, True)])
def test_results_arrive_when_overdue(
    bench: Bench, body: list[str], pause: int, arrived: bool, poison: int,
) -> None:
    assert value(bench, body, pause, poison) == (FRESH.tolist() if arrived else [STALE])


@pytest.mark.parametrize("poison", [0, 1, 7])
def test_a_loop_counts_like_straight_code(bench: Bench, poison: int) -> None:
    loop = ["s_movk_i32 s20, 80", "again:", "s_sub_u32 s20, s20, 1", "s_cmp_lg_u32 s20, 0",
            "s_cbranch_scc1 again"]
    assert value(bench, [*LDS_READ, *loop], 0, poison) == FRESH.tolist()


def test_an_early_arrival_completes_no_later_load(bench: Bench) -> None:
    body = [*LOAD, *["s_nop 0"] * 520, "v_mov_b32_e32 v20, 3", *LOAD, "s_waitcnt vmcnt(1)"]
    assert value(bench, body, 0, 7) == [3]


@pytest.mark.parametrize("poison", [0, 1, 7])
@pytest.mark.parametrize(("pause", "survives"), [(20, False), (240, True)])
def test_prefetch_of_another_wave(bench: Bench, pause: int, survives: bool, poison: int) -> None:
    """Wave 1 prefetches to LDS that wave 0 writes ``pause`` instructions later; wave 1's own write
    to LDS, later still, is the last moment for its prefetch."""
    program = bench.assemble([
        "v_lshrrev_b32_e32 v3, 6, v0", "v_readfirstlane_b32 s20, v3", "v_and_b32_e32 v0, 63, v0",
        "v_lshlrev_b32_e32 v1, 2, v0", "v_mov_b32_e32 v4, 7", "s_mov_b32 m0, 0",
        "s_cmp_lg_u32 s20, 0", "s_cbranch_scc1 loader",
        "s_nop 0", *["s_nop 0"] * pause, "ds_write_b32 v1, v4", "s_branch join",
        "loader:",
        "buffer_load_dword v1, s[4:7], 0 offen lds", *["s_nop 0"] * (pause + 130),
        "ds_write_b32 v1, v4 offset:256",
        "join:", "s_waitcnt lgkmcnt(0)", "s_barrier", "ds_read_b32 v5, v1",
        "s_waitcnt lgkmcnt(0)", "global_store_dword v1, v5, s[2:3]", "s_endpgm"])
    output = np.zeros(64, np.uint32)
    memory = core.Memory([("in", IN, FRESH.copy().view(np.uint8), False),
                          ("out", OUT, output.view(np.uint8), True)])
    sgprs = [0, 0, OUT & 0xFFFFFFFF, OUT >> 32, IN & 0xFFFFFFFF, IN >> 32, 256, 0x20000]
    bench.launch(program, memory, sgprs, 1, workgroup=128, lds_bytes=512, poison=poison)
    assert output.tolist() == ([7] * 64 if survives else FRESH.tolist())
