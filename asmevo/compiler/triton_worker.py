"""The child process that runs Triton.

It takes a request in JSON on stdin and leaves the object in a file, and what its launcher must know
in JSON on stdout.

A process of its own because it executes source from a package, may take minutes, and leaves
compiler state behind. Usage: ``python -m asmevo.compiler.triton_worker OUTPUT < request``.
"""

from __future__ import annotations

import importlib.util
import json
import sys
import tempfile
from pathlib import Path
from typing import Any


def compiled(request: dict[str, Any]) -> tuple[bytes, dict[str, int]]:
    """The HSACO that ``request`` (see `asmevo.compiler.triton.TritonKernel`) asks for, and what its
    launcher must know."""
    import triton
    import triton.language as tl
    from triton.backends.compiler import GPUTarget
    from triton.compiler import ASTSource
    from triton.compiler.compiler import make_backend

    with tempfile.TemporaryDirectory() as folder:
        # Triton reads the source of a function from its file.
        path = Path(folder) / "kernel.py"
        path.write_text(request["source"])
        spec = importlib.util.spec_from_file_location("kernel", path)
        assert spec is not None
        assert spec.loader is not None
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        function = getattr(module, request["function"])
        signature: dict[str, str] = {}
        constants: dict[str, Any] = {}
        for name, kind in request["arguments"].items():
            if isinstance(kind, dict):
                signature[name] = "constexpr"
                constants[name] = (getattr(tl, kind["dtype"]) if "dtype" in kind
                                   else kind["constexpr"])
            else:
                signature[name] = kind
        order = list(function.arg_names)
        if list(signature) != order:
            raise ValueError(f"arguments are {', '.join(order)}, in this order")
        attributes = {(order.index(name),): [["tt.divisibility", 16]]
                      for name in request["divisible_by_16"]}
        source = ASTSource(function, signature, constants, attributes)
        target = GPUTarget("hip", request["target"], 64)
        # Triton ignores an option that it does not know.
        known = vars(make_backend(target).parse_options({})).keys()
        for name in request["options"]:
            if name not in known:
                raise ValueError(f"there is no option '{name}'")
        result = triton.compile(source, target=target, options=request["options"])
        launch = {"dynamic_lds": result.metadata.shared,
                  "workgroup": 64 * result.metadata.num_warps}
        return bytes(result.asm["hsaco"]), launch


def main() -> int:
    """Give 0, or 1 and the reason on stderr."""
    output = Path(sys.argv[1])
    try:
        hsaco, launch = compiled(json.load(sys.stdin))
        output.write_bytes(hsaco)
        json.dump(launch, sys.stdout)
    except Exception as error:
        sys.stderr.write(f"{type(error).__name__}: {error}\n")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
