"""Kernels that never end do end, with a typed verdict, on one host thread and on several."""

from __future__ import annotations

from collections.abc import Sequence

import asmevo_core as core
import numpy as np
import pytest

from asmevo.device.emulator.lower import lower
from tests.device.emulator.conftest import assemble

BASE = 0x7F00_0000_0000
CODE = 0x2000_0000_0000
VERDICTS = {"budget", "timeout"}
# s[0:1] points to zeros, s[2:3] to the first instruction, s[4:5] to one that is none; s8 is the
# workgroup, v1 an offset of zero.
ENDLESS: dict[str, list[str]] = {
    "branch to itself": ["top:", "s_branch top"],
    "jump to itself": ["s_setpc_b64 s[2:3]"],
    "call to itself": ["top:", "s_call_b64 s[6:7], top"],
    "spin on memory": ["top:", "global_load_dword v2, v1, s[0:1]", "s_waitcnt vmcnt(0)",
                       "v_readfirstlane_b32 s9, v2", "s_cmp_eq_u32 s9, 0", "s_cbranch_scc1 top"],
    "spin on scalar memory": ["top:", "s_load_dword s9, s[0:1], 0x0", "s_waitcnt lgkmcnt(0)",
                              "s_cmp_eq_u32 s9, 0", "s_cbranch_scc1 top"],
    "spin without a wait": ["top:", "flat_load_dword v2, v[4:5]", "s_load_dword s9, s[0:1], 0x0",
                            "ds_read_b32 v3, v1", "s_branch top"],
    "lock that is never free": [
        "v_mov_b32_e32 v2, 1", "top:", "global_atomic_cmpswap v3, v1, v[1:2], s[0:1] offset:4 sc0",
        "s_waitcnt vmcnt(0)", "s_branch top"],
    "everyone writes one dword": ["top:", "global_store_dword v1, v0, s[0:1]", "s_branch top"],
    "everyone adds to one dword": ["top:", "global_atomic_add v1, v0, s[0:1]", "s_branch top"],
    "sleep": ["top:", "s_sleep 127", "s_branch top"],
    "barriers": ["top:", "s_barrier", "s_branch top"],
    "barrier that one wave never reaches": [
        "v_readfirstlane_b32 s9, v0", "s_cmp_eq_u32 s9, 0", "s_cbranch_scc1 top", "s_barrier",
        "s_endpgm", "top:", "s_branch top"],
    "one wave ends, one spins at barriers": [
        "v_readfirstlane_b32 s9, v0", "s_cmp_eq_u32 s9, 0", "s_cbranch_scc1 end", "top:",
        "s_barrier", "s_branch top", "end:", "s_endpgm"],
    "only the last workgroup": ["s_cmp_lg_u32 s8, 5", "s_cbranch_scc1 end", "top:",
                                "s_branch top", "end:", "s_endpgm"],
    "skipped vector code": ["s_setvskip -1, 0", "top:", "v_mov_b32_e32 v2, v0", "s_branch top"],
    "no lane": ["s_mov_b64 exec, 0", "top:", "s_cbranch_execz top"],
}


def launch(body: Sequence[str], *, budget: int, threads: int = 1, prompt: bool = False,
           seconds: float = 0.0, groups: int = 6, items: int = 128, private_bytes: int = 0,
           fused: bool = False, trace: core.Trace | None = None) -> tuple[object, ...]:
    """The arguments of the fault."""
    program = assemble(["v_mov_b32_e32 v1, 0", "v_mov_b32_e32 v4, s0", "v_mov_b32_e32 v5, s1",
                        *body, "s_endpgm"])
    lowered = core.Program(lower(program, CODE), vgprs=64, agprs=0, mode=0xF0,
                           addresses=[CODE + offset for offset in program.offsets[:-1]],
                           fused_matrix_sums=fused)
    data = np.zeros(16, np.uint32)
    memory = core.Memory([("data", BASE, data.view(np.uint8), True)])
    with pytest.raises(core.FaultError) as caught:
        core.launch(lowered, memory, np.arange(groups, dtype=np.uint32), grid=(groups, 1, 1),
                    workgroup=(items, 1, 1), user_sgprs=[0, BASE >> 32, 24, CODE >> 32],
                    group_id_sgprs=(8, -1, -1), work_item_dimensions=1, lds_bytes=512, poison=3,
                    instruction_budget=budget, resident=3, threads=threads, seconds=seconds,
                    prompt_returns=prompt, private_bytes=private_bytes, trace=trace)
    return caught.value.args


@pytest.mark.parametrize("prompt", [False, True])
@pytest.mark.parametrize("name", ENDLESS)
def test_budget(name: str, prompt: bool) -> None:
    faults = [launch(ENDLESS[name], budget=30_000, threads=threads, prompt=prompt)
              for threads in (1, 3)]
    assert faults[0][0] == "budget"
    assert "30000 wave-instructions" in str(faults[0][1])
    assert faults[1] == faults[0]
    assert launch(ENDLESS[name], budget=30_000, trace=core.Trace())[0] == "budget"


@pytest.mark.parametrize("threads", [1, 3])
@pytest.mark.parametrize("name", ENDLESS)
def test_watchdog(name: str, threads: int) -> None:
    """Without a budget to speak of."""
    assert launch(ENDLESS[name], budget=1 << 60, threads=threads, seconds=0.02)[0] == "timeout"


def test_slow_instructions_are_watched() -> None:
    """Matrix operations take a thousand times as long as others."""
    body = ["top:", *["v_mfma_f32_32x32x16_fp8_fp8 v[16:31], v[2:3], v[4:5], v[16:31]"] * 8,
            "s_branch top"]
    kind, *_ = launch(body, budget=300_000, groups=1, items=64, seconds=0.02, fused=True)
    assert kind == "timeout"


@pytest.mark.parametrize("threads", [1, 2])
def test_scratch_of_short_workgroups_is_watched(threads: int) -> None:
    """Filling 128 MiB of scratch takes longer than a workgroup that ends at once."""
    kind, *_ = launch(["s_endpgm"], budget=10_000, groups=40, items=1024, private_bytes=131072,
                      seconds=0.02, threads=threads)
    assert kind == "timeout"


@pytest.mark.parametrize("groups", [1, 400])
def test_a_trace_does_not_take_all_memory(groups: int) -> None:
    """Be it of one workgroup or of many."""
    body = ["top:" if groups == 1 else "once:", "global_load_dword v2, v1, s[0:1]",
            "s_waitcnt vmcnt(0)", "s_branch top" if groups == 1 else "s_nop 0"]
    kind, message, *_ = launch(body, budget=1 << 60, groups=groups, items=64,
                               trace=core.Trace(limit=10_000))
    assert kind == "budget"
    assert "trace of the launch takes more than 10000 bytes" in str(message)
