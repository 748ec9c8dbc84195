"""The code object that a capture was made of, from the capture itself."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from asmevo.codeobject.errors import SourceError
from asmevo.codeobject.source import SIZE_LIMIT
from asmevo.dispatch.captured.errors import CaptureError
from asmevo.dispatch.captured.folder import capture_folders, read_code_object


@dataclass(frozen=True)
class CapturedObject:
    """The code object beside a capture's memory, where its recorder stored it.

    ``path`` names captures as the captured oracle's does; the first one counts.
    """

    path: str | Sequence[str]

    def read(self) -> bytes:
        """The bytes. Raises `SourceError` where the capture does not have them."""
        try:
            folder, *_ = capture_folders(self.path)
            return read_code_object(folder, SIZE_LIMIT)
        except ValueError:
            raise SourceError("kernel.source.path names no capture") from None
        except CaptureError as error:
            raise SourceError(str(error)) from None

    def describe(self) -> str:
        path = self.path if isinstance(self.path, str) else ", ".join(self.path)
        return f"capture:{path}"
