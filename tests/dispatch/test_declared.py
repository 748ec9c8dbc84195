from __future__ import annotations

import itertools
import struct
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from asmevo.dispatch.declared import DeclaredOracle, check_against_metadata
from asmevo.dispatch.dispatch import Dispatch, ElementType, Role
from asmevo.dispatch.generator import GeneratorError, generate, to_floats
from asmevo.dispatch.kernel import Kernel, KernelError, declare
from asmevo.errors import AsmEvoError
from asmevo.operation.operation import Arrays, Names, Operation

METADATA: dict[str, Any] = {
    ".kernarg_segment_size": 32,
    ".args": [
        {".offset": 0, ".size": 8, ".value_kind": "global_buffer"},
        {".offset": 8, ".size": 8, ".value_kind": "global_buffer"},
        {".offset": 16, ".size": 4, ".value_kind": "by_value"},
        {".offset": 20, ".size": 4, ".value_kind": "by_value"},
    ],
}


class Nowhere:
    def read(self) -> bytes:
        raise AssertionError("an oracle does not read the object")

    def describe(self) -> str:
        return "nowhere"


LAUNCH = {"grid": ["ceil(M / 64)", 1, 1], "workgroup": [64, 1, 1]}


def kernel(**changes: Any) -> Kernel:
    values: dict[str, Any] = {
        "name": "demo",
        "source": Nowhere(),
        "launch": LAUNCH,
        "buffers": [
            {"name": "out", "offset": 0, "role": "output", "element": "f32", "count": "M"},
            {"name": "in", "offset": 8, "role": "input", "element": "bf16", "count": "M * N"},
        ],
        "scalars": [
            {"name": "m", "offset": 16, "type": "u32", "value": "M"},
            {"name": "eps", "offset": 20, "type": "f32", "value": 1e-5},
        ],
        "constants": {"N": 2},
        "shapes": [{"M": 64}, {"M": 100}],
        "held_out_shapes": [{"M": 65}],
    }
    return declare(**{**values, **changes})


def dispatches(of: Kernel | None = None, **oracle: Any) -> tuple[Dispatch, ...]:
    return DeclaredOracle(**oracle).dispatches(of or kernel(), "k", METADATA)


def test_one_dispatch_for_each_shape_and_family() -> None:
    made = dispatches(extreme_families=("peaks", "masked"))
    assert [(d.name, d.held_out) for d in made] == [
        ("M64-normal", False), ("M64-tiny", False), ("M64-boundary", False),
        ("M100-normal", False), ("M100-tiny", False), ("M100-boundary", False),
        ("M65-normal", True), ("M65-wide", True), ("M65-peaks", True), ("M65-masked", True),
    ]
    assert [d.grid for d in made[:9:3]] == [(1, 1, 1), (2, 1, 1), (2, 1, 1)]


def test_kernarg_holds_pointers_and_scalars_where_declared() -> None:
    launch = dispatches()[3]
    out, source = launch.regions
    assert struct.unpack("<QQIf8x", launch.kernarg) == (
        out.address, source.address, 100, pytest.approx(1e-5),
    )
    assert len(source.data) == 100 * 2 * 2
    assert out.role is Role.OUTPUT


def test_buffers_lie_apart_with_unmapped_space_between() -> None:
    for launch in dispatches(guard=8192):
        spans = sorted((r.base, r.base + len(r.mapped)) for r in launch.regions)
        for (_, end), (start, _) in itertools.pairwise(spans):
            assert start - end >= 1 << 20


def test_same_seed_same_bytes_other_seed_other_bytes() -> None:
    assert [d.sha256 for d in dispatches()] == [d.sha256 for d in dispatches()]
    assert not {d.sha256 for d in dispatches(seed=1)} & {d.sha256 for d in dispatches()}


def test_boundary_family_contains_what_breaks_arithmetic() -> None:
    big = kernel(shapes=[{"M": 65536}])
    region = dispatches(big)[2].regions[1]
    values = to_floats(region.data, region.element)
    assert np.isnan(values).any()
    assert np.isinf(values).any()
    assert (np.abs(values[values != 0]) < 1.17e-38).any()
    assert np.isfinite(values).mean() > 0.99


