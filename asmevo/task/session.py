"""The components of one run, made from its configuration when they are first needed."""

from __future__ import annotations

import copy
import functools
import logging
import re
from collections.abc import Mapping
from functools import cached_property
from pathlib import Path
from typing import Any, cast

from hydra.errors import InstantiationException
from hydra.utils import instantiate
from omegaconf import DictConfig, OmegaConf

from asmevo.codeobject.assembly import Assembly
from asmevo.codeobject.container import CodeObject
from asmevo.codeobject.roundtrip import RoundTripReport, round_trip
from asmevo.codeobject.toolchain import Toolchain
from asmevo.device.device import Device
from asmevo.device.isolated.device import IsolatedDevice
from asmevo.dispatch.inferred.declaration import declaration_text
from asmevo.dispatch.inferred.inference import Inferred
from asmevo.dispatch.inferred.inference_error import InferenceError
from asmevo.dispatch.inferred.oracle import InferredOracle
from asmevo.dispatch.kernel import Kernel
from asmevo.dispatch.oracle import Oracle
from asmevo.durable import write_atomically
from asmevo.errors import AsmEvoError
from asmevo.gates.baseline import Baseline
from asmevo.gates.harness import Gates
from asmevo.profile.windows import WindowFinder
from asmevo.propose.proposal import Prepares, Proposer
from asmevo.registry.registry import Registry
from asmevo.search.settings import Search
from asmevo.search.workbench import Workbench
from asmevo.task.counterexamples import joined, known
from asmevo.task.probe import probe

log = logging.getLogger(__name__)


class ConfigError(AsmEvoError):
    """The configuration asks for something that cannot be made."""


class RoundTripError(AsmEvoError):
    """The original did not survive its round trip, so it may not be edited."""


def make(config: DictConfig, group: str, kind: type[Any]) -> Any:
    """The component that a group of the configuration describes, which must be a ``kind``."""
    node = config.get(group)
    if node is None:
        raise ConfigError(f"the configuration has no '{group}'")
    try:
        made = instantiate(node)
    except InstantiationException as error:
        # The component's own complaint about a value is the clear sentence; Hydra wraps it.
        if isinstance(error.__cause__, AsmEvoError):
            raise error.__cause__ from error
        raise ConfigError(_not_made(error, group)) from error
    if not isinstance(made, kind):
        raise ConfigError(f"{group}: a {type(made).__name__} is not a {kind.__name__}")
    return made


def _not_made(error: InstantiationException, group: str) -> str:
    """Hydra's own text is several lines, of which the last names the part of the group."""
    text = str(error)
    named = re.search(r"^full_key: (\S+)$", text, re.MULTILINE)
    where = named[1] if named else group
    if not where.startswith(group):
        where = f"{group}.{where}"
    cause = error.__cause__
    reason = " ".join(str(cause).split()) if cause is not None else ""
    if located := re.match(r"Error locating target '([^']+)'", text):
        while cause is not None and cause.__cause__ is not None:
            cause = cause.__cause__
        because = f" ({str(cause).splitlines()[0]})" if cause is not None and str(cause) else ""
        return f"{where}._target_: there is no '{located[1]}'{because}"
    if isinstance(cause, TypeError):
        if unknown := re.search(r"unexpected keyword argument '(\w+)'", reason):
            return f"unknown configuration key '{where}.{unknown[1]}'"
        if lacking := re.search(r"missing \d+ required [\w-]+ arguments?: (.+)", reason):
            return f"{where} lacks {lacking[1]}"
    if not reason:  # Hydra wraps its own sentences into several lines
        reason = " ".join(line.strip() for line in text.splitlines()
                          if line.strip() and not line.startswith("full_key: "))
    return f"{where}: {reason}"


_SIMULATED_XCDS = "device.timing.sampling.xcds"
_EVERY_XCD = 1 << 10  # more than any device has


