"""A preview is what assembling and disassembling the edited kernel gives."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from asmevo.codeobject.assembly import Assembly, Edit, EditError
from asmevo.codeobject.container import CodeObject
from asmevo.codeobject.disassemble import program
from asmevo.codeobject.rebuild import rebuild
from asmevo.codeobject.toolchain import ZigToolchain
from asmevo.isa.program import Program
from asmevo.propose.preview import Preview
from asmevo.propose.proposal import Evidence
from asmevo.propose.rule import Rule, RuleContext
from asmevo.propose.rules.align_fetch import AlignFetch
from asmevo.propose.rules.dead_code import DeadCode
from asmevo.propose.rules.fuse_dpp import FuseDpp
from asmevo.propose.rules.hoist_loads import HoistLoads
from asmevo.propose.rules.pair_lds_reads import PairLdsReads
from asmevo.propose.rules.relax_waits import RelaxWaits
from asmevo.propose.rules.schedule_blocks import ScheduleBlocks

SYMBOL = "layer_norm_kernel_func"


@pytest.mark.parametrize("rule", [
    DeadCode(), FuseDpp(), PairLdsReads(), RelaxWaits(), HoistLoads(), ScheduleBlocks(),
    AlignFetch(),
], ids=lambda rule: rule.name)
def test_preview_equals_the_rebuilt_object(
    rule: Rule, layer_norm: CodeObject, layer_norm_assembly: Assembly,
    layer_norm_evidence: Evidence,
) -> None:
    context = RuleContext(layer_norm_evidence)
    edits = next(iter(rule.matches(context))).edits
    assert edits
    rebuilt = program(rebuild(layer_norm, layer_norm_assembly.apply(edits), ZigToolchain()))
    preview = context.preview.apply(edits).program
    assert _bodies(preview) == _bodies(rebuilt)
    assert preview.targets == rebuilt.targets
    assert preview.offsets == rebuilt.offsets


def _bodies(code: Program) -> list[str]:
    return [i.op if i.is_branch else i.text for i in code.instructions]


@st.composite
def edit_sets(draw: st.DrawFn, length: int) -> tuple[Edit, ...]:
    """Non-overlapping edits that leave branches and the end of the kernel alone."""
    out: list[Edit] = []
    position = 0
    while position < length - 1 and len(out) < 8:
        start = draw(st.integers(position, min(length - 1, position + 12)))
        stop = draw(st.integers(start, min(length - 1, start + 4)))
        texts = draw(st.lists(st.sampled_from(["s_nop 0", "s_nop 3", "v_mov_b32_e32 v1, v2"]),
                              max_size=3))
        out.append(Edit("kernel", start, stop, tuple(texts), "test"))
        # Two insertions in a row at one place would be one edit.
        position = max(stop, start + 1)
    return tuple(out)


LOOPS = "\n".join(
    f"l{k}:\nv_add_u32_e32 v{k}, 1, v{k}\ns_add_u32 s{k}, s{k}, 1\ns_cmp_eq_u32 s{k}, 9\n"
    f"s_cbranch_scc1 l{max(k - 1, 0)}\ns_mov_b32 s{k + 1}, {k}" for k in range(4)) + "\ns_endpgm"


@settings(max_examples=150, deadline=None)
@given(data=st.data())
def test_two_rounds_of_edits_are_one(kernels: Any, data: st.DataObject) -> None:
    evidence = kernels.evidence(LOOPS)
    base = Preview.of("kernel", evidence.program, evidence.lines)
    first = data.draw(edit_sets(len(base.lines)))
    once = base.apply(_without_branches(first, base))
    twice = once.apply(_without_branches(data.draw(edit_sets(len(once.lines))), once))
    step = kernels.assembly(LOOPS).apply(twice.edits("all")).body("kernel")
    assert tuple(x.text for x in step.lines if x.text) == twice.lines
    where = {label: n for n, x in enumerate(step.lines) for label in x.labels}
    names = {f"l{k}": twice.positions[5 * k] for k in range(4)}
    assert where == names


def _without_branches(edits: tuple[Edit, ...], preview: Preview) -> tuple[Edit, ...]:
    instructions = preview.program.instructions
    return tuple(
        e for e in edits if not any(i.is_branch for i in instructions[e.start:e.stop]))


@settings(max_examples=60, deadline=None)
@given(data=st.data())
def test_one_round_equals_assembly_apply(kernels: Any, data: st.DataObject) -> None:
    evidence = kernels.evidence(LOOPS)
    base = Preview.of("kernel", evidence.program, evidence.lines)
    edits = _without_branches(data.draw(edit_sets(len(base.lines))), base)
    lines = kernels.assembly(LOOPS).apply(edits).body("kernel").lines
    preview = base.apply(edits)
    assert preview.lines == tuple(x.text for x in lines if x.text)
    where = {label: n for n, x in enumerate(lines) for label in x.labels}
    for index, target in enumerate(preview.program.targets):
        if target is not None:
            assert target == where[preview.lines[index].split()[-1]]


def test_overlap_and_branches_are_refused(kernels: Any) -> None:
    evidence = kernels.evidence(LOOPS)
    base = Preview.of("kernel", evidence.program, evidence.lines)
    with pytest.raises(EditError, match="overlaps"):
        base.apply((Edit("kernel", 0, 2, (), "a"), Edit("kernel", 1, 3, (), "b")))
    with pytest.raises(EditError, match="branch"):
        base.apply((Edit("kernel", 0, 0, ("s_branch l3",), "a"),))


def test_an_edit_may_bring_labels_and_branches_to_them(kernels: Any) -> None:
    text = "v_mov_b32_e32 v1, 0\nagain:\ns_cmp_eq_u32 s2, 0\ns_cbranch_scc1 again\ns_endpgm"
    context: RuleContext = kernels.context(text)
    name = context.preview.fresh_labels(1)[0]
    edits = (
        Edit("kernel", 0, 1, ("s_nop 0", f"{name}:", "v_mov_b32_e32 v1, 0"), ""),
        Edit("kernel", 2, 3, ("s_cbranch_scc1 again", f"s_cbranch_scc1 {name}"), ""),
    )
    preview = context.preview.apply(edits)
    assert preview.program.targets == (None, None, None, 2, 1, None)
    # The same kernel in one step from the base, and as text.
    again = context.preview.apply(preview.edits(""))
    assert again.program.targets == preview.program.targets
    assert again.lines == preview.lines
    body = kernels.assembly(text).apply(preview.edits("")).body("kernel")
    assert [line.labels for line in body.lines] == [(), (name,), ("again",), (), (), ()]


def test_labels_must_be_new_and_branches_must_have_them(kernels: Any) -> None:
    text = "again:\ns_cmp_eq_u32 s2, 0\ns_cbranch_scc1 again\ns_endpgm"
    context: RuleContext = kernels.context(text)
    with pytest.raises(EditError, match="nowhere"):
        context.preview.apply((Edit("kernel", 0, 0, ("s_cbranch_scc1 nowhere",), ""),))
    twice = Edit("kernel", 0, 1, (".La:", "s_nop 0", ".La:", "s_nop 0"), "")
    with pytest.raises(EditError, match="already"):
        kernels.assembly(text).apply((twice,))
