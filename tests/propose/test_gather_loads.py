"""Uses of conditional loads move behind the last of them, and no lane gets another value."""

from __future__ import annotations

from typing import Any

import pytest

from asmevo.propose.rules.gather_loads import GatherLoads

# Two conditional loads into one register, as compilers write them for a tile with edges.
TILE = """
v_mov_b32_e32 v5, 0
s_and_saveexec_b64 s[0:1], s[20:21]
s_cbranch_execz first
v_add_u32_e32 v6, v2, v3
global_load_dword v5, v[6:7], off
{inside}
first:
s_or_b64 exec, exec, s[0:1]
s_waitcnt vmcnt(0)
ds_write_b32 v8, v5
v_mov_b32_e32 v5, 0
s_and_saveexec_b64 s[0:1], s[22:23]
s_cbranch_execz second
v_add_u32_e32 v6, v2, v4
global_load_dword v5, v[6:7], off
{inside}
second:
s_or_b64 exec, exec, s[0:1]
s_waitcnt vmcnt(0)
ds_write_b32 v9, v5
s_waitcnt lgkmcnt(0)
s_barrier
ds_read_b32 v5, v8
s_waitcnt lgkmcnt(0)
global_store_dword v[10:11], v5, off
s_endpgm
"""


def _gathered(kernels: Any, text: str) -> list[str]:
    lines = kernels.first(GatherLoads(), text)
    assert lines is not None
    return list(lines)


def test_loads_are_under_way_together(kernels: Any) -> None:
    lines = _gathered(kernels, TILE.format(inside=""))
    loads = [k for k, x in enumerate(lines) if x.startswith("global_load")]
    writes = [k for k, x in enumerate(lines) if x.startswith("ds_write")]
    assert max(loads) < min(writes)
    # The first value keeps a register of its own; the first use waits for the first load alone.
    first = lines[writes[0]].split()[-1]
    assert first != "v5"
    assert f"v_mov_b32_e32 {first}, 0" in lines
    assert lines[loads[0]].startswith(f"global_load_dword {first},")
    assert lines[writes[0] - 1] == "s_waitcnt vmcnt(1)"
    # A load that is skipped would not be counted by that wait.
    assert not any(x.startswith("s_cbranch_execz") for x in lines)


def test_stretches_may_stay_skipped(kernels: Any) -> None:
    text = TILE.format(inside="")
    lines = kernels.edited(text, kernels.proposals(GatherLoads(), text)[1])
    assert "s_cbranch_execz first" in lines
    first = next(k for k, x in enumerate(lines) if x.startswith("ds_write"))
    assert lines[first - 1] == "s_waitcnt vmcnt(0)"


def test_a_condition_on_what_is_loaded_stays(kernels: Any) -> None:
    decides = "v_mov_b32_e32 v12, v5\nv_cmp_gt_u32_e64 s[22:23], 5, v12"
    text = TILE.format(inside="").replace(
        "ds_write_b32 v8, v5", f"ds_write_b32 v8, v5\n{decides}")
    for proposal in kernels.proposals(GatherLoads(), text):
        lines = kernels.edited(text, proposal)
        assert (lines.index(decides.partition("\n")[2])
                < lines.index("s_and_saveexec_b64 s[0:1], s[22:23]"))


def test_what_stood_inside_is_kept_for_the_lanes_that_were_on(kernels: Any) -> None:
    inside = "s_waitcnt vmcnt(0)\nv_lshlrev_b32_e32 v5, 16, v5"
    lines = _gathered(kernels, TILE.format(inside=inside))
    assert not any(x.startswith("s_cbranch_execz") for x in lines)
    choices = [x for x in lines if x.startswith("v_cndmask")]
    assert [x.split(", ")[-1] for x in choices] == ["s[20:21]", "s[22:23]"]
    for choice in choices:
        target, kept, made, _ = choice.partition(" ")[2].split(", ")
        assert target == kept != made
        assert f"v_lshlrev_b32_e32 {made}, 16, {target}" in lines


@pytest.mark.parametrize("between", [
    "s_barrier",
    "ds_read_b32 v12, v13",
])
def test_what_a_use_may_not_cross(kernels: Any, between: str) -> None:
    text = TILE.format(inside="").replace(
        "ds_write_b32 v8, v5", f"ds_write_b32 v8, v5\ns_waitcnt lgkmcnt(0)\n{between}")
    for proposal in kernels.proposals(GatherLoads(), text):
        lines = kernels.edited(text, proposal)
        assert lines.index("ds_write_b32 v8, v5") < lines.index(between)


def test_without_a_free_register_nothing_moves(kernels: Any) -> None:
    # Every register is needed behind the kernel's last line.
    rest = "\n".join(f"global_store_dword v[10:11], v{k}, off" for k in range(256))
    text = TILE.format(inside="").replace("s_endpgm", f"{rest}\ns_endpgm")
    assert kernels.first(GatherLoads(), text) is None
