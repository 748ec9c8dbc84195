"""The assembler and the linker, as child processes that hostile text cannot hurt us through."""

from __future__ import annotations

import functools
import importlib.metadata
import os
import re
import resource
import select
import signal
import subprocess
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Protocol, runtime_checkable

from asmevo.codeobject.errors import AssemblerError, Diagnostic, ToolchainError
from asmevo.codeobject.target import Target

_MEMORY_LIMIT = 4 << 30
_FILE_LIMIT = 64 << 20
_MESSAGE_LIMIT = 1 << 20
_PIECE = 1 << 20
_DIAGNOSTIC_LIMIT = 100
_SOURCE, _OBJECT, _LINKED = "kernel.s", "kernel.o", "kernel.co"
_HIP_SOURCE = "kernel.hip"
# Neither ROCm's headers nor its device library.
_HIP = ("-x", "hip", "--offload-device-only", "-nogpuinc", "-nogpulib", "-std=c++17", "-O3",
        "-mcode-object-version=5", "-Wall", "-Wextra")
_LOCATED = re.compile(r"[^:\n]+:(\d+):(\d+): (?:fatal )?(error|warning|note): (.*)")
_UNLOCATED = re.compile(r"(?:[^:\n]+: )?(fatal error|error): (.*)")


@runtime_checkable
class Toolchain(Protocol):
    """Turns assembly text into a linked code object."""

    def assemble(self, text: str, target: Target) -> bytes:
        """A relocatable object. Raises `AssemblerError` on bad text, else `ToolchainError`."""
        ...

    def link(self, relocatable: bytes, *, version_comment: str | None = None) -> bytes:
        """A shared object; ``version_comment`` is the linker's line in ``.comment``."""
        ...

    def versions(self) -> Mapping[str, str]:
        """What assembles and what links, as recorded with every artifact."""
        ...


class CommandToolchain:
    """Any clang and ld.lld that can be run as commands.

    Each call has a private working directory, an environment without anything inherited, and
    limits on time, memory and file size.
    """

    def __init__(self, assembler: Sequence[str], linker: Sequence[str], *, origin: str,
                 timeout_seconds: float) -> None:
        if timeout_seconds <= 0:
            raise ToolchainError(f"the toolchain's timeout must be positive, not {timeout_seconds}")
        self._assembler = tuple(assembler)
        self._linker = tuple(linker)
        self._origin = origin
        self._timeout = timeout_seconds

    def assemble(self, text: str, target: Target) -> bytes:
        if not text.isascii():
            raise AssemblerError((Diagnostic(0, 0, "error", "the text is not ASCII"),))
        command = [*self._assembler, "-c", "-x", "assembler", "-target", "amdgcn-amd-amdhsa",
                   f"-mcpu={target.processor}", _SOURCE, "-o", _OBJECT]
        return self._run("assembler", command, {_SOURCE: text}, _OBJECT, text=text)

    def compile_hip(self, source: str, headers: Mapping[str, str], target: Target) -> str:
        """The assembly of a HIP source that needs no more than ``headers``, at -O3.

        Raises `AssemblerError` on bad text, else `ToolchainError`.
        """
        command = [*self._assembler, *_HIP, f"--offload-arch={target.processor}", "-S", _HIP_SOURCE,
                   "-o", _SOURCE]
        files = {**headers, _HIP_SOURCE: source}
        return self._run("compiler", command, files, _SOURCE).decode("ascii")

    def link(self, relocatable: bytes, *, version_comment: str | None = None) -> bytes:
        command = [*self._linker, "-shared", _OBJECT, "-o", _LINKED]
        environment = {} if version_comment is None else {"LLD_VERSION": version_comment}
        return self._run("linker", command, {_OBJECT: relocatable}, _LINKED, environment)

    @functools.cached_property
    def _versions(self) -> dict[str, str]:
        return {"assembler": self._version(self._assembler), "linker": self._version(self._linker),
                "origin": self._origin}

    def versions(self) -> Mapping[str, str]:
        return self._versions

    def _version(self, command: Sequence[str]) -> str:
        with tempfile.TemporaryDirectory(prefix="asmevo-") as directory:
            status, output = self._execute([*command, "--version"], Path(directory), {})
        if status != 0 or not output.strip():
            raise ToolchainError(f"'{' '.join(command)} --version' failed with status {status}")
        return output.splitlines()[0].strip()

    def _run(self, tool: str, command: Sequence[str], inputs: Mapping[str, str | bytes],
             output: str, environment: Mapping[str, str] | None = None, text: str = "") -> bytes:
        try:
            with tempfile.TemporaryDirectory(prefix="asmevo-") as name:
                directory = Path(name)
                for file, content in inputs.items():
                    _write(directory / file, content)
                status, messages = self._execute(command, directory, environment or {})
                if status < 0:
                    raise ToolchainError(f"the {tool} was killed by {signal.Signals(-status).name}")
                if status > 0:
                    raise _failure(tool, status, messages, text)
                if not (directory / output).is_file():
                    raise ToolchainError(f"the {tool} ended without an output file")
                # A fast child can have written before its limits were set.
                if (directory / output).stat().st_size > _FILE_LIMIT:
                    raise ToolchainError(f"the {tool} wrote more than {_FILE_LIMIT >> 20} MiB")
                return (directory / output).read_bytes()
        except OSError as error:
            raise ToolchainError(f"cannot run the {tool}: {error.strerror or error}") from error

    def _execute(self, command: Sequence[str], directory: Path,
                 environment: Mapping[str, str]) -> tuple[int, str]:
        """Exit status (negative for a signal) and everything the command printed."""
        # A file, not a pipe: a million error messages must neither fill memory nor block.
        log = directory / "log"
        with log.open("wb") as sink:
            try:
                process = subprocess.Popen(
                    list(command), cwd=directory, stdin=subprocess.DEVNULL, stdout=sink,
                    stderr=subprocess.STDOUT, start_new_session=True,
                    env={**environment, "HOME": str(directory), "TMPDIR": str(directory),
                         "ZIG_GLOBAL_CACHE_DIR": str(directory),
                         "ZIG_LOCAL_CACHE_DIR": str(directory)})
            except (OSError, ValueError) as error:
                reason = getattr(error, "strerror", None) or error
                raise ToolchainError(f"cannot run '{command[0]}': {reason}") from error
            try:
                self._limit(process.pid)
                if not _ended(process, self._timeout):
                    raise ToolchainError(f"'{Path(command[0]).name}' did not finish within "
                                         f"{self._timeout:g} s")
                status = process.wait()
            finally:
                if process.poll() is None:
                    _kill(process)
        with log.open("rb") as source:
            return status, source.read(_MESSAGE_LIMIT).decode("utf-8", "replace")

    def _limit(self, pid: int) -> None:
        # prlimit on the running child instead of preexec_fn: that would forbid vfork, and forking
        # a large process costs more than the assembler does.
        seconds = int(self._timeout) + 1
        limits = {resource.RLIMIT_AS: _MEMORY_LIMIT, resource.RLIMIT_FSIZE: _FILE_LIMIT,
                  resource.RLIMIT_CPU: seconds, resource.RLIMIT_CORE: 0}
        for kind, value in limits.items():
            try:
                hard = resource.prlimit(pid, kind)[1]
                bounded = value if hard == resource.RLIM_INFINITY else min(value, hard)
                resource.prlimit(pid, kind, (bounded, bounded))
            except ProcessLookupError:
                return


