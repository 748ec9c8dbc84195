"""Results arrive at the latest moment the ISA allows, so a missing wait shows every time."""

from __future__ import annotations

from typing import TYPE_CHECKING

import asmevo_core as core
import numpy as np
import pytest

from tests.device.emulator.conftest import INPUT_BASE, OUTPUT_BASE

if TYPE_CHECKING:
    from tests.device.emulator.conftest import Bench

STALE = 0x5A5A
A = np.arange(1000, 1064, dtype=np.uint32)
STORE_ADDRESS = ["v_mov_b32_e32 v40, v1"]
LOAD = "global_load_dword v20, v1, s[70:71]"  # reads A, the bench's first input


def value(bench: Bench, body: list[str], register: int = 20, lds_bytes: int = 512) -> list[int]:
    """The register right after ``body``; the bench itself waits only later."""
    body = [f"v_mov_b32_e32 v{register}, {STALE:#x}", *body, f"v_mov_b32_e32 v50, v{register}"]
    out = bench.run(body, vector={2: A}, vector_out=[50], lds_bytes=lds_bytes)
    return [int(x) for x in np.unique(out.vector[50])]


FRESH = A.tolist()


@pytest.mark.parametrize(("between", "arrived"), [
    ([], False),
    (["s_nop 15"] * 100, False),
    (["s_waitcnt lgkmcnt(0)"], False),
    (["s_waitcnt vmcnt(1)"], False),
    (["s_waitcnt vmcnt(0)"], True),
    (["s_waitcnt vmcnt(0) expcnt(0) lgkmcnt(0)"], True),
    # Loads and stores both count, and return in order.
    (["global_store_dword v1, v2, s[72:73]", "s_waitcnt vmcnt(1)"], True),
    (["global_load_dword v21, v1, s[70:71]", "s_waitcnt vmcnt(2)"], False),
    (["global_load_dword v21, v1, s[70:71]", "s_waitcnt vmcnt(1)"], True),
])
def test_vector_load(bench: Bench, between: list[str], arrived: bool) -> None:
    assert value(bench, [LOAD, *between]) == (FRESH if arrived else [STALE])


def test_full_counter_forces_the_oldest_load(bench: Bench) -> None:
    more = ["global_load_dword v21, v1, s[70:71]"]
    assert value(bench, [LOAD, *more * 62]) == [STALE]
    assert value(bench, [LOAD, *more * 63]) == FRESH


@pytest.mark.parametrize(("between", "arrived"), [
    ([], False), (["s_waitcnt vmcnt(0)"], False), (["s_waitcnt lgkmcnt(1)"], False),
    (["s_waitcnt lgkmcnt(0)"], True),
    # LDS operations return in order.
    (["ds_read_b32 v21, v40", "s_waitcnt lgkmcnt(1)"], True),
    (["ds_write_b32 v40, v2", "s_waitcnt lgkmcnt(1)"], True),
    (["ds_read_b32 v21, v40"] * 14, False), (["ds_read_b32 v21, v40"] * 15, True),
    # SMEM may return before it: the newest count could be the read's.
    (["s_load_dword s20, s[70:71], 0x0", "s_waitcnt lgkmcnt(1)"], False),
])
def test_lds_read(bench: Bench, between: list[str], arrived: bool) -> None:
    setup = ["v_lshlrev_b32_e32 v40, 2, v0", "ds_write_b32 v40, v2", "s_waitcnt lgkmcnt(0)",
             "ds_read_b32 v20, v40"]
    assert value(bench, [*setup, *between]) == (FRESH if arrived else [STALE])


@pytest.mark.parametrize(("between", "arrived"), [
    ([], False), (["s_waitcnt vmcnt(0)"], False), (["s_waitcnt lgkmcnt(0)"], True),
    # Out of order: nothing but a wait for zero guarantees a scalar load.
    (["s_load_dword s21, s[70:71], 0x4", "s_waitcnt lgkmcnt(1)"], False),
])
def test_scalar_load(bench: Bench, between: list[str], arrived: bool) -> None:
    body = ["s_movk_i32 s20, 0x5a5a", "s_load_dword s20, s[70:71], 0x0", *between,
            "v_mov_b32_e32 v20, s20"]
    assert value(bench, body) == ([FRESH[0]] if arrived else [STALE])