class Session:
    """Builds and keeps the components that the configuration describes.

    ``counterexamples`` are those that the kernel is judged on, ``None`` for all in the registry.
    """

    def __init__(self, config: DictConfig, folder: Path,
                 counterexamples: tuple[str, ...] | None = None) -> None:
        self.config = config
        self.folder = folder
        self._counterexamples = counterexamples

    def _make(self, group: str, kind: type[Any]) -> Any:
        return make(self.config, group, kind)

    @cached_property
    def given_kernel(self) -> Kernel:
        """The kernel as its YAML has it."""
        return cast(Kernel, self._make("kernel", Kernel))

    @cached_property
    def kernel(self) -> Kernel:
        """The kernel with the declaration that the oracle infers, or else as its YAML has it."""
        return self.given_kernel if self.inferred is None else self.inferred.kernel

    @cached_property
    def inferred(self) -> Inferred | None:
        """What the inferred oracle found; ``None`` with any other oracle."""
        if not isinstance(self.oracle, InferredOracle):
            return None
        loaded = self.device.load(self.code_object, self.symbol)
        written = self.folder / "inferred.yaml"
        try:
            found = self.oracle.infer(self.given_kernel, self.code_object, probe(loaded))
        except InferenceError as error:
            if error.draft:
                write_atomically(written, error.draft.encode())
            raise
        write_atomically(written, declaration_text(found).encode())
        return found

    @cached_property
    def device(self) -> Device:
        return cast(Device, self._make("device", Device))

    @cached_property
    def oracle(self) -> Oracle:
        return cast(Oracle, self._make("oracle", Oracle))

    @cached_property
    def gates(self) -> Gates:
        return cast(Gates, self._make("gates", Gates))

    @cached_property
    def windows(self) -> WindowFinder:
        return cast(WindowFinder, self._make("profile", WindowFinder))

    @cached_property
    def proposer(self) -> Proposer:
        proposer = cast(Proposer, self._make("proposer", Proposer))
        if isinstance(proposer, Prepares):
            proposer.prepare(self.folder)
        return proposer

    @cached_property
    def search(self) -> Search:
        return cast(Search, self._make("search", Search))

    @cached_property
    def registry(self) -> Registry:
        return cast(Registry, self._make("registry", Registry))

    @cached_property
    def toolchain(self) -> Toolchain:
        return cast(Toolchain, self._make("toolchain", Toolchain))

    @cached_property
    def code_object(self) -> CodeObject:
        """The original."""
        return CodeObject.parse(self.given_kernel.source.read())

    @cached_property
    def symbol(self) -> str:
        """The kernel symbol to work on."""
        return self.code_object.kernel(self.given_kernel.symbol).symbol

    @cached_property
    def round_trip(self) -> RoundTripReport:
        """The round-trip gate; raises `RoundTripError` unless it is byte for byte."""
        report = round_trip(self.code_object, self.toolchain)
        if not report.identical:
            raise RoundTripError(
                f"'{self.given_kernel.source.describe()}' does not survive its round trip (first "
                f"difference at byte {report.first_difference}), so it may not be edited"
            )
        return report

    @cached_property
    def assembly(self) -> Assembly:
        """The original's recovered text, proven by the round trip."""
        return self.round_trip.assembly

    @cached_property
    def baseline(self) -> Baseline:
        metadata = self.code_object.kernel(self.symbol).metadata
        dispatches = joined(
            self.oracle.dispatches(self.kernel, self.symbol, metadata), self.registry,
            self.counterexamples, self.code_object.sha256, self.symbol, metadata)
        return Baseline(
            self.code_object, self.symbol, self.assembly, dispatches, self.device,
            seed=self.search.seed, operation=self.kernel.operation,
            candidate_device=self.candidate_device,
        )

    @cached_property
    def candidate_device(self) -> Device:
        """Where candidates run: the device in a process of their own, unless that is switched off.
        """
        limits = self.gates.isolation
        return self.device if limits is None else self.fresh_device()

    def fresh_device(self) -> IsolatedDevice:
        """The device in a new process, which starts when it is first used."""
        plain = OmegaConf.to_container(self.config.device, resolve=True)
        return IsolatedDevice(self.device, cast(Mapping[str, Any], plain),
                              self.gates.isolation)

    def remeasuring_device(self) -> IsolatedDevice:
        """A device in a new process for a last look at a winner.

        A cycle model then simulates every XCD: what it left out while the search went on cannot
        have been slow.
        """
        config = copy.deepcopy(self.config)
        if OmegaConf.select(config, _SIMULATED_XCDS) is not None:
            OmegaConf.update(config, _SIMULATED_XCDS, _EVERY_XCD)
        plain = OmegaConf.to_container(config.device, resolve=True)
        return IsolatedDevice(make(config, "device", Device), cast(Mapping[str, Any], plain),
                              self.gates.isolation)

    def judge_on(self, counterexamples: tuple[str, ...]) -> None:
        """Use these kept inputs and no others; to be called before anything else is made."""
        self._counterexamples = counterexamples

    @cached_property
    def counterexamples(self) -> tuple[str, ...]:
        """Identities of the kept inputs on which earlier candidates were wrong."""
        if not self.config.get("counterexamples", True):
            return ()
        if self._counterexamples is None:
            return known(self.registry, self.code_object.sha256, self.symbol)
        return self._counterexamples

    @cached_property
    def workbench(self) -> Workbench:
        return Workbench(self.baseline, self.gates, self.toolchain, self.proposer, self.windows)

    def workbench_factory(self) -> functools.partial[Workbench]:
        """Makes an equal workbench in another process, from the plain configuration."""
        plain = OmegaConf.to_container(self.config, resolve=True)
        return functools.partial(_workbench, cast(Mapping[str, Any], plain), str(self.folder),
                                 self.counterexamples)


def _workbench(config: Mapping[str, Any], folder: str,
               counterexamples: tuple[str, ...]) -> Workbench:
    return Session(OmegaConf.create(dict(config)), Path(folder), counterexamples).workbench
