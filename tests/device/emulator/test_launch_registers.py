"""Registers whose value at launch can matter are undefined, whatever else writes them first."""

from __future__ import annotations

from typing import TYPE_CHECKING

import asmevo_core as core
import numpy as np
import numpy.typing as npt
import pytest

from tests.device.emulator.conftest import OUTPUT_BASE

if TYPE_CHECKING:
    from tests.device.emulator.conftest import Bench

STORE = ["v_lshlrev_b32_e32 v1, 2, v0", "global_store_dword v1, v30, s[72:73]", "s_endpgm"]


def stored(bench: Bench, lines: list[str], poison: int) -> npt.NDArray[np.uint32]:
    """v30 after the first instructions of a wave with all lanes."""
    outputs = np.zeros(64, np.uint32)
    memory = core.Memory([("out", OUTPUT_BASE, outputs.view(np.uint8), True)])
    sgprs = [0] * 80
    sgprs[72], sgprs[73] = OUTPUT_BASE & 0xFFFFFFFF, OUTPUT_BASE >> 32
    bench.launch(bench.assemble([*lines, *STORE]), memory, sgprs, 1, poison=poison)
    return outputs


@pytest.mark.parametrize(("lines", "defined"), [
    (["v_mov_b32_e32 v30, 5"], 64),
    (["v_add_u32_e32 v30, 5, v0"], 64),
    ([], 0),
    (["v_mov_b32_dpp v30, v0 row_shl:1 row_mask:0xf bank_mask:0xf"], 60),
    (["s_mov_b64 exec, 0xff", "v_mov_b32_e32 v30, 5", "s_mov_b64 exec, -1"], 8),
    (["v_cmpx_gt_u32_e32 vcc, 8, v0", "v_mov_b32_e32 v30, 5", "s_mov_b64 exec, -1"], 8),
    (["s_and_saveexec_b64 s[20:21], 15", "v_mov_b32_e32 v30, 5", "s_mov_b64 exec, -1"], 4),
    (["s_cbranch_scc0 1", "v_mov_b32_e32 v30, 5"], None),
    (["v_mov_b32_sdwa v30, v0 dst_sel:WORD_0 dst_unused:UNUSED_PRESERVE src0_sel:WORD_0"], 0),
    (["v_writelane_b32 v30, 1, 3"], 1),
    (["v_add_u32_e32 v30, 1, v30"], 0),
    (["v_mov_b32_e32 v31, 5", "v_swap_b32 v30, v31"], 64),
    (["v_mov_b32_e32 v31, 5", "v_swap_b32 v31, v30", "v_mov_b32_e32 v30, v31"], 0),
])
def test_what_a_wave_starts_with(bench: Bench, lines: list[str], defined: int | None) -> None:
    seeds = [stored(bench, lines, poison) for poison in (1, 2, 1)]
    np.testing.assert_array_equal(seeds[0], seeds[2])
    if defined is not None:
        assert np.count_nonzero(seeds[0] == seeds[1]) == defined


def test_patterns_do_not_depend_on_what_else_is_read(bench: Bench) -> None:
    alone = stored(bench, [], 3)
    np.testing.assert_array_equal(stored(bench, ["v_mov_b32_e32 v12, v29"], 3), alone)
    kept = stored(bench, ["v_writelane_b32 v30, 1, 3"], 3)
    np.testing.assert_array_equal(np.delete(kept, 3), np.delete(alone, 3))
