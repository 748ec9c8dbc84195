"""Compiling the kernels that come as source."""

from __future__ import annotations

import math
import time
from dataclasses import asdict, dataclass

from asmevo.compiler.triton import LaunchNeeds, TritonKernel
from asmevo.dispatch.expression import evaluate
from asmevo.dispatch.kernel import Kernel
from asmevo.report.result import Result, Status
from asmevo.task.inspect import occupancy_facts, resource_facts
from asmevo.task.session import ConfigError, Session


def _check(kernel: Kernel, needs: LaunchNeeds) -> None:
    """The YAML must launch the kernel as it was compiled: nothing in the object would tell."""
    if kernel.launch is None:
        return
    if (items := math.prod(kernel.launch.workgroup)) != needs.workgroup:
        raise ConfigError(f"kernel '{kernel.name}' was compiled for workgroups of "
                          f"{needs.workgroup} work-items, and launch.workgroup has {items}")
    names = [{**kernel.constants, **shape} for shape in kernel.shapes or ({},)]
    lds = min(evaluate(kernel.launch.dynamic_lds, known) for known in names)
    if lds < needs.dynamic_lds:
        raise ConfigError(f"kernel '{kernel.name}' uses {needs.dynamic_lds} bytes of LDS that the "
                          f"launch must add, and launch.dynamic_lds is {lds}")


@dataclass(frozen=True)
class Compile:
    """Compiles the kernel's source into the cache, where the other tasks find it."""

    def run(self, session: Session) -> Result:
        started = time.monotonic()
        source = session.kernel.source
        if not isinstance(source, TritonKernel):
            raise ConfigError(f"kernel '{session.kernel.name}' is not compiled from source: "
                              f"'{source.describe()}' is a code object already")
        needs = source.compile()
        _check(session.kernel, needs)
        code_object = session.code_object
        kernel = code_object.kernel(session.symbol)
        return Result(
            task="compile",
            status=Status.COMPILED,
            kernel=session.kernel.name,
            symbol=session.symbol,
            original_sha256=code_object.sha256,
            folder=str(session.folder),
            wall_seconds=time.monotonic() - started,
            details={
                "source": source.describe(),
                "compiler": f"triton {source.triton}",
                "path": str(source.path),
                "bytes": len(code_object.data),
                "launch": asdict(needs),
                "resources": resource_facts(kernel),
                "occupancy": occupancy_facts(code_object, kernel),
            },
        )
