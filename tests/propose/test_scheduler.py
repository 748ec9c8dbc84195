"""Traces, renaming and orders: what may move, what may not, and what must come along."""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import replace
from itertools import islice
from typing import Any

import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

from asmevo.codeobject.assembly import Assembly
from asmevo.isa.hazards import hazards
from asmevo.isa.waits import missing_waits
from asmevo.profile.profile import InstructionProfile, Profile, StallCause
from asmevo.propose.errors import ProposerError
from asmevo.propose.preview import Preview
from asmevo.propose.proposal import Direction, Evidence, Feedback, Proposal, Proposer
from asmevo.propose.rule import RuleContext
from asmevo.propose.scheduler import walk
from asmevo.propose.scheduler.machine import MachineTimes
from asmevo.propose.scheduler.observed import observed_latencies
from asmevo.propose.scheduler.proposer import SchedulerProposer
from asmevo.propose.scheduler.workshop import Freedom, Variant, Workshop
from asmevo.propose.stochastic.moves import MOVES
from asmevo.propose.stochastic.proposer import StochasticProposer
from tests.propose.symbolic import effects
from tests.propose.test_random_programs import INSTRUCTIONS

# A load under a mask behind an exchange through LDS that it has nothing to do with.
HAMMOCK = """
    ds_write_b32 v0, v1
    s_waitcnt lgkmcnt(0)
    s_barrier
    ds_read_b32 v2, v3
    s_waitcnt lgkmcnt(0)
    v_add_u32_e32 v2, v2, v2
    v_mov_b32_e32 v4, 0
    v_cmp_gt_u32_e32 vcc, v6, v7
    s_and_saveexec_b64 s[20:21], vcc
    s_cbranch_execz skip
    v_add_u32_e32 v8, v6, v9
    buffer_load_dword v4, v8, s[4:7], 0 offen
    skip:
    s_or_b64 exec, exec, s[20:21]
    s_waitcnt vmcnt(0)
    v_add_u32_e32 v4, v4, v2
    buffer_store_dword v4, v9, s[8:11], 0 offen
    s_endpgm
"""


def variant(kernels: Any, text: str, freedom: Freedom) -> Variant:
    return Workshop(kernels.evidence(text), MachineTimes()).variant(freedom)


def found(preview: Preview) -> set[tuple[str, str, str]]:
    """Missing waits and hazards but for the names of registers, which may change."""
    return {v.shape for v in (*missing_waits(preview.program), *hazards(preview.program))}


def waited(texts: list[str]) -> list[str]:
    """The same with a wait behind every load."""
    return [t for text in texts for t in (
        (text, "s_waitcnt vmcnt(0) lgkmcnt(0)") if "load" in text or "read_" in text else (text,))]


def proposals(proposer: Proposer, evidence: Evidence, count: int) -> Iterator[Proposal]:
    return islice(proposer.propose(evidence), count)


def test_a_masked_load_rises_over_an_exchange_through_lds(kernels: Any) -> None:
    context: RuleContext = kernels.context(HAMMOCK)
    first = next(iter(proposals(SchedulerProposer(), context.evidence, 1)))
    lines = list(context.preview.apply(first.edits).lines)
    assert not any(line.startswith("s_cbranch") for line in lines)
    load = next(n for n, line in enumerate(lines) if line.startswith("buffer_load"))
    assert load < lines.index("s_barrier")
    # It still runs with its lanes only.
    on = next(n for n, line in enumerate(lines) if line.startswith("s_and_saveexec"))
    off = next(n for n, line in enumerate(lines) if line.startswith("s_or_b64 exec"))
    assert on < load < off


