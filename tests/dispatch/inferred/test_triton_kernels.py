"""Triton kernels of ``tests/kernels/triton_kernels.py``, undeclared."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from asmevo.codeobject.container import CodeObject
from asmevo.dispatch.dispatch import ElementType, Role
from asmevo.dispatch.expression import evaluate
from asmevo.dispatch.inferred.inference import Inferred

Infer = Callable[[CodeObject, str], Inferred]
Compile = Callable[[str], CodeObject]
Shape = dict[str, int]
Case = tuple[int, Role, set[ElementType], Callable[[Shape], int]]
I, O = Role.INPUT, Role.OUTPUT  # noqa: E741 - short, for the table below
F32, F16, I8, I32, FP8 = (ElementType.F32, ElementType.F16, ElementType.I8, ElementType.I32,
                          ElementType.FP8)


def rows(count: int, stride: int, row: int) -> int:
    return (count - 1) * stride + row


def scalars(shape: Shape) -> list[int]:
    """The values of the scalar arguments in the order of their offsets."""
    return [value for name, value in sorted(shape.items()) if name.startswith("arg_")]


def _gemm(tile: int, a: ElementType, c: ElementType) -> list[Case]:
    # m, n, k and the strides of a, b and c. Loads of a and b are masked along k alone, so whole
    # tiles of rows and columns are read.
    return [
        (0, I, {a}, lambda s: rows(s["grid_x"] * tile, scalars(s)[3], scalars(s)[2])),
        (8, I, {a, ElementType.U8},
         lambda s: rows(scalars(s)[2], scalars(s)[4], s["grid_y"] * tile)),
        (16, O, {c}, lambda s: rows(scalars(s)[0], scalars(s)[5], scalars(s)[1])),
    ]


CASES: dict[str, list[Case]] = {
    "add": [(o, r, {F32}, lambda s: scalars(s)[0]) for o, r in ((0, I), (8, I), (16, O))],
    "fp8": [(0, I, {F16}, lambda s: scalars(s)[0]), (8, I, {F32}, lambda s: 1),
            (16, O, {FP8}, lambda s: scalars(s)[0])],
    "softmax": [(o, r, {F32}, lambda s: rows(s["grid_x"], *scalars(s)))
                for o, r in ((0, I), (8, O))],
    "layer_norm": [(0, I, {F16}, lambda s: rows(s["grid_x"], *scalars(s))),
                   (8, I, {F16}, lambda s: scalars(s)[1]),
                   (16, I, {F16}, lambda s: scalars(s)[1]),
                   (24, O, {F16}, lambda s: rows(s["grid_x"], *scalars(s)))],
    "gemm_f16": _gemm(128, F16, F16),
    "gemm_i8": _gemm(64, I8, I32),
}
LDS = {"softmax", "layer_norm", "gemm_f16", "gemm_i8"}


@pytest.mark.parametrize("name", CASES)
def test_roles_types_and_extents_are_the_sources(
        triton: Compile, infer: Infer, name: str) -> None:
    code_object = triton(name)
    kernel = infer(code_object, code_object.kernel().symbol).kernel
    assert [b.offset for b in kernel.buffers] == [case[0] for case in CASES[name]]
    shapes = [*kernel.shapes, *kernel.held_out_shapes]
    assert len(shapes) >= 4
    for buffer, (_, role, elements, count) in zip(kernel.buffers, CASES[name], strict=True):
        assert (buffer.role, buffer.element in elements) == (role, True), buffer
        assert [evaluate(buffer.count, shape) for shape in shapes] == [
            count(dict(shape)) for shape in shapes], buffer


@pytest.mark.parametrize("name", CASES)
def test_dynamic_lds_is_found_where_the_object_declares_none(
        triton: Compile, infer: Infer, name: str) -> None:
    code_object = triton(name)
    kernel = infer(code_object, code_object.kernel().symbol).kernel
    assert kernel.launch is not None
    assert (evaluate(kernel.launch.dynamic_lds, {}) > 0) == (name in LDS)


def test_a_matrix_product_is_covered_by_its_tiles(triton: Compile, infer: Infer) -> None:
    code_object = triton("gemm_f16")
    kernel = infer(code_object, code_object.kernel().symbol).kernel
    assert kernel.launch is not None
    seen = set()
    for shape in (*kernel.shapes, *kernel.held_out_shapes):
        m, n, *_ = scalars(dict(shape))
        grid = tuple(evaluate(g, shape) for g in kernel.launch.grid)
        assert grid == (-(-m // 128), -(-n // 128), 1)
        seen.add(grid)
    assert len(seen) > 1