@pytest.mark.parametrize("count", [4, 5, 16, 128, 700])
def test_short_buffers_have_boundary_values_too(count: int) -> None:
    """Scales for each row, of which one in 256 would be none; but most stay ordinary."""
    special = 0
    known = np.array([0, 1, -1, 1 + 2**-7, 1 + 2**-8, 6.1035156e-05], np.float32)
    for seed in range(8):
        values = to_floats(generate(ElementType.F32, count, np.random.default_rng(seed),
                                    family="boundary", scale=0.37), ElementType.F32)
        finite = np.isin(values, known) | (
            np.abs(values) < 1.2e-38)
        special += int(finite.sum())
        assert finite.sum() + (~np.isfinite(values) | (np.abs(values) > 60000)).sum() <= max(
            2, count // 2)
    assert special >= 4


@pytest.mark.parametrize("seed", range(4))
def test_a_single_value_stays_ordinary(seed: int) -> None:
    """A NaN there would make a whole output NaN, which proves nothing."""
    data = generate(ElementType.F32, 1, np.random.default_rng(seed), family="boundary", scale=1.0)
    assert 0 < abs(to_floats(data, ElementType.F32)[0]) < 10


@pytest.mark.parametrize("element", [ElementType.F64, ElementType.F32, ElementType.F16,
                                     ElementType.BF16])
def test_boundary_nans_have_payloads(element: ElementType) -> None:
    """Quiet ones with nothing and with every bit set, either sign, over some buffers."""
    word = np.dtype(f"<u{element.size}")
    found = set()
    for seed in range(16):
        data = generate(element, 64, np.random.default_rng(seed), family="boundary", scale=1.0)
        nans = np.frombuffer(data, word)[np.isnan(to_floats(data, element))]
        assert len(nans)
        found |= set(nans.tolist())
    ones = (1 << 8 * element.size) - 1
    assert {ones, ones >> 1} <= found
    assert len(found) == 4


@pytest.mark.parametrize("element", [ElementType.F32, ElementType.BF16, ElementType.FP8])
@pytest.mark.parametrize("count", [4, 16, 1000])
def test_boundary_floats_have_a_nan(element: ElementType, count: int) -> None:
    for seed in range(8):
        data = generate(element, count, np.random.default_rng(seed), family="boundary", scale=1.0)
        assert 1 <= np.isnan(to_floats(data, element)).sum() <= 3


@pytest.mark.parametrize(("element", "least", "greatest"), [
    (ElementType.I8, -128, 127), (ElementType.U8, 0, 255), (ElementType.I32, -2**31, 2**31 - 1)])
def test_boundary_integers_are_extreme_in_a_row(
        element: ElementType, least: int, greatest: int) -> None:
    """A quarter of the buffer each: whole rows, whose sums of products are as large as they can be
    (beyond 24 bits from a depth of 512 on). Half of the integers stays ordinary."""
    count = 4096
    values = np.frombuffer(generate(element, count, np.random.default_rng(1), family="boundary",
                                    scale=1.0), element.dtype)
    for extreme in (least, greatest):
        runs = "".join("x" if v == extreme else " " for v in values).split()
        assert max(map(len, runs)) >= count // 4
    assert {0, -1 if least else 1} <= set(values.tolist())
    assert np.isin(values, [least, greatest, 0, -1]).mean() < 0.6
    normal = np.frombuffer(generate(element, count, np.random.default_rng(1), family="normal",
                                    scale=1.0), element.dtype)
    assert np.isin(normal, [least, greatest]).mean() < 0.05


@pytest.mark.parametrize("element", list(ElementType))
@pytest.mark.parametrize("count", [1, 2, 3, 15, 16, 17])
def test_every_element_and_size_has_a_boundary_family(element: ElementType, count: int) -> None:
    data = generate(element, count, np.random.default_rng(0), family="boundary", scale=1.0)
    assert len(data) == count * element.size


def test_moving_a_dispatch_moves_its_pointers() -> None:
    launch = dispatches()[0]
    moved = launch.moved(4096)
    assert struct.unpack_from("<Q", moved.kernarg, 8)[0] == moved.regions[1].address
    assert moved.regions[1].address == launch.regions[1].address + 4096
    assert moved.moved(-4096) == launch


def test_poison_touches_pure_outputs_only() -> None:
    launch = dispatches()[0]
    poisoned = launch.with_poisoned_outputs(3)
    assert poisoned.regions[0].data != launch.regions[0].data
    assert poisoned.regions[1].data == launch.regions[1].data
    assert poisoned.regions[1].mapped != launch.regions[1].mapped  # its guards are others
    assert poisoned.with_poisoned_outputs(4).regions[0].data != poisoned.regions[0].data


def _buffer(**changes: Any) -> Callable[[], Kernel]:
    base = {"name": "b", "offset": 0, "role": "input", "element": "f32", "count": 4}
    return lambda: kernel(buffers=[{**base, **changes}])


@pytest.mark.parametrize(
    ("make", "word"),
    [
        (_buffer(roel="input"), "roel"),
        (_buffer(role="reader"), "reader"),
        (_buffer(element="fp7"), "fp7"),
        (_buffer(count="Q"), "Q"),
        (_buffer(count=0), "0 elements"),
        (_buffer(count="M * 99999999999"), "elements"),
        (_buffer(offset=16), "offset 16"),
        (_buffer(offset=28), "outside"),
        (_buffer(offset=12), "offset 12"),
        (lambda: kernel(scalars=[{"name": "m", "offset": 0, "type": "u32", "value": 1}]),
         "overlaps"),
        (lambda: kernel(scalars=[{"name": "m", "offset": 16, "type": "u33", "value": 1}]), "u33"),
        (lambda: kernel(scalars=[{"name": "m", "offset": 16, "type": "u32", "value": -1}]),
         "does not fit"),
        (lambda: kernel(scalars=[{"name": "m", "offset": 16, "type": "u32", "value": 1.5}]),
         "integer"),
        (lambda: kernel(scalars=[{"name": "m", "offset": 16, "value": 1}]), "lacks"),
        (lambda: kernel(launch={"grid": ["M - M", 1, 1], "workgroup": [64, 1, 1]}), "grid"),
        (lambda: kernel(launch=None), "launch"),
        (lambda: kernel(launch={**LAUNCH, "relies_on_time": "yes"}), "relies_on_time"),
        (lambda: kernel(shapes=[]), "shapes"),
    ],
)
def test_contradictions_are_refused_by_name(make: Callable[[], Kernel], word: str) -> None:
    with pytest.raises(AsmEvoError, match=word):
        dispatches(make())


def test_unknown_family_is_refused() -> None:
    with pytest.raises(GeneratorError, match="nomral"):
        DeclaredOracle(families=["nomral"])


@pytest.mark.parametrize("guard", [-256, 100, 1 << 20])
def test_impossible_guard_is_refused(guard: int) -> None:
    with pytest.raises(KernelError, match="guard"):
        DeclaredOracle(guard=guard)


def test_kernarg_size_comes_from_metadata() -> None:
    assert check_against_metadata(kernel(), METADATA) == 32


def test_an_object_without_argument_metadata_takes_the_declaration() -> None:
    assert check_against_metadata(kernel(), {".kernarg_segment_size": 32}) == 32


def test_a_pointer_that_the_metadata_takes_for_a_number() -> None:
    metadata = {**METADATA, ".args": [
        METADATA[".args"][0], {".offset": 8, ".size": 4, ".value_kind": "by_value"},
        *METADATA[".args"][2:]]}
    with pytest.raises(KernelError, match=r"'in' .* does not match the metadata at offset 8"):
        check_against_metadata(kernel(), metadata)
    out, values = ({"name": b.name, "offset": b.offset, "role": b.role, "element": b.element,
                    "count": b.count} for b in kernel().buffers)
    known = kernel(buffers=[out, {**values, "misdescribed": True}])
    assert check_against_metadata(known, metadata) == 32
    with pytest.raises(KernelError, match="outside the 8-byte kernarg"):
        check_against_metadata(known, {**metadata, ".kernarg_segment_size": 8})


def test_zeros_of_every_element() -> None:
    for element in ElementType:
        rng = np.random.default_rng(0)
        assert generate(element, 5, rng, family="zeros", scale=3.0) == bytes(5 * element.size)
        assert rng.random() == np.random.default_rng(0).random()


def test_dispatch_identity_covers_contents() -> None:
    launch = dispatches()[0]
    region = replace(launch.regions[1], data=launch.regions[1].data[:-1] + b"\x55")
    assert replace(launch, regions=(launch.regions[0], region)).sha256 != launch.sha256


def test_reliance_on_time_is_part_of_a_dispatch() -> None:
    strict = dispatches()[0]
    timed = dispatches(kernel(launch={**LAUNCH, "relies_on_time": True}))[0]
    assert (strict.relies_on_time, timed.relies_on_time) == (False, True)
    assert timed.sha256 != strict.sha256
    assert timed.moved(4096).relies_on_time
    assert timed.with_poisoned_outputs(1).relies_on_time


class Counting(Operation):
    """Prepares the input as a rising sequence, or what the test wants prepared."""

    def __init__(self, prepared: dict[str, Any] | None = None) -> None:
        self.prepared = prepared

    def prepare(self, arrays: Arrays, names: Names, rng: np.random.Generator) -> Arrays:
        if self.prepared is not None:
            return self.prepared
        assert names["M"] * names["N"] == len(arrays["in"])
        assert names["eps"] == pytest.approx(1e-5)
        return {"in": np.arange(len(arrays["in"])).astype(arrays["in"].dtype)}

    def reference(self, arrays: Arrays, names: Names) -> Arrays:
        return {}


def test_an_operation_prepares_inputs_and_knows_the_names() -> None:
    first = dispatches(kernel(operation=Counting()))[0]
    values = to_floats(first.regions[1].data, first.regions[1].element)
    assert values[:5].tolist() == [0, 1, 2, 3, 4]
    assert first.names["m"] == first.names["M"] == 64


@pytest.mark.parametrize(("prepared", "word"), [
    ({"in": np.zeros(3, np.uint16)}, "prepared 6 bytes for the buffer 'in', which has 256"),
    ({"inn": np.zeros(3)}, "'inn', which is not declared")])
def test_what_an_operation_prepares_must_fit(prepared: dict[str, Any], word: str) -> None:
    with pytest.raises(KernelError, match=word):
        dispatches(kernel(operation=Counting(prepared)))


def test_a_buffer_has_a_family_of_its_own() -> None:
    buffers = [{"name": "in", "offset": 0, "role": "inout", "element": "f32", "count": 4,
                "family": "zeros"}]
    assert all(d.regions[0].data == bytes(16) for d in dispatches(kernel(buffers=buffers)))
    with pytest.raises(KernelError, match="'nul'"):
        kernel(buffers=[{**buffers[0], "family": "nul"}])


def test_a_table_of_addresses_moves_with_its_buffers() -> None:
    buffers = [
        {"name": "table", "offset": 0, "role": "input", "element": "u64", "count": 2,
         "addresses": ["second", "first"]},
        {"name": "first", "role": "input", "element": "f32", "count": 4},
        {"name": "second", "offset": 8, "role": "output", "element": "f32", "count": 4},
    ]
    made = dispatches(kernel(buffers=buffers))[0]
    for moved in (made, made.moved(0x40000), made.with_poisoned_outputs(3).moved(-0x1000)):
        table, first, second = moved.regions
        assert struct.unpack("<2Q", table.data) == (second.address, first.address)
        assert struct.unpack_from("<2Q", moved.kernarg) == (table.address, second.address)
    assert made.moved(0x1000).regions[1].data == made.regions[1].data


@pytest.mark.parametrize(("change", "word"), [
    ({"addresses": ["nowhere"]}, "'nowhere'"),
    ({"element": "u32"}, "u64"),
    ({"addresses": []}, "no table points to it"),
    ({"count": 1, "addresses": ["first", "first"]}, "2 addresses in 1 elements"),
])
def test_malformed_tables_are_named(change: dict[str, Any], word: str) -> None:
    buffers = [
        {"name": "table", "offset": 0, "role": "input", "element": "u64", "count": 2,
         "addresses": ["first"], **change},
        {"name": "first", "role": "input", "element": "f32", "count": 4},
    ]
    with pytest.raises(KernelError, match=word):
        dispatches(kernel(buffers=buffers))


def changed(kind: str, index: int = 0, **changes: Any) -> Kernel:
    """The demo kernel with keys of one buffer, scalar or of the launch changed."""
    values: dict[str, Any] = {
        "launch": LAUNCH,
        "buffers": [{"name": "out", "offset": 0, "role": "output", "element": "f32", "count": 4},
                    {"name": "in", "offset": 8, "role": "input", "element": "f32", "count": 4}],
        "scalars": [{"name": "m", "offset": 16, "type": "u32", "value": 1}]}
    if kind == "launch":
        values["launch"] = {**LAUNCH, **changes}
    else:
        values[kind][index] = {**values[kind][index], **changes}
    return kernel(**values)


@pytest.mark.parametrize(("kind", "key", "values"), [
    ("launch", "workgroup", [[0, 1, 1], [-64, 1, 1], [64, 0, 1], [64.5, 1, 1], ["x", 1, 1],
                             [None, 1, 1], [True, 1, 1], [64, 1], "64", 64, None, {"x": 1}]),
    ("launch", "grid", [[1.5, 1, 1], [None, 1, 1], [[], 1, 1], "abc", 3, None, [1, 1]]),
    ("launch", "dynamic_lds", [1e9, None, [], True]),
    ("launch", "relies_on_time", ["x", 1, None]),
    ("buffers", "name", [3, None, []]),
    ("buffers", "count", [1e9, None, [], {}, True]),
    ("buffers", "offset", [1.5, "x", [], True]),
    ("buffers", "scale", ["x", None, [], float("nan"), float("inf"), True]),
    ("buffers", "family", ["x", 3, []]),
    ("buffers", "role", ["x", 3, [], None]),
    ("buffers", "element", ["x", 3, [], None]),
    ("buffers", "addresses", ["in", 3, [3], None]),
    ("buffers", "order_dependent", ["x", 1, None]),
    ("buffers", "misdescribed", ["x", 1, None]),
    ("scalars", "name", [3, None, []]),
    ("scalars", "offset", [1.5, "x", None, [], True]),
    ("scalars", "type", ["x", 3, None, []]),
    ("scalars", "value", [None, {}, [None], [[1]], True]),
])
def test_a_value_of_the_wrong_type_names_its_key(
        kind: str, key: str, values: list[Any]) -> None:
    for value in values:
        with pytest.raises(KernelError, match=key) as caught:
            changed(kind, **{key: value})
        assert "\n" not in str(caught.value)


@pytest.mark.parametrize(("changes", "word"), [
    ({"operation": 5}, "the operation of kernel 'demo' must be an Operation, not '5'"),
    ({"buffers": [5]}, "a buffer of kernel 'demo' must be a mapping"),
    ({"scalars": [None]}, "a scalar of kernel 'demo' must be a mapping"),
    ({"launch": 5}, "launch of kernel 'demo' must be a mapping"),
    ({"launch": {"grid": [1, 1, 1]}}, "lacks the key 'workgroup'"),
    ({"accuracy": [1]}, "accuracy of kernel 'demo' must be a mapping"),
    ({"accuracy": {"out": 3}}, "accuracy of 'out' must be a mapping"),
    ({"scalars": [{"name": "out", "offset": 16, "type": "u32", "value": 1}]}, "'out' twice"),
])
def test_a_malformed_declaration_is_named(changes: dict[str, Any], word: str) -> None:
    with pytest.raises(AsmEvoError, match=word):
        kernel(**changes)


@pytest.mark.parametrize(("part", "empty"), [("launch", None), ("buffers", []), ("shapes", [])])
def test_what_an_oracle_needs_is_named_alone(part: str, empty: Any) -> None:
    with pytest.raises(KernelError, match=f"declares no {part};"):
        dispatches(kernel(**{part: empty}))


def test_everything_an_oracle_lacks_is_named() -> None:
    with pytest.raises(KernelError, match="declares no launch and no buffers and no shapes;"):
        dispatches(kernel(launch=None, buffers=[], shapes=[]))


def test_values_that_no_argument_can_hold() -> None:
    with pytest.raises(KernelError, match=r"'m' = 1e\+99 does not fit f32"):
        dispatches(changed("scalars", type="f32", value=1e99))
    with pytest.raises(KernelError, match="buffer 'out' would have -5 elements"):
        dispatches(changed("buffers", count=-5))
    with pytest.raises(KernelError, match="-5 bytes of dynamic LDS"):
        dispatches(changed("launch", dynamic_lds=-5))