@pytest.mark.parametrize("between", [
    [], ["s_nop 0"], ["v_mov_b32_e32 v20, 3"],
    # More than what the emulator looks through for a wait.
    ["s_nop 0"] * 600,
])
def test_loads_into_one_register_return_in_order(bench: Bench, between: list[str]) -> None:
    stored = ["global_store_dword v1, v3, s[72:73]", "s_waitcnt vmcnt(0)", LOAD, *between,
              "global_load_dword v20, v1, s[72:73]"]
    assert value(bench, ["v_mov_b32_e32 v3, 9", *stored, "s_waitcnt vmcnt(0)"]) == [9]
    assert value(bench, ["v_mov_b32_e32 v3, 9", *stored, "s_waitcnt vmcnt(1)"]) == FRESH
    both = ["v_lshlrev_b32_e32 v40, 2, v0", "v_mov_b32_e32 v3, 9", "ds_write_b32 v40, v2",
            "ds_write_b32 v40, v3 offset:256", "s_waitcnt lgkmcnt(0)", "ds_read_b32 v20, v40",
            *between, "ds_read_b32 v20, v40 offset:256", "s_waitcnt lgkmcnt(0)"]
    assert value(bench, both) == [9]


@pytest.mark.parametrize("late", ["global_load_dwordx2 v[19:20], v1, s[70:71]",
                                  "global_load_dwordx2 v[20:21], v1, s[70:71]"])
def test_a_pair_and_one_of_its_registers_return_in_order(bench: Bench, late: str) -> None:
    body = ["v_mov_b32_e32 v3, 9", "global_store_dword v1, v3, s[72:73]", "s_waitcnt vmcnt(0)",
            "v_mov_b32_e32 v1, 0", late, "global_load_dword v20, v1, s[72:73]",
            "s_waitcnt vmcnt(0)"]
    assert value(bench, body) == [9]


def test_late_result_overwrites_what_was_written_meanwhile(bench: Bench) -> None:
    assert value(bench, [LOAD, "v_mov_b32_e32 v20, 3"]) == [3]
    assert value(bench, [LOAD, "v_mov_b32_e32 v20, 3", "s_waitcnt vmcnt(0)"]) == FRESH


def test_memory_is_read_at_issue_and_exec_is_taken_at_issue(bench: Bench) -> None:
    out = bench.run(
        ["v_mov_b32_e32 v20, 7", "global_store_dword v1, v2, s[72:73]",
         "s_mov_b64 exec, 15", "global_load_dword v20, v1, s[72:73]", "s_mov_b64 exec, -1",
         "v_mov_b32_e32 v3, 9", "global_store_dword v1, v3, s[72:73]", "s_waitcnt vmcnt(0)"],
        vector={2: A}, vector_out=[20])
    assert out.vector[20].tolist() == [*FRESH[:4], *[7] * 60]


def test_store_data_is_taken_at_issue(bench: Bench) -> None:
    out = bench.run(["global_store_dword v1, v2, s[72:73]", "v_mov_b32_e32 v2, 1",
                     "global_load_dword v20, v1, s[72:73]", "s_waitcnt vmcnt(0)"],
                    vector={2: A}, vector_out=[20])
    assert out.vector[20].tolist() == FRESH


@pytest.mark.parametrize(("load", "instructions", "returned"), [
    (LOAD, 0, False), (LOAD, 100, True),
    ("ds_read_b32 v20, v40", 0, False), ("ds_read_b32 v20, v40", 17, True),
    ("s_load_dword s20, s[70:71], 0x0", 17, True),
])
def test_prompt_returns(bench: Bench, load: str, instructions: int, returned: bool) -> None:
    """Time passes with instructions of the wave itself; LDS is nearer than memory."""
    setup = ["v_lshlrev_b32_e32 v40, 2, v0", "ds_write_b32 v40, v2", f"s_movk_i32 s20, {STALE:#x}",
             "s_waitcnt lgkmcnt(0)", *["s_nop 0"] * 40, load, *["s_nop 0"] * instructions]
    if load.startswith("s_load"):
        setup.append("v_mov_b32_e32 v20, s20")
    bench.prompt_returns = True
    expected = FRESH[:1] if load.startswith("s_load") else FRESH
    assert value(bench, setup) == (expected if returned else [STALE])


