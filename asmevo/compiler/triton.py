"""Triton kernels of published packages, compiled to HSACO without a GPU and kept in a cache."""

from __future__ import annotations

import hashlib
import importlib.metadata
import json
import logging
import os
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from asmevo.codeobject.errors import SourceError
from asmevo.codeobject.source import read_file
from asmevo.compiler.errors import CompileError
from asmevo.compiler.extract import standalone
from asmevo.compiler.wheel import cache_folder, fetch, pinned, read_member, usable_cache
from asmevo.durable import write_atomically

log = logging.getLogger(__name__)

_COMPILE_SECONDS = 900
_COMMAND = "python -m asmevo -m task=compile 'kernel=glob(triton_*)'"


@dataclass(frozen=True, slots=True)
class LaunchNeeds:
    """What the object does not say: bytes of LDS that a launch adds, work-items of a workgroup."""

    dynamic_lds: int
    workgroup: int


@dataclass(frozen=True, slots=True)
class _Kept:
    """What is recorded beside an HSACO of the cache."""

    needs: LaunchNeeds
    sha256: str


def _record(path: Path) -> Path:
    return path.with_suffix(".json")


def _kept(path: Path) -> _Kept | None:
    """The record of an HSACO; ``None`` where it is missing, malformed or has no digest."""
    try:
        found = json.loads(_record(path).read_bytes())
    except (FileNotFoundError, NotADirectoryError, ValueError, RecursionError):
        return None
    if not isinstance(found, dict):
        return None
    lds, workgroup, digest = (found.get(key) for key in ("dynamic_lds", "workgroup", "sha256"))
    if type(lds) is int and type(workgroup) is int and isinstance(digest, str):
        return _Kept(LaunchNeeds(lds, workgroup), digest)
    return None


@dataclass(frozen=True)
class TritonKernel:
    """A kernel of a pinned wheel; a `Source` once it has been compiled.

    ``arguments`` lists every parameter in order: a Triton type (``"*bf16"``, ``i32``), or
    ``{constexpr: value}``, or ``{dtype: name}`` for a constexpr that is a Triton type.
    ``divisible_by_16`` names the arguments that a launcher would find to be multiples of 16, which
    lets the compiler widen accesses: every dispatch must keep that promise. ``options`` are
    Triton's (``num_warps``, ``num_stages`` ...). ``imports`` names the files of the wheel that
    define functions which the module imports, by function.
    """

    distribution: str
    module: str
    function: str
    arguments: Mapping[str, Any]
    divisible_by_16: Sequence[str] = ()
    options: Mapping[str, Any] = field(default_factory=dict)
    target: str = "gfx942"
    triton: str = "3.9.0"
    imports: Mapping[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for name, kind in self.arguments.items():
            if not isinstance(kind, str) and not (
                    isinstance(kind, Mapping) and list(kind) in (["constexpr"], ["dtype"])):
                raise CompileError(
                    f"argument '{name}' of '{self.function}' must be a Triton type, "
                    f"{{constexpr: value}} or {{dtype: name}}, not {kind}")
        for name in self.divisible_by_16:
            if not isinstance(self.arguments.get(name), str):
                raise CompileError(f"divisible_by_16 of '{self.function}' names '{name}', which is "
                                   "no run-time argument")

    def read(self) -> bytes:
        """The HSACO from the cache. Raises `SourceError` unless it is there, as it was compiled."""
        with usable_cache():
            path = self.path
            if not path.is_file():
                raise SourceError(f"'{self.describe()}' is not compiled yet: "
                                  f"{_COMMAND} compiles it and its like")
            kept = _kept(path)
            data = read_file(path)
        if kept is None or hashlib.sha256(data).hexdigest() != kept.sha256:
            raise SourceError(f"'{path}' is damaged, or has no digest beside it: {_COMMAND} "
                              "compiles it again")
        return data

    def describe(self) -> str:
        return f"{self.distribution} {pinned(self.distribution).version}:{self.function}"

    @property
    def path(self) -> Path:
        """Where the HSACO is kept: named after everything that decides its bytes."""
        wheel = pinned(self.distribution)
        key = json.dumps([wheel.sha256, self.module, self.triton, self._request(""),
                          *([dict(self.imports)] if self.imports else [])])
        digest = hashlib.sha256(key.encode()).hexdigest()
        return cache_folder() / "triton" / f"{self.function}-{digest[:16]}.hsaco"

    def compile(self) -> LaunchNeeds:
        """Compile and keep the HSACO, unless the cache has it, and say what a launch needs.

        Fetches the wheel first. What the cache has is compiled again when it is damaged or of a
        version that recorded no digest. Raises `CompileError`.
        """
        with usable_cache():
            return self._cached() or self._compiled()

    def _cached(self) -> LaunchNeeds | None:
        path = self.path
        kept = _kept(path)
        if kept is None or not path.is_file():
            return None
        if hashlib.sha256(read_file(path)).hexdigest() != kept.sha256:
            log.warning("'%s' is damaged and compiled again", path)
            return None
        return kept.needs

    def _compiled(self) -> LaunchNeeds:
        try:
            version = importlib.metadata.version("triton")
        except importlib.metadata.PackageNotFoundError:
            raise CompileError(f"compiling '{self.function}' needs triton {self.triton} "
                               "(pip install '.[triton]')") from None
        if version != self.triton:
            raise CompileError(f"'{self.function}' is compiled by triton {self.triton}, and "
                               f"{version} is installed")
        wheel = fetch(pinned(self.distribution))
        imported = {name: read_member(wheel, module) for name, module in self.imports.items()}
        text = standalone(read_member(wheel, self.module), self.function, imported)
        hsaco, launch = self._run(self._request(text))
        self.path.parent.mkdir(parents=True, exist_ok=True)
        record = {**asdict(launch), "sha256": hashlib.sha256(hsaco).hexdigest()}
        write_atomically(_record(self.path), json.dumps(record).encode())
        write_atomically(self.path, hsaco)
        return launch

    def _request(self, source: str) -> dict[str, Any]:
        return {"source": source, "function": self.function,
                "arguments": {name: dict(kind) if isinstance(kind, Mapping) else kind
                              for name, kind in self.arguments.items()},
                "divisible_by_16": list(self.divisible_by_16), "options": dict(self.options),
                "target": self.target}

    def _run(self, request: Mapping[str, Any]) -> tuple[bytes, LaunchNeeds]:
        with tempfile.TemporaryDirectory() as folder:
            output = Path(folder) / "kernel.hsaco"
            environment = {
                **os.environ, "TRITON_CACHE_DIR": folder,
                # Debug lines hold the path of a temporary file; without them the same input gives
                # the same bytes.
                "TRITON_DISABLE_LINE_INFO": "1",
            }
            log.info("compiling %s with triton %s", self.function, self.triton)
            try:
                done = subprocess.run(
                    [sys.executable, "-m", "asmevo.compiler.triton_worker", str(output)],
                    input=json.dumps(request), capture_output=True, text=True, check=False,
                    timeout=_COMPILE_SECONDS, env=environment)
            except subprocess.TimeoutExpired:
                raise CompileError(f"compiling '{self.function}' took more than "
                                   f"{_COMPILE_SECONDS} s") from None
            if done.returncode != 0 or not output.is_file():
                lines = done.stderr.strip().splitlines()
                reason = lines[-1] if lines else f"exit status {done.returncode}"
                raise CompileError(f"triton cannot compile '{self.function}': {reason}")
            return output.read_bytes(), LaunchNeeds(**json.loads(done.stdout))
