"""Writes and reads where a kernel has no business (B13, B14, B21)."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from asmevo.gates.verdict import Gate, Verdict
from asmevo.task.session import Session

Judge = Callable[..., tuple[Verdict, ...]]

END = "s_waitcnt vmcnt(0) expcnt(0)"
ROW = 8192 * 2  # bytes


@pytest.mark.parametrize("pattern", ["0xc5c5c5c5", "0", "-1"])
def test_guards_cannot_be_overwritten_with_themselves(
    layer_norm: Session, judge: Judge, pattern: str
) -> None:
    """Was committed while guards held the one byte 0xC5 everywhere."""
    rows = layer_norm.baseline.dispatches[0].regions[0]
    beyond = (
        # At the end s[12:15] describe the output from its second row on.
        f"v_mov_b32_e32 v240, {len(rows.data) - ROW:#x}",
        *(f"v_mov_b32_e32 v{244 + i}, {pattern}" for i in range(4)),
        "buffer_store_dwordx4 v[244:247], v240, s[12:15], 0 offen",
    )
    verdicts = judge(layer_norm, ("before", END, beyond))
    assert (verdicts[-1].gate, verdicts[-1].code) == (Gate.G2, "guard-overwritten")


def test_inputs_cannot_be_written_and_put_back(layer_norm: Session, judge: Judge) -> None:
    """Was equal afterwards, but a race between workgroups on hardware."""
    verdicts = judge(layer_norm, ("before", END, (
        "v_mov_b32_e32 v240, 0", "buffer_load_dwordx4 v[244:247], v240, s[20:23], 0 offen",
        "s_waitcnt vmcnt(0)",
        "buffer_store_dwordx4 v[212:215], v240, s[20:23], 0 offen",
        "buffer_store_dwordx4 v[244:247], v240, s[20:23], 0 offen",
    )))
    assert (verdicts[-1].gate, verdicts[-1].code) == (Gate.G2, "fault-memory")


@pytest.mark.parametrize("bits", ["nt", "sc0", "sc1", "sc0 sc1"])
def test_coherence_bits_are_the_originals(topksoftmax: Session, judge: Judge, bits: str) -> None:
    store = "buffer_store_dword v13, v9, s[4:7], 0 offen"
    verdicts = judge(topksoftmax, ("replace", store, (f"{store} {bits}",)))
    assert (verdicts[-1].gate, verdicts[-1].code) == (Gate.G1, "coherence")


@pytest.mark.parametrize("register", ["exec_lo", "m0", "flat_scratch_lo", "xnack_mask_lo"])
def test_special_registers_are_left_alone(
    layer_norm: Session, judge: Judge, register: str
) -> None:
    verdicts = judge(layer_norm, ("before", END, (f"s_mov_b32 {register}, -1",)))
    assert (verdicts[-1].gate, verdicts[-1].code) == (Gate.G1, "special-register")
