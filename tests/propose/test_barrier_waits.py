"""Rules that reorder instructions keep the waits that other waves rely on."""

from __future__ import annotations

from typing import Any

import pytest

from asmevo.isa.ordering import lds_waits
from asmevo.propose.barrier_waits import guard_barriers
from asmevo.propose.rule import Rule
from asmevo.propose.rules.hoist_loads import HoistLoads
from asmevo.propose.rules.interleave_matrix import InterleaveMatrix
from asmevo.propose.rules.relax_waits import RelaxWaits
from asmevo.propose.rules.schedule_blocks import ScheduleBlocks
from tests.propose.emulated import INPUT, OUTPUT

END = "s_endpgm"
MATRIX = [f"v_mfma_f32_16x16x4_f32 v[{k}:{k + 3}], v50, v51, v[{k}:{k + 3}]" for k in (0, 4)]
WORK = [f"v_add_u32_e32 v{60 + k}, v80, v81" for k in range(6)]
LOAD = "buffer_load_dword v80, s[12:15], 0 offen lds"
RULES = pytest.mark.parametrize(
    "rule", [ScheduleBlocks(), HoistLoads(), InterleaveMatrix(smallest=2)], ids=lambda r: r.name)


def rewritten(kernels: Any, rule: Rule, lines: list[str]) -> list[list[str]]:
    text = "\n".join(lines)
    found = [kernels.edited(text, p) for p in kernels.proposals(rule, text)]
    assert any(lines != each for each in found)
    return found


@RULES
def test_lds_is_waited_for_in_front_of_barriers(kernels: Any, rule: Rule) -> None:
    """What another wave reads, and what it may overwrite."""
    lines = [
        "ds_write_b32 v80, v81", *WORK[:3], "ds_read_b32 v90, v80 offset:512", *MATRIX, *WORK[3:],
        "s_waitcnt lgkmcnt(0)", "s_barrier", *WORK, "ds_read_b32 v91, v80 offset:256",
        "s_waitcnt lgkmcnt(0)", "v_add_u32_e32 v92, v90, v91", END]
    for found in rewritten(kernels, rule, lines):
        at = found.index("s_barrier")
        last = max(k for k in range(at) if found[k].startswith("ds_"))
        assert "s_waitcnt lgkmcnt(0)" in found[last:at]


@RULES
def test_loads_to_lds_are_waited_for_where_they_were(kernels: Any, rule: Rule) -> None:
    """Others are in flight at another barrier on purpose, so these would not be missed; nor are
    those that the wave reads itself."""
    lines = [LOAD, "s_barrier", *WORK, LOAD, *MATRIX, *WORK, "s_waitcnt vmcnt(0)", "s_barrier",
             *WORK, "ds_read_b32 v91, v80", LOAD, *MATRIX, *WORK, "s_waitcnt vmcnt(0)", *WORK,
             "ds_read_b32 v90, v80", "s_waitcnt lgkmcnt(0)", "v_add_u32_e32 v92, v90, v91", END]
    def ordered(texts: list[str]) -> list[str]:
        return [t for t in texts if t in (LOAD, "s_barrier", "s_waitcnt vmcnt(0)")
                or t.startswith("ds_read")]

    for found in rewritten(kernels, rule, lines):
        assert ordered(found) == ordered(lines)


def test_relaxed_waits_hold_for_lds_in_front_of_barriers(kernels: Any) -> None:
    lines = ["ds_read_b32 v90, v80", "s_waitcnt vmcnt(0) lgkmcnt(0)", *WORK, "s_barrier",
             "v_add_u32_e32 v92, v90, v91", END]
    for found in rewritten(kernels, RelaxWaits(), lines):
        assert "lgkmcnt(0)" in "".join(found[:found.index("s_barrier")])


def test_relaxed_waits_hold_for_what_a_wave_loads_to_lds(kernels: Any) -> None:
    read = "ds_read_b32 v91, v80"
    lines = [LOAD, "s_waitcnt vmcnt(0) lgkmcnt(0)", *WORK, read, "s_waitcnt vmcnt(0) lgkmcnt(0)",
             "v_add_u32_e32 v92, v90, v91", END]
    for found in rewritten(kernels, RelaxWaits(), lines):
        assert "vmcnt(0)" in "".join(found[:found.index(read)])


def test_which_waits_are_for_lds(kernels: Any) -> None:
    text = ["s_waitcnt vmcnt(2)", "s_waitcnt vmcnt(0) lgkmcnt(1)", "s_barrier",
            "s_waitcnt lgkmcnt(0)", END]
    assert not lds_waits(kernels.context("\n".join(text)).program)
    text.append("buffer_load_dword v80, s[12:15], 0 offen lds")
    assert lds_waits(kernels.context("\n".join(text)).program) == {0, 1}


@pytest.mark.parametrize(("operation", "wait"), [
    ("ds_read_b32 v90, v80", "s_waitcnt lgkmcnt(0)"),
    ("ds_write_b32 v80, v81", "s_waitcnt lgkmcnt(0)"),
    (f"global_load_dword v90, v80, {INPUT}", None),
    (f"global_store_dword v80, v81, {OUTPUT}", "s_waitcnt vmcnt(0)"),
    ("buffer_load_dword v80, s[12:15], 0 offen lds", "s_waitcnt vmcnt(0)"),
])
@pytest.mark.parametrize("between", ["s_nop 0", "s_waitcnt expcnt(0)"])
def test_what_may_not_be_in_flight_at_a_barrier(
        kernels: Any, operation: str, wait: str | None, between: str) -> None:
    one, two = ("\n".join(lines) for lines in (
        [operation, "s_waitcnt vmcnt(0) lgkmcnt(0)", "s_barrier", END],
        [operation, between, "s_barrier", END]))
    before, after = (kernels.context(text).preview for text in (one, two))
    found = guard_barriers(before, after).lines
    if wait is None:
        assert found == after.lines
    else:
        assert wait.split()[1] in found[found.index("s_barrier") - 1]
        assert guard_barriers(after, after).lines == after.lines


def test_a_younger_access_may_be_in_flight(kernels: Any) -> None:
    end = ["ds_read_b32 v91, v80 offset:4", "s_barrier", END]
    before, after = (kernels.context("\n".join(lines)).preview for lines in (
        ["ds_read_b32 v90, v80", "s_waitcnt lgkmcnt(0)", *end], ["ds_read_b32 v90, v80", *end]))
    found = guard_barriers(before, after).lines
    assert found[found.index("s_barrier") - 1] == "s_waitcnt lgkmcnt(1)"
