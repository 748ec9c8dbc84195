"""The child process of an isolated device, restarted when it has died."""

from __future__ import annotations

import contextlib
import os
import select
import signal
import subprocess
import sys
import time
import weakref
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from asmevo.device.isolated.messages import LENGTH, Message, MessageError, packed, unpacked
from asmevo.errors import AsmEvoError

_START_SECONDS = 120.0
_LARGEST_REPLY = 16 << 30


class IsolationError(AsmEvoError):
    """The child process cannot be started or does not make its device: nothing a kernel did."""


class ChildDiedError(AsmEvoError):
    """The child died or went silent during a request; ``kind`` is ``crash`` or ``timeout``."""

    def __init__(self, message: str, kind: str) -> None:
        super().__init__(message)
        self.kind = kind


@dataclass(frozen=True, slots=True)
class Limits:
    """Bounds of one request in host time, and of the child in memory beyond what it starts with."""

    seconds: float = 60.0
    memory_bytes: int = 8 << 30


class Child:
    """One child at a time, started when it is first asked something."""

    def __init__(self, device: Mapping[str, Any], limits: Limits) -> None:
        self._start = {"device": dict(device), "memory": limits.memory_bytes}
        self._seconds = limits.seconds
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def pid(self) -> int | None:
        """The process id of a running child."""
        return None if self._process is None else self._process.pid

    def ask(self, request: Message) -> Message:
        """Send a request and wait for the answer.

        Raises `ChildDiedError`, after which the next request starts another child, and
        `IsolationError`.
        """
        process = self._running()
        try:
            return self._asked(process, request, self._seconds)
        except BaseException:
            # A child that was left in the middle of an answer would give it to the next request.
            self.close()
            raise

    def close(self) -> None:
        """End the child, whatever it is doing."""
        if self._process is not None:
            process, self._process = self._process, None
            _end(process)

    def _running(self) -> subprocess.Popen[bytes]:
        if self._process is None:
            # The child finds modules where this process does, however it was started.
            environment = {**os.environ, "PYTHONPATH": os.pathsep.join(p for p in sys.path if p)}
            try:
                process = subprocess.Popen(
                    [sys.executable, "-m", "asmevo.device.isolated.worker"],
                    stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
                    env=environment, start_new_session=True)  # Ctrl-C is for the parent to handle
            except OSError as error:
                raise IsolationError(f"cannot start a process for candidates: {error.strerror}"
                                     ) from error
            self._process = process
            # Also at exit; twice does no harm.
            weakref.finalize(self, _end, process)
            try:
                reply = self._asked(process, self._start, _START_SECONDS)
            except (ChildDiedError, MessageError) as error:
                self.close()
                raise IsolationError(f"the process for candidates does not start: {error}"
                                     ) from error
            if "error" in reply:
                self.close()
                raise IsolationError(f"the process for candidates has no device: {reply['text']}")
        return self._process

    def _asked(self, process: subprocess.Popen[bytes], request: Mapping[str, Any],
               seconds: float) -> Message:
        assert process.stdin is not None
        deadline = time.monotonic() + seconds
        try:
            process.stdin.write(packed(request))
            process.stdin.flush()
        except OSError:
            raise _death(process) from None
        size = LENGTH.unpack(_read(process, LENGTH.size, deadline, seconds))[0]
        if size > _LARGEST_REPLY:
            raise MessageError(f"the answer would have {size} bytes")
        return unpacked(_read(process, size, deadline, seconds))


def _read(process: subprocess.Popen[bytes], size: int, deadline: float, seconds: float) -> bytes:
    assert process.stdout is not None
    descriptor = process.stdout.fileno()
    poll = select.poll()
    poll.register(descriptor, select.POLLIN)
    data = bytearray()
    while len(data) < size:
        if not poll.poll(max(0.0, deadline - time.monotonic()) * 1000):
            raise ChildDiedError(f"the launch took longer than {seconds:g} s", "timeout")
        chunk = os.read(descriptor, min(size - len(data), 1 << 20))
        if not chunk:
            raise _death(process)
        data += chunk
    return bytes(data)


def _death(process: subprocess.Popen[bytes]) -> ChildDiedError:
    with contextlib.suppress(subprocess.TimeoutExpired):
        process.wait(timeout=5)
    status = process.returncode
    if status is not None and status < 0:
        how = f"was ended by {signal.Signals(-status).name}"
    else:
        how = f"ended with status {status}"
    return ChildDiedError(f"the process that ran the kernel {how}", "crash")


def _end(process: subprocess.Popen[bytes]) -> None:
    process.kill()
    process.wait()
    for pipe in (process.stdin, process.stdout):
        if pipe is not None:
            with contextlib.suppress(OSError):
                pipe.close()
