"""Whether the oracle's dispatches reach the code that a candidate changes."""

from __future__ import annotations

from dataclasses import dataclass
from weakref import WeakKeyDictionary

from asmevo.codeobject.container import CodeObject
from asmevo.codeobject.disassemble import program
from asmevo.device.device import DeviceFault, UnsupportedError
from asmevo.errors import AsmEvoError
from asmevo.gates.baseline import Baseline
from asmevo.gates.condition import condition
from asmevo.gates.edges import Edges, changed_branches
from asmevo.gates.kept_blocks import changes
from asmevo.gates.launch_uses import decides, other_skips
from asmevo.gates.trial import Trial
from asmevo.gates.verdict import Gate, Outcome, Verdict
from asmevo.isa.cfg import Cfg
from asmevo.isa.program import Program
from asmevo.isa.registers import EXEC_MASK

_END = (0xBF810000).to_bytes(4, "little")  # s_endpgm
_FILL = (0xBF800000).to_bytes(4, "little")  # s_nop 0


class Reach:
    """The basic blocks of an original that its dispatches execute, found as they are asked for.

    A block is reached when the original, ended where the block starts, executes another number of
    instructions on some dispatch or faults there.
    """

    def __init__(self, baseline: Baseline) -> None:
        self._baseline = baseline
        self._blocks = Cfg.of(baseline.program)
        self._known: dict[int, bool] = {}

    def reached(self, index: int) -> bool:
        """Whether the block of an instruction is executed on any dispatch."""
        block = self._blocks.block_of[min(index, len(self._baseline.program) - 1)]
        if block not in self._known:
            self._known[block] = self._found(self._blocks.blocks[block].start)
        return self._known[block]

    def _found(self, start: int) -> bool:
        baseline = self._baseline
        if baseline.program.instructions[start].op == "s_endpgm":
            return True  # nothing that could be changed
        kernel = baseline.code_object.kernel(baseline.kernel)
        text = baseline.code_object.section(".text")
        offsets = baseline.program.offsets
        at = text.offset + kernel.entry + offsets[start]
        size = offsets[start + 1] - offsets[start]
        data = bytearray(baseline.code_object.data)
        data[at:at + size] = _END + _FILL * (size // 4 - 1)
        ended = baseline.device.load(CodeObject.parse(bytes(data)), baseline.kernel)
        at_first = condition(0, baseline.seed)
        # The cheapest dispatches first: most blocks are reached by any of them.
        for index in sorted(range(len(baseline.dispatches)), key=baseline.instruction_limit):
            try:
                result = ended.run(at_first.prepare(baseline.dispatches[index]), at_first.state,
                                   limit=baseline.instruction_limit(index))
            except DeviceFault:
                return True
            if result.instructions != baseline.instructions(index):
                return True
        return False


_REACH: WeakKeyDictionary[Baseline, Reach] = WeakKeyDictionary()


@dataclass(frozen=True)
class ReachGate:
    """Part of G2: an edit of code that no dispatch executes has no evidence for it.

    Equality would hold whatever the edit does there. The same goes for a branch that the edit adds
    and that goes only one way, where the launch decides it: others go the same way in all launches.
    """

    gate: Gate = Gate.G2
    repeats: int = 1

    def judge(self, trial: Trial, repeat: int) -> Verdict:
        if trial.code_object is None:
            return Verdict(self.gate, Outcome.MISSING, "no-object", "there is no object to check")
        baseline = trial.baseline
        try:
            if baseline not in _REACH:
                _REACH[baseline] = Reach(baseline)
            reach = _REACH[baseline]
            code = program(trial.code_object, baseline.kernel)
            branches = tuple(changed_branches(baseline.program, code))
            descriptor = trial.code_object.kernel(baseline.kernel).descriptor
            edit = changes(baseline.program, code)
            changed = (*edit.changed, *(before for _, before in branches if before is not None))
            missed = next((i for i in changed if not reach.reached(i)), None)
            edges = Edges(baseline, trial.code_object, code)
            for new in edit.blocks if missed is None else ():
                if not (reach.reached(new.behind) and reach.reached(new.front)) and (
                        not edges.reached(new.first)):
                    return Verdict(
                        self.gate, Outcome.MISSING, "unreached",
                        f"no dispatch reaches '{code.instructions[new.first].text}' at "
                        f"{code.offsets[new.first]:#x}, which the original does not have")
            values = baseline.values_of(code, descriptor) if missed is None and (
                branches or _tests_lanes(baseline, code)) else None
            added = {branch for branch, _ in branches}
            if values is not None:
                added.update(other_skips(values, baseline.launch_uses))
            for branch in sorted(added):
                if values is None or not (
                        code.instructions[branch].is_conditional and decides(values, branch)):
                    continue
                what = edges.missed(branch)
                if what is not None:
                    return Verdict(
                        self.gate, Outcome.MISSING, "unreached",
                        f"no dispatch {what} '{code.instructions[branch].text}' at "
                        f"{code.offsets[branch]:#x}, a branch that the original does not have")
        except (AsmEvoError, UnsupportedError, RecursionError) as error:
            return Verdict(self.gate, Outcome.MISSING, "unreached", str(error))
        if missed is None:
            return Verdict(self.gate, Outcome.PASS, "ok", "what changed is executed")
        text = baseline.program.instructions[missed].text
        return Verdict(
            self.gate, Outcome.MISSING, "unreached",
            f"no dispatch reaches '{text}' at {baseline.program.offsets[missed]:#x}, which the "
            "candidate changes")


def _tests_lanes(baseline: Baseline, code: Program) -> bool:
    """Whether branches on EXEC may test something else than the original's."""
    return baseline.skeletons.of(code) != baseline.skeleton and any(
        i.is_conditional and i.reads & EXEC_MASK for i in code.instructions)
