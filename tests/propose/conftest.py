"""Small kernels from text, and the real layer norm with a made-up profile."""

from __future__ import annotations

import pytest

from asmevo.codeobject.assembly import Assembly, KernelBody, Line
from asmevo.codeobject.container import CodeObject
from asmevo.codeobject.disassemble import program
from asmevo.codeobject.recover import recover
from asmevo.codeobject.source import InstalledFile
from asmevo.isa.instruction import OperandKind
from asmevo.isa.parse import parse
from asmevo.isa.program import Program
from asmevo.profile.hotwindow import HotWindow
from asmevo.profile.profile import StallCause
from asmevo.propose.proposal import Evidence, Proposal
from asmevo.propose.rule import Rule, RuleContext

KERNEL = "kernel"


def kernel_lines(text: str) -> tuple[Line, ...]:
    """Instructions with the labels in front of them, from ``label:`` and instruction lines."""
    out: list[Line] = []
    labels: tuple[str, ...] = ()
    for line in filter(None, (part.strip() for part in text.splitlines())):
        if line.endswith(":"):
            labels = (*labels, line[:-1])
        else:
            out.append(Line(line, labels))
            labels = ()
    return tuple(out)


def kernel_program(lines: tuple[Line, ...]) -> Program:
    """The program of lines; sizes follow the encoding suffix and literals, as LLVM's do."""
    rows: list[tuple[int, int, str]] = []
    labels: dict[int, str] = {}
    offset = 0
    for line in lines:
        for label in line.labels:
            labels[offset] = label
        instruction = parse(line.text)
        literal = any(o.kind is OperandKind.CONSTANT and o.text.startswith("0x")
                      for o in instruction.operands)
        short = instruction.encoding == "e32" or instruction.op in (
            "s_nop", "s_waitcnt", "s_barrier", "s_endpgm", "s_branch", "s_cbranch_scc1",
            "s_mov_b32", "s_add_u32", "s_cmp_eq_u32", "s_or_b32")
        size = 4 if short and not literal else 8
        rows.append((offset, size, line.text))
        offset += size
    return Program.from_disassembly(rows, labels)


class Kernels:
    """Writes small kernels, and applies rules to them."""

    def assembly(self, text: str) -> Assembly:
        return Assembly("", (KernelBody(KERNEL, kernel_lines(text)),))

    def evidence(self, text: str) -> Evidence:
        lines = kernel_lines(text)
        return Evidence(
            KERNEL, kernel_program(lines), tuple(line.text for line in lines), (), (), 1.0)

    def context(self, text: str) -> RuleContext:
        return RuleContext(self.evidence(text))

    def proposals(self, rule: Rule, text: str) -> list[Proposal]:
        return list(rule.matches(self.context(text)))

    def edited(self, text: str, proposal: Proposal) -> list[str]:
        """Labels and instructions after a proposal, by `Assembly.apply`."""
        out: list[str] = []
        for line in self.assembly(text).apply(proposal.edits).body(KERNEL).lines:
            out += [f"{label}:" for label in line.labels]
            out += [line.text] if line.text else []
        return out

    def first(self, rule: Rule, text: str) -> list[str] | None:
        """The kernel after the rule's first proposal, ``None`` when it has none that edits."""
        for proposal in self.proposals(rule, text):
            if proposal.edits:
                return self.edited(text, proposal)
        return None


@pytest.fixture(scope="session")
def kernels() -> Kernels:
    return Kernels()


@pytest.fixture(scope="session")
def layer_norm() -> CodeObject:
    return CodeObject.parse(
        InstalledFile("amd-aiter", "aiter_meta/hsa/gfx942/layer_norm.co").read())


@pytest.fixture(scope="session")
def layer_norm_assembly(layer_norm: CodeObject) -> Assembly:
    return recover(layer_norm)


@pytest.fixture(scope="session")
def layer_norm_evidence(layer_norm: CodeObject, layer_norm_assembly: Assembly) -> Evidence:
    symbol = layer_norm.kernel().symbol
    lines = tuple(x.text for x in layer_norm_assembly.body(symbol).lines if x.text)
    windows = (
        HotWindow(251, 300, 0.6, StallCause.LGKMCNT, 0, 0),
        HotWindow(88, 130, 0.3, StallCause.VMCNT, 0, 0),
    )
    return Evidence(symbol, program(layer_norm), lines, windows, (), 1.0)
