"""Where a lane is certainly on."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from asmevo.isa.active_lanes import active
from asmevo.isa.cfg import Cfg
from asmevo.isa.program import Program
from asmevo.isa.registers import VGPR0
from asmevo.isa.value_graph import Definition, Merge, ValueGraph

Assembler = Callable[..., Program]
_HERE = "v_readfirstlane_b32 s12, v1"
_START = "s_and_saveexec_b64 s[0:1], s[20:21]"
_JOIN = "s_or_b64 exec, exec, s[0:1]"


def _is_active(program: Program) -> bool:
    index = next(k for k, i in enumerate(program.instructions) if i.text == _HERE)
    return index in active(program, Cfg.of(program))


@pytest.mark.parametrize("lines", [
    ["s_nop 0"],  # a wave is launched with a lane
    [_START, _JOIN],
    [_START, "s_cbranch_execz end"],
    [_START, "s_cbranch_execz join", "v_mov_b32 v2, v3", "join:", _JOIN],
    [_START, "s_cbranch_execz join", "s_nop 0", "join:", "s_mov_b64 exec, s[0:1]"],
    [_START, "s_mov_b64 s[6:7], s[0:1]", "s_mov_b64 s[0:1], 0", "s_mov_b64 exec, s[6:7]"],
    [_START, "s_mov_b64 exec, -1"],
    [_START, "s_or_saveexec_b64 s[2:3], s[0:1]"],
    ["s_or_saveexec_b64 s[2:3], s[20:21]"],
    # Lanes leave a loop one by one: one is on in each turn, and behind it.
    ["s_mov_b64 s[0:1], exec", "again:", _HERE, "s_andn2_b64 exec, exec, s[20:21]",
     "s_cbranch_execnz again"],
    ["s_mov_b64 s[0:1], exec", "again:", "s_andn2_b64 exec, exec, s[20:21]",
     "s_cbranch_execnz again", _JOIN],
    # The others of a conditional, and behind both.
    [_START, "s_xor_b64 s[0:1], exec, s[0:1]", "s_cbranch_execz turn", "s_nop 0", "turn:",
     "s_andn2_saveexec_b64 s[2:3], s[0:1]", "s_cbranch_execz join", "s_nop 0", "join:",
     "s_or_b64 exec, exec, s[2:3]"],
    [_START, "s_xor_b64 s[0:1], exec, s[0:1]", "s_cbranch_execz turn", "s_nop 0", "turn:",
     "s_or_saveexec_b64 s[2:3], s[0:1]", _HERE, "s_xor_b64 exec, exec, s[2:3]", "s_nop 0",
     "s_or_b64 exec, exec, s[2:3]"],
])
def test_a_lane_is_on(write: Assembler, lines: list[str]) -> None:
    assert _is_active(write("\n".join([*lines, _HERE, "end:", "s_endpgm"])))


@pytest.mark.parametrize("lines", [
    [_START],
    [_START, "s_cbranch_execnz end"],
    [_START, "s_cbranch_execz next", "next:"],
    [_START, "s_cbranch_execnz next", "next:"],
    ["s_xor_saveexec_b64 s[2:3], s[20:21]"],
    [_START, "s_cbranch_execz join", "s_nop 0", "join:"],
    [_START, "s_cbranch_scc1 end"],
    [_START, "s_cbranch_vccz end"],
    ["s_mov_b64 exec, 0"],
    ["s_mov_b64 exec, s[20:21]"],
    ["s_mov_b32 exec_lo, 0"],
    ["s_mov_b32 exec_hi, 0"],
    ["v_cmpx_gt_u32_e32 vcc, v5, v6"],
    [_START, "s_cbranch_execz end", "s_and_b64 exec, exec, s[22:23]"],
    [_START, "s_mov_b64 s[0:1], 0", _JOIN],
    [_START, "s_mov_b32 s1, 0", _JOIN],
    [_START, "s_and_saveexec_b64 s[2:3], s[22:23]", "s_or_b64 exec, exec, s[2:3]"],
    # What is saved without a lane is nothing to come back to.
    [_START, "s_mov_b64 s[0:1], exec", _JOIN],
    ["s_mov_b64 ttmp[0:1], exec", "s_mov_b64 exec, ttmp[0:1]"],
    # A loop comes back with lanes off.
    ["s_nop 0", "again:", _HERE, _START, "s_cbranch_scc1 again"],
    ["again:", _HERE, "s_and_b64 exec, exec, s[22:23]", "s_cbranch_scc1 again"],
    ["s_mov_b64 s[0:1], exec", "again:", "s_andn2_b64 exec, exec, s[20:21]",
     "s_cbranch_execnz again"],
    # Between two sides each may have none.
    [_START, "s_xor_b64 s[0:1], exec, s[0:1]", "s_nop 0", "s_andn2_saveexec_b64 s[2:3], s[0:1]"],
    [_START, "s_xor_b64 s[0:1], exec, s[0:1]", "s_mov_b64 exec, 0",
     "s_or_saveexec_b64 s[2:3], s[0:1]"],
    # No lane was on in front of either.
    ["s_mov_b64 exec, s[22:23]", _START, "s_xor_b64 s[0:1], exec, s[0:1]",
     "s_or_saveexec_b64 s[2:3], s[0:1]", "s_xor_b64 exec, exec, s[2:3]",
     "s_or_b64 exec, exec, s[2:3]"],
    # In a turn of a loop a conditional ends with the lanes that are left.
    ["again:", _START, "s_xor_b64 s[0:1], exec, s[0:1]", "s_andn2_saveexec_b64 s[2:3], s[0:1]",
     "s_or_b64 exec, exec, s[2:3]", _HERE, "s_and_b64 exec, exec, s[22:23]",
     "s_cbranch_scc1 again"],
])
def test_perhaps_no_lane_is_on(write: Assembler, lines: list[str]) -> None:
    assert not _is_active(write("\n".join([*lines, _HERE, "end:", "s_endpgm"])))


@pytest.mark.parametrize(("guard", "held"), [
    ("s_cbranch_execz end", {"v_add_u32"}), ("s_nop 0", {"v_add_u32", "v_mul_lo_u32"})])
def test_the_first_lane_that_is_on_is_read_as_any_other(
        write: Assembler, guard: str, held: set[str]) -> None:
    """Where there is none lane 0 is read, which may have an older write."""
    program = write("\n".join([
        "v_mul_lo_u32 v1, v4, v5", _START, "v_add_u32_e32 v1, 1, v5", guard, _HERE, "end:",
        "s_endpgm"]))
    index = next(k for k, i in enumerate(program.instructions) if i.text == _HERE)
    node = ValueGraph(program).reaching(index, VGPR0 + 1)
    nodes = node.nodes if isinstance(node, Merge) else {node}
    assert {program.instructions[n.at].op for n in nodes if isinstance(n, Definition)} == held
