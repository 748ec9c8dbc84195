"""How much of AITER's declared kernels inference finds by itself, as a table.

``python tests/dispatch/inferred/measure.py [NAME ...]`` infers every ``conf/kernel/aiter_*.yaml``
whose object is there and compares with what the YAML declares.
"""

from __future__ import annotations

import sys
import time
from dataclasses import dataclass
from pathlib import Path

from hydra import compose, initialize_config_dir
from hydra.utils import instantiate

from asmevo.codeobject.container import CodeObject
from asmevo.codeobject.disassemble import program
from asmevo.codeobject.recover import recover
from asmevo.config import register
from asmevo.device.device import Device
from asmevo.dispatch.comparison import Tolerance
from asmevo.dispatch.dispatch import ElementType, Role
from asmevo.dispatch.inferred.argument import PointerArgument, find_arguments
from asmevo.dispatch.inferred.oracle import InferredOracle
from asmevo.dispatch.kernel import Buffer, Kernel
from asmevo.errors import AsmEvoError
from asmevo.gates.baseline import Baseline
from asmevo.task.probe import probe

_CONF = Path(__file__).parents[3] / "conf"
_BYTES = frozenset({ElementType.OPAQUE, ElementType.U8, ElementType.I8})


@dataclass(frozen=True)
class Row:
    """``roles`` and ``elements`` are (agreeing, declared) counts of what the code alone says."""

    kernel: str
    roles: tuple[int, int]
    elements: tuple[int, int]
    launch: str
    seconds: float

    def line(self) -> str:
        return (f"| {self.kernel} | {self.roles[0]} of {self.roles[1]} | "
                f"{self.elements[0]} of {self.elements[1]} | {self.launch} |")


def same_role(found: PointerArgument | None, declared: Buffer) -> bool:
    """Written or not; whether an output also counts its old contents only a launch can tell."""
    if found is None or not found.used:
        return False
    written = bool(found.stores or found.atomics)
    return written == declared.role.written and (
        declared.role is not Role.INOUT or found.loads + found.atomics > 0)


def same_element(found: PointerArgument | None, declared: Buffer) -> bool:
    """The same type, or integers of one size: they are generated and compared alike."""
    if found is None or not found.used:
        return False
    if declared.element in found.elements:
        return True
    return any({kind, declared.element} <= _BYTES or (
        kind.size == declared.element.size and not kind.is_float
        and not declared.element.is_float) for kind in found.elements)


def declared_kernel(name: str) -> Kernel:
    with initialize_config_dir(str(_CONF), version_base="1.3"):
        made = instantiate(compose("config", overrides=[f"kernel={name}"]).kernel)
    assert isinstance(made, Kernel)
    return made


def emulator() -> Device:
    with initialize_config_dir(str(_CONF / "device"), version_base="1.3"):
        made = instantiate(compose("emulator"))
    assert isinstance(made, Device)
    return made


def measure(name: str, device: Device) -> Row:
    started = time.monotonic()
    declared = declared_kernel(name)
    code_object = CodeObject.parse(declared.source.read())
    kernel = code_object.kernel(declared.symbol)
    try:
        arguments = find_arguments(kernel, program(code_object, kernel.symbol))
        pointers = {p.offset: p for p in arguments.pointers}
    except AsmEvoError:
        pointers = {}
    buffers = [b for b in declared.buffers if b.offset is not None]
    roles = sum(same_role(pointers.get(b.offset or 0), b) for b in buffers)
    elements = sum(same_element(pointers.get(b.offset or 0), b) for b in buffers)
    return Row(name, (roles, len(buffers)), (elements, len(buffers)),
               launch(declared, code_object, kernel.symbol, device), time.monotonic() - started)


def launch(declared: Kernel, code_object: CodeObject, symbol: str, device: Device) -> str:
    """What the full inference says, and whether the gates take its dispatches."""
    oracle = InferredOracle()
    bare = Kernel(declared.name, declared.source, symbol)
    try:
        found = oracle.infer(bare, code_object, probe(device.load(code_object, symbol)))
        dispatches = oracle.dispatches(found.kernel, symbol,
                                       code_object.kernel(symbol).metadata)
        Baseline(code_object, symbol, recover(code_object), dispatches, device).self_check(
            Tolerance())
    except AsmEvoError as error:
        return f"no: {str(error).split('; declare')[0].replace('|', '/')[:160]}"
    by_offset = {b.offset: b for b in found.kernel.buffers}
    right = sum(b.offset in by_offset and by_offset[b.offset].role is b.role
                for b in declared.buffers)
    counts = ", ".join(f"{b.name} {b.count}" for b in found.kernel.buffers)
    return (f"yes, {len(dispatches)} dispatches, {right} of {len(declared.buffers)} roles "
            f"confirmed: {counts}")


def main() -> None:
    register()
    device = emulator()
    names = sys.argv[1:] or sorted(p.stem for p in (_CONF / "kernel").glob("aiter_*.yaml"))
    for name in names:
        try:
            row = measure(name, device)
        except AsmEvoError as error:
            row = Row(name, (0, 0), (0, 0), f"not measured: {error}", 0.0)
        sys.stdout.write(f"{row.line()} <!-- {row.seconds:.0f} s -->\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main()