@pytest.mark.parametrize("body", [
    "v_readfirstlane_b32 s9, v6", "s_add_u32 s9, s9, 1", "s_load_dword s12, s[0:1], 0x0",
    "v_mfma_f32_32x32x8_f16 a[0:15], v[10:11], v[12:13], a[0:15]",
])
def test_a_branch_stays_over_what_has_effects_without_lanes(kernels: Any, body: str) -> None:
    text = HAMMOCK.replace("v_add_u32_e32 v8, v6, v9\n", f"v_add_u32_e32 v8, v6, v9\n{body}\n")
    text = text.replace("s_endpgm", "v_mov_b32_e32 v20, s9\nbuffer_store_dword v20, v9, s[8:11],"
                                    " s12 offen\ns_endpgm")
    context: RuleContext = kernels.context(text)
    for proposal in proposals(SchedulerProposer(), context.evidence, 6):
        lines = context.preview.apply(proposal.edits).lines
        assert any(line.startswith("s_cbranch_execz") for line in lines)


def test_nothing_crosses_a_barrier_that_a_store_precedes(kernels: Any) -> None:
    text = """
        buffer_store_dword v1, v2, s[8:11], 0 offen
        s_waitcnt vmcnt(0)
        s_barrier
        v_add_u32_e32 v5, v5, v5
        buffer_load_dword v4, v8, s[4:7], 0 offen
        s_waitcnt vmcnt(0)
        buffer_store_dword v4, v9, s[8:11], 0 offen
        s_endpgm
    """
    (layout,) = variant(kernels, text, Freedom()).layouts
    items = layout.trace.items
    barrier = next(k for k in layout.original if items[k].indices == (2,))
    load = next(k for k in layout.original if items[k].indices == (4,))
    assert barrier in layout.constraints.before[load]
    (free,) = variant(kernels, text, Freedom(disjoint=True)).layouts
    assert barrier not in free.constraints.before[load]


def test_values_get_registers_of_their_own(kernels: Any) -> None:
    text = """
        v_mov_b32_e32 v12, 0
        v_add_u32_e32 v0, v1, v2
        v_add_u32_e32 v10, v0, v0
        v_add_u32_e32 v0, v2, v2
        v_add_u32_e32 v11, v0, v0
        buffer_store_dwordx2 v[10:11], v12, s[8:11], 0 offen
        s_endpgm
    """
    plain = variant(kernels, text, Freedom()).layouts[0]
    own = variant(kernels, text, Freedom(rename=True))
    assert own.is_renamed
    assert 2 in plain.constraints.before[3]
    assert not own.layouts[0].constraints.before[3]
    # The halves of the stored pair stay neighbours, on an even register.
    store = own.context.program.instructions[5].operands[0]
    assert store.count == 2
    assert store.first % 2 == 0


def test_a_loop_is_walked_in_its_second_round(kernels: Any) -> None:
    text = """
        buffer_load_dword v1, v2, s[4:7], 0 offen
        loop:
        s_waitcnt vmcnt(0)
        v_add_u32_e32 v3, v3, v1
        buffer_load_dword v1, v2, s[4:7], 0 offen
        v_add_u32_e32 v5, v5, v5
        s_sub_u32 s9, s9, 1
        s_cmp_eq_u32 s9, 0
        s_cbranch_scc0 loop
        buffer_store_dword v3, v2, s[8:11], 0 offen
        s_endpgm
    """
    layouts = variant(kernels, text, Freedom()).layouts
    loop = next(m for m in layouts if m.trace.loops)
    scored = loop.score(loop.original)
    assert [p.text for p in scored.placed] == ["s_waitcnt vmcnt(0)"]
    # The load of a round has only the rest of it to come back.
    assert scored.cost > MachineTimes().l2


def test_code_that_was_never_executed_is_left_alone(kernels: Any) -> None:
    workshop = Workshop(kernels.evidence(HAMMOCK), MachineTimes())
    lines = list(workshop.evidence.lines)
    workshop.__dict__["executed"] = frozenset(range(len(lines))) - {10, 11}
    assert workshop.executes_changes([lines[1], lines[0], *lines[2:]])
    assert not workshop.executes_changes([*lines[:11], "v_mov_b32_e32 v8, 0", *lines[11:]])


