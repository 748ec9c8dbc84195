"""The captured oracle: dispatches that an application really made."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from asmevo.codeobject.container import CodeObject
from asmevo.dispatch.captured.capture import Capture
from asmevo.dispatch.captured.document import MAX_BYTES
from asmevo.dispatch.captured.elements import check_elements, written_pointers
from asmevo.dispatch.captured.errors import CaptureError
from asmevo.dispatch.captured.folder import capture_folders, read_capture
from asmevo.dispatch.captured.replay import replay
from asmevo.dispatch.dispatch import Dispatch
from asmevo.dispatch.kernel import Kernel


@dataclass(frozen=True)
class CapturedOracle:
    """Replays the captures in ``path``: a folder of one, of several, or a list of such folders.

    Those in ``held_out`` are never shown to a proposer and must pass before a commit. A capture
    may have ``max_bytes`` of memory.
    """

    path: str | Sequence[str]
    held_out: str | Sequence[str] = ()
    max_bytes: int = MAX_BYTES

    def dispatches(self, kernel: Kernel, symbol: str,
                   metadata: Mapping[str, Any]) -> tuple[Dispatch, ...]:
        """The dispatches of all captures, visible ones first.

        Raises `CaptureError` when there is no visible one, or one is of another code object or
        kernel, or calls its elements what they are not.
        """
        data = kernel.source.read()
        object_sha256 = hashlib.sha256(data).hexdigest()
        pointers = written_pointers(CodeObject.parse(data), symbol)
        found: list[Dispatch] = []
        taken: set[str] = set()
        for held_out, capture in self.captures():
            check_kernel(capture, object_sha256, symbol)
            check_elements(capture, pointers)
            if capture.name in taken:
                raise CaptureError(f"the oracle has two captures named '{capture.name}'")
            taken.add(capture.name)
            found.append(replay(capture, metadata, held_out=held_out))
        if not any(not dispatch.held_out for dispatch in found):
            raise CaptureError("oracle.path names no capture: nothing would be verified")
        return tuple(found)

    def captures(self) -> Iterator[tuple[bool, Capture]]:
        """Every capture, and whether it is held out."""
        for held_out, paths in ((False, self.path), (True, self.held_out)):
            for folder in capture_folders(paths):
                yield held_out, read_capture(folder, max_bytes=self.max_bytes)


def check_kernel(capture: Capture, object_sha256: str, symbol: str) -> None:
    """Raise `CaptureError` unless a capture is of this kernel of this code object."""
    if capture.code_object != object_sha256:
        raise CaptureError(f"capture '{capture.name}' is of the code object "
                           f"{capture.code_object[:12]}, the kernel's is {object_sha256[:12]}")
    if capture.kernel != symbol:
        raise CaptureError(f"capture '{capture.name}' is of the kernel '{capture.kernel}', not of "
                           f"'{symbol}'")

