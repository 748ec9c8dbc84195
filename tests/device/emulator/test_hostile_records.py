"""Whatever bytes the core is given as a program, it refuses, faults or ends; it never crashes."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING

import asmevo_core as core
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.device.emulator.random_launch import DTYPE, draw

if TYPE_CHECKING:
    from tests.device.emulator.conftest import Bench

BASE = 0x6000_0000_0000
REGISTERS = st.sampled_from([0, 1, 50, 98, 101, 102, 106, 107, 108, 123, 124, 125, 126, 127, 128,
                             255, 256, 257, 264, 278, 279, 280, 300, 511, 512, 514, 529, 530, 767,
                             768, core.CONSTANT, core.ABSENT])
SMALL = st.integers(-2, 70)
RECORD = st.fixed_dictionaries({
    "op": st.integers(0, len(core.OPERATIONS) + 1), "dst": REGISTERS, "sdst": REGISTERS,
    "src0": REGISTERS, "src1": REGISTERS, "src2": REGISTERS,
    "flags": st.sampled_from([0, 0, 0, 1, 2, 6, 8, 16, 24, 32, 64, 72, 128, 0xFFFF]),
    "dpp_ctrl": st.one_of(st.integers(0, 0x160), st.integers(0, 0x2001)),
    "target": st.integers(-1, 12),
    "imm0": st.one_of(SMALL, st.integers(-(1 << 31), (1 << 31) - 1)), "imm1": SMALL,
    "literal_lo0": st.integers(0, 0xFFFFFFFF), "literal_lo1": st.integers(0, 0xFFFFFFFF),
    "literal_hi1": st.sampled_from([0, BASE >> 32]), "op_sel": st.sampled_from([0, 0, 7]),
    "op_sel_hi": st.sampled_from([0, 0, 7]), "neg": st.sampled_from([0, 0, 3]),
    "row_mask": st.just(15), "bank_mask": st.just(15)})


def program(rows: list[dict[str, int]]) -> core.Program:
    records = np.zeros(len(rows), DTYPE)
    for record, row in zip(records, rows, strict=True):
        for name, value in row.items():
            record[name] = value
    return core.Program(records.view(np.uint8), vgprs=24, agprs=18, mode=0xC0,
                        addresses=[BASE + 8 * k for k in range(len(rows))])


def run(compiled: core.Program) -> None:
    data = np.zeros(256, np.uint32)
    memory = core.Memory([("data", BASE, data.view(np.uint8), True)])
    # s[4:7] is a buffer resource, every other pair points into the region.
    pointer = [BASE & 0xFFFFFFFF, BASE >> 32]
    sgprs = [*pointer * 2, *pointer, 1024, 0x20000, *pointer * 46]
    core.launch(compiled, memory, np.zeros(1, np.uint32), grid=(1, 1, 1), workgroup=(100, 1, 1),
                user_sgprs=sgprs, group_id_sgprs=(-1, -1, -1), work_item_dimensions=1,
                lds_bytes=777, poison=1, instruction_budget=500, trace=core.Trace(),
                private_bytes=36)


@given(st.lists(RECORD, min_size=1, max_size=10))
@settings(max_examples=600, deadline=None)
def test_arbitrary_records(rows: list[dict[str, int]]) -> None:
    try:
        compiled = program(rows)
    except ValueError:
        # Most arrays are refused as a whole; run what is left of them.
        rows = [row for row in rows if accepted(row)]
        if not rows:
            return
        compiled = program([{**row, "target": 0} for row in rows])
    with contextlib.suppress(core.FaultError):
        run(compiled)


def accepted(row: dict[str, int]) -> bool:
    try:
        program([{**row, "target": 0}])
    except ValueError:
        return False
    return True


def test_every_operation_runs_somewhere_at_the_edge_of_its_registers() -> None:
    """The fuzz above is only worth something when its records reach every handler."""
    rng = np.random.default_rng(0)
    choices = np.array([0, 98, 100, 101, 106, 124, 126, 256, 264, 278, 279, 512, 514, 529,
                        core.CONSTANT, core.ABSENT])
    reached: set[int] = set()
    for op in range(len(core.OPERATIONS)):
        runs = 0
        for registers in rng.choice(choices, (400, 5)).tolist():
            row = {"op": op, "target": 0, "row_mask": 15, "bank_mask": 15,
                   **dict(zip(("dst", "sdst", "src0", "src1", "src2"), registers, strict=True))}
            if core.OPERATIONS[op][1] == "buffer":
                row["src1"] = 4
            if core.OPERATIONS[op][1] == "matrix":
                row["src2"] = int(rng.choice([264, 512, core.CONSTANT]))
            if core.OPERATIONS[op][1] == "lds":
                row["src1"], row["src2"] = (int(rng.choice([256, 278, 512, 529])) for _ in "12")
            if not accepted(row):
                continue
            reached.add(op)
            runs += 1
            with contextlib.suppress(core.FaultError):
                run(program([row]))
            if runs == 20:
                break
    assert reached == set(range(len(core.OPERATIONS)))


def test_invalid_record_is_named(bench: Bench) -> None:
    with pytest.raises(core.InvalidRecordError) as caught:
        program([{"op": 0, "dst": 5, "src0": 5}, {"op": len(core.OPERATIONS)}])
    assert caught.value.args[0] == 1


@pytest.mark.parametrize("size", [1, core.RECORD_SIZE - 1, core.RECORD_SIZE + 1])
def test_truncated_record_array(size: int) -> None:
    with pytest.raises(ValueError, match="whole number"):
        core.Program(np.zeros(size, np.uint8), vgprs=8, agprs=0, mode=0xC0)


def test_random_launches_end_and_do_the_same_on_several_threads() -> None:
    """The generator of ``tests/fuzz/fuzz_emulator.py``."""
    rng = np.random.default_rng(7)
    faults = ends = 0
    for _ in range(400):
        drawn = draw(rng.bytes(int(rng.integers(200, 1200))))
        alone = drawn.run(1)
        assert drawn.run(3) == alone
        drawn.run(1, traced=True)
        drawn.run(1, checked=True)
        faults += alone[0] == "fault"
        ends += alone[0] != "fault"
    assert faults > 50
    assert ends > 50