@pytest.mark.parametrize("proposer", [
    SchedulerProposer(tries=2, restarts=1), StochasticProposer(moves=30),
], ids=["scheduler", "stochastic"])
@settings(max_examples=8, deadline=None, phases=(Phase.explicit, Phase.generate))
@given(texts=st.lists(INSTRUCTIONS, min_size=4, max_size=24), masked=st.integers(0, 20))
def test_random_programs_keep_what_they_compute(
        kernels: Any, proposer: Proposer, texts: list[str], masked: int) -> None:
    hammock = [
        "v_cmp_gt_u32_e32 vcc, v0, v1", "s_and_saveexec_b64 s[20:21], vcc",
        "s_cbranch_execz skip", "buffer_load_dword v2, v3, s[4:7], 0 offen", "skip:",
        "s_or_b64 exec, exec, s[20:21]", "s_waitcnt vmcnt(0)"]
    # Registers that hold nothing keep their names.
    texts = [*(f"v_mov_b32_e32 v{n}, {n}" for n in range(6)), *waited(texts)]
    place = masked % (len(texts) + 1)
    texts = [*texts[:place], *hammock, *texts[place:]]
    context: RuleContext = kernels.context("\n".join((*texts, "s_endpgm")))
    expected = effects(context.preview)
    known = found(context.preview)
    for proposal in proposals(proposer, context.evidence, 4):
        after = context.preview.apply(proposal.edits)
        if not proposal.assumption:
            assert effects(after) == expected
        assert found(after) <= known


def test_the_real_layer_norm_is_reordered(
        layer_norm_evidence: Evidence, layer_norm_assembly: Assembly) -> None:
    context = RuleContext(layer_norm_evidence)
    known = found(context.preview)
    for proposer in (SchedulerProposer(), StochasticProposer(moves=20)):
        first = next(iter(proposals(proposer, layer_norm_evidence, 1)))
        after = context.preview.apply(first.edits)
        assert found(after) <= known
        body = layer_norm_assembly.apply(first.edits).body(layer_norm_evidence.kernel)
        assert tuple(line.text for line in body.lines if line.text) == after.lines


@pytest.mark.parametrize("make", [
    lambda: SchedulerProposer(tries=3), lambda: StochasticProposer(moves=40),
], ids=["scheduler", "stochastic"])
def test_the_same_evidence_and_feedback_give_the_same_proposals(kernels: Any, make: Any) -> None:
    def run() -> list[Proposal]:
        proposals = make().propose(kernels.evidence(HAMMOCK))
        out: list[Proposal] = []
        feedback: Feedback | None = None
        for number in range(6):
            try:
                out.append(proposals.send(feedback))
            except StopIteration:
                break
            feedback = Feedback(out[-1], speedup=1.0 + number % 3 / 100)
        return out

    assert run() == run()


@pytest.mark.parametrize("proposer", [SchedulerProposer(tries=3), StochasticProposer(moves=40)],
                         ids=["scheduler", "stochastic"])
def test_nothing_is_worked_out_where_another_direction_is_wanted(
        kernels: Any, proposer: Proposer, monkeypatch: pytest.MonkeyPatch) -> None:
    evidence = kernels.evidence(HAMMOCK)
    wanted = replace(evidence, directions=(Direction.LATENCY_HIDING, Direction.SIMPLIFICATION))
    assert list(proposals(proposer, wanted, 1))
    monkeypatch.setattr(Workshop, "of", None)
    other = replace(evidence, directions=(Direction.SIMPLIFICATION,))
    assert not list(proposals(proposer, other, 1))


def test_assignments_on_one_base_share_what_was_worked_out(kernels: Any) -> None:
    evidence = kernels.evidence(HAMMOCK)
    machine = MachineTimes()
    known = Workshop.of(evidence, machine)
    again = replace(evidence, seed=7, speedup=2.0, directions=(Direction.LATENCY_HIDING,))
    assert Workshop.of(again, MachineTimes()) is known
    assert Workshop.of(kernels.evidence(HAMMOCK), machine) is not known
    assert Workshop.of(evidence, MachineTimes(hbm=900)) is not known

    def run() -> list[Proposal]:
        return list(proposals(SchedulerProposer(tries=3, restarts=4), evidence, 12))

    assert run() == run()
    assert known.rankings


