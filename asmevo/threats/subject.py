"""A kernel on which threats are tried."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from functools import cached_property

from asmevo.codeobject.assembly import Assembly
from asmevo.codeobject.container import CodeObject
from asmevo.codeobject.roundtrip import round_trip
from asmevo.codeobject.toolchain import Toolchain
from asmevo.device.device import Device
from asmevo.dispatch.kernel import Kernel
from asmevo.dispatch.oracle import Oracle
from asmevo.errors import AsmEvoError
from asmevo.gates.baseline import Baseline
from asmevo.gates.equality import EqualityGate
from asmevo.gates.harness import Gates
from asmevo.gates.verdict import Gate, Outcome, Verdict
from asmevo.threats.blind import Blind


@dataclass(frozen=True)
class Specimen:
    """A kernel and the inputs that are enough to tell its mutants from it."""

    kernel: Kernel
    oracle: Oracle


@dataclass(frozen=True)
class Subject:
    """A kernel with its oracle, and the gates that judge what is made of it."""

    name: str
    baseline: Baseline
    gates: Gates
    toolchain: Toolchain

    @classmethod
    def of(cls, name: str, specimen: Specimen, gates: Gates, device: Device,
           toolchain: Toolchain, *, candidate_device: Device | None = None,
           seed: int = 0) -> Subject:
        """Recover the kernel, prove its round trip, and make the oracle's dispatches.

        Candidates run on ``candidate_device``, the original on ``device``.
        """
        kernel = specimen.kernel
        code_object = CodeObject.parse(kernel.source.read())
        found = code_object.kernel(kernel.symbol)
        dispatches = specimen.oracle.dispatches(kernel, found.symbol, found.metadata)
        return cls(name, Baseline(
            code_object, found.symbol, round_trip(code_object, toolchain).assembly, dispatches,
            device, seed=seed, operation=kernel.operation, candidate_device=candidate_device,
        ), gates, toolchain)

    @property
    def symbol(self) -> str:
        return self.baseline.kernel

    @property
    def code_object(self) -> CodeObject:
        return self.baseline.code_object

    @property
    def assembly(self) -> Assembly:
        return self.baseline.assembly

    @cached_property
    def lines(self) -> tuple[str, ...]:
        """The kernel's instructions, as an edit counts them."""
        return tuple(line.text for line in self.assembly.body(self.symbol).lines if line.text)

    @cached_property
    def without_static(self) -> Subject:
        """The same with G1 left out: what running and timing alone can tell."""
        return replace(self, gates=replace(self.gates, static=Blind(Gate.G1)))

    @property
    def descriptor_offset(self) -> int:
        """Where the kernel's descriptor lies in the file."""
        symbol = next(s for s in self.code_object.symbols if s.name == f"{self.symbol}.kd")
        section = self.code_object.section(symbol.section)
        return section.offset + symbol.value - section.address

    def with_directive(self, name: str, value: str) -> Assembly:
        """The text with another value of a directive (``amdhsa_next_free_vgpr``)."""
        pattern = re.compile(rf"(\.{name}\s+)\S+")
        return replace(self.assembly, blocks=tuple(
            pattern.sub(rf"\g<1>{value}", b) if isinstance(b, str) else b
            for b in self.assembly.blocks))

    def with_text(self, text: str) -> Assembly:
        """The text with more behind it."""
        return replace(self.assembly, blocks=(*self.assembly.blocks, text))

    def judge(self, candidate: Assembly | CodeObject) -> tuple[Verdict, ...]:
        """Every verdict up to the first that does not pass, G4's against the original included.

        The sanitizer is asked as well where the candidate is too slow for the gates to ask it: what
        it would say must not depend on how fast the cheat happens to be.
        """
        trial, verdicts = self.gates.judge(
            self.baseline, self.toolchain,
            assembly=candidate if isinstance(candidate, Assembly) else None,
            code_object=candidate if isinstance(candidate, CodeObject) else None,
        )
        if verdicts[-1].passed and trial.speedup is not None:
            if trial.speedup <= self.gates.commit.s_floor and self.gates.sanitize and isinstance(
                    self.gates.equality, EqualityGate):
                checked = self.gates.equality.check(trial)
                if checked is not None and not checked.passed:
                    return (*verdicts, checked)
            verdicts = (*verdicts,
                        self.gates.commit.judge(trial.speedup, trial.timings, 1.0))
        return verdicts

    @staticmethod
    def unreadable(error: AsmEvoError) -> Verdict:
        """The verdict on bytes that are no code object."""
        return Verdict(Gate.G0, Outcome.FAIL, "unreadable", str(error))
