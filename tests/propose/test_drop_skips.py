"""Branches over short stretches: which go."""

from __future__ import annotations

from typing import Any

import pytest

from asmevo.propose.rules.drop_skips import DropSkips

TEXT = """
s_and_saveexec_b64 s[4:5], vcc
s_cbranch_execz end
{inside}
end:
s_or_b64 exec, exec, s[4:5]
v_mov_b32_e32 v9, s8
global_store_dword v[2:3], v9, off
s_endpgm
"""


@pytest.mark.parametrize("inside", [
    "v_mov_b32_e32 v9, 0", "global_store_dword v[2:3], v1, off",
    "s_mov_b32 s9, 0\nds_write_b32 v1, v2",
])
def test_short_stretches_lose_their_branch(kernels: Any, inside: str) -> None:
    text = TEXT.format(inside=inside)
    assert kernels.first(DropSkips(), text) == [
        line for line in text.strip().split("\n") if "execz" not in line]


@pytest.mark.parametrize("inside", [
    "s_mov_b32 s8, 0",                                # read behind the stretch
    "v_readfirstlane_b32 s8, v1",
    "v_writelane_b32 v9, s9, 3",                      # whatever EXEC is
    "s_load_dword s9, s[2:3], 0x0",                   # may not be mapped
    "s_and_b64 exec, exec, s[10:11]",
    "s_barrier",
    "v_mov_b32_e32 v9, 0\n" * 17,
])
def test_stretches_that_keep_it(kernels: Any, inside: str) -> None:
    assert kernels.proposals(DropSkips(), TEXT.format(inside=inside)) == []
