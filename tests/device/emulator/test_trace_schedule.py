"""Which workgroups run for a trace: the traced ones alone, or the whole launch."""

from __future__ import annotations

import asmevo_core as core
import numpy as np
import pytest

from asmevo.device.emulator.lower import lower
from tests.device.emulator.conftest import assemble

BASE = 0x7F00_0000_0000
GROUPS = 6
END = ["s_waitcnt vmcnt(0) lgkmcnt(0)", "s_endpgm"]
# Every workgroup takes a ticket; the one that draws the last executes `last` more instructions.
TICKET = ["v_mov_b32_e32 v2, 0", "v_mov_b32_e32 v3, 1", "s_mov_b64 exec, 1",
          "global_atomic_add v4, v2, v3, s[0:1] sc0", "s_waitcnt vmcnt(0)",
          "v_readfirstlane_b32 s10, v4", f"s_cmp_lg_u32 s10, {GROUPS - 1}",
          "s_cbranch_scc1 done", "last:", *["s_nop 0"] * 7, "done:"]
# All but the last workgroup wait for what the last stores.
WAIT = ["v_mov_b32_e32 v2, 0", f"s_cmp_lg_u32 s8, {GROUPS - 1}", "s_cbranch_scc1 spin",
        "v_mov_b32_e32 v3, 1", "global_store_dword v2, v3, s[0:1]", "s_branch done", "spin:",
        "global_load_dword v3, v2, s[0:1]", "s_waitcnt vmcnt(0)", "v_readfirstlane_b32 s10, v3",
        "s_cmp_eq_u32 s10, 0", "s_cbranch_scc1 spin", "done:"]


def traced(body: list[str], chosen: list[int], *, everyone: bool = True,
           together: bool = False) -> tuple[core.Trace, int]:
    program = assemble([*body, *END])
    memory = core.Memory([("data", BASE, np.zeros(256, np.uint8), True)])
    trace = core.Trace()
    executed = core.launch(
        core.Program(lower(program), vgprs=16, agprs=0, mode=0xF0), memory,
        np.array(chosen, np.uint32), grid=(GROUPS, 1, 1), workgroup=(64, 1, 1),
        user_sgprs=[BASE & 0xFFFFFFFF, BASE >> 32], group_id_sgprs=(8, -1, -1),
        work_item_dimensions=1, lds_bytes=0, poison=5, instruction_budget=60_000_000, resident=16,
        trace=trace, everyone=np.arange(GROUPS, dtype=np.uint32) if everyone else None,
        together=together)
    return trace, executed


def test_only_the_chosen_workgroups_run_and_are_traced() -> None:
    trace, executed = traced(["s_nop 0"] * 3, [4, 1])
    assert trace.wave_count == 2
    assert trace.entry_count == executed == 2 * 5


SCALAR_TICKET = [f"s_mov_b32 s10, {GROUPS - 1}", "s_atomic_inc s10, s[0:1], 0x0 glc",
                 "s_waitcnt lgkmcnt(0)", *TICKET[6:]]


@pytest.mark.parametrize("body", [TICKET, SCALAR_TICKET])
def test_a_workgroup_learns_of_the_others_only_together_with_them(body: list[str]) -> None:
    """A ticket drawn alone is never the last one."""
    alone, _ = traced(body, [GROUPS - 1])
    together, executed = traced(body, [GROUPS - 1], together=True)
    assert together.wave_count == 1
    assert together.entry_count == alone.entry_count + 7
    assert executed > 5 * alone.entry_count


@pytest.mark.parametrize("chosen", [[0], [2, 0]])
def test_a_traced_workgroup_that_waits_for_another_gets_it(chosen: list[int]) -> None:
    trace, _ = traced(WAIT, chosen)
    assert trace.wave_count == len(chosen)
    with pytest.raises(core.FaultError, match="budget"):
        traced(WAIT, chosen, everyone=False)
