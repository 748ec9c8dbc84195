"""Kernels whose source is in ``kernels.hip``: what it says is what inference must find."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from asmevo.codeobject.container import CodeObject
from asmevo.dispatch.dispatch import ElementType, Role
from asmevo.dispatch.expression import evaluate
from asmevo.dispatch.inferred.fact import Confidence
from asmevo.dispatch.inferred.inference import Inferred
from asmevo.dispatch.inferred.inference_error import InferenceError

Infer = Callable[[CodeObject, str], Inferred]
Shape = dict[str, int]
I, O, IO = Role.INPUT, Role.OUTPUT, Role.INOUT  # noqa: E741 - short, for the table below
F32, F16 = ElementType.F32, ElementType.F16
# The contents are only copied or integers: no type is known, and bits are compared.
BITS = {ElementType.U32, ElementType.I32, ElementType.OPAQUE}


def n(shape: Shape, offset: int) -> int:
    """The value of the scalar argument at an offset."""
    return shape[f"arg_{offset:02x}"]


CASES: dict[str, list[tuple[int, Role, set[ElementType], Callable[[Shape], int]]]] = {
    "saxpy": [(0, IO, {F32}, lambda s: n(s, 0x14)), (8, I, {F32}, lambda s: n(s, 0x14))],
    "grid_stride": [(0, O, {F32}, lambda s: n(s, 0x10)), (8, I, {F32}, lambda s: n(s, 0x10))],
    "row_sum": [(0, O, {F32}, lambda s: s["grid_x"]),
                (8, I, {F32}, lambda s: s["grid_x"] * n(s, 0x10))],
    "transpose": [(0, O, BITS, lambda s: n(s, 0x10) * n(s, 0x14)),
                  (8, I, BITS, lambda s: n(s, 0x10) * n(s, 0x14))],
    "matmul": [(0, O, {F32}, lambda s: n(s, 0x18) * n(s, 0x1C)),
               (8, I, {F32}, lambda s: n(s, 0x18) * n(s, 0x20)),
               (16, I, {F32}, lambda s: n(s, 0x20) * n(s, 0x1C))],
    "relu": [(0, O, {F16}, lambda s: n(s, 0x10)), (8, I, {F16}, lambda s: n(s, 0x10))],
    # Indices are below 16, so 16 rows of the table are in reach.
    "gather": [(0, O, BITS, lambda s: s["grid_x"] * n(s, 0x18)),
               (8, I, BITS, lambda s: 16 * n(s, 0x18)), (16, I, BITS, lambda s: s["grid_x"])],
    "in_place": [(0, IO, {F32}, lambda s: 256)],
    "histogram": [(0, IO, BITS, lambda s: 16),
                  (8, I, {ElementType.U8}, lambda s: n(s, 0x10))],
    # A pointer and numbers in a structure that is passed by value.
    "by_value": [(8, O, {F32}, lambda s: n(s, 4)), (24, I, {ElementType.U8}, lambda s: n(s, 4))],
}


@pytest.mark.parametrize("symbol", CASES)
def test_roles_types_and_extents_are_the_sources(
        hip: CodeObject, infer: Infer, symbol: str) -> None:
    kernel = infer(hip, symbol).kernel
    assert [b.offset for b in kernel.buffers] == [offset for offset, *_ in CASES[symbol]]
    shapes = [*kernel.shapes, *kernel.held_out_shapes]
    assert len(shapes) >= (3 if kernel.scalars or "grid_x" in shapes[0] else 2)
    for buffer, (_, role, elements, count) in zip(kernel.buffers, CASES[symbol], strict=True):
        assert (buffer.role, buffer.element in elements) == (role, True), buffer
        assert [evaluate(buffer.count, shape) for shape in shapes] == [
            count(dict(shape)) for shape in shapes]


def test_the_grid_covers_the_work(hip: CodeObject, infer: Infer) -> None:
    kernel = infer(hip, "matmul").kernel
    assert kernel.launch is not None
    assert tuple(kernel.launch.workgroup) == (16, 16, 1)
    for shape in (*kernel.shapes, *kernel.held_out_shapes):
        grid = tuple(evaluate(g, shape) for g in kernel.launch.grid)
        assert grid == (-(-n(dict(shape), 0x1C) // 16), -(-n(dict(shape), 0x18) // 16), 1)


def test_shapes_have_tails_and_differ(hip: CodeObject, infer: Infer) -> None:
    kernel = infer(hip, "saxpy").kernel
    sizes = {shape["arg_14"] for shape in (*kernel.shapes, *kernel.held_out_shapes)}
    assert len(sizes) >= 4
    assert any(size % 256 for size in sizes)
    assert any(size > 256 for size in sizes)
    assert not {s["arg_14"] for s in kernel.shapes} & {s["arg_14"] for s in kernel.held_out_shapes}


def test_a_number_is_told_from_an_extent(hip: CodeObject, infer: Infer) -> None:
    types = {s.offset: s.type for s in infer(hip, "saxpy").kernel.scalars}
    assert types == {0x10: "f32", 0x14: "u32"}


def test_members_of_a_structure_are_arguments(hip: CodeObject, infer: Infer) -> None:
    kernel = infer(hip, "by_value").kernel
    assert {s.offset: s.type for s in kernel.scalars} == {0: "f32", 4: "u32", 0x10: "u32"}


def test_a_workgroup_with_which_only_one_width_works_is_none(
        hip: CodeObject, infer: Infer) -> None:
    """A candidate with that width built in would pass everything."""
    kernel = infer(hip, "rows_of_64").kernel
    assert kernel.launch is not None
    assert tuple(kernel.launch.workgroup) == (64, 4, 1)
    shapes = [dict(s) for s in (*kernel.shapes, *kernel.held_out_shapes)]
    assert len({n(shape, 0x10) for shape in shapes}) > 2
    assert all(evaluate(kernel.launch.grid[0], s) == -(-n(s, 0x10) // 64) for s in shapes)


def test_indices_stay_small_and_the_fact_says_so(hip: CodeObject, infer: Infer) -> None:
    found = infer(hip, "gather")
    assert {b.offset: b.family for b in found.kernel.buffers} == {0: None, 8: None, 16: "small"}
    fact = next(f for f in found.facts if f.subject == "buffers.arg_10.family")
    assert fact.confidence is Confidence.ASSUMED


def test_a_grid_stride_loop_is_launched_with_several_workgroups(
        hip: CodeObject, infer: Infer) -> None:
    shapes = infer(hip, "grid_stride").kernel.shapes
    assert any(shape["grid_x"] > 1 for shape in shapes)


@pytest.mark.parametrize(("symbol", "reason"), [
    ("racing", "order of workgroups"), ("constant", "single value"),
    ("rows_of_128", "workgroup.s x, but every launch that works has one"),
    ("nested", "come from no argument"), ("waiting", "'arg_08' decide what the kernel touches"),
])
def test_what_cannot_be_inferred_names_what_to_declare(
        hip: CodeObject, infer: Infer, symbol: str, reason: str) -> None:
    with pytest.raises(InferenceError, match=reason) as caught:
        infer(hip, symbol)
    assert caught.value.declare
    assert all(key.split(".")[0].removesuffix("[]") in (
        "launch", "buffers", "scalars", "shapes", "operation") for key in caught.value.declare)
