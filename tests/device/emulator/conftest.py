"""A bench that runs a few instructions on chosen register contents, and reference arithmetic."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import asmevo_core as core
import numpy as np
import numpy.typing as npt
import pytest

from asmevo.device.emulator.lower import lower
from asmevo.isa.program import Program

U32 = npt.NDArray[np.uint32]
INPUT_BASE = 0x7F00_0000_0000
OUTPUT_BASE = 0x7F80_0000_0000
ALL_LANES = (1 << 64) - 1


def assemble(lines: Sequence[str]) -> Program:
    """A program from instruction texts and ``label:`` lines."""
    rows: list[tuple[int, int, str]] = []
    labels: dict[int, str] = {}
    for line in lines:
        if line.endswith(":"):
            labels[8 * len(rows)] = line[:-1]
        else:
            rows.append((8 * len(rows), 8, line))
    return Program.from_disassembly(rows, labels)


@dataclass(slots=True)
class Outcome:
    """Registers after the instructions: one value a lane, or a scalar per wave."""

    vector: dict[int, U32] = field(default_factory=dict)
    scalar: dict[int, U32] = field(default_factory=dict)
    scc: U32 = field(default_factory=lambda: np.zeros(0, np.uint32))


@dataclass(slots=True)
class Bench:
    """Runs waves whose registers hold given values.

    Vector inputs are arrays of equal length, a multiple of 64: every 64 elements are one wave.
    s[0:69] may be given; v0, v1 and s70 up are the bench's own.
    """

    vgprs: int = 64
    agprs: int = 32
    keep_denormals: bool = False
    dx10_clamp: bool = False
    fused: bool = False
    prompt_returns: bool = False
    narrow: bool = False
    # Further bits of MODE.
    mode: int = 0xC0
    nan: int = 0

    def run(self, body: Sequence[str], *, vector: Mapping[int, U32] | None = None,
            scalar: Mapping[int, int] | None = None, exec_mask: int = ALL_LANES, scc: int = 0,
            vector_out: Sequence[int] = (), scalar_out: Sequence[int] = (),
            lds_bytes: int = 0, poison: int = 7, waves: int | None = None) -> Outcome:
        vector = dict(vector or {})
        count = len(next(iter(vector.values()))) if vector else 64 * (waves or 1)
        assert count % 64 == 0
        waves = count // 64
        sgprs = [0] * 100
        for number, value in (scalar or {}).items():
            assert number < 70
            sgprs[number] = value & 0xFFFFFFFF
        sgprs[70], sgprs[71] = INPUT_BASE & 0xFFFFFFFF, INPUT_BASE >> 32
        sgprs[72], sgprs[73] = OUTPUT_BASE & 0xFFFFFFFF, OUTPUT_BASE >> 32
        sgprs[74], sgprs[75] = exec_mask & 0xFFFFFFFF, exec_mask >> 32
        sgprs[76] = scc

        lines = ["s_lshl_b32 s77, s80, 8", "v_lshl_add_u32 v1, v0, 2, s77"]
        for slot, number in enumerate(vector):
            lines += [f"v_add_u32_e32 v{number}, {4 * count * slot:#x}, v1",
                      f"global_load_dword v{number}, v{number}, s[70:71]"]
        lines += ["s_waitcnt vmcnt(0)", "s_cmp_lg_u32 s76, 0", "s_mov_b64 exec, s[74:75]"]
        lines += body
        # SCC first: nothing before it may change it. Lanes come back on for the stores.
        lines += ["s_cselect_b32 s78, 1, 0", "s_mov_b64 exec, -1", "s_waitcnt vmcnt(0) lgkmcnt(0)"]
        values = [*(f"v{n}" for n in vector_out), *(f"s{n}" if n < 102 else _special(n)
                                                    for n in scalar_out), "s78"]
        for slot, name in enumerate(values):
            lines += [f"v_mov_b32_e32 v{self.vgprs - 1}, {name}",
                      f"v_add_u32_e32 v{self.vgprs - 2}, {4 * count * slot:#x}, v1",
                      f"global_store_dword v{self.vgprs - 2}, v{self.vgprs - 1}, s[72:73]"]
        lines.append("s_endpgm")

        inputs = np.concatenate([*(np.asarray(a, np.uint32) for a in vector.values()),
                                 np.zeros(1, np.uint32)])
        outputs = np.zeros(count * len(values), np.uint32)
        memory = core.Memory([("in", INPUT_BASE, inputs.view(np.uint8), False),
                              ("out", OUTPUT_BASE, outputs.view(np.uint8), True)])
        self.launch(assemble(lines), memory, sgprs, waves, lds_bytes=lds_bytes, poison=poison)
        columns = outputs.reshape(len(values), count)
        outcome = Outcome(scc=columns[-1, ::64])
        for slot, number in enumerate(vector_out):
            outcome.vector[number] = columns[slot]
        for slot, number in enumerate(scalar_out):
            outcome.scalar[number] = columns[len(vector_out) + slot, ::64]
        return outcome

    def program(self, program: Program) -> core.Program:
        return core.Program(lower(program), vgprs=self.vgprs, agprs=self.agprs,
                            mode=self.mode | 0x30 * self.keep_denormals
                            | 0x100 * self.dx10_clamp, fused_matrix_sums=self.fused,
                            narrow=self.narrow)

    def launch(self, program: Program, memory: core.Memory, sgprs: Sequence[int], groups: int, *,
               workgroup: int = 64, lds_bytes: int = 0, poison: int = 7,
               budget: int = 10_000_000, private_bytes: int = 0) -> int:
        """Run a whole program; s80 is the workgroup id."""
        order = np.arange(groups, dtype=np.uint32)
        return core.launch(
            self.program(program), memory, order, grid=(groups, 1, 1), workgroup=(workgroup, 1, 1),
            user_sgprs=list(sgprs), group_id_sgprs=(80, -1, -1), work_item_dimensions=1,
            lds_bytes=lds_bytes, poison=poison, instruction_budget=budget,
            private_bytes=private_bytes, prompt_returns=self.prompt_returns, nan=self.nan)


    @staticmethod
    def assemble(lines: Sequence[str]) -> Program:
        return assemble(lines)

    @staticmethod
    def integers(sources: int, seed: int) -> list[U32]:
        return samples(BOUNDARY_INTEGERS, sources, seed)

    @staticmethod
    def floats(sources: int, seed: int) -> list[U32]:
        return samples(BOUNDARY_FLOATS, sources, seed)


def _special(number: int) -> str:
    return {106: "vcc_lo", 107: "vcc_hi", 124: "m0", 126: "exec_lo", 127: "exec_hi"}[number]


@pytest.fixture
def bench() -> Bench:
    return Bench()


BOUNDARY_INTEGERS = np.array(
    [0, 1, 2, 31, 32, 33, 63, 64, 0x7F, 0x80, 0xFF, 0x7FFF, 0x8000, 0xFFFF, 0x10000, 0x7FFFFF,
     0x800000, 0xFFFFFF, 0x1000000, 0x7FFFFFFF, 0x80000000, 0x80000001, 0xFFFFFFFE, 0xFFFFFFFF],
    np.uint32)
BOUNDARY_FLOATS = np.array(
    [0x00000000, 0x80000000, 0x00000001, 0x80000001, 0x007FFFFF, 0x807FFFFF, 0x00800000,
     0x80800000, 0x3F800000, 0xBF800000, 0x3F000000, 0x7F7FFFFF, 0xFF7FFFFF, 0x7F800000,
     0xFF800000, 0x7FC00000, 0x7FA00001, 0xFFC12345, 0x4F000000, 0xCF000000, 0x4F800000,
     0x33800000, 0x3F7FFFFF, 0x3F800001], np.uint32)


def samples(boundary: U32, sources: int, seed: int) -> list[U32]:
    """Every pair of boundary values and random ones, per source; a multiple of 64 long."""
    rng = np.random.default_rng(seed)
    a, b = (x.ravel() for x in np.meshgrid(boundary, boundary))
    columns = [a, b, rng.permutation(a)]
    size = -(-(len(a) + 448) // 64) * 64
    # Random bits are mostly huge or tiny floats; half of the random part has close exponents.
    random = [rng.integers(0, 1 << 32, size - len(a), dtype=np.uint32) for _ in range(3)]
    for column in random:
        half = len(column) // 2
        column[:half] = rng.normal(0, 4, half).astype(np.float32).view(np.uint32)
    return [np.concatenate(pair) for pair in zip(columns, random, strict=True)][:sources]
