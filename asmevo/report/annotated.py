"""A kernel's listing with what a profile knows of every line."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from asmevo.failure import printable
from asmevo.isa import registers
from asmevo.isa.cfg import Cfg
from asmevo.isa.errors import ControlFlowError
from asmevo.isa.program import Program
from asmevo.profile.hotwindow import HotWindow
from asmevo.profile.profile import InstructionProfile, MemoryLevel, Profile, StallCause
from asmevo.profile.windows import ProfileError, basic_blocks


@dataclass(frozen=True, slots=True)
class Line:
    """One instruction.

    ``offset`` in bytes from the kernel's entry; ``block`` whether a basic block starts here,
    ``label`` its name if it has one; ``depth`` how many loops it is in, ``header`` whether it
    starts one; ``sources`` the branches that come here and ``target`` where this one goes, by
    index (``target_offset``: in bytes); ``window`` the number of the hot window it belongs to and
    ``first`` whether it is that one's first.
    """

    index: int
    offset: int
    text: str
    counts: InstructionProfile
    block: bool = False
    label: str | None = None
    depth: int = 0
    header: bool = False
    sources: tuple[int, ...] = ()
    target: int | None = None
    target_offset: int | None = None
    window: int | None = None
    first: bool = False

    def to_dict(self) -> dict[str, Any]:
        """What ``result.json`` says of it."""
        memory = self.counts.memory
        return {
            "index": self.index, "offset": self.offset, "text": self.text,
            "issued": self.counts.issued, "stalls": by_cause(self.counts.stalls),
            "memory": None if memory is None else {
                "bytes": memory.bytes, "conflicts": memory.conflicts,
                "lines": {level.value: memory.lines[level] for level in MemoryLevel
                          if level in memory.lines}},
            "block": self.block, "label": self.label, "depth": self.depth, "header": self.header,
            "sources": list(self.sources), "target": self.target,
            "target_offset": self.target_offset,
        }


@dataclass(frozen=True, slots=True)
class Listing:
    """All lines; ``loops_unknown`` is why their loops could not be found."""

    lines: tuple[Line, ...]
    loops_unknown: str | None = None


def annotated(program: Program, profile: Profile, windows: Sequence[HotWindow] = ()) -> Listing:
    """The listing of ``program``. Raises `ProfileError` when the profile is of another program."""
    if len(profile.instructions) != len(program):
        raise ProfileError(
            f"the profile of {profile.dispatch} covers {len(profile.instructions)} instructions, "
            f"the program has {len(program)}")
    blocks = {start for start, _ in basic_blocks(program)}
    depths, headers, unknown = _loops(program)
    sources: defaultdict[int, list[int]] = defaultdict(list)
    for index, target in enumerate(program.targets):
        if target is not None:
            sources[target].append(index)
    inside = {index: number for number, window in enumerate(windows)
              for index in range(window.start, window.stop)}
    return Listing(tuple(
        Line(index, program.offsets[index], printable(instruction.text), counts,
             block=index in blocks, label=_label(program, index), depth=depths[index],
             header=index in headers, sources=tuple(sources[index]),
             target=target, target_offset=None if target is None else program.offsets[target],
             window=inside.get(index),
             first=inside.get(index) != inside.get(index - 1))
        for index, (instruction, counts, target) in enumerate(zip(
            program.instructions, profile.instructions, program.targets, strict=True))), unknown)


def register_list(mask: int) -> str:
    """The registers of a set as the assembler writes ranges: ``s[0:3], v7, vcc_lo``."""
    runs: list[list[int]] = []
    for register in registers.members(mask):
        plain = registers.name(register)[1:].isdigit()
        if (runs and plain and register == runs[-1][-1] + 1
                and registers.name(register)[0] == registers.name(runs[-1][0])[0]
                and registers.name(runs[-1][0])[1:].isdigit()):
            runs[-1].append(register)
        else:
            runs.append([register])
    return ", ".join(
        registers.name(run[0]) if len(run) == 1 else
        f"{registers.name(run[0])[0]}[{registers.name(run[0])[1:]}:{registers.name(run[-1])[1:]}]"
        for run in runs) or "nothing"


def by_cause(stalls: Mapping[StallCause, int]) -> dict[str, int]:
    """Without causes that took no time, the most first."""
    return {cause.value: clk for cause, clk
            in sorted(stalls.items(), key=lambda item: (-item[1], item[0])) if clk}


def total_stalls(profile: Profile) -> Counter[StallCause]:
    """Stalled clk by cause over all instructions."""
    total: Counter[StallCause] = Counter()
    for counts in profile.instructions:
        total.update(counts.stalls)
    return total


def issues(profile: Profile) -> tuple[str, int]:
    """What a profile's issue counts are, and their sum."""
    name = {"measured": "samples that issued", "static": "weighted issues"}.get(
        profile.source, "instructions issued")
    return name, sum(counts.issued for counts in profile.instructions)


def microseconds(clk: float, profile: Profile) -> float | None:
    """``clk`` at the profile's clock; ``None`` when that is unknown."""
    return clk / profile.clock_mhz if profile.clock_mhz else None


def _label(program: Program, index: int) -> str | None:
    name = program.labels.get(index)
    return None if name is None else printable(name)


def _loops(program: Program) -> tuple[list[int], set[int], str | None]:
    """Loop depth by instruction, first instructions of loops, and why there is neither."""
    depths = [0] * len(program)
    try:
        graph = Cfg.of(program)
        loops = graph.loops()
    except ControlFlowError as error:
        return depths, set(), str(error)
    for loop in loops:
        for number in loop.blocks:
            block = graph.blocks[number]
            for index in range(block.start, block.end):
                depths[index] += 1
    return depths, {graph.blocks[loop.header].start for loop in loops}, None
