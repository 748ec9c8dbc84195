"""Loops whose scalar loads are a round ahead of their use."""

from __future__ import annotations

from typing import Any

import pytest

from asmevo.isa.hazards import hazards
from asmevo.isa.waits import missing_waits
from asmevo.propose.rules.prefetch_scalars import PrefetchScalars

SUM = """
v_mov_b32_e32 v1, 0
again:
s_load_dwordx2 s[8:9], s[2:3], 0x0
s_add_u32 s2, s2, 8
s_addc_u32 s3, s3, 0
s_add_i32 s6, s6, -1
s_cmp_gt_i32 s6, 0
s_waitcnt lgkmcnt(0)
v_add_f32_e32 v1, s8, v1
v_add_f32_e32 v1, s9, v1
s_cbranch_scc1 again
s_mov_b32 s4, 0
s_cmp_eq_u32 s4, 0
global_store_dword v[2:3], v1, off
s_endpgm
"""


def _run(lines: list[str], rounds: int) -> tuple[list[int], int]:
    """The elements that a wave with so many rounds adds, and how many loads it issued."""
    labels = {line[:-1]: k for k, line in enumerate(lines) if line.endswith(":")}
    place, left, scc, loads, at = 0, rounds, False, 0, 0
    held: dict[str, int] = {}
    added: list[int] = []
    for _ in range(10_000):
        op, _, rest = lines[at].partition(" ")
        words = rest.replace(",", "").split()
        at += 1
        if op == "s_load_dwordx2":
            low = int(words[0][2:].split(":")[0])
            held[f"s{low}"], held[f"s{low + 1}"] = place, place + 1
            loads += 1
        elif lines[at - 1].startswith("s_add_u32 s2"):
            place += 2
        elif op == "s_add_i32":
            left -= 1
        elif op == "s_cmp_gt_i32":
            scc = left > 0
        elif op == "s_cmp_le_i32":
            scc = left <= 0
        elif op == "s_mov_b64":
            (a, b), (c, d) = (w[2:-1].split(":") for w in words)
            held[f"s{a}"], held[f"s{b}"] = held[f"s{c}"], held[f"s{d}"]
        elif op == "v_add_f32_e32":
            added.append(held[words[1]])
        elif op == "s_cbranch_scc1" and scc:
            at = labels[words[0]]
        elif op == "global_store_dword":
            return added, loads
    raise AssertionError("the loop does not end")


@pytest.mark.parametrize("rounds", [1, 2, 3, 8])
def test_every_round_is_added_once_and_nothing_else_is_loaded(kernels: Any, rounds: int) -> None:
    changed = kernels.first(PrefetchScalars(), SUM)
    assert _run(changed, rounds) == (list(range(2 * rounds)), rounds)
    assert _run(SUM.strip().split("\n"), rounds) == (list(range(2 * rounds)), rounds)


def test_the_next_round_is_under_way_during_this_one(kernels: Any) -> None:
    context = kernels.context(SUM)
    proposal = next(PrefetchScalars().matches(context))
    after = context.preview.apply(proposal.edits)
    assert not missing_waits(after.program)
    assert not hazards(after.program)
    lines = list(after.lines)
    load = max(k for k, line in enumerate(lines) if line.startswith("s_load"))
    use = next(k for k in range(load, len(lines)) if lines[k].startswith("v_add"))
    assert not any("lgkmcnt" in line for line in lines[load:use])


@pytest.mark.parametrize(("old", "new"), [
    ("s_load_dwordx2 s[8:9], s[2:3], 0x0", "s_load_dwordx2 s[8:9], s[2:3], 0x0\n"
     "s_waitcnt lgkmcnt(0)\nv_add_f32_e32 v1, s8, v1\ns_load_dwordx2 s[8:9], s[4:5], 0x0"),
    ("v_add_f32_e32 v1, s8, v1", "v_add_f32_e32 v1, s8, v1\ns_barrier"),
    ("s_add_u32 s2, s2, 8", "s_add_u32 s2, s2, s8"),       # the address needs what is loaded
    ("s_mov_b32 s4, 0", "v_mov_b32_e32 v9, s9\nglobal_store_dword v[2:3], v9, off"),
])
def test_loops_that_stay(kernels: Any, old: str, new: str) -> None:
    assert kernels.proposals(PrefetchScalars(), SUM.replace(old, new)) == []
