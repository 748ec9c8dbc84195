"""Published wheels that kernels are compiled from, pinned by hash and kept in a cache."""

from __future__ import annotations

import contextlib
import errno
import hashlib
import logging
import os
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from asmevo.compiler.errors import CompileError

log = logging.getLogger(__name__)

_MEMBER_LIMIT = 4 << 20
_FETCH_SECONDS = 600


@dataclass(frozen=True, slots=True)
class Wheel:
    """One file of a package index. ``python`` and ``platform`` are the tags it was built for: only
    its Python source is read, so they need not be this machine's."""

    distribution: str
    version: str
    sha256: str
    python: str
    platform: str


# Of sglang the last release that holds all four of its kernels in conf/kernel/triton_*.yaml: later
# ones lack awq_gemm_kernel.
PINNED = {
    "amd-aiter": Wheel(
        "amd-aiter", "0.1.7.post2.dev18",
        "fe139d74438217c35e87e3b961166bac8db2d381eadccb371da2e63615f05a31", "3.11", "any"),
    "sglang": Wheel(
        "sglang", "0.5.12.post1",
        "94b3f3cc6b97f1364f247b8d9c1d106ec63cf22c55d6b65bc40ff29b0206ef5f",
        "3.11", "manylinux_2_34_x86_64"),
}


def cache_folder() -> Path:
    """``$ASMEVO_CACHE_DIR``, or ``asmevo`` in the user's cache folder."""
    given = os.environ.get("ASMEVO_CACHE_DIR")
    base = os.environ.get("XDG_CACHE_HOME") or "~/.cache"
    folder = Path(given) if given else Path(base) / "asmevo"
    try:
        return folder.expanduser()
    except RuntimeError:
        raise CompileError(f"the cache folder '{folder}' is in no known user's home; the variable "
                           "ASMEVO_CACHE_DIR chooses another") from None


@contextlib.contextmanager
def usable_cache() -> Iterator[None]:
    """Turns a failure to read or write the cache into a `CompileError` that says where it is."""
    try:
        yield
    except OSError as error:
        folder, where = str(cache_folder()), str(error.filename or "")
        # Making the folder fails at whichever of its parents is none.
        within = bool(where) and (where.startswith(folder) or folder.startswith(where))
        if not within and error.errno not in (errno.ENOSPC, errno.EDQUOT):
            raise
        raise CompileError(f"the cache folder '{folder}' cannot be used ({error.strerror}"
                           + (f": '{where}'" if where else "")
                           + "); the variable ASMEVO_CACHE_DIR chooses another") from error


def pinned(distribution: str) -> Wheel:
    """The pinned wheel of a distribution; raises `CompileError` for one that is not pinned."""
    try:
        return PINNED[distribution]
    except KeyError:
        raise CompileError(f"no wheel of '{distribution}' is pinned (pinned: "
                           f"{', '.join(PINNED)})") from None


def fetch(wheel: Wheel) -> Path:
    """The wheel in the cache, downloaded by pip (without its dependencies) when it is not there.

    Raises `CompileError` when it cannot be had or is not the pinned file.
    """
    folder = cache_folder() / "wheels"
    kept = folder / f"{wheel.distribution}-{wheel.version}-{wheel.sha256[:16]}.whl"
    if kept.is_file() and _sha256(kept) == wheel.sha256:
        return kept
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=folder) as scratch:
        log.info("downloading %s %s", wheel.distribution, wheel.version)
        _download(wheel, Path(scratch))
        found = list(Path(scratch).glob("*.whl"))
        if len(found) != 1:
            raise CompileError(f"pip downloaded {len(found)} wheels of {wheel.distribution} "
                               f"{wheel.version} instead of one")
        if (actual := _sha256(found[0])) != wheel.sha256:
            raise CompileError(f"the downloaded {found[0].name} has SHA-256 {actual}, not the "
                               f"pinned {wheel.sha256}")
        found[0].replace(kept)
    return kept


def read_member(wheel: Path, name: str) -> str:
    """A Python source file of a wheel. Raises `CompileError`."""
    try:
        with zipfile.ZipFile(wheel) as archive, archive.open(name) as file:
            data = file.read(_MEMBER_LIMIT + 1)
    except KeyError:
        raise CompileError(f"'{wheel.name}' has no file '{name}'") from None
    except (OSError, zipfile.BadZipFile) as error:
        raise CompileError(f"cannot read '{name}' of '{wheel.name}': {error}") from None
    if len(data) > _MEMBER_LIMIT:
        raise CompileError(f"'{name}' of '{wheel.name}' is larger than {_MEMBER_LIMIT >> 20} MiB")
    try:
        return data.decode()
    except UnicodeDecodeError:
        raise CompileError(f"'{name}' of '{wheel.name}' is not text") from None


def _download(wheel: Wheel, folder: Path) -> None:
    command = [
        sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--only-binary=:all:",
        "--python-version", wheel.python, "--platform", wheel.platform, "--dest", str(folder),
        f"{wheel.distribution}=={wheel.version}",
    ]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=_FETCH_SECONDS,
                              check=False)
    except subprocess.TimeoutExpired:
        raise CompileError(f"downloading {wheel.distribution} {wheel.version} took more than "
                           f"{_FETCH_SECONDS} s") from None
    if done.returncode != 0:
        lines = [line for line in done.stderr.splitlines() if line.startswith("ERROR")]
        reason = lines[-1].removeprefix("ERROR: ") if lines else f"exit status {done.returncode}"
        raise CompileError(f"pip cannot download {wheel.distribution} {wheel.version}: {reason}")


def _sha256(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
