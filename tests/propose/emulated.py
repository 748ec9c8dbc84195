"""What a wave of a small kernel stores, by the emulator."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import asmevo_core as core
import numpy as np

from tests.device.emulator.conftest import INPUT_BASE, OUTPUT_BASE, U32, Bench, assemble

# Addresses that kernels find in s[40:41] and s[42:43]; s[44] is the workgroup.
INPUT, OUTPUT = "s[40:41]", "s[42:43]"
_DWORDS = 1024


def stored(lines: Sequence[str], scalars: Mapping[int, int] | None = None, groups: int = 1,
           lds_bytes: int = 0) -> U32:
    """The output after all waves; v0 is the work-item, and the input made-up words."""
    sgprs = [0] * 44
    for number, value in (scalars or {}).items():
        sgprs[number] = value & 0xFFFFFFFF
    for low, base in ((40, INPUT_BASE), (42, OUTPUT_BASE)):
        sgprs[low], sgprs[low + 1] = base & 0xFFFFFFFF, base >> 32
    words = np.random.default_rng(5).integers(0, 1 << 32, _DWORDS, dtype=np.uint32)
    out = np.full(_DWORDS, 0xABADCAFE, np.uint32)
    memory = core.Memory([("in", INPUT_BASE, words.view(np.uint8), False),
                          ("out", OUTPUT_BASE, out.view(np.uint8), True)])
    core.launch(Bench().program(assemble(lines)), memory, np.arange(groups, dtype=np.uint32),
                grid=(groups, 1, 1), workgroup=(64, 1, 1), user_sgprs=sgprs,
                group_id_sgprs=(44, -1, -1), work_item_dimensions=1, lds_bytes=lds_bytes, poison=7,
                instruction_budget=100_000, private_bytes=0, prompt_returns=False, nan=0)
    return out
