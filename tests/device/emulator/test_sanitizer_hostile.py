"""Programs that make no sense: whatever they do, the sanitizer stays within its shadow state.

The run with AddressSanitizer (`.ci/sanitize`) is what makes this a test of memory safety.
"""

from __future__ import annotations

import random

import asmevo_core as core
import numpy as np
import pytest

from asmevo.device.emulator.checked import check_records
from asmevo.device.emulator.lower import lower
from tests.device.emulator.sanitizer_bench import Kernel, assemble
from tests.device.emulator.test_kernels import load

NAMES = ("layer_norm", "topksoftmax/topksoftmax_12x256x6", "gemm_a8w8_m128_noSplitK",
         "pa/pa_bf16_noquant_gqa8_1tg_4w", "fmoe_b16")


@pytest.mark.parametrize("name", NAMES)
def test_shuffled_production_code(name: str) -> None:
    """Instructions of a real kernel in random order, on undefined registers."""
    kernel, _ = load(name)
    texts = sorted({i.text for i in kernel.program.instructions
                    if not i.is_branch and not i.ends_program})
    rng = random.Random(name)
    reported = 0
    for _ in range(25):
        found = Kernel(waves=2, lds=4096).check(rng.choices(texts, k=60))
        reported += len(found.reports)
    assert reported > 25


def test_records_that_do_not_fit_are_refused() -> None:
    program = assemble(["v_mov_b32_e32 v1, v0", "ds_read_b32 v2, v1", "s_endpgm"])
    lowered = core.Program(lower(program), vgprs=4, agprs=0, mode=0xF0)
    good = check_records(program)
    size = core.CHECK_RECORD_SIZE

    def make(records: np.ndarray[tuple[int], np.dtype[np.uint8]], lds_bytes: int = 512) -> None:
        core.Sanitizer(lowered, records, hazards=[], regions=[], lds_bytes=lds_bytes)

    make(good)
    rng = np.random.default_rng(1)
    refused = 0
    for _ in range(300):
        records = good.copy()
        records[rng.integers(len(records), size=4)] = rng.integers(256, size=4)
        try:
            make(records)
        except ValueError:
            refused += 1
    assert refused > 30
    for bad in (good[:-1], good[size:]):
        with pytest.raises(ValueError, match="record"):
            make(np.ascontiguousarray(bad))
    with pytest.raises(ValueError, match="64 KiB"):
        make(good, 65540)
    with pytest.raises(ValueError, match="hazard"):
        core.Sanitizer(lowered, good, hazards=[(0, 9, 1)], regions=[], lds_bytes=0)
    with pytest.raises(ValueError, match="region"):
        core.Sanitizer(lowered, good, hazards=[], lds_bytes=0,
                       regions=[(0x1000, 16, 0x1008, 16, True, True, True)])
