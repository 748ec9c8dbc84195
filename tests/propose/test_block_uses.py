"""Who wrote and who reads a register within a block, as lanes see it."""

from __future__ import annotations

from typing import Any

import pytest

from asmevo.isa.registers import VGPR0, mask
from asmevo.propose.block_uses import BlockUses
from asmevo.propose.rules.fast_division import FastDivision
from asmevo.propose.rules.fold_offsets import FoldOffsets
from tests.propose.test_arithmetic import DIVISION

V5 = mask(VGPR0 + 5)
READ = "v_add_u32_e32 v6, v5, v0"
WRITE = "v_mov_b32_e32 v5, 0"
SAVE, RESTORE = "s_and_saveexec_b64 s[10:11], s[8:9]", "s_or_b64 exec, exec, s[10:11]"
STORE = "global_store_dword v[0:1], v2, off"
INDEXED = "s_set_gpr_idx_on s7, gpr_idx(SRC0)\nv_mov_b32_e32 v9, v0\ns_set_gpr_idx_off"


def readers(kernels: Any, *behind: str) -> frozenset[int] | None:
    text = "\n".join(("v_mov_b32_e32 v5, v1", *behind, "s_endpgm"))
    return BlockUses.around(kernels.context(text), 0).readers(0, V5)


@pytest.mark.parametrize(("behind", "expected"), [
    ([READ, WRITE, READ], {1}),
    ([READ, READ], {1, 2}),
    ([SAVE, WRITE, RESTORE], set()),
    ([READ, SAVE, WRITE, RESTORE, WRITE, READ], {1}),
    # Lanes that were off in between, and those that are on, read it elsewhere.
    ([READ, SAVE, WRITE, RESTORE, READ], None),
    ([READ, SAVE, READ], None),
    ([READ, "s_cbranch_scc1 over", READ, "over:"], None),
    ([READ, INDEXED, WRITE], None),
])
def test_who_reads_a_value(
        kernels: Any, behind: list[str], expected: set[int] | None) -> None:
    assert readers(kernels, *behind) == expected


def test_registers_written_by_index_have_no_writer(kernels: Any) -> None:
    text = ("v_mov_b32_e32 v5, v1\ns_set_gpr_idx_on s7, gpr_idx(DST)\nv_mov_b32_e32 v0, v1\n"
            f"s_set_gpr_idx_off\n{READ}\ns_endpgm")
    uses = BlockUses.around(kernels.context(text), 4)
    assert uses.writer(4, V5) is None
    assert not uses.keeps(0, 4, V5)
    plain = BlockUses.around(kernels.context(f"v_mov_b32_e32 v5, v1\n{READ}\ns_endpgm"), 1)
    assert plain.writer(1, V5) == 0
    assert plain.keeps(0, 1, V5)


@pytest.mark.parametrize("later", [True, False])
def test_an_address_that_lanes_read_later_is_still_computed(kernels: Any, later: bool) -> None:
    use = "v_add_u32_e32 v2, v2, v6\n" if later else ""
    text = (f"v_add_u32_e32 v6, 4, v5\nds_read_b32 v2, v6\ns_waitcnt lgkmcnt(0)\n{SAVE}\n"
            f"v_mov_b32_e32 v6, 0\n{RESTORE}\n{use}{STORE}\ns_endpgm")
    assert bool(kernels.proposals(FoldOffsets(), text)) != later


@pytest.mark.parametrize("later", [True, False])
def test_a_quotient_that_lanes_read_later_is_still_computed(kernels: Any, later: bool) -> None:
    use = "v_add_u32_e32 v2, v2, v8\n" if later else ""
    text = (f"{DIVISION}{SAVE}\nv_mov_b32_e32 v8, 0\n{RESTORE}\n{use}{STORE}\ns_endpgm")
    assert bool(kernels.proposals(FastDivision(), text)) != later
