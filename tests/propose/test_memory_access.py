"""How loads and stores reach memory: cache hints, widths."""

from __future__ import annotations

from typing import Any

import pytest

from asmevo.propose.proposal import Evidence
from asmevo.propose.rule import RuleContext
from asmevo.propose.rules.cache_hints import CacheHints

LOADS = """
global_load_dword v4, v[2:3], off offset:16
again:
buffer_load_dwordx2 v[6:7], v1, s[4:7], 0 offen
s_waitcnt vmcnt(0)
s_cmp_eq_u32 s2, 0
s_cbranch_scc1 again
global_store_dword v[2:3], v4, off
s_endpgm
"""


def test_streaming_loads_are_marked_together_then_in_parts(kernels: Any) -> None:
    marked = [[line for line in kernels.edited(LOADS, p) if line.endswith(" nt")]
              for p in kernels.proposals(CacheHints(), LOADS)]
    first, second = ("global_load_dword v4, v[2:3], off offset:16 nt",
                     "buffer_load_dwordx2 v[6:7], v1, s[4:7], 0 offen nt")
    assert marked == [[first, second], [second], [first], [first], [second]]


@pytest.mark.parametrize("line", [
    "global_load_dword v4, v[2:3], off sc1",
    "global_load_dword v4, v[2:3], off nt",
    "global_atomic_add v4, v[2:3], v5, off sc0",
    "s_load_dword s4, s[2:3], 0x0",
    "buffer_load_dword v1, s[4:7], 0 offen lds",
    "ds_read_b32 v4, v2",
])
def test_accesses_that_are_not_marked(kernels: Any, line: str) -> None:
    assert kernels.proposals(CacheHints(), f"{line}\ns_endpgm") == []


def test_layer_norm_loads_are_marked(layer_norm_evidence: Evidence) -> None:
    context = RuleContext(layer_norm_evidence)
    proposal = next(iter(CacheHints().matches(context)))
    after = context.preview.apply(proposal.edits)
    marked = [i for i in after.program.instructions if i.modifier("nt")]
    assert marked
    assert all("_load_" in i.op for i in marked)
    assert len(after.lines) == len(context.lines)
