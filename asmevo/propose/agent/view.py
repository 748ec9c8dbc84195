"""What a model may look at: the evidence, in answers of a bounded size."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from functools import cached_property
from itertools import islice

from asmevo.codeobject.errors import CodeObjectError
from asmevo.codeobject.occupancy import compute_unit, waves_by_registers
from asmevo.errors import AsmEvoError
from asmevo.isa.hazards import requirements
from asmevo.isa.registers import AGPR0, VGPR0, members, name
from asmevo.isa.resources import register_use
from asmevo.profile.hotwindow import HotWindow
from asmevo.profile.profile import StallCause
from asmevo.propose.agent.untrusted import line
from asmevo.propose.proposal import Evidence, Experience
from asmevo.propose.rule import RuleContext

_MOST_LINES = 256
_MOST_EDGES = 400
_MOST_FAILURES = 24
_EXTRA_SGPRS = 6  # VCC, FLAT_SCRATCH and XNACK_MASK, which every gfx9 kernel may have reserved
_ACCUM_GRANULE = 4


class ViewError(Exception):
    """A tool was asked for something that is not there; the model is told why."""


class View:
    """Answers to the reading tools, all of them from one `Evidence`."""

    def __init__(self, evidence: Evidence) -> None:
        self.evidence = evidence
        self.context = RuleContext(evidence)

    def overview(self) -> str:
        """The kernel as a whole: its size, registers, loops and timed dispatches."""
        evidence, program = self.evidence, self.evidence.program
        vgprs, agprs, sgprs = register_use(program)
        out = [
            f"kernel symbol: {line(evidence.kernel)}",
            f"processor: {line(program.isa)}",
            f"instructions: {len(program)} (0 to {len(program) - 1}), "
            f"{program.offsets[-1] - program.offsets[0]} bytes",
            f"registers used: {vgprs} VGPRs, {agprs} AGPRs, {sgprs} SGPRs{self._waves()}",
            f"verified speedup of this base over the original: {evidence.speedup:.4f}",
        ]
        out += [f"loop: {self._extent(blocks)}" for blocks in self._loops()]
        for profile in evidence.profiles:
            out.append(
                f"dispatch '{line(profile.dispatch)}': {profile.cycles} clk, "
                f"{profile.microseconds:.2f} us, {profile.source} on {line(profile.device)}")
        causes: Counter[StallCause] = Counter()
        for index in range(len(program)):
            causes.update(self._stalls[index])
        total = causes.total() or 1
        out.append("stalled clk by cause: " + ", ".join(
            f"{cause.value} {100 * clk / total:.1f} %" for cause, clk in causes.most_common()))
        return "\n".join(out)

    def windows(self) -> str:
        """The hot windows, worst first."""
        found = [self._window(n, w) for n, w in enumerate(self.evidence.windows)]
        return "\n".join(found) or "no hot windows: nothing stalls"

    def instructions(self, start: int, stop: int) -> str:
        """Numbered instructions with their labels, executions and stalled cycles."""
        self._check(start, stop, _MOST_LINES)
        rows = ["index | issued | stalled clk (cause) | instruction"]
        for index in range(start, stop):
            label = self.evidence.program.labels.get(index)
            if label is not None:
                rows.append(f"{line(label)}:")
            rows.append(
                f"{index} | {self._issued[index]} | {self._stalled(index)} | "
                f"{line(self.evidence.lines[index], 600)}")
        return "\n".join(rows)

    def hottest(self, count: int) -> str:
        """The instructions that stall longest."""
        if not 1 <= count <= _MOST_LINES:
            raise ViewError(f"count must be 1 to {_MOST_LINES}, not {count}")
        order = sorted(
            range(len(self.evidence.program)), key=lambda i: (-self._stalls[i].total(), i))
        rows = [
            f"{index} | {self._issued[index]} | {self._stalled(index)} | "
            f"{line(self.evidence.lines[index], 600)}"
            for index in order[:count] if self._stalls[index].total()
        ]
        return "\n".join(["index | issued | stalled clk (cause) | instruction", *rows])

    def dependences(self, start: int, stop: int) -> str:
        """What must keep its order within a straight-line range."""
        self._check(start, stop, _MOST_LINES)
        block = self.context.cfg.blocks[self.context.cfg.block_of[start]]
        if stop > block.end:
            raise ViewError(
                f"instructions {start} to {stop} are not one basic block; the block of {start} is "
                f"{block.start} to {block.end}")
        found = self.context.dependences(start, stop, assume_disjoint=False).edges()
        rows = [f"{len(found)} dependences (consumer stays behind producer)"]
        rows += [
            f"{edge.producer} -> {edge.consumer} {edge.kind.value}"
            + (f" {_names(edge.registers)}" if edge.registers else "")
            for edge in islice(found, _MOST_EDGES)
        ]
        if len(found) > _MOST_EDGES:
            rows.append(f"... {len(found) - _MOST_EDGES} more; ask for a smaller range")
        pairs = requirements(self.evidence.program, [(start, stop)])
        rows.append(f"{len(pairs)} hazard pairs (wait states needed, and there now)")
        rows += [f"{p.producer} -> {p.consumer} {p.kind} needs {p.needed}, has {p.found}"
                 for p in islice(pairs, _MOST_EDGES)]
        return "\n".join(rows)

    def registers(self, start: int, stop: int) -> str:
        """What is live around a range, and which registers are free throughout it."""
        self._check(start, stop, len(self.evidence.program))
        context, program = self.context, self.evidence.program
        after = context.live[stop - 1]
        before = context.live[start] & ~context.effects[start].kills | context.effects[start].reads
        touched = before | after
        for index in range(start, stop):
            touched |= context.live[index] | program.instructions[index].reads
            touched |= program.instructions[index].writes
        vgprs, agprs, sgprs = register_use(program)
        free = [f"v{r}" for r in range(vgprs) if not touched >> (VGPR0 + r) & 1]
        free += [f"a{r}" for r in range(agprs) if not touched >> (AGPR0 + r) & 1]
        free += [f"s{r}" for r in range(sgprs) if not touched >> r & 1]
        return "\n".join([
            f"live before {start}: {_names(before)}",
            f"live behind {stop - 1}: {_names(after)}",
            f"free throughout, below the present allocation: {', '.join(free) or 'none'}",
        ])

    def history(self) -> str:
        """What this run has learnt so far."""
        evidence = self.evidence
        out = [f"insight: {line(text)}" for text in evidence.insights]
        out += _experience("proposer", evidence.experience)
        out += _experience("rule", evidence.rules)
        failures = evidence.failures[-_MOST_FAILURES:]
        out.append(f"the last {len(failures)} rejected proposals of this run (their indices are of"
                   " the bases that they edited):")
        for failure in failures:
            places = ", ".join(f"{e.start}-{e.stop}" for e in failure.edits[:8])
            out.append(f"{line(failure.rule)} at {places or 'nothing'}: {line(failure.gate)} "
                       f"{line(failure.code)}: {line(failure.reason)}")
        return "\n".join(out)

    @cached_property
    def _stalls(self) -> tuple[Counter[StallCause], ...]:
        out: tuple[Counter[StallCause], ...] = tuple(Counter() for _ in self.evidence.lines)
        for profile in self.evidence.profiles:
            for index, instruction in enumerate(profile.instructions[:len(out)]):
                out[index].update(instruction.stalls)
        return out

    @cached_property
    def _issued(self) -> tuple[int, ...]:
        out = [0] * len(self.evidence.lines)
        for profile in self.evidence.profiles:
            for index, instruction in enumerate(profile.instructions[:len(out)]):
                out[index] += instruction.issued
        return tuple(out)

    def _stalled(self, index: int) -> str:
        stalls = self._stalls[index]
        if not stalls.total():
            return "0"
        return f"{stalls.total()} ({stalls.most_common(1)[0][0].value})"

    def _waves(self) -> str:
        vgprs, agprs, sgprs = register_use(self.evidence.program)
        unified = -(-vgprs // _ACCUM_GRANULE) * _ACCUM_GRANULE + agprs if agprs else vgprs
        try:
            unit = compute_unit(self.evidence.program.isa)
        except CodeObjectError:
            return ""
        waves = min(*waves_by_registers(unit, vgprs=unified, sgprs=sgprs + _EXTRA_SGPRS),
                    unit.wave_slots)
        return f", which allow {waves} waves per SIMD"

    def _loops(self) -> Iterable[tuple[int, ...]]:
        try:
            loops = self.context.cfg.loops()
        except AsmEvoError:
            return ()
        return [tuple(sorted(loop.blocks)) for loop in loops[:16]]

    def _extent(self, blocks: tuple[int, ...]) -> str:
        found = [self.context.cfg.blocks[b] for b in blocks]
        return f"instructions {min(b.start for b in found)} to {max(b.end for b in found)}"

    def _window(self, number: int, window: HotWindow) -> str:
        rounds = f" of {window.trip_count:.1f} rounds" if window.trip_count is not None else ""
        causes = sorted(window.causes.items(), key=lambda item: -item[1])
        return (
            f"window {number}: instructions {window.start} to {window.stop} (exclusive), "
            f"{100 * window.share:.1f} % of all stalled clk, mostly {window.cause.value}"
            f" ({', '.join(f'{cause.value} {clk}' for cause, clk in causes[:4])}); "
            f"{100 * window.recoverable_share:.1f} % recoverable by a perfect schedule of the "
            f"block; executed {window.executions} times, loop depth {window.loop_depth}{rounds}; "
            f"at most {window.pressure} VGPRs and AGPRs live inside")

    def _check(self, start: int, stop: int, most: int) -> None:
        count = len(self.evidence.program)
        if not 0 <= start < stop <= count:
            raise ViewError(f"start and stop must be 0 <= start < stop <= {count}")
        if stop - start > most:
            raise ViewError(f"at most {most} instructions at a time")


def _names(registers: int) -> str:
    """Register names with runs of one kind joined: ``v[0:3], v7, s2, scc``."""
    runs: list[list[int]] = []
    for register in members(registers):
        if runs and register == runs[-1][1] + 1 and name(register)[0] == name(runs[-1][0])[0] \
                and name(register)[1:].isdigit() and name(runs[-1][0])[1:].isdigit():
            runs[-1][1] = register
        else:
            runs.append([register, register])
    return ", ".join(
        name(a) if a == b else f"{name(a)[0]}[{name(a)[1:]}:{name(b)[1:]}]" for a, b in runs
    ) or "none"


def _experience(kind: str, found: Mapping[str, Experience]) -> list[str]:
    return [
        f"{kind} {line(who)}: {e.proposed} proposed, {e.passed} passed the gates, {e.accepted} "
        f"accepted, total gain {100 * e.gain:.2f} % (log)"
        for who, e in sorted(found.items())
    ]
