"""Whether one code object may stand where another stood."""

from __future__ import annotations

from asmevo.bundle.open import is_code_object
from asmevo.codeobject.container import CodeObject
from asmevo.codeobject.errors import CodeObjectError
from asmevo.codeobject.interface import Interface, differences
from asmevo.deploy.errors import DeployError, DeployRefusal, shown

# e_ident up to the ABI version, e_type with e_machine, e_flags: System V gABI, Elf64_Ehdr. In
# e_flags AMDGPU states processor, xnack and sramecc (LLVM "User Guide for AMDGPU Backend").
_IDENTITY = (slice(0, 9), slice(16, 20), slice(48, 52))


def check_alike(original: bytes, replacement: bytes) -> tuple[CodeObject, CodeObject]:
    """Both objects, taken apart, if the host cannot tell the one from the other.

    Raises `DeployError` when processor, target features, ABI version, kernels or the interface of a
    kernel differ, or one of them cannot be read.
    """
    if not is_code_object(replacement):
        raise DeployError(DeployRefusal.ARCHITECTURE, "the replacement is not a code object")
    if [original[part] for part in _IDENTITY] != [replacement[part] for part in _IDENTITY]:
        raise DeployError(DeployRefusal.ARCHITECTURE,
                          f"the replacement is for {_described(replacement)}, the original for "
                          f"{_described(original)}")
    try:
        before, after = CodeObject.parse(original), CodeObject.parse(replacement)
        found = [difference for kernel in before.kernels
                 for difference in differences(Interface.of(before, kernel),
                                               Interface.of(after, after.kernel(kernel.symbol)))]
    except (CodeObjectError, RecursionError) as error:
        raise DeployError(DeployRefusal.INTERFACE,
                          f"the interfaces cannot be compared: {error}") from error
    if found:
        raise DeployError(DeployRefusal.INTERFACE,
                          "the replacement's interface is not the original's: "
                          f"{shown(found[0])}")
    return before, after


def _described(data: bytes) -> str:
    try:
        parsed = CodeObject.parse(data)
    except (CodeObjectError, RecursionError):
        return f"ELF flags {int.from_bytes(data[48:52], 'little'):#x}, ABI version {data[8]}"
    return f"{parsed.target.processor} (code object version {parsed.version})"
