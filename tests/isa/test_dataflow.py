"""Liveness, definitions and uses; EXEC, VSKIP and VGPR indexing."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from asmevo.isa.cfg import Cfg
from asmevo.isa.dataflow import (
    ENTRY,
    defined_before_use,
    liveness,
    reaching_definitions,
    users,
)
from asmevo.isa.effects import State, effects, has_side_effects, machine_states
from asmevo.isa.parse import parse
from asmevo.isa.program import Program
from asmevo.isa.registers import SCC_MASK, VGPR0, mask, names
from asmevo.isa.resources import register_use

Write = Callable[[str], Program]

LOOP = """
    s_mov_b32 s0, 4
    v_mov_b32_e32 v1, 0
    again:
    v_add_f32_e32 v1, v1, v2
    v_mov_b32_e32 v3, v1
    s_sub_u32 s0, s0, 1
    s_cmp_eq_u32 s0, 0
    s_cbranch_scc0 again
    global_store_dword v[4:5], v3, off
    s_endpgm
"""


def _vectors(registers: int) -> str:
    return names(registers >> VGPR0 << VGPR0)


def test_liveness_around_a_loop(write: Write) -> None:
    after = liveness(write(LOOP))
    assert _vectors(after[0]) == "v2, v4, v5"
    assert _vectors(after[1]) == "v1, v2, v4, v5"
    assert _vectors(after[3]) == "v1, v2, v3, v4, v5"
    assert _vectors(after[6]) == "v1, v2, v3, v4, v5"
    assert after[7] == after[8] == 0
    assert not after[4] & SCC_MASK
    assert after[5] & SCC_MASK


def test_a_write_under_partial_exec_keeps_the_old_value_alive(write: Write) -> None:
    text = """
        s_and_saveexec_b64 s[0:1], vcc
        v_mov_b32_e32 v0, 1
        s_mov_b64 exec, -1
        v_mov_b32_e32 v1, 1
        global_store_dwordx2 v[2:3], v[0:1], off
        s_endpgm
    """
    program = write("s_nop 0" + text)
    assert _vectors(liveness(program)[0]) == "v0, v2, v3"
    assert _vectors(liveness(program, full_exec=False)[0]) == "v0, v2, v3"
    full = write("s_nop 0" + text.replace("s_and_saveexec_b64 s[0:1], vcc", "s_nop 0"))
    assert _vectors(liveness(full)[0]) == "v2, v3"
    assert _vectors(liveness(full, full_exec=False)[0]) == "v0, v2, v3"


def test_scalar_and_matrix_results_do_not_depend_on_exec(write: Write) -> None:
    program = write("""
        s_mov_b64 exec, 1
        v_cmp_eq_u32_e64 s[4:5], v0, v1
        v_mfma_f32_16x16x16_f16 v[4:7], v[8:9], v[10:11], 0
        v_mov_b32_e32 v2, 0
        s_endpgm
    """)
    kills = [e.kills for e in effects(program, Cfg.of(program))]
    assert (kills[1], kills[2], kills[3]) == (mask(4, 2), mask(VGPR0 + 4, 4), 0)


def test_exec_halves_are_tracked_separately(write: Write) -> None:
    program = write("""
        s_mov_b64 exec, s[0:1]
        s_mov_b32 exec_lo, -1
        s_mov_b32 exec_hi, -1
        s_endpgm
    """)
    assert machine_states(program, Cfg.of(program)) == (
        State(0), State.EXEC_LO_PARTIAL | State.EXEC_HI_PARTIAL, State.EXEC_HI_PARTIAL, State(0))


def test_vskip_may_skip_vector_writes(write: Write) -> None:
    program = write("""
        s_setvskip s0, 0
        v_mov_b32_e32 v0, 0
        s_mov_b32 s1, 0
        s_setvskip 0, 0
        v_mov_b32_e32 v1, 0
        s_setvskip 4, 2
        v_mov_b32_e32 v2, 0
        s_endpgm
    """)
    kills = [e.kills for e in effects(program, Cfg.of(program))]
    assert (kills[1], kills[2], kills[4], kills[6]) == (0, mask(1), mask(VGPR0 + 1), 0)


def test_vgpr_indexing_moves_operands(write: Write) -> None:
    program = write("""
        s_set_gpr_idx_on s0, gpr_idx(DST)
        v_mov_b32_e32 v250, v1
        s_set_gpr_idx_mode gpr_idx(SRC0)
        v_mov_b32_e32 v250, v252
        s_mov_b32 m0, s1
        v_mov_b32_e32 v254, v2
        s_set_gpr_idx_off
        v_mov_b32_e32 v250, v1
        s_endpgm
    """)
    facts = effects(program, Cfg.of(program))
    assert _vectors(facts[1].writes) == "v250, v251, v252, v253, v254, v255"
    assert (_vectors(facts[1].kills), _vectors(facts[1].reads)) == ("", "v1")
    assert (_vectors(facts[3].writes), _vectors(facts[3].kills)) == ("v250", "v250")
    assert _vectors(facts[3].reads) == "v252, v253, v254, v255"
    assert _vectors(facts[5].writes) == "v254, v255"
    assert facts[5].reads.bit_count() > 254
    assert (_vectors(facts[7].writes), _vectors(facts[7].kills)) == ("v250", "v250")


def test_the_machine_state_is_what_any_path_may_leave(write: Write) -> None:
    program = write("""
        s_cbranch_scc0 join
        s_setreg_imm32_b32 hwreg(HW_REG_MODE, 28, 1), 1
        join:
        v_mov_b32_e32 v0, 0
        s_endpgm
    """)
    assert machine_states(program, Cfg.of(program))[2] == State.VSKIP


def test_users_follow_values_around_loops(write: Write) -> None:
    program = write(LOOP)
    assert users(program, 1) == (2,)
    assert users(program, 2) == (2, 3)
    assert users(program, 3) == (7,)
    assert users(program, 0) == (4,)
    assert users(program, 5) == (6,)


def test_reaching_definitions(write: Write) -> None:
    program = write(LOOP)
    assert reaching_definitions(program, 2, mask(VGPR0 + 1)) == (1, 2)
    assert reaching_definitions(program, 2, mask(VGPR0 + 2)) == (ENTRY,)
    assert reaching_definitions(program, 7, mask(VGPR0 + 3)) == (3,)
    assert reaching_definitions(program, 4, mask(0)) == (0, 4)


def test_a_read_before_any_write_is_found(write: Write) -> None:
    program = write("""
        s_cbranch_scc0 join
        v_mov_b32_e32 v1, 0
        join:
        v_add_f32_e32 v0, v1, v2
        s_endpgm
    """)
    given = SCC_MASK | mask(VGPR0 + 2)
    (violation,) = defined_before_use(program, given)
    assert (violation.kind, violation.producer, violation.consumer) == ("undefined-read", ENTRY, 2)
    assert names(violation.registers) == "v1"
    assert defined_before_use(program, given | mask(VGPR0 + 1)) == ()


def test_small_kernels_read_only_what_the_launch_defines(small_kernels: list[Program]) -> None:
    """Kernarg pointer, workgroup ids and the packed work-item id are all they get.

    On layer norm the one path that skips the loop reads accumulators: s53 counts from 0 to 1, so
    the loop runs exactly once and that path is never taken.
    """
    launch = mask(0, 16) | mask(VGPR0)
    layer_norm, *others = small_kernels
    for program in others:
        assert defined_before_use(program, launch) == ()
    last_block = Cfg.of(layer_norm).blocks[-1]
    for violation in defined_before_use(layer_norm, launch):
        assert last_block.start <= violation.consumer < last_block.end


@pytest.mark.parametrize(("text", "expected"), [
    ("v_add_f32_e32 v0, v1, v2", False), ("global_load_dword v0, v[2:3], off", False),
    ("s_mov_b64 exec, -1", False), ("global_store_dword v[2:3], v0, off", True),
    ("global_atomic_add_f32 v1, v[2:3], v4, off sc0", True), ("s_barrier", True),
    ("buffer_load_dword v1, s[4:7], 0 offen lds", True), ("s_waitcnt vmcnt(0)", True),
    ("s_setprio 1", True), ("s_call_b64 s[0:1], 4", True), ("s_setvskip 0, 0", True),
    ("s_memtime s[0:1]", True), ("ds_add_rtn_u32 v0, v1, v2", True), ("s_endpgm", True)])
def test_side_effects(text: str, expected: bool) -> None:
    assert has_side_effects(parse(text)) is expected


def test_register_use(write: Write) -> None:
    assert register_use(write("v_add_f32_e32 v0, s30, v41\n v_accvgpr_write_b32 a7, v1\n s_endpgm")
                        ) == (42, 8, 31)
    assert register_use(write("s_mov_b64 vcc, exec\n s_endpgm")) == (0, 0, 0)
