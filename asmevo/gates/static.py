"""G1: what can be decided from the candidate's bytes alone."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from asmevo.codeobject.container import CodeObject
from asmevo.codeobject.disassemble import program
from asmevo.codeobject.interface import Interface, differences, outside_hash
from asmevo.errors import AsmEvoError
from asmevo.gates.argument_uses import ArgumentUses, lost_uses
from asmevo.gates.baseline import Baseline, findings
from asmevo.gates.counts import SPECIAL_REGISTERS, Counts
from asmevo.gates.launch_uses import LaunchUses, changed_uses
from asmevo.gates.operand_uses import OperandUses, changed_operands
from asmevo.gates.resources import resource_findings
from asmevo.gates.reviewed_ops import REVIEWED_OPS, widths_of
from asmevo.gates.trial import Trial
from asmevo.gates.verdict import Gate, Outcome, Verdict
from asmevo.isa.program import Program
from asmevo.isa.registers import names
from asmevo.isa.violation import Violation

# A candidate may hold no more of these than the original: each changes mode, control or scheduling
# in ways that neither equality nor timing on the tested inputs can vouch for.
COUNTED_OPS = frozenset({
    "s_setreg_b32", "s_setreg_imm32_b32", "s_trap", "s_sendmsg", "s_sendmsghalt", "s_getpc_b64",
    "s_setpc_b64", "s_swappc_b64", "s_call_b64", "s_sleep", "s_setprio", "s_endpgm",
    "s_set_gpr_idx_on", "s_set_gpr_idx_mode", "s_setvskip",
})

# Of these, what a user's ``extra_ops`` may let a candidate have more of, and at any level: it only
# decides which wave issues first. Listing any other one allows no more than the original has.
_USERS_CHOICE = frozenset({"s_setprio"})


@dataclass(frozen=True)
class StaticGate:
    """Interface, surroundings, opcodes, resources, waits and hazards against the original's own.

    ``extra_ops`` are operations that a user allows beyond the reviewed ones.
    """

    extra_ops: Sequence[str] = ()
    gate: Gate = Gate.G1
    repeats: int = 1
    _allowed: frozenset[str] = field(init=False, repr=False, default=frozenset())

    def __post_init__(self) -> None:
        object.__setattr__(self, "_allowed", REVIEWED_OPS | frozenset(self.extra_ops))

    def judge(self, trial: Trial, repeat: int) -> Verdict:
        if trial.code_object is None:
            return Verdict(self.gate, Outcome.MISSING, "no-object", "there is no object to check")
        try:
            for code, reason in self._findings(trial.baseline, trial.code_object):
                return Verdict(self.gate, Outcome.FAIL, code, reason)
        except AsmEvoError as error:
            return Verdict(self.gate, Outcome.FAIL, "unreadable", str(error))
        except RecursionError:
            return Verdict(self.gate, Outcome.FAIL, "unreadable", "its values are nested too deep")
        return Verdict(self.gate, Outcome.PASS, "ok", "no difference that matters")

    def _findings(self, baseline: Baseline, candidate: CodeObject) -> Iterator[tuple[str, str]]:
        kernel = candidate.kernel(baseline.kernel)
        for difference in differences(baseline.interface, Interface.of(candidate, kernel)):
            yield "interface", difference
        if outside_hash(candidate, kernel) != baseline.outside_hash:
            yield "outside-changed", f"something outside the kernel '{kernel.symbol}' changed"
        code = program(candidate, kernel.symbol)
        yield from self._opcodes(baseline.program, code)
        yield from _special_writes(baseline.program, code)
        yield from _coherence(baseline.program, code)
        yield from resource_findings(baseline.code_object, candidate, kernel.symbol, code)
        yield from _new_violations(
            baseline.violations, findings(code, kernel.descriptor), code
        )
        if baseline.skeletons.of(code) == baseline.skeleton:
            return
        values = baseline.values_of(code, kernel.descriptor)
        uses = LaunchUses.of(values, baseline.pointer_words)
        yield from changed_uses(baseline.launch_uses, uses, code, baseline.numbers,
                                baseline.operand_uses.computed)
        operands = OperandUses.of(values, baseline.pointer_words, original=False,
                                  known=baseline.operand_uses)
        yield from changed_operands(baseline.operand_uses, operands, code, baseline.numbers)
        yield from lost_uses(baseline.argument_uses, ArgumentUses.of(values), code)

    def _opcodes(self, original: Program, candidate: Program) -> Iterator[tuple[str, str]]:
        known, found = Counts.of(original), Counts.of(candidate)
        counted = COUNTED_OPS - (_USERS_CHOICE & frozenset(self.extra_ops))
        allowed = self._allowed | widths_of(known.ops)
        for op, count in found.ops.items():
            if (op in counted or op.startswith(".long")) and count > known.ops[op]:
                yield "forbidden-opcode", f"{count} {op} where the original has {known.ops[op]}"
            elif op not in known.ops and op not in allowed:
                yield "forbidden-opcode", f"{op} is neither in the original nor on the allow-list"
        for setting, count in found.settings.items():
            if setting[0] in counted and count > known.settings[setting]:
                yield "changed-setting", f"'{' '.join(setting)}' is not in the original so often"
        barriers = found.ops["s_barrier"]
        if barriers < known.ops["s_barrier"]:
            # Waves of a workgroup are not run in parallel by every device, so equality alone would
            # not show the race that a missing barrier opens.
            yield "barrier-removed", (
                f"{barriers} s_barrier where the original has {known.ops['s_barrier']}"
            )


def _special_writes(original: Program, candidate: Program) -> Iterator[tuple[str, str]]:
    known, found = Counts.of(original).special, Counts.of(candidate).special
    for name in SPECIAL_REGISTERS:
        if found[name] > known[name]:
            yield "special-register", (
                f"{found[name]} writes of {name} where the original has {known[name]}")


def _coherence(original: Program, candidate: Program) -> Iterator[tuple[str, str]]:
    """Accesses whose cache bits the original does not have, or that lost those that it has."""
    known, found = Counts.of(original).accesses, Counts.of(candidate).accesses
    for access, count in found.items():
        if len(access) > 1 and count > known[access]:
            yield "coherence", f"{count} {' '.join(access)} where the original has {known[access]}"
    for access, count in known.items():
        # Bits that are gone, unless the whole access is.
        plain = access[:1]
        if len(access) > 1 and found[access] < count and found[plain] > known[plain]:
            yield "coherence", (
                f"{found[access]} {' '.join(access)} where the original has {count}: "
                f"{found[plain]} without"
            )


def _repeats(barrier: int, code: Program) -> bool:
    """Whether all that is in flight at a barrier was so at the one in front of it."""
    for index in range(barrier - 1, -1, -1):
        i = code.instructions[index]
        if i.op == "s_barrier":
            return True
        if i.accesses_memory or i.is_branch or index + 1 in code.targets:
            return False
    return False


def _new_violations(
    original: Sequence[Violation], candidate: Sequence[Violation], code: Program
) -> Iterator[tuple[str, str]]:
    """Violations beyond the original's, which production objects have: one by one the same, or
    those that are left the same but for the names of registers.
    """
    allowed = Counter(v.signature for v in original)
    unmatched = []
    for violation in candidate:
        if allowed[violation.signature] > 0:
            allowed[violation.signature] -= 1
        else:
            unmatched.append(violation)
    gone: Counter[tuple[str, str, str]] = Counter()
    for violation in original:
        if allowed[violation.signature] > 0:
            allowed[violation.signature] -= 1
            gone[violation.shape] += 1
    for violation in unmatched:
        if gone[violation.shape] > 0:
            gone[violation.shape] -= 1
            continue
        if violation.consumer_text == "s_barrier" and _repeats(violation.consumer, code):
            continue
        where = f"'{violation.consumer_text}' at {code.offsets[violation.consumer]:#x}"
        if violation.kind == "undefined-read":
            yield "new-undefined-read", f"{where} reads undefined {names(violation.registers)}"
            continue
        yield "new-" + violation.kind, (
            f"{where} depends on '{violation.producer_text}' at "
            f"{code.offsets[violation.producer]:#x}: {violation.kind}, needs {violation.needed}, "
            f"has {violation.found}"
        )
