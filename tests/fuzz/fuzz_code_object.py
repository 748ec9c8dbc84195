"""Coverage-guided fuzzing of the code object readers; see README.md beside this file."""

from __future__ import annotations

import sys

import atheris

with atheris.instrument_imports(include=["asmevo.codeobject", "asmevo.isa"]):
    from asmevo.codeobject.container import CodeObject
    from asmevo.codeobject.recover import recover
    from asmevo.errors import AsmEvoError
    from asmevo.task.inspect import kernel_facts


def read_everything(data: bytes) -> None:
    """Anything but an `AsmEvoError` that comes out of here is a defect."""
    try:
        code_object = CodeObject.parse(data)
        for kernel in code_object.kernels:
            kernel_facts(code_object, kernel)
        recover(code_object).text()
    except AsmEvoError:
        pass


if __name__ == "__main__":
    atheris.Setup(sys.argv, read_everything)
    atheris.Fuzz()
