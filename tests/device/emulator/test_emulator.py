"""The emulator as a device: the launch ABI and what it refuses."""

from __future__ import annotations

import struct
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import asmevo_core as core
import numpy as np
import pytest
from hydra import compose, initialize_config_dir
from hydra.utils import instantiate

from asmevo.codeobject.container import CodeObject
from asmevo.device.device import (
    DeviceFault,
    LaunchState,
    TimingSource,
    UnsupportedError,
    WorkgroupOrder,
)
from asmevo.device.emulator.emulator import EmulatedKernel, Emulator
from asmevo.device.emulator.timing import TimingModel
from asmevo.device.emulator.timing_parameters import TimingParameters
from asmevo.dispatch.dispatch import Dispatch, ElementType, Pointer, Region, Role

ADDRESS = 0x7F12_3456_0000
DESCRIPTOR = {
    "next_free_vgpr": 8, "next_free_sgpr": 16, "accum_offset": 8, "ieee_mode": 0, "dx10_clamp": 0,
    "float_denorm_mode_32": 0, "float_denorm_mode_16_64": 3, "user_sgpr_kernarg_segment_ptr": 1,
    "user_sgpr_count": 2, "system_sgpr_workgroup_id_x": 1, "group_segment_fixed_size": 0}
# Each work-item stores the workgroup id to out[64 * workgroup + work-item].
STORE_ID = """s_load_dwordx2 s[4:5], s[0:1], 0x0
s_load_dword s6, s[0:1], 0x8
s_waitcnt lgkmcnt(0)
s_add_u32 s6, s6, s2
v_lshlrev_b32_e32 v1, 2, v0
s_lshl_b32 s7, s2, 8
v_add_u32_e32 v1, s7, v1
v_mov_b32_e32 v2, s6
global_store_dword v1, v2, s[4:5]
s_endpgm"""


def build(tmp_path: Path, body: str = STORE_ID, *, cpu: str = "gfx942",
          **fields: int) -> CodeObject:
    """A code object with one kernel ``k`` that takes a pointer and an integer."""
    directives = "\n".join(f".amdhsa_{k} {v}" for k, v in {**DESCRIPTOR, **fields}.items())
    source, obj, binary = (tmp_path / name for name in ("k.s", "k.o", "k.co"))
    source.write_text(f"""
.amdgcn_target "amdgcn-amd-amdhsa--{cpu}"
.text
.globl k
.p2align 8
.type k,@function
k:
{body}
.size k, .-k
.rodata
.p2align 6
.amdhsa_kernel k
{directives}
.end_amdhsa_kernel
.amdgpu_metadata
---
amdhsa.version: [1, 2]
amdhsa.target: amdgcn-amd-amdhsa--{cpu}
amdhsa.kernels:
  - .name: k
    .symbol: k.kd
    .kernarg_segment_size: 12
    .kernarg_segment_align: 8
    .group_segment_fixed_size: 0
    .private_segment_fixed_size: 0
    .wavefront_size: 64
    .sgpr_count: 22
    .vgpr_count: 8
    .max_flat_workgroup_size: 256
    .args:
      - {{.size: 8, .offset: 0, .value_kind: global_buffer, .address_space: global}}
      - {{.size: 4, .offset: 8, .value_kind: by_value}}
...
.end_amdgpu_metadata
""")
    clang = [sys.executable, "-m", "ziglang", "clang", "-target", "amdgcn-amd-amdhsa",
             f"-mcpu={cpu}", "-c", "-x", "assembler", str(source), "-o", str(obj)]
    subprocess.run(clang, check=True)
    subprocess.run([sys.executable, "-m", "ziglang", "ld.lld", "-shared", str(obj), "-o",
                    str(binary)], check=True)
    return CodeObject.parse(binary.read_bytes())


def emulator(timing: TimingModel, budget: int = 100_000) -> Emulator:
    return Emulator("test", timing, budget)


@pytest.fixture
def timing() -> TimingModel:
    conf = Path(__file__).parents[3] / "conf" / "device"
    with initialize_config_dir(str(conf), version_base="1.3"):
        model = instantiate(compose("emulator").timing)
    assert isinstance(model, TimingModel)
    assert isinstance(model.parameters, TimingParameters)
    return model


