"""Which writes the lanes may hold that read a register."""

from __future__ import annotations

import pytest

from asmevo.isa.cfg import Cfg
from asmevo.isa.mask_pairs import mask_pairs
from asmevo.isa.program import Program
from asmevo.isa.registers import VGPR0
from asmevo.isa.value_graph import Definition, Merge, ValueGraph

_READ = "v_mov_b32_e32 v9, v1"


def _program(text: str) -> Program:
    rows: list[tuple[int, int, str]] = []
    labels: dict[int, str] = {}
    for line in filter(None, (x.strip() for x in text.splitlines())):
        if line.endswith(":"):
            labels[4 * len(rows)] = line[:-1]
        else:
            rows.append((4 * len(rows), 4, line))
    return Program.from_disassembly(rows, labels)


def _held(text: str) -> list[str]:
    """The texts of the writes of v1 that reach the instruction that reads it."""
    program = _program(text)
    index = next(k for k, i in enumerate(program.instructions) if i.text == _READ)
    node = ValueGraph(program).reaching(index, VGPR0 + 1)
    nodes = node.nodes if isinstance(node, Merge) else {node}
    return sorted(program.instructions[n.at].text if isinstance(n, Definition) else "entry"
                  for n in nodes)


# A stretch for some lanes; {first} is outside, {inside} in it, {behind} behind it.
STRETCH = """
s_and_saveexec_b64 s[4:5], s[20:21]
{first}
s_and_saveexec_b64 s[0:1], s[22:23]
s_cbranch_execz join
{inside}
join:
s_or_b64 exec, exec, s[0:1]
{behind}
s_endpgm
"""
_A, _B = "v_add_u32_e32 v1, 1, v5", "v_add_u32_e32 v1, 2, v5"


@pytest.mark.parametrize(("parts", "held"), [
    # In front of the stretch all lanes were written that are on in it and behind it.
    ((_A, _READ, ""), [_A]),
    ((_A, "", _READ), [_A]),
    ((_A, _B, _READ), [_A, _B]),
    ((_A, f"{_B}\n{_READ}", ""), [_B]),
    (("", _B, _READ), [_B, "entry"]),
    (("", _B, f"{_A}\n{_READ}"), [_A]),
])
def test_a_stretch(parts: tuple[str, str, str], held: list[str]) -> None:
    first, inside, behind = parts
    text = STRETCH.format(first=first or "s_nop 0", inside=inside or "s_nop 0", behind=behind)
    assert _held(text) == sorted(held)


def test_an_earlier_turn_of_a_stretch_was_for_other_lanes() -> None:
    assert _held(f"""
        again:
        s_and_saveexec_b64 s[0:1], s[22:23]
        s_cbranch_execz join
        {_READ}
        {_A}
        join:
        s_or_b64 exec, exec, s[0:1]
        s_cbranch_scc1 again
        s_endpgm""") == sorted([_A, "entry"])


@pytest.mark.parametrize(("change", "held"), [
    ("s_andn2_b64 exec, exec, s[2:3]", [_A]),
    ("s_and_b64 exec, exec, s[2:3]", [_A]),
    ("s_or_b64 exec, exec, s[2:3]", [_A, "entry"]),
    ("s_mov_b64 exec, s[2:3]", [_A, "entry"]),
    ("s_xor_b64 exec, exec, s[2:3]", [_A, "entry"]),
    ("s_andn2_b64 exec, s[2:3], exec", [_A, "entry"]),
])
def test_lanes_that_are_switched_on_were_not_written(change: str, held: list[str]) -> None:
    assert _held(f"s_and_saveexec_b64 s[0:1], s[20:21]\n{_A}\n{change}\n{_READ}\n"
                 "s_endpgm") == sorted(held)


def test_pairs_need_their_register_to_come_from_one_place() -> None:
    text = STRETCH.format(first="s_nop 0", inside="s_nop 0", behind="s_nop 0")
    program = _program(text)
    assert mask_pairs(program, Cfg.of(program)) == {5: 2}
    for spoilt in ("s_mov_b64 s[0:1], 0", "s_mov_b32 s1, 0", "s_andn2_b64 exec, exec, s[2:3]"):
        program = _program(STRETCH.format(first="s_nop 0", inside=spoilt, behind="s_nop 0"))
        assert mask_pairs(program, Cfg.of(program)) == {}


# One stretch for some lanes and one for the others of them, in both ways that LLVM writes it; with
# jumps over stretches without lanes and without them.
CHOICES = [
    "s_andn2_saveexec_b64 s[2:3], s[0:1]",
    "s_or_saveexec_b64 s[2:3], s[0:1]\ns_nop 0\ns_xor_b64 exec, exec, s[2:3]",
]
CHOICE = """
s_and_saveexec_b64 s[4:5], s[20:21]
{first}
s_and_saveexec_b64 s[0:1], s[22:23]
s_xor_b64 s[0:1], exec, s[0:1]
{jump}
{inside}
turn:
{turn}
{other_jump}
{other}
join:
s_or_b64 exec, exec, s[2:3]
{behind}
s_endpgm
"""


def _chosen(turn: str, jumps: tuple[str, str], first: str, inside: str, other: str, behind: str
            ) -> list[str]:
    return _held(CHOICE.format(
        first=first or "s_nop 0", inside=inside or "s_nop 0", behind=behind, turn=turn,
        other=other or "s_nop 0", jump=jumps[0], other_jump=jumps[1]))


