"""Element types that a capture's document was given, against the kernel's code."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from asmevo.dispatch.captured.capture import Allocation, Capture, Segment
from asmevo.dispatch.captured.elements import check_elements
from asmevo.dispatch.captured.errors import CaptureError
from asmevo.dispatch.dispatch import ElementType
from asmevo.dispatch.inferred.argument import PointerArgument

E = ElementType
FLOATS = np.random.default_rng(0).standard_normal(256).astype(np.float32).tobytes()
NUMBERS = np.arange(256, dtype=np.int32).tobytes()


def capture(element: ElementType, after: bytes) -> Capture:
    base = 0x10000
    out = Allocation("out", base, len(after), (Segment(0, bytes(len(after)), after),), element)
    return Capture("c", "0" * 64, "k", base.to_bytes(8, "little"), (64, 1, 1), (64, 1, 1), (out,))


def pointer(*elements: ElementType, typed: bool = True) -> PointerArgument:
    return PointerArgument("out", 0, loads=0, stores=1, atomics=0, float_atomics=0,
                           elements=elements, typed=typed, steers=False)


@pytest.mark.parametrize(("label", "after", "code"), [
    (E.FP8, FLOATS, pointer(E.F32)),
    (E.F64, FLOATS, pointer(E.F32)),  # the lower float would be free
    (E.F32, NUMBERS, pointer(E.I32)),  # every small integer is within any tolerance
    (E.BF16, NUMBERS, pointer(E.I32)),
    (E.F32, NUMBERS, pointer(E.U32, typed=False)),
])
def test_what_the_code_contradicts_is_refused(
        label: ElementType, after: bytes, code: PointerArgument) -> None:
    with pytest.raises(CaptureError, match=f"calls the elements of 'out' {label.value}"):
        check_elements(capture(label, after), (code,))


@pytest.mark.parametrize(("label", "after", "code"), [
    (E.F32, FLOATS, pointer(E.F32)),
    (E.OPAQUE, FLOATS, pointer(E.F32)),
    (E.U8, FLOATS, pointer(E.F32)),
    (E.F32, NUMBERS, pointer(E.U32, E.F32)),
    (E.F32, FLOATS, pointer(E.U32, typed=False)),
    (E.BF16, np.frombuffer(FLOATS, np.uint16)[1::2].tobytes(), pointer(E.U32)),
])
def test_what_agrees_or_is_compared_bit_for_bit_is_taken(
        label: ElementType, after: bytes, code: PointerArgument) -> None:
    check_elements(capture(label, after), (code,))


def test_a_pointer_that_leads_nowhere_says_nothing() -> None:
    lost = replace(capture(E.FP8, FLOATS), kernarg=bytes(8))
    check_elements(lost, (pointer(E.F32),))