def dispatch(groups: int = 3, **changes: Any) -> Dispatch:
    region = Region("out", ADDRESS, bytes(256 * groups), Role.OUTPUT, ElementType.U32)
    base = Dispatch("d", "k", struct.pack("<QI", ADDRESS, 1000), (groups, 1, 1), (64, 1, 1),
                    (region,), (Pointer(0, 0),))
    return replace(base, **changes)


def stored(kernel: EmulatedKernel, launched: Dispatch, state: LaunchState | None = None
           ) -> list[int]:
    result = kernel.run(launched, state or LaunchState())
    data = result.regions[0][4096:-4096]
    return [int(x) for x in np.frombuffer(data, np.uint32)[::64]]


def test_launch_values(tmp_path: Path, timing: TimingModel) -> None:
    device = emulator(timing)
    assert (device.source, device.deterministic) == (TimingSource.MODELLED, True)
    kernel = device.load(build(tmp_path), "k")
    for order in WorkgroupOrder:
        assert stored(kernel, dispatch(), LaunchState(3, order)) == [1000, 1001, 1002]
    result = kernel.run(dispatch())
    assert result.instructions == 30
    assert result.seconds > 0


def test_what_a_launch_may_not_write_is_the_very_bytes_that_were_mapped(
        tmp_path: Path, timing: TimingModel) -> None:
    kernel = emulator(timing).load(build(tmp_path), "k")
    inside = Region("in", ADDRESS + (1 << 20), bytes(range(64)), Role.INPUT, ElementType.U32)
    launched = dispatch(regions=(*dispatch().regions, inside))
    result, written = kernel.run(launched), kernel.written(launched)
    assert result.regions[1] is inside.mapped
    assert inside.mapped[inside.guard:-inside.guard] == inside.data
    assert written.regions == (result.regions[0], b"")
    assert kernel.sanitize(launched).regions == result.regions


def test_order_decides_who_writes_last(tmp_path: Path, timing: TimingModel) -> None:
    kernel = emulator(timing).load(build(tmp_path, STORE_ID.replace("s_lshl_b32 s7, s2, 8",
                                                                    "s_mov_b32 s7, 0")), "k")
    last = {order: stored(kernel, dispatch(8), LaunchState(1, order, resident=1))[0]
            for order in WorkgroupOrder}
    assert last[WorkgroupOrder.ASCENDING] == 1007
    assert last[WorkgroupOrder.DESCENDING] == 1000


def test_watchdog_and_threads(tmp_path: Path, timing: TimingModel) -> None:
    endless = build(tmp_path, "top:\ns_nop 0\ns_branch top\ns_endpgm")
    device = Emulator("test", timing, 1 << 60, "auto", 0.05)
    assert device.threads >= 1
    with pytest.raises(DeviceFault, match="watchdog") as caught:
        device.load(endless, "k").run(dispatch())
    assert caught.value.kind == "timeout"


def test_moved_dispatch_gives_the_same(tmp_path: Path, timing: TimingModel) -> None:
    kernel = emulator(timing).load(build(tmp_path), "k")
    for displacement in (1 << 12, -(0x6F12_3456_0000 - (1 << 20)), 1 << 40):
        assert stored(kernel, dispatch().moved(displacement)) == [1000, 1001, 1002]


def test_workgroup_ids_take_the_next_sgprs(tmp_path: Path, timing: TimingModel) -> None:
    body = STORE_ID.replace("s_add_u32 s6, s6, s2", "s_add_u32 s6, s3, s4").replace(
        "s[4:5]", "s[8:9]")
    code_object = build(tmp_path, body, system_sgpr_workgroup_id_y=1, system_sgpr_workgroup_id_z=1)
    kernel = emulator(timing).load(code_object, "k")
    # Workgroups of equal x store to the same place; the last one's ids remain.
    assert stored(kernel, dispatch(2, grid=(2, 3, 2)), LaunchState(resident=1)) == [3, 3]


@pytest.mark.parametrize(("fields", "what"), [
    ({"exception_fp_ieee_div_zero": 1}, "exceptions"),
    ({"user_sgpr_queue_ptr": 1, "user_sgpr_count": 4}, "queue_ptr"),
    ({"user_sgpr_dispatch_id": 1, "user_sgpr_count": 4}, "dispatch_id"),
    ({"private_segment_fixed_size": 131076}, "131076 bytes of scratch"),
    ({"uses_dynamic_stack": 1}, "uses_dynamic_stack"),
    ({"system_sgpr_workgroup_info": 1}, "workgroup_info"),
    ({"user_sgpr_kernarg_preload_length": 2, "user_sgpr_count": 4}, "preload")])
