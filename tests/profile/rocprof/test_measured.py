"""Recordings of rocprofv3 put on a kernel, and files that are none."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from asmevo.codeobject.container import CodeObject
from asmevo.codeobject.source import InstalledFile
from asmevo.isa.program import Program
from asmevo.profile.errors import ProfileError
from asmevo.profile.profile import Profile, StallCause
from asmevo.profile.rocprof.measured import entry_address, measured_profile, read_recording
from asmevo.profile.rocprof.stall_reasons import stall_cause
from asmevo.profile.windows import hot_windows

HERE = Path(__file__).parent
SCALE = Program.from_disassembly([
    (0, 8, "global_load_dword v1, v[2:3], off"), (8, 4, "s_waitcnt vmcnt(0)"),
    (12, 4, "v_mul_f32_e32 v1, s4, v1"), (16, 4, "s_sub_u32 s5, s5, 1"),
    (20, 4, "s_cmp_lg_u32 s5, 0"), (24, 4, "s_cbranch_scc1 -4"), (28, 4, "s_barrier"),
    (32, 8, "global_store_dword v[2:3], v1, off"), (40, 4, "s_endpgm")], {})
ADDRESS = 0x1900
NAME, SHOWN = "_Z5scalePff", "scale(float*, float)"
STALLS = [
    {}, {StallCause.VMCNT: 20}, {StallCause.DEPENDENCY: 8}, {}, {StallCause.UNIT_BUSY: 4},
    {StallCause.FETCH: 4}, {StallCause.BARRIER: 8}, {StallCause.UNIT_BUSY: 4}, {}]
ISSUED = [1, 0, 3, 3, 0, 0, 0, 0, 0]


def measured(*files: str, **options: Any) -> Profile:
    recording = read_recording(HERE / name for name in files)
    return measured_profile(recording, SCALE, NAME, names=[SHOWN], **options)


def test_json_results_with_everything_in_them() -> None:
    profile = measured("results.json", address=ADDRESS)
    assert [i.issued for i in profile.instructions] == ISSUED
    assert [i.stalls for i in profile.instructions] == STALLS
    assert (profile.source, profile.device) == ("measured", "AMD Instinct MI300X")
    # 120000 busy cycles of 8 XCDs in 10 us.
    assert (profile.clock_mhz, profile.cycles) == (1500, 15000)
    assert "19 PC samples (stochastic)" in profile.scope
    assert "clock from GRBM_GUI_ACTIVE" in profile.scope


def test_csv_files_say_the_same() -> None:
    profile = measured("stochastic.csv", "kernel_trace.csv", "counter_collection.csv",
                       "agent_info.csv")
    assert [i.issued for i in profile.instructions] == ISSUED
    assert [i.stalls for i in profile.instructions] == STALLS
    assert (profile.clock_mhz, profile.cycles) == (1500, 15000)
    assert "1 that the profiler could not place left out" in profile.scope


def test_host_trap_samples_have_no_issues_and_few_causes() -> None:
    profile = measured("host_trap.csv", "kernel_trace.csv", clock_mhz=2000)
    assert not any(i.issued for i in profile.instructions)
    stalls = {k: i.stalls for k, i in enumerate(profile.instructions) if i.stalls}
    assert stalls == {1: {StallCause.VMCNT: 16}, 2: {StallCause.OTHER: 4},
                      6: {StallCause.BARRIER: 8}}
    assert (profile.device, profile.cycles) == ("unnamed GPU", 20000)
    assert "two instructions off" in profile.scope


def test_what_was_measured_has_hot_windows() -> None:
    windows = hot_windows([measured("results.json", address=ADDRESS)], SCALE, count=9,
                          max_length=8)
    assert sum(w.share for w in windows) == pytest.approx(1.0)
    # Nothing could hide the wait in its block of two, something the stalls in the loop.
    assert (windows[0].loop_depth, windows[0].trip_count) == (1, 3.0)
    wait = next(w for w in windows if w.cause is StallCause.VMCNT)
    assert (wait.recoverable, wait.stalled) == (0, 20)


def test_without_a_kernel_trace_foreign_samples_are_noticed() -> None:
    with pytest.raises(ProfileError, match="'v_mov_b32_e32 v77, 0', which the kernel has not"):
        measured("stochastic.csv")
    assert measured("host_trap.csv").cycles == 0


def test_a_text_at_several_places_is_refused_or_left_out() -> None:
    rows = [(0, 8, "global_load_dword v1, v[2:3], off"), (8, 4, "s_waitcnt vmcnt(0)"),
            (12, 4, "v_mul_f32_e32 v1, s4, v1"), (16, 4, "s_barrier"),
            (20, 4, "s_waitcnt vmcnt(0)"), (24, 4, "s_endpgm")]
    program = Program.from_disassembly(rows, {})
    recording = read_recording([HERE / "host_trap.csv"])
    with pytest.raises(ProfileError, match="stands at 2 places of the kernel"):
        measured_profile(recording, program, NAME)
    profile = measured_profile(recording, program, NAME, skip_ambiguous=True)
    assert [i.stalled for i in profile.instructions] == [0, 0, 4, 8, 0, 0]
    assert "4 of instructions that stand at several places left out" in profile.scope


def test_another_build_is_noticed(assemble: Callable[..., Program]) -> None:
    with pytest.raises(ProfileError, match="is inside an instruction"):
        measured("results.json", address=ADDRESS - 4)
    moved = assemble(["global_load_dword v1, v[2:3], off", "s_nop 0"], wide=[0])
    with pytest.raises(ProfileError, match=r"has 's_waitcnt vmcnt\(0\)' at offset 0x1908"):
        measured_profile(read_recording([HERE / "results.json"]), moved, NAME, address=ADDRESS)


def test_other_kernels_are_named() -> None:
    recording = read_recording([HERE / "results.json"])
    with pytest.raises(ProfileError, match=r"no dispatch of 'other'.*fill\(float\*\)"):
        measured_profile(recording, SCALE, "other")
    with pytest.raises(ProfileError, match="no PC sample of '_Z4fillPf'"):
        measured_profile(recording, SCALE, "_Z4fillPf", address=1 << 20)
    with pytest.raises(ProfileError, match="have no PC samples"):
        measured("kernel_trace.csv")
    with pytest.raises(ProfileError, match="another file has some"):
        measured("results.json", "stochastic.csv")


def test_real_kernels_are_placed_by_their_address() -> None:
    data = InstalledFile("amd-aiter", "aiter_meta/hsa/gfx942/layer_norm.co").read()
    code_object = CodeObject.parse(data)
    kernel = code_object.kernels[0]
    address = entry_address(code_object, kernel.symbol)
    assert code_object.bytes_at(address, 64) == code_object.code(kernel)[:64]


@pytest.mark.parametrize(("name", "content", "reason"), [
    ("a.csv", b"", "is empty"),
    ("a.csv", b"\xff\xfe\x00", "cannot be read as text"),
    ("a.csv", b"Time,Value\n1,2\n", "its columns say nothing known"),
    ("a.csv", b"Sample_Timestamp,Exec_Mask\n1,2\n", "has no column Dispatch_Id, Instruction"),
    ("a.csv", b"Sample_Timestamp,Dispatch_Id,Instruction\n1,2\n", "row 2 has 2 fields"),
    ("a.csv", b'Sample_Timestamp,Dispatch_Id,Instruction\n1,2,"x"y\n', "is not a CSV file"),
    ("a.csv", b"Sample_Timestamp,Dispatch_Id,Instruction\n1,-2,x\n", "must be a whole number"),
    ("a.csv", b"Sample_Timestamp,Dispatch_Id,Instruction\n1,99999999999999999999,x\n",
     "must be a whole number"),
    ("a.csv", b"Sample_Timestamp,Dispatch_Id,Instruction,Wave_Issued_Instruction,Stall_Reason\n"
              b"1,1,s_endpgm,2,x\n", "must be a whole number from 0 to 1"),
    ("a.csv", b"Dispatch_Id,Kernel_Name,Counter_Name,Counter_Value\n1,k,c,nan\n",
     "must be a finite number"),
    ("a.csv", b"Dispatch_Id,Kernel_Name,Start_Timestamp,End_Timestamp\n1,k,9,3\n",
     "ends before it starts"),
    ("a.csv", b"Dispatch_Id,Kernel_Name,Start_Timestamp,End_Timestamp\n1,k,3,9\n1,j,3,9\n",
     "another file says 'k'"),
    ("a.json", b"{", "is not JSON"), ("a.json", b"\xff", "is not JSON"),
    ("a.json", b"[" * 200000, "is not JSON"), ("a.json", b"[1]", "is not an object"),
    ("a.json", b"{}", "of one process, not 0"),
    ("a.json", b'{"rocprofiler-sdk-tool": [{}, {}]}', "of one process, not 2"),
    ("a.json", b'{"rocprofiler-sdk-tool": [{"agents": 3}]}', "agents of .* must be a list"),
    ("a.json", b'{"rocprofiler-sdk-tool": [NaN]}', "is not JSON"),
    ("a.json", b'{"rocprofiler-sdk-tool": [' + b"9" * 5000 + b"]}", "is not JSON"),
    ("missing.csv", None, "cannot be read"), ("missing.json", None, "cannot be read"),
])
def test_files_that_are_no_recording_give_one_sentence(
        tmp_path: Path, name: str, content: bytes | None, reason: str) -> None:
    path = tmp_path / name
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(ProfileError, match=reason) as error:
        read_recording([path])
    assert "\n" not in str(error.value)
    assert len(str(error.value)) < 400


def test_what_is_no_file_is_not_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe.csv")
    os.mkfifo(tmp_path / "pipe.json")
    for name in ("pipe.csv", "pipe.json"):
        with pytest.raises(ProfileError, match="cannot be read: it is not a file"):
            read_recording([tmp_path / name])


def _mutations() -> st.SearchStrategy[tuple[list[str | int], Any]]:
    """A path into the JSON results and what to put there."""
    value = st.one_of(st.none(), st.booleans(), st.integers(), st.floats(), st.text(max_size=8),
                      st.just([]), st.just({}))
    return st.tuples(st.lists(st.integers(0, 30), min_size=1, max_size=9), value)


@settings(max_examples=150, deadline=None)
@given(_mutations())
def test_hostile_results_give_a_profile_or_one_error(
        tmp_path_factory: pytest.TempPathFactory, mutation: tuple[list[int], Any]) -> None:
    document = json.loads((HERE / "results.json").read_text())
    steps, value = mutation
    here = document
    for step in steps:
        keys = list(here) if isinstance(here, dict) else list(range(len(here)))
        key = keys[step % len(keys)]
        if not isinstance(here[key], (dict, list)) or not here[key] or step is steps[-1]:
            here[key] = value
            break
        here = here[key]
    path = tmp_path_factory.mktemp("hostile") / "results.json"
    path.write_text(json.dumps(document))
    said = ""
    try:
        measured_profile(read_recording([path]), SCALE, NAME, address=ADDRESS)
    except ProfileError as error:
        said = str(error)
    assert "\n" not in said


def test_stall_reasons() -> None:
    wait, barrier, add = (SCALE.instructions[k] for k in (1, 6, 2))
    both = frozenset({StallCause.VMCNT, StallCause.LGKMCNT})
    assert stall_cause("WAITCNT", wait, both) is StallCause.VMCNT
    assert stall_cause("WAITCNT", wait, frozenset({StallCause.LGKMCNT})) is StallCause.LGKMCNT
    assert stall_cause("WAITCNT", add, frozenset()) is StallCause.OTHER
    assert stall_cause("INTERNAL_INSTRUCTION", barrier, frozenset()) is StallCause.BARRIER
    with pytest.raises(ProfileError, match="'NEW' is not a stall reason"):
        stall_cause("NEW", wait, both)