class ZigToolchain(CommandToolchain):
    """Clang and LLD out of the ``ziglang`` wheel: no root, no ROCm."""

    def __init__(self, timeout_seconds: float = 20.0) -> None:
        zig, version = _zig()
        super().__init__([str(zig), "clang"], [str(zig), "ld.lld"], origin=f"ziglang {version}",
                         timeout_seconds=timeout_seconds)


class RocmToolchain(CommandToolchain):
    """Clang and LLD of an installed ROCm."""

    def __init__(self, directory: str = "/opt/rocm/llvm/bin",
                 timeout_seconds: float = 20.0) -> None:
        tools = [Path(directory).expanduser() / name for name in ("clang", "ld.lld")]
        for tool in tools:
            if not os.access(tool, os.X_OK):
                raise ToolchainError(f"there is no '{tool.name}' in '{directory}'; is ROCm "
                                     "installed there?")
        super().__init__([str(tools[0])], [str(tools[1])], origin=str(directory),
                         timeout_seconds=timeout_seconds)


def _zig() -> tuple[Path, str]:
    try:
        distribution = importlib.metadata.distribution("ziglang")
    except importlib.metadata.PackageNotFoundError:
        raise ToolchainError("assembling needs the Python package 'ziglang' "
                             "(pip install ziglang)") from None
    # Its RECORD lists 22,000 files: looking through it takes as long as compiling a kernel.
    for name in ("zig", "zig.exe"):
        file = Path(str(distribution.locate_file(f"ziglang/{name}")))
        if file.is_file():
            return file, distribution.version
    raise ToolchainError("the installed 'ziglang' package has no zig executable")


def _write(path: Path, content: str | bytes) -> None:
    """Write ASCII text or bytes; text in pieces, so that a large one is not in memory twice."""
    with path.open("wb") as file:
        if isinstance(content, bytes):
            file.write(content)
        else:
            for start in range(0, len(content), _PIECE):
                file.write(content[start:start + _PIECE].encode("ascii"))


def _ended(process: subprocess.Popen[bytes], timeout: float) -> bool:
    """Whether the process ends within ``timeout`` seconds.

    `Popen.wait` with a timeout polls with growing pauses, which doubles the time of a 10 ms call.
    """
    descriptor = os.pidfd_open(process.pid)
    try:
        poll = select.poll()
        poll.register(descriptor, select.POLLIN)
        return bool(poll.poll(timeout * 1000))
    finally:
        os.close(descriptor)


def _kill(process: subprocess.Popen[bytes]) -> None:
    try:
        os.killpg(process.pid, signal.SIGKILL)
    except ProcessLookupError:
        process.kill()
    process.wait()


def _failure(tool: str, status: int, messages: str, text: str) -> AssemblerError | ToolchainError:
    diagnostics: list[Diagnostic] = []
    for line in messages.splitlines():
        if match := _LOCATED.fullmatch(line):
            diagnostics.append(Diagnostic(int(match[1]), int(match[2]), match[3], match[4]))
        elif match := _UNLOCATED.fullmatch(line):
            diagnostics.append(Diagnostic(0, 0, "error", match[2]))
        if len(diagnostics) == _DIAGNOSTIC_LIMIT:
            break
    errors = [d for d in diagnostics if d.severity == "error"]
    if not errors:
        return ToolchainError(f"the {tool} failed with status {status} and no message")
    ordered = (*errors, *(d for d in diagnostics if d.severity != "error"))
    lines = text.splitlines()
    number = errors[0].line
    return AssemblerError(ordered, lines[number - 1] if 0 < number <= len(lines) else "")