@pytest.mark.parametrize("turn", CHOICES)
@pytest.mark.parametrize("jumps", [
    ("", ""), ("s_cbranch_execz turn", "s_cbranch_execz join"), ("s_cbranch_execz turn", "")])
@pytest.mark.parametrize(("parts", "held"), [
    # What one side writes does not reach the other.
    ((_A, _B, _READ, ""), [_A]),
    (("", _B, _READ, ""), ["entry"]),
    ((_A, _READ, _B, ""), [_A]),
    # Behind both, lanes have what their side wrote, and nothing older if both did.
    ((_A, _B, "", _READ), [_A, _B]),
    ((_A, "", _B, _READ), [_A, _B]),
    (("", _A, _B, _READ), [_A, _B]),
    (("", _A, "", _READ), [_A, "entry"]),
    (("", "", "", f"{_A}\n{_READ}"), [_A]),
])
def test_two_sides(turn: str, jumps: tuple[str, str], parts: tuple[str, str, str, str],
                   held: list[str]) -> None:
    assert _chosen(turn, jumps, *parts) == sorted(held)


def test_all_lanes_are_on_between_the_turn_and_the_other_side() -> None:
    turn = f"s_or_saveexec_b64 s[2:3], s[0:1]\n{_READ}\ns_xor_b64 exec, exec, s[2:3]"
    assert _chosen(turn, ("", ""), _A, _B, "", "s_nop 0") == sorted([_A, _B])
    turn = f"s_or_saveexec_b64 s[2:3], s[0:1]\n{_B}\ns_xor_b64 exec, exec, s[2:3]"
    assert _chosen(turn, ("", ""), "", _A, _READ, "") == [_B]


@pytest.mark.parametrize("turn", CHOICES)
@pytest.mark.parametrize("spoilt", [
    "s_mov_b64 exec, s[8:9]", "s_mov_b64 s[0:1], s[8:9]", "s_or_b64 exec, exec, s[8:9]"])
def test_sides_that_are_none(turn: str, spoilt: str) -> None:
    """Where lanes of one side may be on in the other, what that wrote may be held."""
    assert _B in _chosen(turn, ("", ""), _A, f"{_B}\n{spoilt}", _READ, "")


def test_a_side_that_is_entered_from_elsewhere() -> None:
    jumps = ("s_cbranch_scc1 join", "")
    assert _B in _chosen(CHOICES[0], jumps, _A, _B, _READ, "")


@pytest.mark.parametrize("jump", ["", "s_cbranch_execz join"])
def test_one_block_writes_under_several_masks(jump: str) -> None:
    """Schedules may leave out a jump over a stretch: its writes are then in the block of others."""
    assert _held(f"""
        {_A}
        s_and_saveexec_b64 s[0:1], s[20:21]
        {jump}
        v_mov_b32_e32 v3, v1
        join:
        s_or_b64 exec, exec, s[0:1]
        {_B}
        {_READ}
        s_endpgm""") == [_B]
    assert _held(f"""
        {_A}
        s_and_saveexec_b64 s[0:1], s[20:21]
        {jump}
        {_B}
        join:
        s_or_b64 exec, exec, s[0:1]
        {_READ}
        s_endpgm""") == sorted([_A, _B])


def test_a_launch_may_begin_where_a_loop_goes_on() -> None:
    """What the first instruction switches on at the launch nothing has switched off."""
    assert _held(f"""
        again:
        s_or_b64 exec, exec, s[0:1]
        s_and_saveexec_b64 s[0:1], s[20:21]
        s_cbranch_execz join
        {_A}
        s_branch again
        join:
        s_or_b64 exec, exec, s[0:1]
        {_READ}
        s_endpgm""") == sorted([_A, "entry"])


def test_writes_in_lanes_that_are_off() -> None:
    """Lane 1 holds what was written to it in a stretch for others."""
    lane = "v_writelane_b32 v1, s9, 1"
    assert lane in _held(f"s_and_saveexec_b64 s[0:1], s[20:21]\n{lane}\n{_A}\n"
                         f"s_or_b64 exec, exec, s[0:1]\n{_READ}\ns_endpgm")


@pytest.mark.parametrize("reader", ["v_readfirstlane_b32 s9, v1", "v_writelane_b32 v1, s9, 1"])
def test_reads_of_lanes_that_are_off(reader: str) -> None:
    """Without a lane that is on, the first one is lane 0; and the others keep what they have."""
    program = _program(f"{_A}\ns_and_saveexec_b64 s[0:1], s[20:21]\n{_B}\n{reader}\ns_endpgm")
    node = ValueGraph(program).reaching(3, VGPR0 + 1)
    assert isinstance(node, Merge)
    assert {n.at for n in node.nodes if isinstance(n, Definition)} == {0, 2}


def test_lanes_come_round_a_stretch_out_of_line() -> None:
    """Those that its end switches on were off where a jump asked whether any was on."""
    assert _held(f"""
        s_and_saveexec_b64 s[0:1], s[20:21]
        s_cbranch_execnz body
        s_or_b64 exec, exec, s[0:1]
        {_READ}
        end:
        s_endpgm
        body:
        s_or_b64 exec, exec, s[0:1]
        s_branch end""") == ["entry"]
