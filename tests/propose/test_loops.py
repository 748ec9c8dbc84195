"""Loops whose rounds overlap: which are found, and that their rounds stay what they were."""

from __future__ import annotations

from typing import Any

import pytest

from asmevo.isa.hazards import hazards
from asmevo.isa.waits import missing_waits
from asmevo.propose.loop_copies import NEUTRAL
from asmevo.propose.pipelined_loop import pipelined_loops
from asmevo.propose.rules.batch_loops import BatchLoops
from asmevo.propose.rules.pipeline_loops import PipelineLoops

SUM = """
v_mov_b32_e32 v1, 0
again:
global_load_dword v4, v[2:3], off
s_add_i32 s6, s6, -1
v_add_u32_e32 v2, 4, v2
s_cmp_eq_u32 s6, 0
s_waitcnt vmcnt(0)
v_add_f32_e32 v1, v1, v4
s_cbranch_scc0 again
global_store_dword v[8:9], v1, off
s_cbranch_scc1 end
end:
s_endpgm
"""

STRIDED = """
s_mov_b64 s[0:1], 0
again:
global_load_dword v4, v[2:3], off
v_add_u32_e32 v0, 0x100, v0
v_cmp_le_i32_e32 vcc, s4, v0
s_or_b64 s[0:1], vcc, s[0:1]
v_add_u32_e32 v2, 4, v2
s_waitcnt vmcnt(0)
{use}
s_andn2_b64 exec, exec, s[0:1]
s_cbranch_execnz again
s_endpgm
"""


def _run(lines: list[str], rounds: int) -> tuple[list[str], int]:
    """What a wave does that has so many rounds to go, in terms of element numbers; and its loads.

    A model of the few operations of `SUM`.
    """
    labels = {line[:-1]: k for k, line in enumerate(lines) if line.endswith(":")}
    scalars = {"s6": rounds}
    vectors: dict[str, object] = {"v[2:3]": 0, "v1": ()}
    scc = False
    loads = at = 0
    done: list[str] = []
    for _ in range(10_000):
        line = lines[at]
        at += 1
        op, _, rest = line.partition(" ")
        names = [x.strip() for x in rest.split(",")]
        if op == "s_endpgm":
            return done, loads
        if op == "global_load_dword":
            vectors[names[0]] = vectors["v[2:3]"]
            loads += 1
        elif op == "v_add_u32_e32":
            vectors["v[2:3]"] = int(str(vectors["v[2:3]"])) + 1
        elif op == "v_add_f32_e32":
            done.append(f"{vectors[names[2]]}")
        elif op in ("s_add_i32", "s_sub_i32"):
            scalars[names[0]] = scalars[names[1]] + int(names[2], 0)
        elif op.startswith("s_cmp_"):
            a, b = (scalars[x] if x in scalars else int(x, 0) for x in names)
            scc = {"eq": a == b, "gt": a > b, "le": a <= b, "lg": a != b}[op.split("_")[2]]
        elif op in ("s_cbranch_scc0", "s_cbranch_scc1") and scc == (op[-1] == "1"):
            at = labels[names[0]]
    raise AssertionError("the loop does not end")


@pytest.mark.parametrize("rounds", [*range(1, 14), 31, 32, 33])
def test_batches_do_every_round_once_and_in_order(kernels: Any, rounds: int) -> None:
    proposals = list(BatchLoops(depths=(4, 3)).matches(kernels.context(SUM)))
    assert proposals
    for proposal in proposals:
        lines = kernels.edited(SUM, proposal)
        done, loads = _run(lines, rounds)
        assert done == [str(k) for k in range(rounds)]
        assert loads == rounds


def test_batches_wait_for_their_own_loads_only(kernels: Any) -> None:
    context = kernels.context(SUM)
    proposal = next(iter(BatchLoops(depths=(4,)).matches(context)))
    preview = context.preview.apply(proposal.edits)
    assert not missing_waits(preview.program)
    assert not hazards(preview.program)
    waits = [line for line in preview.lines if line.startswith("s_waitcnt")]
    assert waits[:4] == [f"s_waitcnt vmcnt({k})" for k in (3, 2, 1, 0)]


@pytest.mark.parametrize(("old", "new"), [
    ("v_add_u32_e32 v2, 4, v2", "v_add_u32_e32 v2, v2, v4"),     # the next address is loaded
    ("s_add_i32 s6, s6, -1", "s_add_i32 s6, s6, s7"),            # no constant step
    ("s_cmp_eq_u32 s6, 0", "s_cmp_eq_u32 s7, 0"),                # not the counter
    ("v_add_f32_e32 v1, v1, v4", "v_readfirstlane_b32 s6, v4"),  # the data end the loop
    ("v_add_f32_e32 v1, v1, v4", "global_atomic_add v[8:9], v4, off"),
    ("v_add_f32_e32 v1, v1, v4", "s_setprio 1"),
])
def test_what_keeps_a_loop_from_being_batched(kernels: Any, old: str, new: str) -> None:
    assert list(BatchLoops().matches(kernels.context(SUM.replace(old, new)))) == []


def test_lanes_that_leave_one_by_one_repeat_what_is_stored(kernels: Any) -> None:
    text = STRIDED.format(use="global_store_dword v[8:9], v4, off")
    proposals = list(PipelineLoops(depths=(2,)).matches(kernels.context(text)))
    assert len(proposals) == 1
    lines = kernels.edited(text, proposals[0])
    # The first element fills every copy, and all lanes are on again for what is under way.
    assert sum(x.startswith("global_load") for x in lines[:8]) == 2
    assert "s_or_b64 exec, exec, s[0:1]" in lines


def test_lanes_that_leave_one_by_one_add_what_a_sum_does_not_notice(kernels: Any) -> None:
    text = STRIDED.format(use="v_add_f32_e32 v1, v1, v4").replace(
        "s_endpgm",
        "s_or_b64 exec, exec, s[0:1]\nglobal_store_dword v[8:9], v1, off\ns_endpgm")
    proposals = list(PipelineLoops(depths=(2,)).matches(kernels.context(text)))
    assert len(proposals) == len(NEUTRAL)
    assert all("a sum does not notice" in p.assumption for p in proposals)


def test_a_loop_that_lanes_share_values_in_is_left_alone(kernels: Any) -> None:
    for use in ("v_mov_b32_dpp v1, v4 row_ror:4 row_mask:0xf bank_mask:0xf",
                "ds_write_b32 v9, v4"):
        context = kernels.context(STRIDED.format(use=use))
        assert list(PipelineLoops().matches(context)) == []
        assert not list(pipelined_loops(context))
