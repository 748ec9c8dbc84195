"""Edge counts against walks through a graph, counted."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable

from hypothesis import given, settings
from hypothesis import strategies as st

from asmevo.isa.cfg import Cfg
from asmevo.isa.program import Program
from asmevo.profile.edge_counts import edge_counts
from asmevo.profile.profile import InstructionProfile, Profile, StallCause
from asmevo.profile.windows import hot_windows


@settings(max_examples=60, deadline=None)
@given(st.lists(st.tuples(st.booleans(), st.integers(0, 11)), min_size=1, max_size=12),
       st.randoms(use_true_random=False))
def test_what_is_told_is_what_was_walked(
        assemble: Callable[..., Program], branches: list[tuple[bool, int]],
        source: random.Random) -> None:
    texts = [f"s_cbranch_scc{int(taken)} {min(target, len(branches)) - at - 1}"
             for at, (taken, target) in enumerate(branches)]
    cfg = Cfg.of(assemble(texts))
    walked: Counter[tuple[int, int]] = Counter()
    executions = [0] * len(cfg.blocks)
    for _ in range(5):
        here = cfg.entry
        executions[here] += 1
        for step in range(10_000):
            following = cfg.blocks[here].successors
            if not following:
                break
            # Falling through in the end, so that the walk ends.
            choice = source.choice(following) if step < 50 else max(following)
            walked[here, choice] += 1
            here = choice
            executions[here] += 1
    for edge, count in edge_counts(cfg, executions).items():
        if edge[1] != cfg.entry:
            assert count == walked[edge]


def trips(program: Program, issued: list[int]) -> dict[int, tuple[int, float | None]]:
    """Loop depth and rounds of the window at each start."""
    profile = Profile("d", "modelled", "x", 1, tuple(
        InstructionProfile(n, {StallCause.VMCNT: 10}) for n in issued))
    windows = hot_windows([profile], program, count=9, max_length=8)
    return {w.start: (w.loop_depth, w.trip_count) for w in windows}


def test_rounds_of_nested_loops(assemble: Callable[..., Program]) -> None:
    program = assemble(["s_mov_b32 s9, 0", "s_mov_b32 s0, 0", "s_mov_b32 s1, 0",
                        "s_cbranch_scc1 -2", "s_cbranch_scc1 -4", "s_mov_b32 s2, 0"])
    assert trips(program, [7, 14, 70, 70, 14, 7, 7]) == {
        0: (0, None), 1: (1, 2.0), 2: (2, 5.0), 4: (1, 2.0), 5: (0, None)}


def test_rounds_that_block_counts_leave_open(assemble: Callable[..., Program]) -> None:
    # The first branch goes round the outer loop: how often it was entered has many answers.
    program = assemble(["s_cbranch_scc0 4", "s_mov_b32 s0, 0", "s_mov_b32 s1, 0",
                        "s_cbranch_scc1 -2", "s_cbranch_scc1 -4", "s_mov_b32 s2, 0"])
    found = trips(program, [7, 6, 30, 30, 6, 7, 7])
    assert (found[2], found[4]) == ((2, 5.0), (1, None))
