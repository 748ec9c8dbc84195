"""Writing what ``output=`` asks for, without destroying what it was made from."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterable
from pathlib import Path

from asmevo.bundle.container import SEPARATOR
from asmevo.durable import write_atomically
from asmevo.task.session import ConfigError


def write_output(
    output: str, data: bytes, inputs: Iterable[object], *, key: str = "output"
) -> None:
    """Write ``data`` to the path that the configuration's ``key`` names.

    A symbolic link is followed. Raises `ConfigError` in one sentence when the path is one of the
    ``inputs`` (names as the configuration gives them; others are ignored), a folder, lies in no
    folder, or may not be written.
    """
    target = check_output(output, inputs, key=key)
    try:
        write_atomically(target, data)
    except OSError as error:
        raise ConfigError(f"cannot write {key}='{output}': {error.strerror}") from error


def check_output(output: str, inputs: Iterable[object], *, key: str = "output") -> Path:
    """The file that would be written; raises as `write_output` does."""
    if not output:
        raise ConfigError(f"{key}= names no file")
    target = Path(os.path.realpath(Path(output).expanduser()))
    if target.is_dir():
        raise ConfigError(f"{key}='{output}' is a folder")
    if not target.parent.is_dir():
        raise ConfigError(f"{key}='{output}' lies in a folder that does not exist")
    if target.exists():
        if not target.stat().st_mode & stat.S_IWUSR:
            raise ConfigError(f"{key}='{output}' is read-only")
        for name in inputs:
            if isinstance(name, str) and _same(target, name):
                raise ConfigError(f"{key}='{output}' would overwrite what it is made from")
    return target


def _same(target: Path, name: str) -> bool:
    parts = name.split(SEPARATOR)
    candidates = (SEPARATOR.join(parts[:count]) for count in range(len(parts), 0, -1))
    return any(
        path.exists() and path.samefile(target)
        for path in (Path(candidate).expanduser() for candidate in candidates if candidate)
    )
