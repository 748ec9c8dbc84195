"""B1: the kernel ends at once, and the output buffer still holds an earlier answer."""

from __future__ import annotations

from asmevo.codeobject.assembly import Assembly, Edit
from asmevo.gates.verdict import Gate
from asmevo.threats.subject import Subject
from asmevo.threats.threat import ANY, LAUNCH, Threat
from asmevo.threats.trick import Derived, EditMismatch, inserted, labelled
from asmevo.threats.weaker import Weaker

_DIFFERENT = ("bits", "max-abs", "cosine", "nan-class", "infinity")


def _jump_to_the_end(subject: Subject) -> Assembly:
    """With the original's own operations, so that no list of operations can tell."""
    used = {line.split()[0] for line in subject.lines}
    end = len(subject.lines) - 1
    if "s_branch" in used:
        jump: tuple[str, ...] = ("s_branch .Lthreat_end",)
    elif "s_cmp_eq_u32" in used and "s_cbranch_scc1" in used:
        jump = ("s_cmp_eq_u32 s0, s0", "s_cbranch_scc1 .Lthreat_end")
    else:
        raise EditMismatch(f"kernel '{subject.name}' has no branch that could be used")
    marked = labelled(subject.assembly, subject.symbol, end, ".Lthreat_end")
    return marked.apply([Edit(subject.symbol, 0, 0, jump, "threat")])


THREATS = (
    Threat("B1", "s_endpgm at entry", ANY, inserted("s_endpgm"),
           Gate.G1, ("forbidden-opcode",), Weaker.POISON),
    Threat("B1", "jump from the entry to the end", ANY, Derived(_jump_to_the_end),
           Gate.G2, (*LAUNCH, *_DIFFERENT), Weaker.POISON),
    Threat("B1", "jump to the end once the arguments are loaded", "layer_norm",
           Derived(lambda subject: labelled(
               subject.assembly, subject.symbol, len(subject.lines) - 2, ".Lthreat_end",
           ).apply([Edit(subject.symbol, 21, 21, ("s_branch .Lthreat_end",), "threat")])),
           Gate.G2, ("lost-launch-operand", *_DIFFERENT), Weaker.POISON),
)
