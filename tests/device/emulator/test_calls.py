"""The program counter: calls, returns and computed jumps within a program."""

from __future__ import annotations

from typing import TYPE_CHECKING

import asmevo_core as core
import pytest

if TYPE_CHECKING:
    from tests.device.emulator.conftest import Bench


def test_calls_return_behind_themselves(bench: Bench) -> None:
    """Through a computed address, as LLVM calls a function, and directly."""
    out = bench.run([
        "s_mov_b32 s4, 0", "s_getpc_b64 s[6:7]", "s_add_u32 s6, s6, 56", "s_addc_u32 s7, s7, 0",
        "s_swappc_b64 s[30:31], s[6:7]", "s_call_b64 s[30:31], double", "s_add_u32 s5, s4, 100",
        "s_branch done", "s_nop 0", "double:", "s_lshl_b32 s4, s4, 1", "s_add_u32 s4, s4, 3",
        "s_setpc_b64 s[30:31]", "done:"], scalar_out=[4, 5])
    assert (int(out.scalar[4][0]), int(out.scalar[5][0])) == (9, 109)


def test_the_counter_points_at_the_next_instruction(bench: Bench) -> None:
    out = bench.run(["s_getpc_b64 s[4:5]", "s_getpc_b64 s[6:7]", "s_sub_u32 s8, s6, s4"],
                    scalar_out=[5, 7, 8])
    assert int(out.scalar[8][0]) == 8
    assert out.scalar[5][0] == out.scalar[7][0]


@pytest.mark.parametrize("offset", [4, 1 << 20])
def test_a_jump_outside_the_instructions_is_a_fault(bench: Bench, offset: int) -> None:
    with pytest.raises(core.FaultError, match="where the program has no instruction"):
        bench.run(["s_getpc_b64 s[4:5]", f"s_add_u32 s4, s4, {offset}", "s_setpc_b64 s[4:5]"])


@pytest.mark.parametrize("offsets", [[0, 8], [0, 8, 4], [0, 4, 1 << 50]])
def test_offsets_must_fit_the_program(bench: Bench, offsets: list[int]) -> None:
    from asmevo.device.emulator.lower import lower
    records = lower(bench.assemble(["s_nop 0", "s_endpgm"]))
    with pytest.raises(ValueError, match="offset"):
        core.Program(records, vgprs=8, agprs=0, mode=0, offsets=offsets)
