"""How loads and stores reach memory: cache hints, widths."""

from __future__ import annotations

from typing import Any

import pytest

from asmevo.propose.proposal import Evidence
from asmevo.propose.rule import RuleContext
from asmevo.propose.rules.cache_hints import CacheHints
from asmevo.propose.rules.widen_accesses import WidenAccesses

LOADS = """
global_load_dword v4, v[2:3], off offset:16
again:
buffer_load_dwordx2 v[6:7], v1, s[4:7], 0 offen
s_waitcnt vmcnt(0)
s_cmp_eq_u32 s2, 0
s_cbranch_scc1 again
global_store_dword v[2:3], v4, off
s_endpgm
"""


def test_streaming_loads_are_marked_together_then_in_parts(kernels: Any) -> None:
    marked = [[line for line in kernels.edited(LOADS, p) if line.endswith(" nt")]
              for p in kernels.proposals(CacheHints(), LOADS)]
    first, second = ("global_load_dword v4, v[2:3], off offset:16 nt",
                     "buffer_load_dwordx2 v[6:7], v1, s[4:7], 0 offen nt")
    assert marked == [[first, second], [second], [first], [first], [second]]


@pytest.mark.parametrize("line", [
    "global_load_dword v4, v[2:3], off sc1",
    "global_load_dword v4, v[2:3], off nt",
    "global_atomic_add v4, v[2:3], v5, off sc0",
    "s_load_dword s4, s[2:3], 0x0",
    "buffer_load_dword v1, s[4:7], 0 offen lds",
    "ds_read_b32 v4, v2",
])
def test_accesses_that_are_not_marked(kernels: Any, line: str) -> None:
    assert kernels.proposals(CacheHints(), f"{line}\ns_endpgm") == []


def test_layer_norm_loads_are_marked(layer_norm_evidence: Evidence) -> None:
    context = RuleContext(layer_norm_evidence)
    proposal = next(iter(CacheHints().matches(context)))
    after = context.preview.apply(proposal.edits)
    marked = [i for i in after.program.instructions if i.modifier("nt")]
    assert marked
    assert all("_load_" in i.op for i in marked)
    assert len(after.lines) == len(context.lines)


USE = "s_waitcnt vmcnt(0) lgkmcnt(0)\nglobal_store_dwordx2 v[2:3], v[10:11], off\ns_endpgm"


@pytest.mark.parametrize(("lines", "wide"), [
    (["global_load_dword v10, v[4:5], off offset:-4", "v_mov_b32_e32 v9, 0",
      "global_load_dword v11, v[4:5], off"],
     ["global_load_dwordx2 v[10:11], v[4:5], off offset:-4", "v_mov_b32_e32 v9, 0"]),
    (["global_load_dword v11, v4, s[2:3] offset:20", "global_load_dword v10, v4, s[2:3] offset:16"],
     ["global_load_dwordx2 v[10:11], v4, s[2:3] offset:16"]),
    (["buffer_load_dword v10, v4, s[4:7], 0 offen", "buffer_load_dword v11, v4, s[4:7], 0 offen "
      "offset:4"], ["buffer_load_dwordx2 v[10:11], v4, s[4:7], 0 offen"]),
    (["s_load_dwordx2 s[4:5], s[0:1], 0x8", "s_load_dwordx2 s[6:7], s[0:1], 0x10"],
     ["s_load_dwordx4 s[4:7], s[0:1], 0x8"]),
    (["global_store_dword v[4:5], v10, off", "v_add_f32_e32 v11, v11, v12",
      "global_store_dword v[4:5], v11, off offset:4"],
     ["v_add_f32_e32 v11, v11, v12", "global_store_dwordx2 v[4:5], v[10:11], off"]),
])
def test_neighbouring_accesses_join(kernels: Any, lines: list[str], wide: list[str]) -> None:
    text = "\n".join((*lines, USE))
    assert kernels.first(WidenAccesses(), text) == [*wide, *USE.split("\n")]


def test_widening_goes_on(kernels: Any) -> None:
    loads = [f"global_load_dword v{10 + k}, v[4:5], off offset:{4 * k}" for k in range(4)]
    text = "\n".join((*loads, USE.replace("x2 v[2:3], v[10:11]", "x4 v[2:3], v[10:13]")))
    assert kernels.first(WidenAccesses(), text)[0] == "global_load_dwordx4 v[10:13], v[4:5], off"