def test_descriptors_that_are_refused(tmp_path: Path, timing: TimingModel, fields: dict[str, Any],
                                      what: str) -> None:
    with pytest.raises(UnsupportedError, match=what):
        emulator(timing).load(build(tmp_path, **fields), "k")


def test_other_architectures_are_refused(tmp_path: Path, timing: TimingModel) -> None:
    with pytest.raises(UnsupportedError, match="gfx942 kernels, not gfx90a"):
        emulator(timing).load(build(tmp_path, cpu="gfx90a"), "k")


def test_registers_beyond_the_descriptor_are_refused(tmp_path: Path, timing: TimingModel) -> None:
    body = STORE_ID.replace("v2", "v30")
    with pytest.raises(UnsupportedError, match=r"'v_mov_b32_e32 v30, s6' at offset .*VGPR beyond"):
        emulator(timing).load(build(tmp_path, body), "k")


@pytest.mark.parametrize(("changes", "what"), [
    ({"kernel": "other"}, "launches 'other'"), ({"workgroup": (512, 1, 1)}, "allows 256"),
    ({"kernarg": bytes(16)}, "12 bytes of kernarg"), ({"dynamic_lds": 65537}, "65537 bytes of LDS"),
    ({"grid": (0, 1, 1)}, "workgroups"), ({"grid": (1 << 20, 1 << 20, 1)}, "workgroups")])
def test_dispatches_that_contradict_the_kernel(tmp_path: Path, timing: TimingModel,
                                               changes: dict[str, Any], what: str) -> None:
    kernel = emulator(timing).load(build(tmp_path), "k")
    with pytest.raises(UnsupportedError, match=what):
        kernel.run(dispatch(**changes))


def test_overlapping_regions_are_refused(tmp_path: Path, timing: TimingModel) -> None:
    kernel = emulator(timing).load(build(tmp_path), "k")
    region = dispatch().regions[0]
    twice = (region, replace(region, name="again", address=region.address + 4096))
    with pytest.raises(UnsupportedError, match="'out' and 'again' overlap"):
        kernel.run(dispatch(regions=twice))


def test_faults_carry_pc_and_text(tmp_path: Path, timing: TimingModel) -> None:
    kernel = emulator(timing).load(build(tmp_path), "k")
    with pytest.raises(DeviceFault, match=r"workgroup 19.*nearest is 'out'") as caught:
        kernel.run(dispatch(3, grid=(60, 1, 1)))
    fault = caught.value
    assert fault.kind == "memory"
    assert fault.text == "global_store_dword v1, v2, s[4:5]"
    assert kernel.program.instructions[kernel.program.offsets.index(fault.pc)].text == fault.text
    # Past three rows of output and the guard behind them.
    assert fault.address == ADDRESS + 3 * 256 + 4096


def test_kernarg_is_read_only(tmp_path: Path, timing: TimingModel) -> None:
    body = STORE_ID.replace("global_store_dword v1, v2, s[4:5]",
                            "v_mov_b32_e32 v1, 0\nglobal_store_dword v1, v2, s[0:1]")
    with pytest.raises(DeviceFault, match="'kernarg' is read-only"):
        emulator(timing).load(build(tmp_path, body), "k").run(dispatch())


def test_budget(tmp_path: Path, timing: TimingModel) -> None:
    kernel = emulator(timing, 29).load(build(tmp_path), "k")
    with pytest.raises(DeviceFault, match="29 wave-instructions") as caught:
        kernel.run(dispatch())
    assert caught.value.kind == "budget"


def test_running_off_the_end(tmp_path: Path, timing: TimingModel) -> None:
    kernel = emulator(timing).load(build(tmp_path, STORE_ID.replace("s_endpgm", "s_nop 0")), "k")
    with pytest.raises(DeviceFault, match="past the last instruction") as caught:
        kernel.run(dispatch())
    assert caught.value.kind == "illegal"
    assert caught.value.pc == kernel.program.offsets[-1]


