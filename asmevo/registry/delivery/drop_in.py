"""Whether an object can take the place of another, as far as those that load and launch it see."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from enum import Enum, auto

from asmevo.codeobject.container import CodeObject
from asmevo.codeobject.errors import CodeObjectError
from asmevo.codeobject.interface import Interface, differences
from asmevo.codeobject.target import Target


class Misfit(Enum):
    """In what two objects differ: what they run on, or how they are launched."""

    ISA = auto()
    INTERFACE = auto()


@dataclass(frozen=True, slots=True)
class Found:
    """A difference; ``reason`` is the rest of a sentence about the replacement."""

    kind: Misfit
    reason: str


def misfit(original: bytes, replacement: bytes, kernel: str, device: Target | None) -> Found | None:
    """Why ``replacement`` is no drop-in for ``original``, of whose kernels ``kernel`` was improved.

    With ``device`` it must be allowed to run there too. None if nothing is in its way.
    """
    if _elf_identity(original) != _elf_identity(replacement):
        return Found(Misfit.ISA, "differs from the original in the machine, ABI or architecture "
                                 "flags of its ELF header")
    parsed = []
    for data, whose in ((original, "cannot be compared: the original"), (replacement, "")):
        try:
            parsed.append(CodeObject.parse(data))
        except CodeObjectError as error:
            return Found(Misfit.INTERFACE, f"{whose} is malformed: {error}".strip())
    before, after = parsed
    if device is not None and not after.target.runs_on(device):
        return Found(Misfit.ISA, f"is built for {after.target.processor}, which a device "
                                 f"'{device.processor}' need not be able to run")
    try:
        difference = next(_differences(before, after, kernel), None)
    except (CodeObjectError, RecursionError, TypeError) as error:
        difference = str(error)
    if difference is None:
        return None
    return Found(Misfit.INTERFACE, f"has another interface than the original: {difference}")


def _differences(before: CodeObject, after: CodeObject, kernel: str) -> Iterator[str]:
    """As gate G1 compares the improved kernel; nothing else may have changed."""
    yield from differences(Interface.of(before, before.kernel(kernel)),
                           Interface.of(after, after.kernel(kernel)))
    for old in before.kernels:
        new = after.kernel(old.symbol)
        if old.symbol == kernel:
            continue
        if old.metadata != new.metadata:
            yield f"the metadata of kernel '{old.symbol}' changed"
        if _without_entry(old.descriptor.pack()) != _without_entry(new.descriptor.pack()):
            yield f"the descriptor of kernel '{old.symbol}' changed"
    if _apart_from_kernels(before) != _apart_from_kernels(after):
        yield "the metadata of the object changed"


def _without_entry(descriptor: bytes) -> bytes:
    """Without the distance to the code (bytes 16 to 23), which moves when other code grows."""
    return descriptor[:16] + descriptor[24:]


def _apart_from_kernels(code_object: CodeObject) -> dict[str, object]:
    return {key: value for key, value in code_object.metadata.items() if key != "amdhsa.kernels"}


def _elf_identity(data: bytes) -> tuple[bytes, ...]:
    """e_ident up to the ABI version, e_type with e_machine, and e_flags of an ELF64 file.

    In ``e_flags`` AMDGPU states processor, xnack and sramecc (LLVM "User Guide for AMDGPU Backend",
    "Header"); offsets of Elf64_Ehdr are those of the System V gABI.
    """
    return data[:9], data[16:20], data[48:52]
