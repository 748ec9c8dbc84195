"""Rules that move work out of loops or off the vector unit, on random loops run by the emulator."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from asmevo.isa.hazards import hazards
from asmevo.isa.waits import missing_waits
from asmevo.propose.rule import Rule, RuleContext
from asmevo.propose.rules.hoist_invariants import HoistInvariants
from asmevo.propose.rules.reuse_results import ReuseResults
from asmevo.propose.rules.scalarise import Scalarise
from tests.propose.emulated import OUTPUT, stored

_VGPR = st.integers(2, 6)
_SGPR = st.integers(10, 13)
_SOURCE = st.one_of(_SGPR.map("s{}".format), _VGPR.map("v{}".format),
                    st.sampled_from(["0", "3", "-1", "1.0"]))
_SCALAR = st.one_of(_SGPR.map("s{}".format), st.sampled_from(["s7", "2", "0x1234"]))


def _of(text: str, *parts: st.SearchStrategy[Any]) -> st.SearchStrategy[str]:
    return st.tuples(*parts).map(lambda t: text.format(*t))


INSTRUCTIONS = st.one_of(
    _of("v_mov_b32_e32 v{}, {}", _VGPR, st.one_of(_SOURCE, _SCALAR)),
    _of("v_add_u32_e32 v{}, {}, v{}", _VGPR, st.one_of(_SOURCE, _SCALAR), _VGPR),
    _of("v_sub_u32_e64 v{}, {}, s{}", _VGPR, st.sampled_from(["v2", "v3", "5"]), _SGPR),
    _of("v_lshl_add_u32 v{}, v{}, 2, {}", _VGPR, _VGPR, _SOURCE),
    _of("v_xor_b32_e32 v{}, {}, v{}", _VGPR, _SOURCE, _VGPR),
    _of("v_mul_lo_u32 v{}, v{}, v{}", _VGPR, _VGPR, _VGPR),
    _of("v_cmp_gt_u32_e32 vcc, {}, v{}", _SOURCE, _VGPR),
    _of("v_cndmask_b32_e32 v{}, {}, v{}, vcc", _VGPR, st.sampled_from(["v2", "v3", "0"]), _VGPR),
    _of("v_readfirstlane_b32 s{}, v{}", _SGPR, _VGPR),
    _of("s_add_u32 s{}, {}, s{}", _SGPR, _SCALAR, _SGPR),
    _of("s_mov_b32 s{}, {}", _SGPR, _SCALAR),
    _of("s_cselect_b32 s{}, {}, 1", _SGPR, _SCALAR),
    st.sampled_from([
        "s_mov_b64 exec, s[8:9]", "s_and_b64 exec, exec, s[8:9]", "s_mov_b64 exec, -1",
        "s_and_saveexec_b64 s[14:15], vcc", "s_or_b64 exec, exec, s[14:15]"]),
)
_FRAME = """
v_lshlrev_b32_e32 v1, 2, v0
v_mov_b32_e32 v2, v0
v_mul_u32_u24_e32 v3, v0, v0
v_xor_b32_e32 v4, v0, v3
v_mov_b32_e32 v5, s7
v_mov_b32_e32 v6, 0
s_mov_b64 vcc, s[8:9]
s_mov_b64 s[14:15], 0
{front}
again:
{inside}
s_add_i32 s6, s6, -1
s_cmp_gt_i32 s6, 0
s_cbranch_scc1 again
s_mov_b64 exec, -1
{behind}
s_mov_b64 exec, -1
{stores}
s_endpgm
"""
_STORES = "\n".join(
    [f"global_store_dword v1, v{k}, {OUTPUT} offset:{256 * k}" for k in range(2, 7)]
    + [f"v_mov_b32_e32 v{k + 10}, s{k}\n"
       f"global_store_dword v1, v{k + 10}, {OUTPUT} offset:{256 * (k - 3)}" for k in range(10, 14)])


def _texts(most: int) -> st.SearchStrategy[list[str]]:
    return st.lists(INSTRUCTIONS, max_size=most)


@pytest.mark.parametrize(
    "rule", [HoistInvariants(), ReuseResults(), Scalarise()], ids=lambda rule: rule.name)
@settings(max_examples=40, deadline=None)
@given(front=_texts(3), inside=_texts(10), behind=_texts(3))
def test_what_is_stored_stays(
        kernels: Any, rule: Rule, front: list[str], inside: list[str], behind: list[str]) -> None:
    text = _FRAME.format(front="\n".join(front), inside="\n".join(inside),
                         behind="\n".join(behind), stores=_STORES)
    context: RuleContext = kernels.context(text)
    before = [x.strip() for x in text.strip().split("\n") if x.strip()]
    known = {v.signature for v in hazards(context.program)}
    given_scalars = ({6: 3, 7: 9, 8: 0xFFFF, 9: 0, 10: 1, 11: 2, 12: 3, 13: 4},
                     {6: 1, 7: 0, 8: 0, 9: 0, 10: 7, 11: 0x80000000, 12: 0, 13: 5})
    for proposal in rule.matches(context):
        after = context.preview.apply(proposal.edits)
        assert not missing_waits(after.program)
        assert {v.signature for v in hazards(after.program)} <= known
        lines = kernels.edited(text, proposal)
        for scalars in given_scalars:
            assert np.array_equal(stored(before, scalars), stored(lines, scalars)), lines
