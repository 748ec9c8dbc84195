"""G0: the candidate assembles and links."""

from __future__ import annotations

from dataclasses import dataclass

from asmevo.codeobject.assembly import EditError
from asmevo.codeobject.container import CodeObject
from asmevo.codeobject.errors import (
    AssemblerError,
    CodeObjectError,
    RebuildError,
    ToolchainError,
)
from asmevo.codeobject.rebuild import rebuild
from asmevo.codeobject.roundtrip import round_trip
from asmevo.codeobject.toolchain import Toolchain
from asmevo.gates.trial import Trial
from asmevo.gates.verdict import Gate, Outcome, Verdict


@dataclass(frozen=True)
class AssembleGate:
    """Rebuilds a candidate from its assembly.

    An object that is given as it is must survive the byte-exact round trip instead: what cannot be
    taken apart and put together again was not made by a rebuild.
    """

    gate: Gate = Gate.G0
    repeats: int = 1

    def judge(self, trial: Trial, repeat: int) -> Verdict:
        try:
            if trial.code_object is not None:
                return self._round_trip(trial.code_object, trial.toolchain)
            if trial.assembly is None:
                return Verdict(self.gate, Outcome.MISSING, "no-candidate", "nothing to build")
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

    def _round_trip(self, code_object: CodeObject, toolchain: Toolchain) -> Verdict:
        report = round_trip(code_object, toolchain)
        if not report.identical:
            return Verdict(
                self.gate, Outcome.FAIL, "round-trip",
                f"the object differs from its own rebuild at byte {report.first_difference}",
            )
        return Verdict(
            self.gate, Outcome.PASS, "ok", "survives the byte-exact round trip",
            {"sha256": code_object.sha256, "bytes": len(code_object.data)},
        )
