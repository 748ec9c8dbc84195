"""What the sanitizer says of AITER's own kernels, class by class; docs/sanitizer.md explains each.

A class is a kind of report with the operation and its producer's. Anything beyond these tables is
a defect of the emulator or the sanitizer, or a new finding.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from hydra import compose, initialize_config_dir
from hydra.utils import instantiate

from asmevo.codeobject.container import CodeObject
from asmevo.config import register
from asmevo.device.device import LaunchState
from asmevo.device.emulator.emulator import EmulatedKernel, Emulator
from asmevo.device.emulator.sanitizer import Kind
from asmevo.dispatch.declared import DeclaredOracle

if TYPE_CHECKING:
    from asmevo.dispatch.dispatch import Dispatch
    from asmevo.dispatch.kernel import Kernel

CONF = Path(__file__).parents[3] / "conf"

Class = tuple[Kind, str, str]
# Reads of the first row against writes of the second: a true race.
ROWS: set[Class] = {(Kind.LDS_RACE, "ds_write_b32", "ds_read_b32")}
# v_readlane straight into a scalar operand.
LANE: set[Class] = {(Kind.HAZARD, "v_mov_b32_e32", "v_readlane_b32")}
# The last prefetches of the loop against the epilogue, and M0 right before a load to LDS.
GEMM: set[Class] = {
    (Kind.LDS_RACE, "ds_write_b32", "ds_read_b32"),
    (Kind.LDS_ORDER, "ds_write_b32", "buffer_load_dword"),
    (Kind.HAZARD, "buffer_load_dword", "s_add_i32"),
    (Kind.HAZARD, "buffer_load_dword", "s_mov_b32"),
    (Kind.OUT_OF_BOUNDS, "buffer_load_dword", ""),
}
# A wait one too loose.
PAGED: set[Class] = {(Kind.USE_BEFORE_WAIT, "v_mul_u32_u24_dpp", "buffer_load_dword")}


def kernels(name: str) -> tuple[EmulatedKernel, tuple[Dispatch, ...]]:
    """A kernel of ``conf/kernel`` and its first three dispatches."""
    register()
    with initialize_config_dir(str(CONF), version_base=None):
        config = compose("config", overrides=[f"kernel={name}"])
    kernel: Kernel = instantiate(config.kernel, _convert_="all")
    code_object = CodeObject.parse(kernel.source.read())
    target = code_object.kernel(kernel.symbol)
    dispatches = DeclaredOracle(families=("normal",)).dispatches(
        kernel, target.symbol, target.metadata)
    return Emulator("test", None).load(code_object, target.symbol), dispatches[:3]


@pytest.mark.parametrize(("name", "known"), [
    ("aiter_layer_norm", ROWS), ("aiter_layer_norm_qnt", ROWS), ("aiter_topksoftmax", LANE),
    ("aiter_i8gemm", GEMM), ("aiter_gemm_a8w8", GEMM), ("aiter_paged_attention", PAGED),
    ("aiter_paged_attention_fp8", set()), ("aiter_paged_attention_int8", set()),
])
def test_findings(name: str, known: set[Class]) -> None:
    kernel, dispatches = kernels(name)
    for number, dispatch in enumerate(dispatches):
        state = LaunchState(number)
        result = kernel.sanitize(dispatch, state)
        found = {(r.kind, r.text.split()[0], r.producer_text.partition(" ")[0])
                 for r in result.reports}
        assert found <= known, [str(r) for r in result.reports if r.kind is not Kind.LDS_RACE][:9]
        assert result.dropped == 0
        # Being watched changes nothing.
        plain = kernel.run(dispatch, state)
        assert (result.regions, result.instructions) == (plain.regions, plain.instructions)
