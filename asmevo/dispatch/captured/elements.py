"""Element types of a capture against the kernel's code.

They decide how results are compared: an integer called a float would be held to a tolerance beyond
which no small number lies, and two floats called one double would leave the lower one free.
"""

from __future__ import annotations

from asmevo.codeobject.container import CodeObject
from asmevo.codeobject.disassemble import program
from asmevo.dispatch.captured.capture import Allocation, Capture
from asmevo.dispatch.captured.errors import CaptureError
from asmevo.dispatch.inferred.argument import PointerArgument, find_arguments
from asmevo.dispatch.inferred.element_check import plausible
from asmevo.errors import AsmEvoError

_TOO_FEW = 64  # bytes that say nothing of what they are


def written_pointers(code_object: CodeObject, symbol: str) -> tuple[PointerArgument, ...]:
    """The kernel's pointer arguments that it writes to; none where its code does not show them."""
    kernel = code_object.kernel(symbol)
    try:
        found = find_arguments(kernel, program(code_object, kernel.symbol))
    except AsmEvoError:
        return ()
    return tuple(p for p in found.pointers if p.stores or p.atomics)


def check_elements(capture: Capture, pointers: tuple[PointerArgument, ...]) -> None:
    """Raise `CaptureError` where a written allocation is called a float that its code contradicts.

    What is compared bit for bit needs no proof.
    """
    for pointer in pointers:
        allocation = _pointed_to(capture, pointer.offset)
        if allocation is None or not allocation.element.is_float:
            continue
        label = allocation.element
        if pointer.typed and label in pointer.elements:
            continue
        known = [kind for kind in pointer.elements if pointer.typed and kind.is_float]
        integers = [kind for kind in pointer.elements if pointer.typed and kind.size == label.size]
        written = b"".join(s.post for s in allocation.segments if s.changed)
        if known or integers or (len(written) >= _TOO_FEW and not plausible(written, label)):
            says = ", ".join(kind.value for kind in pointer.elements) or "unknown"
            raise CaptureError(
                f"capture '{capture.name}' calls the elements of '{allocation.name}' "
                f"{label.value}, "
                f"which neither the kernel's code ({says}) nor what it wrote confirms; opaque is "
                "compared bit for bit")


def _pointed_to(capture: Capture, offset: int) -> Allocation | None:
    held = int.from_bytes(capture.kernarg[offset:offset + 8], "little")
    return next((a for a in capture.allocations if a.address <= held < a.end), None)
