"""The inferred oracle: dispatches of a kernel that nobody declared."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from asmevo.codeobject.container import CodeObject
from asmevo.codeobject.disassemble import program
from asmevo.dispatch.declared import DeclaredOracle
from asmevo.dispatch.dispatch import Dispatch
from asmevo.dispatch.inferred.inference import Inference, Inferred
from asmevo.dispatch.inferred.inference_error import InferenceError
from asmevo.dispatch.inferred.probing import Probe
from asmevo.dispatch.kernel import Kernel
from asmevo.isa.errors import ControlFlowError

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class InferredOracle(DeclaredOracle):
    """Infers a kernel's declaration, then makes dispatches of it as of a declared one.

    Families, seeds, canaries and held-out shapes are those of `DeclaredOracle`.
    """

    def infer(self, kernel: Kernel, code_object: CodeObject, probe: Probe) -> Inferred:
        """What a kernel without declaration takes and how it is launched.

        ``probe`` launches the kernel, see `asmevo.dispatch.inferred.probing`. The same object,
        probe and seed always give the same declaration. Raises `InferenceError` naming the YAML
        keys to declare where the object does not tell.
        """
        declared = [name for name in ("launch", "buffers", "scalars", "shapes")
                    if getattr(kernel, name)]
        if declared:
            raise InferenceError(
                f"kernel '{kernel.name}' declares its {', '.join(declared)}, and oracle=inferred "
                "is for kernels that declare nothing: use oracle=declared",
                [name for name in ("launch", "buffers", "shapes") if name not in declared] or
                declared)
        found = code_object.kernel(kernel.symbol)
        try:
            code = program(code_object, found.symbol)
            inferred = Inference(kernel, found, code, probe, self.seed).run()
        except ControlFlowError as error:
            raise InferenceError(f"the code of '{found.symbol}' cannot be followed ({error})",
                                 ["launch", "buffers", "scalars", "shapes"]) from error
        for fact in inferred.facts:
            log.info("%s", fact)
        return inferred

    def dispatches(self, kernel: Kernel, symbol: str, metadata: Mapping[str, Any]) -> tuple[
            Dispatch, ...]:
        """Dispatches of a declaration that `infer` gave."""
        return super().dispatches(kernel, symbol, metadata)
