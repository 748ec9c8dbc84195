"""G0: the candidate assembles and links."""

from __future__ import annotations

from dataclasses import dataclass

from asmevo.codeobject.assembly import EditError
from asmevo.codeobject.container import CodeObjectError
from asmevo.codeobject.rebuild import RebuildError, rebuild
from asmevo.codeobject.toolchain import AssemblerError, ToolchainError
from asmevo.gates.trial import Trial
from asmevo.gates.verdict import Gate, Outcome, Verdict


@dataclass(frozen=True)
class AssembleGate:
    """Rebuilds the candidate; an object that is given as it is has nothing to assemble."""

    gate: Gate = Gate.G0
    repeats: int = 1

    def judge(self, trial: Trial, repeat: int) -> Verdict:
        if trial.code_object is not None:
            return Verdict(self.gate, Outcome.PASS, "given", "the object was given, not assembled")
        if trial.assembly is None:
            return Verdict(self.gate, Outcome.MISSING, "no-candidate", "there is nothing to build")
        try:
            trial.code_object = rebuild(
                trial.baseline.code_object, trial.assembly, trial.toolchain
            )
        except AssemblerError as error:
            return Verdict(self.gate, Outcome.FAIL, "assembler-error", str(error))
        except (RebuildError, EditError, CodeObjectError) as error:
            return Verdict(self.gate, Outcome.FAIL, "rebuild-refused", str(error))
        except ToolchainError as error:
            return Verdict(self.gate, Outcome.MISSING, "toolchain-error", str(error))
        return Verdict(
            self.gate, Outcome.PASS, "ok", "assembled and linked",
            {"sha256": trial.code_object.sha256, "bytes": len(trial.code_object.data)},
        )