def test_registers_apart_are_renamed(kernels: Any) -> None:
    text = """
    global_load_dword v7, v[4:5], off
    global_load_dword v20, v[4:5], off offset:4
    s_waitcnt vmcnt(0)
    v_add_f32_e32 v10, v7, v20
    v_mul_f32_e64 v11, v20, -v7
    """ + USE
    changed = kernels.first(WidenAccesses(), text)
    load = changed[0].split()
    assert load[0] == "global_load_dwordx2"
    assert changed[1] == "s_waitcnt vmcnt(0)"
    low = int(load[1][2:].split(":")[0])
    assert low % 2 == 0
    assert low not in (2, 4, 10)
    assert changed[2:4] == [f"v_add_f32_e32 v10, v{low}, v{low + 1}",
                            f"v_mul_f32_e64 v11, v{low + 1}, -v{low}"]


@pytest.mark.parametrize("lanes", [
    # Lanes that were off have what v20 was before; others go on with it elsewhere.
    "s_mov_b64 exec, -1\nv_add_f32_e32 v10, v7, v20",
    "v_add_f32_e32 v10, v7, v20\ns_and_b64 exec, exec, s[8:9]\nv_add_f32_e32 v10, v10, v20\n"
    "s_cbranch_scc1 over\ns_nop 0\nover:\nv_mov_b32_e32 v20, 0\ns_mov_b64 exec, -1\n"
    "v_mov_b32_e32 v11, v20",
])
def test_loads_that_lanes_see_differently_keep_their_registers(kernels: Any, lanes: str) -> None:
    text = f"""
    s_mov_b64 exec, s[4:5]
    global_load_dword v7, v[4:5], off
    global_load_dword v20, v[4:5], off offset:4
    s_waitcnt vmcnt(0)
    {lanes}
    """ + USE
    assert kernels.proposals(WidenAccesses(), text) == []


@pytest.mark.parametrize("lines", [
    ["global_load_dword v10, v[4:5], off", "global_load_dword v11, v[4:5], off offset:8"],  # a gap
    ["global_load_dword v10, v[4:5], off", "global_load_dword v11, v[6:7], off offset:4"],
    ["global_load_dword v10, v[4:5], off", "global_load_dword v11, v[4:5], off offset:4 nt"],
    ["global_load_dword v10, v[4:5], off", "v_add_u32_e32 v4, 4, v4",
     "global_load_dword v11, v[4:5], off offset:4"],
    ["global_load_dword v10, v[10:11], off", "global_load_dword v11, v[10:11], off offset:4"],
    ["global_load_dword v10, v[4:5], off", "global_store_dword v[8:9], v12, off",
     "global_load_dword v11, v[4:5], off offset:4"],
    ["global_load_dword v10, v[4:5], off", "v_mov_b32_e32 v12, v11",
     "global_load_dword v11, v[4:5], off offset:4"],
    ["global_load_dword v10, v[4:5], off", "s_mov_b64 exec, 3",
     "global_load_dword v11, v[4:5], off offset:4"],
    ["global_load_dword v10, v[4:5], off", "s_barrier",
     "global_load_dword v11, v[4:5], off offset:4"],
    ["global_load_dword v10, v[4:5], off", "again:",
     "global_load_dword v11, v[4:5], off offset:4"],
    ["global_load_dword v10, v[4:5], off sc1", "global_load_dword v11, v[4:5], off offset:4 sc1"],
    ["s_load_dword s10, s[0:1], 0x0", "s_load_dwordx2 s[12:13], s[0:1], 0x4"],   # three dwords
    ["global_store_dword v[4:5], v11, off", "global_store_dword v[4:5], v10, off offset:4"],
    ["global_store_dword v[4:5], v10, off", "global_load_dword v12, v[8:9], off",
     "global_store_dword v[4:5], v11, off offset:4"],
])
def test_accesses_that_stay_apart(kernels: Any, lines: list[str]) -> None:
    assert kernels.proposals(WidenAccesses(), "\n".join((*lines, USE))) == []
