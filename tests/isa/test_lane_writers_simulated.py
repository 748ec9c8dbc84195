"""What lanes may hold and where one is on, against programs that are run lane by lane."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass, field

from hypothesis import given, settings
from hypothesis import strategies as st

from asmevo.isa.active_lanes import active
from asmevo.isa.cfg import Cfg
from asmevo.isa.instruction import Instruction
from asmevo.isa.program import Program
from asmevo.isa.registers import VGPR0
from asmevo.isa.value_graph import Definition, Merge, ValueGraph

READ = "v_mov_b32_e32 v9, v1"
FIRST = "v_readfirstlane_b32 s12, v1"
WRITE = "v_add_u32_e32 v1, 1, v5"
# Looks at v1 where the mask is off.
CHOICE = "v_cndmask_b32_e64 v9, v1, v5, {}"
# Part of a lane's register, and one lane whatever EXEC is: both are made of what was there as well.
PARTIAL = ("v_mov_b32_sdwa v1, v5 dst_sel:WORD_0 dst_unused:UNUSED_PRESERVE src0_sel:DWORD",
           "v_writelane_b32 v1, s9, 1")
LANES = (0, 1, 32, 33)  # in both words of a mask
ALL = sum(1 << lane for lane in LANES)
SAVED, CONDITIONS = ("s[0:1]", "s[2:3]", "s[4:5]"), ("s[20:21]", "s[22:23]")
FRESH = "s_load_dwordx2 {}, s[30:31], 0x0"
READERS = (READ, FIRST, *(CHOICE.format(mask) for mask in CONDITIONS))
RUNS, STEPS = 24, 200

saved, condition = st.sampled_from(SAVED), st.sampled_from(CONDITIONS)
SPOILING = (
    "s_or_b64 exec, exec, {0}", "s_xor_b64 exec, exec, {0}", "s_and_b64 exec, exec, {1}",
    "s_andn2_b64 exec, exec, {1}", "s_andn2_b64 exec, {0}, exec", "s_and_b64 exec, {1}, exec",
    "s_mov_b64 exec, {0}", "s_mov_b64 exec, -1", "s_mov_b64 exec, 0", "s_mov_b64 {0}, exec",
    "s_or_b64 {0}, {0}, {1}", "s_or_b64 {0}, exec, {1}", "s_mov_b64 {0}, 0",
    "s_mov_b64 {0}, {1}", "s_mov_b32 s1, 0", "s_xor_b64 {0}, exec, {0}",
    "s_and_saveexec_b64 {0}, {1}", "s_or_saveexec_b64 {0}, {1}", "s_andn2_saveexec_b64 {0}, {0}",
    "s_xor_saveexec_b64 {0}, {1}", "v_cmpx_gt_u32_e32 vcc, v5, v6", "s_endpgm",
)
Statement = tuple[str, ...] | tuple[object, ...]


def statements(inner: st.SearchStrategy[list[Statement]]) -> st.SearchStrategy[list[Statement]]:
    flag = st.booleans()
    return st.lists(st.one_of(
        st.sampled_from([("line", WRITE), ("line", READ), ("line", FIRST), ("line", PARTIAL[0]),
                         ("line", PARTIAL[1])]),
        st.sampled_from([("line", text) for text in READERS]),
        st.tuples(st.just("stretch"), saved, condition, flag, inner),
        st.tuples(st.just("choice"), saved, saved, condition, flag, flag, flag, inner, inner),
        st.tuples(st.just("far"), saved, condition,
                  st.sampled_from(["s_cbranch_execnz", "s_cbranch_scc1", "s_branch"]), flag,
                  inner, inner),
        st.tuples(st.just("loop"), flag, saved, condition, inner),
        st.tuples(st.just("skipped"), st.sampled_from(
            ["s_cbranch_scc0", "s_cbranch_execz", "s_cbranch_execnz"]), inner),
        st.builds(lambda text, a, b: ("line", text.format(a, b)),
                  st.sampled_from(SPOILING), saved, condition),
        st.tuples(st.just("label"), st.integers(0, 7)),
        st.tuples(st.just("jump"), st.sampled_from(["s_cbranch_scc1", "s_branch", "s_cbranch_execz",
                                                    "s_cbranch_execnz"]), st.integers(0, 7)),
    ), min_size=1, max_size=4)


PROGRAMS = st.recursive(
    st.lists(st.sampled_from([("line", WRITE), ("line", READ)]), max_size=2), statements,
    max_leaves=8)


@dataclass
class Writer:
    """Lays statements out as lines; what lies out of line comes at the end."""

    lines: list[str] = field(default_factory=list)
    tail: list[str] = field(default_factory=list)
    named: set[str] = field(default_factory=set)
    count: int = 0

    def fresh(self) -> str:
        self.count += 1
        return f"l{self.count}"

    def text(self, program: list[Statement]) -> str:
        self.put(program)
        wanted = {f"n{k}" for k in range(8)} - self.named
        return "\n".join([*self.lines, READ, *(f"{label}:" for label in sorted(wanted)),
                          "s_endpgm", *self.tail, "s_endpgm"])

    def put(self, program: list[Statement]) -> None:
        for kind, *parts in program:
            getattr(self, f"put_{kind}")(*parts)

    def put_line(self, text: str) -> None:
        self.lines.append(text)

    def put_label(self, number: int) -> None:
        if f"n{number}" not in self.named:
            self.named.add(f"n{number}")
            self.lines.append(f"n{number}:")

    def put_jump(self, op: str, number: int) -> None:
        self.lines.append(f"{op} n{number}")

    def put_stretch(self, kept: str, mask: str, jump: bool, inner: list[Statement]) -> None:
        end = self.fresh()
        self.lines += [FRESH.format(mask), f"s_and_saveexec_b64 {kept}, {mask}"]
        if jump:
            self.lines.append(f"s_cbranch_execz {end}")
        self.put(inner)
        self.lines += [f"{end}:", f"s_or_b64 exec, exec, {kept}"]

    def put_choice(self, kept: str, other: str, mask: str, jump: bool, second: bool,
                   all_between: bool, inner: list[Statement], others: list[Statement]) -> None:
        turn, end = self.fresh(), self.fresh()
        self.lines += [FRESH.format(mask), f"s_and_saveexec_b64 {kept}, {mask}",
                       f"s_xor_b64 {kept}, exec, {kept}"]
        if jump:
            self.lines.append(f"s_cbranch_execz {turn}")
        self.put(inner)
        self.lines.append(f"{turn}:")
        if all_between:
            self.lines += [f"s_or_saveexec_b64 {other}, {kept}", READ,
                           f"s_xor_b64 exec, exec, {other}"]
        else:
            self.lines.append(f"s_andn2_saveexec_b64 {other}, {kept}")
        if second:
            self.lines.append(f"s_cbranch_execz {end}")
        self.put(others)
        self.lines += [f"{end}:", f"s_or_b64 exec, exec, {other}"]

    def put_far(self, kept: str, mask: str, op: str, twice: bool, inner: list[Statement],
                inline: list[Statement]) -> None:
        """A body out of line, which comes back to the join or has one of its own; and another."""
        body, end, behind = self.fresh(), self.fresh(), self.fresh()
        self.lines += [FRESH.format(mask), f"s_and_saveexec_b64 {kept}, {mask}", f"{op} {body}"]
        self.put(inline)
        self.lines += [f"{end}:", f"s_or_b64 exec, exec, {kept}", f"{behind}:"]
        outer, self.lines = self.lines, []
        self.put(inner)
        back = [f"s_or_b64 exec, exec, {kept}", f"s_branch {behind}"]
        self.tail += [f"{body}:", *self.lines, *(back if twice else [f"s_branch {end}"])]
        self.lines = outer

    def put_loop(self, by_lane: bool, kept: str, mask: str, inner: list[Statement]) -> None:
        again = self.fresh()
        if by_lane:
            self.lines += [f"s_mov_b64 {kept}, exec", f"{again}:", FRESH.format(mask)]
            self.put(inner)
            self.lines += [f"s_andn2_b64 exec, exec, {mask}", f"s_cbranch_execnz {again}",
                           f"s_or_b64 exec, exec, {kept}"]
        else:
            self.lines.append(f"{again}:")
            self.put(inner)
            self.lines.append(f"s_cbranch_scc1 {again}")

    def put_skipped(self, op: str, inner: list[Statement]) -> None:
        end = self.fresh()
        self.lines.append(f"{op} {end}")
        self.put(inner)
        self.lines.append(f"{end}:")


def assembled(text: str) -> Program:
    rows: list[tuple[int, int, str]] = []
    labels: dict[str, int] = {}
    for line in text.splitlines():
        if line.endswith(":"):
            labels[line[:-1]] = len(rows)
        else:
            rows.append((4 * len(rows), 4, line))
    found = []
    for offset, size, line in rows:
        op, _, label = line.partition(" ")
        target = labels[label] if op.startswith(("s_branch", "s_cbranch")) else None
        found.append((offset, size, line if target is None else
                      f"{op} {(target - offset // 4 - 1) & 0xffff}"))
    return Program.from_disassembly(found, {})


SETS: dict[str, Callable[[int, int], int]] = {
    "s_or_b64": lambda a, b: a | b, "s_xor_b64": lambda a, b: a ^ b,
    "s_and_b64": lambda a, b: a & b, "s_andn2_b64": lambda a, b: a & ~b,
}


class Wave:
    """Some lanes of a wave: per lane the writes of which its v1 is made.

    Scalar branches go either way, so that more is run than a program can.
    """

    def __init__(self, program: Program, seed: int) -> None:
        self.program, self.random = program, random.Random(seed)
        self.held: dict[int, frozenset[int]] = dict.fromkeys(LANES, frozenset({-1}))
        self.pairs = {name: self.mask() for name in (*SAVED, *CONDITIONS)}
        self.pairs |= {"exec": ALL, "-1": ALL, "0": 0}
        self.at = 0

    def mask(self) -> int:
        if self.random.random() < 0.25:
            return 0
        return sum(1 << lane for lane in LANES if self.random.random() < 0.5)

    @property
    def on(self) -> list[int]:
        return [lane for lane in LANES if self.pairs["exec"] >> lane & 1]

    @property
    def read(self) -> list[int]:
        """The lanes whose v1 the next instruction reads."""
        reader = self.program.instructions[self.at]
        if reader.text == FIRST:
            return (self.on or [0])[:1]
        if reader.text == READ:
            return self.on
        mask = self.pairs[reader.operands[3].text]
        return [lane for lane in self.on if not mask >> lane & 1]

    def step(self) -> bool:
        """Whether the program goes on."""
        i = self.program.instructions[self.at]
        if i.op == "s_endpgm":
            return False
        if i.op.startswith(("s_branch", "s_cbranch")):
            target = self.program.targets[self.at]
            assert target is not None
            taken = {"s_branch": True, "s_cbranch_execz": not self.pairs["exec"],
                     "s_cbranch_execnz": bool(self.pairs["exec"])}.get(
                         i.op, self.random.random() < 0.5)
            self.at = target if taken else self.at + 1
            return True
        self.execute(i)
        self.at += 1
        return True

    def execute(self, i: Instruction) -> None:
        pairs, names = self.pairs, [o.text for o in i.operands]
        if i.text == WRITE:
            self.held |= dict.fromkeys(self.on, frozenset({self.at}))
        elif i.text == PARTIAL[0]:
            self.held |= {lane: self.held[lane] | {self.at} for lane in self.on}
        elif i.text == PARTIAL[1]:
            self.held[1] |= {self.at}
        elif i.op == "s_load_dwordx2":
            pairs[names[0]] = self.mask()
        elif i.op.startswith("v_cmpx"):
            pairs["exec"] &= self.mask()
        elif i.op == "s_mov_b64":
            pairs[names[0]] = pairs[names[1]]
        elif i.op == "s_mov_b32":
            pairs["s[0:1]"] &= 0xFFFFFFFF
        elif "_saveexec_" in i.op:
            combine = SETS[i.op.replace("_saveexec", "")]
            pairs["exec"], pairs[names[0]] = (
                combine(pairs[names[1]], pairs["exec"]), pairs["exec"])
        elif i.op in SETS:
            pairs[names[0]] = SETS[i.op](pairs[names[1]], pairs[names[2]])
        else:
            assert i.text in READERS, i.text


def held(graph: ValueGraph, index: int) -> set[int]:
    """The writes of which v1 is made as the analysis sees it at an instruction; -1 is the launch.
    """
    found: set[int] = set()
    pending = {index}
    while pending:
        node = graph.reaching(pending.pop(), VGPR0 + 1)
        nodes = node.nodes if isinstance(node, Merge) else {node}
        new = {n.at if isinstance(n, Definition) else -1 for n in nodes} - found
        found |= new
        pending |= {k for k in new if graph.program.instructions[k].text in PARTIAL and k >= 0}
    return found


def surprises(program: Program, seed: int) -> list[str]:
    """Readers that found in some run what they should not."""
    graph = ValueGraph(program)
    allowed = {k: held(graph, k) for k, i in enumerate(program.instructions)
               if i.text in READERS and graph.cfg.reachable(k)}
    some_on = active(program, Cfg.of(program))
    for run in range(RUNS):
        wave = Wave(program, seed + run)
        for _ in range(STEPS):
            if wave.at in some_on and not wave.on:
                return [f"{wave.at}: no lane is on"]
            if wave.at in allowed:
                for lane in wave.read:
                    if not wave.held[lane] <= allowed[wave.at]:
                        return [f"{wave.at}: lane {lane} holds {sorted(wave.held[lane])}, not of "
                                f"{sorted(allowed[wave.at])}"]
            if not wave.step():
                break
    return []


@settings(max_examples=150, deadline=None)
@given(program=PROGRAMS, seed=st.integers(0, 1 << 20))
def test_lanes_hold_nothing_else(program: list[Statement], seed: int) -> None:
    text = Writer().text(program)
    assert surprises(assembled(text), seed) == [], text
