"""The launches that a row of the table is a measurement of."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import cast

from hydra import compose, initialize_config_dir
from hydra.core.global_hydra import GlobalHydra
from omegaconf import DictConfig

from asmevo.__main__ import config_folder
from asmevo.codeobject.container import CodeObject
from asmevo.config import register
from asmevo.dispatch.declared import DeclaredOracle
from asmevo.dispatch.dispatch import Dispatch
from asmevo.dispatch.kernel import Kernel
from asmevo.operation.expert_layer import ExpertLayer
from asmevo.task.session import make
from asmevo.validation.tuned_kernels import Declaration

# Contents of no buffer but tables decide what these kernels do when, and gigabytes of zeros cost
# neither time nor memory.
_NO_VALUES = DeclaredOracle(families=("zeros",), guard=0)


@dataclass(frozen=True, slots=True)
class Launch:
    """A kernel of a code object and one dispatch of it."""

    code_object: CodeObject
    symbol: str
    dispatch: Dispatch


def composed(overrides: Sequence[str]) -> DictConfig:
    """The configuration that a command line with these overrides has."""
    register()
    if GlobalHydra.instance().is_initialized():
        return compose("config", overrides=list(overrides))
    with initialize_config_dir(config_folder(), version_base="1.3"):
        return compose("config", overrides=list(overrides))


def launch_of(declared: Declaration) -> Launch:
    """The launch of a kernel, with tables of experts routed at random and otherwise zeros.

    Raises `SourceError` when the code object is not at hand.
    """
    config = composed([f"kernel={declared.name}", *declared.overrides])
    kernel = cast(Kernel, make(config, "kernel", Kernel))
    code_object = CodeObject.parse(kernel.source.read())
    found = code_object.kernel(kernel.symbol)
    routed = isinstance(kernel.operation, ExpertLayer)
    kernel = replace(
        kernel, operation=kernel.operation if routed else None,
        buffers=tuple(replace(buffer, family=None) for buffer in kernel.buffers))
    dispatches = _NO_VALUES.dispatches(kernel, found.symbol, found.metadata)
    return Launch(code_object, found.symbol, dispatches[0])
