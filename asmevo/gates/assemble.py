"""G0: the candidate assembles and links, or can be written into the original's bytes."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from asmevo.codeobject.assembly import Assembly, EditError
from asmevo.codeobject.container import CodeObject
from asmevo.codeobject.errors import (
    AssemblerError,
    CodeObjectError,
    RebuildError,
    ToolchainError,
)
from asmevo.codeobject.patch import check_patch, edits_between, padded, patch
from asmevo.codeobject.rebuild import rebuild
from asmevo.codeobject.roundtrip import round_trip
from asmevo.codeobject.toolchain import Toolchain
from asmevo.gates.trial import Trial
from asmevo.gates.verdict import Gate, Outcome, Verdict


class Method(StrEnum):
    """How a candidate's object is made. ``AUTO`` patches what recovery refuses to take apart."""

    REBUILD = "rebuild"
    PATCH = "patch"
    AUTO = "auto"


@dataclass(frozen=True)
class AssembleGate:
    """Makes a candidate's object from its assembly.

    An object that is given as it is must survive the byte-exact round trip instead, or be exactly a
    patch of the original: what is neither was not made here.
    """

    method: Method = Method.AUTO
    gate: Gate = Gate.G0
    repeats: int = 1

    def judge(self, trial: Trial, repeat: int) -> Verdict:
        try:
            if trial.code_object is not None:
                return self._given(trial, trial.code_object)
            if trial.assembly is None:
                return Verdict(self.gate, Outcome.MISSING, "no-candidate", "nothing to build")
            trial.code_object, done = self._made(trial, trial.assembly)
        except AssemblerError as error:
            return Verdict(self.gate, Outcome.FAIL, "assembler-error", str(error))
        except (RebuildError, EditError, CodeObjectError) as error:
            return Verdict(self.gate, Outcome.FAIL, "rebuild-refused", str(error))
        except ToolchainError as error:
            return Verdict(self.gate, Outcome.MISSING, "toolchain-error", str(error))
        return Verdict(
            self.gate, Outcome.PASS, "ok", done,
            {"sha256": trial.code_object.sha256, "bytes": len(trial.code_object.data)},
        )

    def _made(self, trial: Trial, assembly: Assembly) -> tuple[CodeObject, str]:
        original, symbol = trial.baseline.code_object, trial.baseline.kernel
        if self.method is not Method.PATCH:
            try:
                return rebuild(original, assembly, trial.toolchain), "assembled and linked"
            except CodeObjectError:
                if self.method is Method.REBUILD:
                    raise
        document = trial.baseline.assembly
        edits = edits_between(document.body(symbol), assembly.body(symbol))
        result = patch(original, symbol, edits, trial.toolchain)
        # Later edits count the instructions that are there, padding included.
        trial.assembly = document.apply(padded(original, edits, result))
        return result, "patched in place"

    def _given(self, trial: Trial, code_object: CodeObject) -> Verdict:
        if self.method is not Method.PATCH:
            try:
                return self._round_trip(code_object, trial.toolchain)
            except CodeObjectError:
                if self.method is Method.REBUILD:
                    raise
        check_patch(trial.baseline.code_object, code_object, trial.baseline.kernel,
                    trial.toolchain)
        return Verdict(
            self.gate, Outcome.PASS, "ok", "is a patch of the original",
            {"sha256": code_object.sha256, "bytes": len(code_object.data)},
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
