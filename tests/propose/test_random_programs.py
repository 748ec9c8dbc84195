"""On random straight-line kernels a proposal without an assumption changes no store.

The reference is a symbolic execution written here: every value is named by the text that computed
it and the values that went in, so two orders of the same computation give the same names.
"""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from asmevo.isa.hazards import hazards
from asmevo.isa.instruction import Instruction
from asmevo.isa.registers import members
from asmevo.isa.waits import missing_waits
from asmevo.propose.preview import Preview
from asmevo.propose.rule import Rule, RuleContext
from asmevo.propose.rules.dead_code import DeadCode
from asmevo.propose.rules.hoist_loads import HoistLoads
from asmevo.propose.rules.identity_moves import IdentityMoves
from asmevo.propose.rules.relax_waits import RelaxWaits
from asmevo.propose.rules.schedule_blocks import ScheduleBlocks
from asmevo.propose.rules.trim_nops import TrimNops

_VGPR = st.integers(0, 5)
_SGPR = st.integers(16, 19)
_SHUFFLE = "row_ror:4 row_mask:0xf bank_mask:0xf"


def _template(text: str, vgprs: int = 0, sgprs: int = 0) -> st.SearchStrategy[str]:
    return st.tuples(*[_VGPR] * vgprs, *[_SGPR] * sgprs).map(lambda t: text.format(*t))


INSTRUCTIONS = st.one_of(
    _template("v_add_u32_e32 v{}, v{}, v{}", 3),
    _template("v_mov_b32_e32 v{}, v{}", 2),
    _template("v_add_f32_dpp v{}, v{}, v{} " + _SHUFFLE, 3),
    _template("v_readfirstlane_b32 s{1}, v{0}", 1, 1),
    _template("v_add_u32_e32 v{0}, s{2}, v{1}", 2, 1),
    _template("v_add_co_u32_e32 v{}, vcc, v{}, v{}", 3),
    _template("v_addc_co_u32_e32 v{}, vcc, v{}, v{}, vcc", 3),
    _template("s_add_u32 s{}, s{}, s{}", 0, 3),
    _template("s_addc_u32 s{}, s{}, 0", 0, 2),
    _template("s_mov_b32 s{0}, s{0}", 0, 1),
    _template("s_load_dword s{}, s[0:1], 0x10", 0, 1),
    _template("buffer_load_dword v{}, v{}, s[4:7], 0 offen", 2),
    _template("buffer_store_dword v{}, v{}, s[8:11], s{} offen", 2, 1),
    _template("ds_read_b32 v{}, v{} offset:4", 2),
    _template("ds_write_b32 v{}, v{} offset:8", 2),
    st.sampled_from(["s_barrier", "s_nop 0", "s_nop 4", "s_waitcnt lgkmcnt(0)",
                     "s_waitcnt vmcnt(0)", "s_waitcnt vmcnt(1) lgkmcnt(0)"]),
)


@pytest.mark.parametrize("rule", [
    DeadCode(), IdentityMoves(), RelaxWaits(), TrimNops(), HoistLoads(), ScheduleBlocks(),
], ids=lambda rule: rule.name)
@settings(max_examples=30, deadline=None)
@given(texts=st.lists(INSTRUCTIONS, min_size=3, max_size=24))
@example(texts=["buffer_load_dword v0, v0, s[4:7], 0 offen", "s_waitcnt vmcnt(0)",
                "s_waitcnt vmcnt(0)", "v_add_u32_e32 v0, v0, v0"])
def test_proposals_keep_stores_and_waits(kernels: Any, rule: Rule, texts: list[str]) -> None:
    context: RuleContext = kernels.context("\n".join((*texts, "s_endpgm")))
    expected = _effects(context.preview)
    known = _found(context.preview)
    for proposal in rule.matches(context):
        if proposal.assumption:
            continue
        after = context.preview.apply(proposal.edits)
        assert _effects(after) == expected
        assert _found(after) <= known


def _found(preview: Preview) -> set[tuple[str, str, str, int]]:
    return {v.signature for v in (*missing_waits(preview.program), *hazards(preview.program))}


def _effects(preview: Preview) -> list[tuple[int, str, tuple[object, ...]]]:
    """Stores and barriers by epoch and space, with the names of all values that they read."""
    values: dict[int, object] = {}
    written: dict[str, int] = {}
    barriers = 0
    out: list[tuple[int, str, tuple[object, ...]]] = []
    for i in preview.program.instructions:
        if i.wait is not None or i.op in ("s_nop", "s_endpgm"):
            continue
        if _is_identity(i):
            continue
        name: tuple[object, ...] = (
            i.text, tuple(values.get(r, f"entry {r}") for r in members(i.reads)))
        space = i.unit.value
        if i.is_load:
            name = (*name, written.get(space, 0), barriers)
        elif i.is_store:
            written[space] = written.get(space, 0) + 1
            out.append((barriers, space, name))
        elif i.op == "s_barrier":
            barriers += 1
            out.append((barriers, space, ()))
        for register in members(i.writes):
            values[register] = (hash(name), register)
    # Different address spaces need no common order between two barriers.
    return sorted(out, key=lambda e: e[:2])


def _is_identity(instruction: Instruction) -> bool:
    """``s_mov_b32 x, x``, ``v_mov_b32_e32 x, x``: the value keeps its name."""
    operands = instruction.operands
    return (instruction.op in ("s_mov_b32", "v_mov_b32") and instruction.encoding != "dpp"
            and operands[0].text == operands[1].text)