def test_prompt_returns_to_lds_reach_other_waves(bench: Bench) -> None:
    """A wave waits for its own load to LDS only, and reads what the other one loaded."""
    program = bench.assemble([
        "v_lshlrev_b32_e32 v1, 2, v0", "v_lshrrev_b32_e32 v2, 6, v0", "s_nop 0",
        "v_readfirstlane_b32 s10, v2", "s_nop 4", "s_lshl_b32 s11, s10, 8", "s_mov_b32 m0, s11",
        "s_nop 0", "buffer_load_dword v1, s[4:7], 0 offen lds", *["s_nop 0"] * 80, "s_barrier",
        # Only wave 0 waits before it reads the words of wave 1.
        "s_cmp_lg_u32 s10, 0", "s_cbranch_scc1 end", "v_xor_b32_e32 v3, 0x100, v1",
        "s_waitcnt vmcnt(0)", "ds_read_b32 v4, v3", "s_waitcnt lgkmcnt(0)",
        "global_store_dword v1, v4, s[8:9]", "end:", "s_endpgm"])
    inputs = np.arange(128, dtype=np.uint32)
    found = {}
    for prompt in (False, True):
        out = np.zeros(64, np.uint32)
        memory = core.Memory([("in", INPUT_BASE, inputs.view(np.uint8), False),
                              ("out", OUTPUT_BASE, out.view(np.uint8), True)])
        sgprs = [0, 0, 0, 0, INPUT_BASE & 0xFFFFFFFF, INPUT_BASE >> 32, 512, 0x20000,
                 OUTPUT_BASE & 0xFFFFFFFF, OUTPUT_BASE >> 32]
        bench.prompt_returns = prompt
        bench.launch(program, memory, sgprs, 1, workgroup=128, lds_bytes=512)
        found[prompt] = out
    assert (found[True] == inputs[64:]).all()
    assert not (found[False] == inputs[64:]).any()


@pytest.mark.parametrize("space", ["global", "lds"])
@pytest.mark.parametrize(("between", "arrived"), [
    ([], False), (["s_waitcnt vmcnt(0)"], False), (["s_waitcnt lgkmcnt(0)"], False),
    (["s_waitcnt vmcnt(0) lgkmcnt(0)"], True),
    (["s_waitcnt vmcnt(0)", "s_waitcnt lgkmcnt(0)"], True),
    (["s_waitcnt lgkmcnt(0)", "s_waitcnt vmcnt(0)"], True),
    # Flat accesses return out of order, whatever follows them.
    (["global_load_dword v21, v1, s[70:71]", "ds_read_b32 v22, v40",
      "s_waitcnt vmcnt(1) lgkmcnt(1)"], False),
    (["flat_load_dword v21, v[42:43]", "s_waitcnt vmcnt(1) lgkmcnt(1)"], False),
    (["flat_store_dword v[42:43], v2", "s_waitcnt vmcnt(0)", "s_waitcnt lgkmcnt(1)"], False),
])
def test_flat_load_waits_for_both_counters(
        bench: Bench, between: list[str], arrived: bool, space: str) -> None:
    # v[42:43] is the lane's word of LDS, which holds A, or of the input.
    base = ["s_mov_b64 s[20:21], src_shared_base"] if space == "lds" else [
        "s_mov_b64 s[20:21], s[70:71]"]
    setup = ["v_lshlrev_b32_e32 v40, 2, v0", "ds_write_b32 v40, v2", *base,
             "v_mov_b32_e32 v43, s21", "v_add_u32_e32 v42, s20, v40", "s_waitcnt lgkmcnt(0)"]
    if space == "global" and "flat_store" in str(between):
        between = [text.replace("flat_store_dword v[42:43], v2", "flat_load_dword v23, v[42:43]")
                   for text in between]
    body = [*setup, "flat_load_dword v20, v[42:43]", *between]
    assert value(bench, body) == (FRESH if arrived else [STALE])


def test_a_load_behind_a_flat_access_is_in_order_with_loads(bench: Bench) -> None:
    """Of a flat access and two loads vmcnt(1) guarantees the first load."""
    flat = ["v_mov_b32_e32 v43, s71", "v_add_u32_e32 v42, s70, v1", "flat_load_dword v23, v[42:43]"]
    more = "global_load_dword v21, v1, s[70:71]"
    assert value(bench, [*flat, LOAD, more, "s_waitcnt vmcnt(1)"]) == FRESH
    assert value(bench, [*flat, LOAD, more, "s_waitcnt vmcnt(2)"]) == [STALE]
    assert value(bench, [*flat, LOAD, *[more] * 61]) == [STALE]
