"""Launches drawn from a string of bytes: programs, memory images, registers and grids.

A launch may be checked by the sanitizer as well, from check records that mostly have nothing to do
with the program: only its memory safety is looked at then.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import asmevo_core as core
import numpy as np
import numpy.typing as npt

from asmevo.codeobject import disassemble
from asmevo.codeobject.container import CodeObject
from asmevo.codeobject.source import InstalledFile
from asmevo.device.emulator.checked import check_records
from asmevo.device.emulator.lower import lower
from tests.device.emulator.conftest import assemble

BASE = 0x6000_0000_0000
DTYPE = np.dtype({
    "names": [name for name, *_ in core.RECORD_FIELDS],
    "formats": [f"{'i' if signed else 'u'}{size}" for _, _, size, signed in core.RECORD_FIELDS],
    "offsets": [offset for _, offset, _, _ in core.RECORD_FIELDS], "itemsize": core.RECORD_SIZE})
VGPRS, AGPRS = 128, 64
CODE = 0x2000_0000_1000  # where the instructions lie for indirect jumps, 8 bytes each
_VGPR0, _AGPR0 = 256, 512
# Small offsets in v1 and v2, an address in v[4:5], an index in v3, flat addresses of LDS in v[6:7]
# and of scratch in v[8:9]: without them nearly every access would leave the regions at once.
_PROLOGUE = ["v_lshlrev_b32_e32 v1, 2, v0", "v_lshlrev_b32_e32 v2, 4, v0",
             "v_and_b32_e32 v3, 7, v0", "v_mov_b32_e32 v4, s0", "v_mov_b32_e32 v5, s1",
             "v_mov_b32_e32 v6, v1", f"v_mov_b32_e32 v7, {core.SHARED_APERTURE >> 32:#x}",
             "v_and_b32_e32 v8, 31, v1", f"v_mov_b32_e32 v9, {core.PRIVATE_APERTURE >> 32:#x}"]
_SCALARS = (0, 2, 4, 8, 12, 16, 20, 24, 30, 96, 98, 100, 101, 102, 106, 107, 124, 126)
# What changes how everything behind it runs is drawn more often than its share of the table.
_STEERING = tuple(i for i, (name, *_) in enumerate(core.OPERATIONS) if name.startswith((
    "s_set", "s_swappc", "s_call", "s_getpc", "s_barrier", "s_waitcnt", "s_cbranch", "s_branch",
    "s_and_saveexec", "s_andn2_saveexec", "v_cmpx_lt", "v_readlane", "v_writelane", "v_swap",
    "ds_swizzle", "ds_permute", "ds_bpermute", "ds_read_addtid", "ds_write_addtid", "v_smfmac",
    "flat_atomic", "buffer_atomic", "scratch_load", "scratch_store", "v_mov_b64", "v_pk_")))
_MATRIX_IMMEDIATES = (0, 0, 0, 1, 2, 4, 16, 32, 64, 112, 127)
_CONSTANTS = (0, 1, 2, 4, 31, 63, 64, 0xFF, 0xFFFF, 0x3F800000, 0x7FC00000, 0x80000000, 0xFFFFFFFF)


class Choices:
    """Integers from a string of bytes; zeros when it is used up."""

    def __init__(self, data: bytes) -> None:
        self._data = data
        self._at = 0

    def integer(self, low: int, high: int) -> int:
        span = high - low + 1
        size = (span.bit_length() + 7) // 8
        chunk = self._data[self._at:self._at + size]
        self._at += size
        return low + int.from_bytes(chunk, "little") % span

    def pick(self, values: tuple[int, ...]) -> int:
        return values[self.integer(0, len(values) - 1)]

    def one_in(self, n: int) -> bool:
        return self.integer(0, n - 1) == 1

    @property
    def left(self) -> int:
        return len(self._data) - self._at


@lru_cache
def _compiled_records() -> tuple[npt.NDArray[np.void], npt.NDArray[np.uint8]]:
    """Instructions of production kernels, as the emulator lowers them, and their check records."""
    prologue = assemble(_PROLOGUE)
    parts, checks = [lower(prologue).view(DTYPE)], [check_records(prologue)]
    for name in ("layer_norm.co", "topksoftmax/topksoftmax_4x128x8.co"):
        source = InstalledFile("amd-aiter", f"aiter_meta/hsa/gfx942/{name}")
        binary = CodeObject.parse(source.read())
        program = disassemble.program(binary, binary.kernels[0].symbol)
        parts.append(lower(program).view(DTYPE))
        checks.append(check_records(program))
    return np.concatenate(parts), np.concatenate(checks).reshape(-1, core.CHECK_RECORD_SIZE)


def _source(c: Choices, words: int, shape: str, slot: int) -> int:
    if slot == 0 and shape in ("buffer", "global", "lds", "flat", "scratch"):
        return _VGPR0 + (c.pick((4, 4, 6, 8)) if shape == "flat" else c.integer(0, 4))
    if shape == "matrix" and (slot < 2 or not c.one_in(3)):
        return c.pick((_VGPR0, _AGPR0)) + c.integer(0, AGPRS - words)
    if shape == "lds":
        return _VGPR0 + c.integer(0, VGPRS - words)
    if shape == "program_counter":
        return core.CONSTANT
    if shape == "scalar_load":
        return c.pick((0, 4, 8, 12)) if slot == 0 else c.pick((core.ABSENT, core.CONSTANT, 30))
    if slot == 1 and shape == "buffer":
        return c.pick((4, 4, 4, 0, 96))
    if slot == 1 and shape in ("global", "scratch"):
        return c.pick((core.ABSENT, 0, 2, 8, 101))
    kind = c.integer(0, 7)
    if shape in ("scalar", "scalar_load", "control") or kind < 2:
        return c.pick((*_SCALARS, core.CONSTANT, core.CONSTANT))
    if kind == 2:
        return core.CONSTANT
    if kind == 3:
        return _AGPR0 + c.integer(0, AGPRS - min(words, AGPRS) + 1)
    return _VGPR0 + (c.integer(0, 8) if kind < 6 else c.integer(0, VGPRS + AGPRS - words + 1))


def _destination(c: Choices, words: int, shape: str) -> int:
    if shape in ("scalar", "scalar_load", "compare", "read_lane", "program_counter"):
        return c.pick(_SCALARS)
    if c.one_in(4):
        return _AGPR0 + c.integer(0, max(AGPRS - words + 1, 0))
    return _VGPR0 + c.integer(0, max(VGPRS - words + 1, 0))


def _fill(c: Choices, records: npt.NDArray[np.void], checks: npt.NDArray[np.uint8],
          index: int) -> None:
    record, count = records[index], len(records)
    pool, pool_checks = _compiled_records()
    drawn = c.integer(0, len(pool) - 1)
    checks[index] = pool_checks[drawn]
    if c.one_in(3):
        for _ in range(c.integer(1, 6)):
            checks[index, c.integer(0, core.CHECK_RECORD_SIZE - 1)] = c.integer(0, 255)
    kind = c.integer(0, 7)
    if kind == 0:
        raw = bytes(c.integer(0, 255) for _ in range(core.RECORD_SIZE))
        records[index] = np.frombuffer(raw, DTYPE)[0]
        record["op"] = int(record["op"]) % len(core.OPERATIONS)
        return
    if kind < 3:
        records[index] = pool[drawn]
        record["target"] = c.integer(0, count)
        if c.one_in(2):
            name = DTYPE.names[c.integer(0, len(DTYPE.names) - 1)] if DTYPE.names else ""
            if name != "op":
                record[name] = c.integer(0, 100)
        return
    op = c.pick(_STEERING) if kind == 3 else c.integer(0, len(core.OPERATIONS) - 1)
    name, shape, dst_words, src_words, _ = core.OPERATIONS[op]
    record["op"] = op
    record["dst"] = _destination(c, dst_words, shape)
    record["sdst"] = c.pick((core.ABSENT, 20, 106, 300, 280))
    for slot, words in enumerate(src_words):
        record[f"src{slot}"] = _source(c, words, shape, slot) if words else core.ABSENT
        record[f"literal_lo{slot}"] = c.pick(_CONSTANTS)
    record["imm0"] = c.pick((0, 0, 1, 4, 16, 60, 252, 1024, 4095, -1, -4))
    record["imm1"] = c.pick((0, 0, 1, 7, 63, 255, -1))
    record["target"] = c.integer(0, count)
    if shape == "matrix":
        record["imm0"], record["imm1"] = c.integer(0, 2), c.pick(_MATRIX_IMMEDIATES)
    elif name == "ds_swizzle_b32" or name.startswith("s_set_gpr_idx"):
        record["imm0"] = c.integer(0, 0xFFFF if shape == "lds" else 15)
    elif name.startswith("s_setreg"):  # MODE, any field of it
        record["src1"] = core.CONSTANT
        record["literal_lo1"] = 1 | c.integer(0, 23) << 6 | c.integer(0, 7) << 11
    if shape == "buffer":
        record["flags"] = c.pick((0, 8, 8, 16, 24, 64, 72, 136))
    elif c.one_in(3):
        record["flags"] = c.pick((1, 2, 6, 32, 64, 128, 128, 136))
        wide = dst_words == 2 or src_words[0] == 2
        record["dpp_ctrl"] = (0x150 + c.integer(0, 15) if wide and c.one_in(2)
                              else c.integer(0, 0x1FFF if record["flags"] == 32 else 0x160))
        record["row_mask"], record["bank_mask"] = c.integer(0, 15), c.integer(0, 15)
    if c.one_in(3):
        for name in ("neg", "abs", "neg_hi", "op_sel", "op_sel_hi"):
            record[name] = c.pick((0, 0, 1, 7))


@dataclass(slots=True)
class RandomLaunch:
    """A program that the core accepted, and everything a launch of it takes."""

    program: core.Program
    regions: list[tuple[int, bytes, bool]]
    order: list[int]
    grid: tuple[int, int, int]
    workgroup: tuple[int, int, int]
    sgprs: list[int]
    lds_bytes: int
    private_bytes: int
    poison: int
    resident: int
    prompt: bool
    checks: npt.NDArray[np.uint8]

    def sanitizer(self) -> core.Sanitizer:
        """Check records that do not fit their instruction are replaced by ones that say nothing."""
        nothing = check_records(assemble(["s_nop 0"]))
        hazards = [(int(a) % len(self.program), i, int(b) % 20)
                   for i, (a, b) in enumerate(self.checks[:, :2])]
        regions = [(base, len(data), base + len(data) // 4, len(data) // 2, writable, i != 1, i > 0)
                   for i, (base, data, writable) in enumerate(self.regions)]
        while True:
            try:
                return core.Sanitizer(self.program, self.checks.reshape(-1), hazards=hazards,
                                      regions=regions, lds_bytes=self.lds_bytes)
            except core.InvalidRecordError as error:
                self.checks[error.args[0]] = nothing

    def run(self, threads: int, *, traced: bool = False, checked: bool = False
            ) -> tuple[object, ...]:
        """Memory afterwards, or the fault."""
        arrays = [np.frombuffer(bytearray(data), np.uint8) for _, data, _ in self.regions]
        memory = core.Memory([(f"r{i}", base, array, writable) for i, ((base, _, writable), array)
                              in enumerate(zip(self.regions, arrays, strict=True))])
        try:
            used = core.launch(
                self.program, memory, np.array(self.order, np.uint32), grid=self.grid,
                workgroup=self.workgroup, user_sgprs=self.sgprs, group_id_sgprs=(30, 31, -1),
                work_item_dimensions=3, lds_bytes=self.lds_bytes, poison=self.poison,
                instruction_budget=4000, resident=self.resident, threads=threads,
                trace=core.Trace() if traced else None, private_bytes=self.private_bytes,
                prompt_returns=self.prompt, sanitizer=self.sanitizer() if checked else None)
        except core.FaultError as fault:
            return ("fault", *fault.args)
        return used, *(array.tobytes() for array in arrays)


def draw(data: bytes) -> RandomLaunch:
    """Records that the core refuses become ``s_nop``, so something is left to run."""
    c = Choices(data)
    regions = []
    # An atomic at an odd address ends the launch, so few regions lie at one.
    base = BASE + (c.integer(0, 7) if c.one_in(6) else 0)
    for _ in range(c.integer(1, 3)):
        size = c.integer(1, 5000) if c.one_in(4) else 16 * c.integer(1, 300)
        image = np.random.default_rng(c.integer(0, 255)).bytes(size)
        regions.append((base, image, not c.one_in(3)))
        base += size + c.pick((0, 1, 64, 1 << 20))
    grid = (c.integer(1, 4), c.integer(1, 2), 1)
    order = [c.integer(0, grid[0] * grid[1] - 1) for _ in range(c.integer(1, 6))]
    workgroup = (c.integer(1, 130), c.integer(1, 2), 1)
    sgprs: list[int] = []
    while len(sgprs) < 30:
        at = regions[c.integer(0, len(regions) - 1)][0] + c.pick((0, 0, 4, 8, 60))
        sgprs += [at & 0xFFFFFFFF, at >> 32]
    # A buffer resource, now and then swizzled, with the lane as index, or of the invalid format.
    sgprs[4:8] = [sgprs[0], sgprs[1] | c.pick((0, 0, 16, 128)) << 16 | c.pick((0, 0, 0, 1)) << 31,
                  c.integer(0, 6000), c.pick((0x20000, 0x20000, 0x20000, 0x260000, 0x820000, 0))]
    lds_bytes, private_bytes = c.pick((0, 4, 777, 4096)), c.pick((0, 0, 4, 60))
    poison, resident = c.integer(0, 255), c.integer(1, 6)
    mode = c.pick((0x1E0, 0x1E0, 0xF0, 0x3C0, 0x80_00FF)) | c.integer(0, 15)
    fused, narrow, prompt = c.one_in(4), c.one_in(4), c.one_in(2)

    prologue = lower(assemble(_PROLOGUE)).view(DTYPE)
    count = len(prologue) + min(c.left // 16 + 1, 40)
    records = np.zeros(count, DTYPE)
    records[:len(prologue)] = prologue
    nop = lower(assemble(["s_nop 0"])).view(DTYPE)[0]
    checks = np.zeros((count, core.CHECK_RECORD_SIZE), np.uint8)
    checks[:] = check_records(assemble(["s_nop 0"]))
    checks[:len(prologue)] = check_records(assemble(_PROLOGUE)).reshape(len(prologue), -1)
    for k in (24, 26):
        target = CODE + 8 * c.integer(0, count)
        sgprs[k:k + 2] = [target & 0xFFFFFFFF, target >> 32]
    for index in range(len(prologue), count - 1):
        _fill(c, records, checks, index)
    records[-1] = lower(assemble(["s_endpgm"])).view(DTYPE)[0]
    while True:
        try:
            program = core.Program(records.view(np.uint8), vgprs=VGPRS, agprs=AGPRS, mode=mode,
                                   fused_matrix_sums=fused, narrow=narrow,
                                   addresses=[CODE + 8 * k for k in range(count)])
        except core.InvalidRecordError as error:
            records[error.args[0]] = nop
            continue
        return RandomLaunch(program, regions, order, grid, workgroup, sgprs, lds_bytes,
                            private_bytes, poison, resident, prompt, checks)
