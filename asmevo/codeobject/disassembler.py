"""LLVM's disassembler as a child process that lives as long as it does not crash."""

from __future__ import annotations

import atexit
import contextlib
import functools
import importlib.metadata
import mmap
import os
import resource
import select
import subprocess
import sys
import threading
import time
from pathlib import Path

from asmevo.codeobject.disassembler_worker import NOT_DECODING, POSITION, REPLY, REQUEST
from asmevo.codeobject.errors import CodeObjectError, ToolchainError

Row = tuple[int, int, str]

_DISTRIBUTION = "rocm-llvm-python"
_LIBRARY = "librocmllvm.so"
_CODE_LIMIT = 16 << 20
_CRASH_LIMIT = 64
_TIMEOUT_SECONDS = 60.0
_MEMORY_LIMIT = 4 << 30


class _Crash(Exception):  # noqa: N818
    """The child died; ``position`` is the byte offset it was decoding."""

    def __init__(self, position: int) -> None:
        super().__init__(position)
        self.position = position


def _library() -> Path:
    try:
        distribution = importlib.metadata.distribution(_DISTRIBUTION)
    except importlib.metadata.PackageNotFoundError:
        raise ToolchainError(f"disassembling needs the Python package '{_DISTRIBUTION}' "
                             f"(pip install {_DISTRIBUTION})") from None
    for file in distribution.files or ():
        if file.name == _LIBRARY:
            return Path(str(distribution.locate_file(file)))
    raise ToolchainError(f"the installed '{_DISTRIBUTION}' has no {_LIBRARY}")


class _Child:
    """One running child and its pipes."""

    def __init__(self) -> None:
        descriptor = os.memfd_create("asmevo-position", os.MFD_CLOEXEC)
        try:
            os.ftruncate(descriptor, POSITION.size)
            self._position = mmap.mmap(descriptor, POSITION.size)
            POSITION.pack_into(self._position, 0, NOT_DECODING)
            script = Path(__file__).with_name("disassembler_worker.py")
            # -I -S: no site packages and nothing of the environment; the child needs neither.
            command = [sys.executable, "-I", "-S", str(script), str(_library()), str(descriptor)]
            self._process = subprocess.Popen(
                command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
                env={}, pass_fds=(descriptor,),
                start_new_session=True)  # Ctrl-C is for the parent to handle
        except OSError as error:
            raise ToolchainError(f"cannot start the disassembler: {error.strerror}") from error
        finally:
            os.close(descriptor)
        with contextlib.suppress(ProcessLookupError):
            resource.prlimit(self._process.pid, resource.RLIMIT_AS, (_MEMORY_LIMIT, _MEMORY_LIMIT))
            resource.prlimit(self._process.pid, resource.RLIMIT_CORE, (0, 0))
        try:
            self.version = self._reply().decode()
        except _Crash:
            raise ToolchainError(f"cannot load LLVM from '{_library()}'") from None

    def lines(self, isa: str, code: bytes, avoid: list[int]) -> list[str]:
        """Decode; raises `_Crash` when LLVM does not survive it."""
        assert self._process.stdin is not None
        listed = b"".join(value.to_bytes(4, "little") for value in avoid)
        try:
            self._process.stdin.write(REQUEST.pack(isa.encode(), len(code), len(avoid)) + listed)
            self._process.stdin.write(code)
            self._process.stdin.flush()
        except OSError:
            raise self._crashed() from None
        return self._reply().decode().splitlines()

    def close(self) -> None:
        self._process.kill()
        self._process.wait()
        for pipe in (self._process.stdin, self._process.stdout):
            if pipe is not None:
                with contextlib.suppress(OSError):
                    pipe.close()
        self._position.close()

    def _reply(self) -> bytes:
        deadline = time.monotonic() + _TIMEOUT_SECONDS
        size = REPLY.unpack(self._read(REPLY.size, deadline))[0]
        return self._read(size, deadline)

    def _read(self, size: int, deadline: float) -> bytes:
        assert self._process.stdout is not None
        descriptor = self._process.stdout.fileno()
        poll = select.poll()
        poll.register(descriptor, select.POLLIN)
        data = bytearray()
        while len(data) < size:
            if not poll.poll(max(0.0, deadline - time.monotonic()) * 1000):
                raise ToolchainError("the disassembler did not answer within "
                                     f"{_TIMEOUT_SECONDS:g} s")
            chunk = os.read(descriptor, size - len(data))
            if not chunk:
                raise self._crashed()
            data += chunk
        return bytes(data)

    def _crashed(self) -> _Crash:
        self._process.wait()
        return _Crash(POSITION.unpack_from(self._position, 0)[0])


class Disassembler:
    """Decodes machine code; starts a child when there is none and again after a crash."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._child: _Child | None = None

    def rows(self, isa: str, code: bytes) -> tuple[Row, ...]:
        """``(byte offset, size, text)`` of everything in ``code``.

        A word on which LLVM crashes becomes data. Raises `ToolchainError` when it cannot run, and
        `CodeObjectError` for code of absurd size or with too many such words.
        """
        if len(code) > _CODE_LIMIT:
            raise CodeObjectError(f"the code has {len(code)} bytes, more than any kernel")
        avoid: list[int] = []
        restarted = False
        with self._lock:
            while True:
                try:
                    lines = self._running().lines(isa, code, avoid)
                    break
                except _Crash as crash:
                    self.close()
                    if crash.position == NOT_DECODING:
                        # Killed between requests, once; an unknown processor aborts every time.
                        if restarted:
                            raise ToolchainError(f"LLVM cannot disassemble for '{isa}'") from None
                        restarted = True
                        continue
                    avoid.append(crash.position)
                    if len(avoid) > _CRASH_LIMIT:
                        raise CodeObjectError("the code is not AMDGPU machine code: LLVM crashes "
                                              f"on more than {_CRASH_LIMIT} words of it") from None
                except ToolchainError:
                    self.close()
                    raise
        rows: list[Row] = []
        position = 0
        for line in lines:
            size, _, text = line.partition(" ")
            rows.append((position, int(size), text))
            position += int(size)
        return tuple(rows)

    def version(self) -> str:
        """LLVM's version and the distribution it comes from."""
        with self._lock:
            llvm = self._running().version
        return f"LLVM {llvm} ({_DISTRIBUTION} {importlib.metadata.version(_DISTRIBUTION)})"

    def close(self) -> None:
        """End the child; the next request starts another."""
        if self._child is not None:
            self._child.close()
            self._child = None

    def _running(self) -> _Child:
        if self._child is None:
            self._child = _Child()
        return self._child


@functools.cache
def shared() -> Disassembler:
    """The disassembler of this process."""
    disassembler = Disassembler()
    atexit.register(disassembler.close)
    return disassembler


# A forked child must not talk through its parent's pipes.
os.register_at_fork(after_in_child=shared.cache_clear)
