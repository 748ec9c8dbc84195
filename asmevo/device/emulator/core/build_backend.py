"""The PEP 517 backend: scikit-build-core, with zig's C++ compiler where the host has none."""

from __future__ import annotations

import os
import shlex
import shutil
import stat
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from scikit_build_core import build

ConfigSettings = dict[str, list[str] | str] | None

_COMPILERS = ("c++", "g++", "clang++")
_ZIG = "ziglang>=0.17,<0.18"


def _has_compiler() -> bool:
    named = os.environ.get("CXX")
    if named:
        return shutil.which(shlex.split(named)[0]) is not None
    return any(shutil.which(name) for name in _COMPILERS)


def _requirements(found: list[str]) -> list[str]:
    return found if _has_compiler() else [*found, _ZIG]


@contextmanager
def _compiler() -> Iterator[None]:
    """Point CMake to zig for the duration of a build on a host without a compiler.

    CMake wants one executable for each tool, so they are scripts that call ``python -m ziglang``. A
    host without a compiler has no binutils either, hence ``ar`` and ``ranlib``.
    """
    if _has_compiler():
        yield
        return
    before = {name: os.environ.get(name) for name in ("CC", "CXX", "CMAKE_ARGS")}
    with tempfile.TemporaryDirectory(prefix="asmevo-zig-") as folder:
        tools = {name: _zig_script(Path(folder), name) for name in ("cc", "c++", "ar", "ranlib")}
        os.environ["CC"], os.environ["CXX"] = tools["cc"], tools["c++"]
        os.environ["CMAKE_ARGS"] = shlex.join([
            *shlex.split(before["CMAKE_ARGS"] or ""), f"-DCMAKE_AR={tools['ar']}",
            f"-DCMAKE_RANLIB={tools['ranlib']}"])
        try:
            yield
        finally:
            for name, value in before.items():
                if value is None:
                    os.environ.pop(name, None)
                else:
                    os.environ[name] = value


def _zig_script(folder: Path, command: str) -> str:
    script = folder / command
    script.write_text(f'#!/bin/sh\nexec {shlex.quote(sys.executable)} -m ziglang {command} "$@"\n')
    script.chmod(script.stat().st_mode | stat.S_IXUSR)
    return str(script)


def get_requires_for_build_wheel(config_settings: ConfigSettings = None) -> list[str]:
    return _requirements(build.get_requires_for_build_wheel(config_settings))


def get_requires_for_build_editable(config_settings: ConfigSettings = None) -> list[str]:
    return _requirements(build.get_requires_for_build_editable(config_settings))


def get_requires_for_build_sdist(config_settings: ConfigSettings = None) -> list[str]:
    return build.get_requires_for_build_sdist(config_settings)


def prepare_metadata_for_build_wheel(metadata_directory: str,
                                     config_settings: ConfigSettings = None) -> str:
    return build.prepare_metadata_for_build_wheel(metadata_directory, config_settings)


def prepare_metadata_for_build_editable(metadata_directory: str,
                                        config_settings: ConfigSettings = None) -> str:
    return build.prepare_metadata_for_build_editable(metadata_directory, config_settings)


def build_wheel(wheel_directory: str, config_settings: ConfigSettings = None,
                metadata_directory: str | None = None) -> str:
    with _compiler():
        return build.build_wheel(wheel_directory, config_settings, metadata_directory)


def build_editable(wheel_directory: str, config_settings: ConfigSettings = None,
                   metadata_directory: str | None = None) -> str:
    with _compiler():
        return build.build_editable(wheel_directory, config_settings, metadata_directory)


def build_sdist(sdist_directory: str, config_settings: ConfigSettings = None) -> str:
    return build.build_sdist(sdist_directory, config_settings)