@given(st.lists(INSTRUCTIONS, min_size=40, max_size=90),
       st.booleans(), st.integers(0, 1 << 30))
@settings(max_examples=25, deadline=None, phases=[Phase.generate])
def test_an_order_costs_the_same_from_where_it_differs(
        kernels: Any, lines: list[str], loop: bool, seed: int) -> None:
    body = "\n".join(lines)
    text = (f"top:\n{body}\ns_add_u32 s0, s0, -1\ns_cmp_lg_u32 s0, 0\ns_cbranch_scc1 top\n"
            "s_endpgm" if loop else f"{body}\ns_endpgm")
    for layout in variant(kernels, text, Freedom()).layouts:
        rng = random.Random(seed)
        near = layout.original
        for _ in range(12):
            move = rng.choice(tuple(MOVES.values()))
            order = move(layout, near, rng) if len(near) > 10 else None
            if order is None or order == near:
                continue
            assert layout.score(order, near) == layout.score(order)
            near = order if rng.random() < 0.5 else near


def test_what_two_orders_begin_with_is_walked_once(
        kernels: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    text = "\n".join(f"v_mov_b32_e32 v{n}, {n}" for n in range(200)) + "\ns_endpgm"
    (layout,) = variant(kernels, text, Freedom()).layouts
    near = layout.original
    layout.score((*near[:-3], near[-2], near[-3], near[-1]), near)
    made: list[int] = []

    def counted(*parts: Any) -> Any:
        made.append(1)
        return mark(*parts)

    mark = walk._Mark
    monkeypatch.setattr(walk, "_Mark", counted)
    layout.score((*near[:150], near[151], near[150], *near[152:]), near)
    assert 0 < len(made) < 5  # of 13


def test_refused_edits_are_not_proposed_again(kernels: Any) -> None:
    evidence = kernels.evidence(HAMMOCK)
    made = [p.edits for p in proposals(SchedulerProposer(tries=3, restarts=4), evidence, 40)]
    assert len(set(made)) == len(made)


def test_settings_that_make_no_sense_are_refused() -> None:
    with pytest.raises(ProposerError):
        SchedulerProposer(tries=0)
    with pytest.raises(ProposerError):
        StochasticProposer(blind=0.9, mix=0.3)


def test_a_wait_that_stalled_shows_how_long_its_last_load_took(kernels: Any) -> None:
    program = kernels.evidence("""
        buffer_load_dword v1, v0, s[4:7], 0 offen
        buffer_load_dword v2, v0, s[4:7], 0 offen
        v_add_u32_e32 v5, v5, v5
        s_waitcnt vmcnt(0)
        v_add_u32_e32 v1, v1, v2
        s_endpgm
    """).program
    rows = [InstructionProfile(10) for _ in program.instructions]
    rows[3] = InstructionProfile(10, {StallCause.VMCNT: 6000})
    profile = Profile("d", "modelled", "gpu", 1, tuple(rows))
    # Two turns, and the wait's own 600 clk.
    assert observed_latencies(program, (profile,), ((0, 1, 2, 3, 4),)) == {1: 608}


def test_code_that_runs_once_is_waited_for(kernels: Any) -> None:
    text = "\n".join(["v_add_f32_e64 v1, v2, v3"] * 200 + ["s_endpgm"])
    (once,) = variant(kernels, text, Freedom()).layouts
    cold = once.score(once.original).cost
    slow = Workshop(kernels.evidence(text), MachineTimes(code_miss=0)).variant(Freedom()).layouts[0]
    # 1,600 bytes in lines of 128, of which two are asked for ahead.
    assert cold > slow.score(slow.original).cost + 5 * 40
