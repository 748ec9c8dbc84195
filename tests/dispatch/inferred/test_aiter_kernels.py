"""AITER's objects against the facts that their YAML declares."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from hydra import compose, initialize_config_dir
from hydra.core.global_hydra import GlobalHydra
from hydra.utils import instantiate

from asmevo.codeobject.container import CodeObject
from asmevo.codeobject.disassemble import program
from asmevo.config import register
from asmevo.dispatch.dispatch import Role
from asmevo.dispatch.expression import evaluate
from asmevo.dispatch.inferred.argument import Use, find_arguments
from asmevo.dispatch.inferred.inference import Inferred
from asmevo.dispatch.kernel import Kernel

Infer = Callable[[CodeObject, str], Inferred]
_CONF = str(Path(__file__).parents[3] / "conf")
# Those of which the wheel has the object. The launches of most cannot be found, but what follows
# from the code alone can.
STATIC = (
    "aiter_fmha_bwd", "aiter_fmha_bwd_group", "aiter_fmha_bwd_padded", "aiter_fmha_fwd_bf16",
    "aiter_fmha_fwd_bf16_group", "aiter_fmoe", "aiter_fmoe_bf16", "aiter_fmoe_blockscale",
    "aiter_fmoe_fp8", "aiter_fmoe_int8", "aiter_fmoe_stage1", "aiter_i8gemm", "aiter_layer_norm",
    "aiter_layer_norm_qnt", "aiter_mla_decode", "aiter_paged_attention", "aiter_topksoftmax")


@pytest.fixture(autouse=True)
def configuration() -> Iterator[None]:
    register()
    with initialize_config_dir(_CONF, version_base="1.3"):
        yield
    GlobalHydra.instance().clear()


def declared(name: str) -> tuple[Kernel, CodeObject]:
    kernel = instantiate(compose("config", overrides=[f"kernel={name}"]).kernel)
    assert isinstance(kernel, Kernel)
    return kernel, CodeObject.parse(kernel.source.read())


@pytest.mark.parametrize("name", STATIC)
def test_the_code_tells_which_buffers_are_written(name: str) -> None:
    kernel, code_object = declared(name)
    found = code_object.kernel(kernel.symbol)
    pointers = {p.offset: p for p in find_arguments(
        found, program(code_object, found.symbol)).pointers}
    for buffer in kernel.buffers:
        if buffer.offset is None:
            continue
        pointer = pointers[buffer.offset]
        assert bool(pointer.stores + pointer.atomics) == buffer.role.written, buffer.name
        # mla_decode loads the address of its kv_last_page_lens and never reads there.
        if buffer.role is Role.INPUT and buffer.name != "kv_last_page_lens":
            assert pointer.loads, buffer.name


def test_layer_norm_is_inferred_as_it_is_declared(infer: Infer) -> None:
    kernel, code_object = declared("aiter_layer_norm")
    found = infer(code_object, code_object.kernel().symbol).kernel
    assert [(b.offset, b.role, b.element) for b in found.buffers] == sorted(
        (b.offset, b.role, b.element) for b in kernel.buffers)
    assert found.launch is not None
    assert kernel.launch is not None
    assert tuple(found.launch.workgroup) == tuple(kernel.launch.workgroup)
    # N is the stride of rows whose length the code fixes; two rows a workgroup.
    names = {b.offset: b for b in found.buffers}
    for shape in (*found.shapes, *found.held_out_shapes):
        n, m = shape["N"], 2 * shape["grid_x"]
        assert n >= 8192
        for buffer in kernel.buffers:
            count = evaluate(names[buffer.offset].count, shape)
            if n == 8192:
                assert count == evaluate(buffer.count, {"N": n, "M": m})
            elif buffer.name not in ("weight", "bias"):
                assert count == (m - 1) * n + 8192
    assert min(shape["N"] for shape in found.shapes) == 8192


def test_layer_norm_reads_epsilon_as_a_number_and_never_m() -> None:
    _, code_object = declared("aiter_layer_norm")
    kernel = code_object.kernel()
    scalars = {s.name: s for s in find_arguments(
        kernel, program(code_object, kernel.symbol)).scalars}
    assert scalars["epsilon"].type == "f32"
    assert (scalars["M"].use, scalars["N"].use) == (Use.UNUSED, Use.STRIDE)


def test_topk_softmax_is_inferred_as_it_is_declared(infer: Infer) -> None:
    kernel, code_object = declared("aiter_topksoftmax")
    found = infer(code_object, code_object.kernel(kernel.symbol).symbol).kernel
    assert [(b.offset, b.role, b.element.size) for b in found.buffers] == sorted(
        (b.offset, b.role, b.element.size) for b in kernel.buffers)