def test_time_and_profile_are_modelled_and_repeatable(tmp_path: Path, timing: TimingModel) -> None:
    kernel = emulator(timing).load(build(tmp_path), "k")
    first = kernel.time(dispatch(), samples=5, warmup=2)
    assert first == kernel.time(dispatch(), samples=1, warmup=0)
    assert (first.source, len(first.samples_us)) == (TimingSource.MODELLED, 1)
    assert first.median_us > 0
    profile = kernel.profile(dispatch())
    assert profile.source == "modelled"
    assert [p.issued for p in profile.instructions] == [1] * 10


# The value that each work-item stores is 1 more each time the function runs.
CALLS = """s_load_dwordx2 s[4:5], s[0:1], 0x0
s_load_dword s6, s[0:1], 0x8
s_waitcnt lgkmcnt(0)
s_call_b64 s[8:9], f
s_getpc_b64 s[10:11]
s_add_u32 s10, s10, 32
s_addc_u32 s11, s11, 0
s_swappc_b64 s[8:9], s[10:11]
v_lshlrev_b32_e32 v1, 2, v0
v_mov_b32_e32 v2, s6
global_store_dword v1, v2, s[4:5]
s_endpgm
f:
s_add_u32 s6, s6, 1
s_setpc_b64 s[8:9]"""


def test_calls_by_hand(tmp_path: Path, timing: TimingModel) -> None:
    kernel = emulator(timing).load(build(tmp_path, CALLS), "k")
    assert stored(kernel, dispatch(1)) == [1002]


@pytest.mark.parametrize("offset", [24, 1 << 20])
def test_jumps_into_an_instruction_or_out_of_the_code_fault(
        tmp_path: Path, timing: TimingModel, offset: int) -> None:
    body = CALLS.replace("s_add_u32 s10, s10, 32", f"s_add_u32 s10, s10, {offset}")
    kernel = emulator(timing).load(build(tmp_path, body), "k")
    with pytest.raises(DeviceFault, match="has no instruction") as caught:
        kernel.run(dispatch(1))
    assert caught.value.text == "s_swappc_b64 s[8:9], s[10:11]"


def test_code_without_ecc_is_refused(tmp_path: Path, timing: TimingModel) -> None:
    """Its 16-bit loads would have to keep the other half of their register."""
    with pytest.raises(UnsupportedError, match="sramecc-"):
        emulator(timing).load(build(tmp_path, cpu="gfx942:sramecc-"), "k")


def test_private_segment_size_and_dispatch_packet(tmp_path: Path, timing: TimingModel) -> None:
    """User SGPRs in their documented order: packet, kernarg, private segment size."""
    body = """s_load_dword s8, s[0:1], 0x18
s_load_dwordx2 s[10:11], s[0:1], 0x28
s_waitcnt lgkmcnt(0)
s_sub_u32 s10, s10, s2
s_subb_u32 s11, s11, s3
s_or_b32 s10, s10, s11
s_lshl_b32 s8, s8, 16
s_or_b32 s6, s8, s4
s_or_b32 s6, s6, s10
s_load_dwordx2 s[4:5], s[2:3], 0x0
s_waitcnt lgkmcnt(0)
v_mov_b32_e32 v1, 0
v_mov_b32_e32 v2, s6
global_store_dword v1, v2, s[4:5]
s_endpgm"""
    kernel = emulator(timing).load(
        build(tmp_path, body, user_sgpr_dispatch_ptr=1, user_sgpr_private_segment_size=1,
              user_sgpr_count=5, private_segment_fixed_size=48), "k")
    assert stored(kernel, dispatch(1)) == [48 << 16 | 48]


def test_scratch_bounds_the_workgroups_that_a_caller_wants_resident(
        tmp_path: Path, timing: TimingModel, monkeypatch: pytest.MonkeyPatch) -> None:
    launched: list[int] = []
    launch = core.launch

    def spy(*arguments: Any, **named: Any) -> int:
        launched.append(named["resident"])
        return launch(*arguments, **named)

    monkeypatch.setattr(core, "launch", spy)
    kernel = emulator(timing).load(build(tmp_path, private_segment_fixed_size=128 << 10), "k")
    for resident in (100, 1_000_000):
        kernel.run(dispatch(1), LaunchState(resident=resident))
    assert launched == [100, 128]  # 8 MiB a wave, 1 GiB of all
