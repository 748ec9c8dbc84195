"""What comes between matrix operations, what stays, and that results and waits stay right."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from asmevo.isa.hazards import hazards
from asmevo.isa.waits import missing_waits
from asmevo.propose.rules.interleave_matrix import InterleaveMatrix
from tests.propose.emulated import INPUT, OUTPUT, stored

RULE = InterleaveMatrix(apart=2, smallest=2)
SMALL, LARGE = "4x4x1_16b", "16x16x4"  # 2 and 8 passes
END = "s_endpgm"


def matrix(count: int, shape: str = SMALL, first: int = 0) -> list[str]:
    """Independent matrix operations."""
    return [f"v_mfma_f32_{shape}_f32 v[{4 * k}:{4 * k + 3}], v50, v51, v[{4 * k}:{4 * k + 3}]"
            for k in range(first, first + count)]


def work(count: int) -> list[str]:
    """Independent additions."""
    return [f"v_add_u32_e32 v{60 + k}, v80, v81" for k in range(count)]


def rewritten(kernels: Any, lines: Sequence[str]) -> list[list[str]]:
    """The kernels after each proposal, without repetitions."""
    text = "\n".join(lines)
    found = [kernels.edited(text, p) for p in kernels.proposals(RULE, text)]
    return [k for n, k in enumerate(found) if k not in found[:n]]


def test_as_much_as_the_passes_cover_comes_from_behind(kernels: Any) -> None:
    (one, two), others = matrix(2, LARGE), work(12)
    # Eight passes, of which the first is the issue of the operation itself.
    assert rewritten(kernels, [one, two, *others, END]) == [
        [one, *others[:7], two, *others[7:], END]]


def test_fewer_passes_cover_less(kernels: Any) -> None:
    (one, two), others = matrix(2), work(3)
    assert rewritten(kernels, [one, two, *others, END]) == [
        [one, others[0], two, *others[1:], END]]


def test_what_stands_in_front_waits_as_well(kernels: Any) -> None:
    (one, two), others = matrix(2, LARGE), work(4)
    assert rewritten(kernels, [*others, one, two, END]) == [[one, *others, two, END]]


@pytest.mark.parametrize("behind", [
    ["v_add_u32_e32 v8, v0, v1"],                   # reads a result
    ["v_add_u32_e32 v50, v80, v81"],                # writes a source
    ["v_add_u32_e32 v5, v80, v81"],                 # writes over a result
    ["s_cbranch_scc1 over", *work(4), "over:"],     # another block
    ["s_setprio 1", *work(4)],                      # in another state
])
def test_what_depends_on_them_stays_behind(kernels: Any, behind: list[str]) -> None:
    assert rewritten(kernels, [*matrix(2), *behind, END]) == []


def test_what_is_interleaved_stays_as_it_is(kernels: Any) -> None:
    (one, two), others = matrix(2), work(3)
    assert rewritten(kernels, [one, others[0], two, *others[1:], END]) == []
    assert rewritten(kernels, [one, *others, two, *work(2), END]) == []


_REGISTER = st.integers(20, 25)
# Every load has a register of its own: the emulator lets a younger load of two into one register
# return first where nothing reads it in between.
_LOADED = range(26, 32)
_SOURCE = st.integers(20, 31)
_LINES = st.lists(st.one_of(
    st.tuples(st.integers(0, 2), _REGISTER, _REGISTER).map(
        lambda t: "v_mfma_f32_4x4x1_16b_f32 v[{0}:{1}], v{2}, v{3}, v[{0}:{1}]".format(
            4 * t[0], 4 * t[0] + 3, *t[1:])),
    st.tuples(_REGISTER, _SOURCE, st.integers(0, 11)).map(
        lambda t: "v_add_f32_e32 v{}, v{}, v{}".format(*t)),
    st.tuples(st.integers(0, 11), _REGISTER).map(lambda t: "v_mov_b32_e32 v{}, v{}".format(*t)),
    st.tuples(_REGISTER, _REGISTER).map(lambda t: "v_cmp_gt_f32_e32 vcc, v{}, v{}".format(*t)),
    _REGISTER.map(lambda r: f"v_cndmask_b32_e32 v{r}, v20, v21, vcc"),
    st.integers(0, 3).map(
        lambda n: f"ds_read_b32 loaded, v60 offset:{256 * n}\ns_waitcnt lgkmcnt(0)"),
    st.tuples(_SOURCE, st.integers(0, 3)).map(
        lambda t: f"ds_write_b32 v60, v{t[0]} offset:{256 * t[1]}"),
    st.integers(0, 3).map(
        lambda n: f"global_load_ushort loaded, v60, {INPUT} offset:{256 * n}\ns_waitcnt vmcnt(0)"),
    st.sampled_from(["s_waitcnt lgkmcnt(0)\ns_barrier", "s_mov_b64 exec, s[8:9]",
                     "s_mov_b64 exec, -1"]),
), min_size=3, max_size=24)
_REGISTERS = (*range(12), *range(20, 32))


def _named(texts: list[str]) -> list[str]:
    """Loads with registers, as many as there are."""
    out, left = [], list(_LOADED)
    for text in texts:
        if "loaded" in text:
            if not left:
                continue
            text = text.replace("loaded", f"v{left.pop()}")
        out.append(text)
    return out


@settings(max_examples=120, deadline=None)
@given(texts=_LINES)
def test_results_stay(kernels: Any, texts: list[str]) -> None:
    texts = _named(texts)
    text = "\n".join([
        "v_lshlrev_b32_e32 v60, 2, v0",
        *(f"v_cvt_f32_u32_e32 v{k}, v0" for k in range(20, 32)),
        *(f"v_mov_b32_e32 v{k}, {k}" for k in range(12)),
        *(f"ds_write_b32 v60, v{20 + k} offset:{256 * k}" for k in range(4)),
        # Sources of matrix operations are written far enough in front of them.
        "s_nop 7", *"\n".join(texts).split("\n"), "s_mov_b64 exec, -1",
        *("s_nop 7" for _ in range(3)), "s_waitcnt vmcnt(0) lgkmcnt(0)",
        *(f"global_store_dword v60, v{k}, {OUTPUT} offset:{128 * n}"
          for n, k in enumerate(_REGISTERS)),
        END])
    context = kernels.context(text)
    before = text.split("\n")
    known = {v.signature for v in (*missing_waits(context.program), *hazards(context.program))}
    for proposal in RULE.matches(context):
        assert not proposal.assumption
        after = context.preview.apply(proposal.edits)
        found = {v.signature for v in (*missing_waits(after.program), *hazards(after.program))}
        assert found <= known
        lines = kernels.edited(text, proposal)
        for scalars in ({8: 0xFFFF, 9: 0}, {8: 0, 9: 0}):
            assert np.array_equal(stored(before, scalars, lds_bytes=1024),
                                  stored(lines, scalars, lds_bytes=1024)), lines
