"""A Triton cache that Triton filled, and replacements of what is in it."""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from importlib.metadata import distribution
from pathlib import Path

import pytest

from asmevo.codeobject.container import CodeObject
from asmevo.deploy.deployment import Supply
from asmevo.deploy.substitute import Substitute
from tests.registry.conftest import unprivileged, variant

ROOT = Path(__file__).parents[2]

# Prints the hash of what Triton gives a launcher, where it came from, and whether it compiled.
LOOKUP = """
import hashlib, json, sys
from pathlib import Path
from triton import knobs
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource, compile
from triton.runtime.cache import get_cache_manager
sys.path.insert(0, sys.argv[1])
from tests.kernels.triton_kernels import CASES

hits = []
knobs.compilation.listener = lambda **said: hits.append(said["cache_hit"])
found = {}
for name in sys.argv[2:]:
    case = CASES[name]
    types = iter(case.types.split())
    signature = {n: "constexpr" if n in case.constants else next(types)
                 for n in case.kernel.arg_names}
    aligned = {(i,): [["tt.divisibility", 16]]
               for i, kind in enumerate(signature.values()) if kind.startswith("*")}
    constants = {(case.kernel.arg_names.index(k),): v for k, v in case.constants.items()}
    kernel = compile(ASTSource(case.kernel, signature, constants, aligned),
                     target=GPUTarget("hip", "gfx942", 64), options=case.options)
    stem = case.kernel.__name__
    path = get_cache_manager(kernel.hash).get_group(stem + ".json")[stem + ".hsaco"]
    found[name] = {"asm": hashlib.sha256(kernel.asm["hsaco"]).hexdigest(),
                   "kernel": hashlib.sha256(kernel.kernel).hexdigest(),
                   "group": hashlib.sha256(Path(path).read_bytes()).hexdigest(),
                   "path": path, "hit": hits[-1], "shared": kernel.metadata.shared,
                   "name": kernel.name}
print(json.dumps(found))
"""


def look_up(cache: Path, *names: str) -> dict[str, dict[str, object]]:
    """Ask Triton itself, in a fresh process, for kernels of a cache; it compiles what it lacks."""
    done = subprocess.run(
        [sys.executable, "-c", LOOKUP, str(ROOT), *names], capture_output=True, text=True,
        env={"PATH": os.environ["PATH"], "TRITON_CACHE_DIR": str(cache),
             "TRITON_HOME": str(cache.parent), "TRITON_DEFAULT_FP_FUSION": "1"})
    assert done.returncode == 0, done.stderr
    found: dict[str, dict[str, object]] = json.loads(done.stdout)
    return found


@pytest.fixture(scope="session")
def compiled(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A cache as Triton left it; not to be changed."""
    pytest.importorskip("triton")
    cache = tmp_path_factory.mktemp("triton") / "cache"
    found = look_up(cache, "add", "softmax")
    assert not any(entry["hit"] for entry in found.values())
    return cache


@pytest.fixture
def cache(compiled: Path, tmp_path: Path) -> Path:
    """A cache of its own, with group files that point into it."""
    cache = tmp_path / "cache"
    for folder in compiled.iterdir():
        (cache / folder.name).mkdir(parents=True)
        for file in folder.iterdir():
            data = file.read_bytes()
            if file.name.startswith("__grp__"):
                data = data.replace(str(compiled).encode(), str(cache).encode())
            (cache / folder.name / file.name).write_bytes(data)
    return cache


@pytest.fixture
def open_path() -> Iterator[Path]:
    """A folder that an unprivileged user can reach, unlike pytest's own."""
    with tempfile.TemporaryDirectory(prefix="asmevo-test-") as folder:
        Path(folder).chmod(0o777)
        yield Path(folder)


@pytest.fixture
def as_user() -> Callable[[], AbstractContextManager[None]]:
    return unprivileged


def substitute(data: bytes, number: int = 1, /, **changes: object) -> Substitute:
    """A replacement for an object."""
    parsed = CodeObject.parse(data)
    fields: dict[str, object] = {
        "original_sha256": parsed.sha256, "data": variant(data, number),
        "kernel": parsed.kernels[0].symbol, "speedup": 1.25, "timing_source": "modelled",
        "device": "emulator:gfx942", **changes}
    return Substitute(**fields)  # type: ignore[arg-type]


def snapshot(folder: Path) -> dict[str, tuple[int, bytes | str | None]]:
    """Everything that a tree holds: modes, contents, targets of links."""
    found: dict[str, tuple[int, bytes | str | None]] = {}
    for path in sorted(folder.rglob("*")):
        status = path.lstat()
        content: bytes | str | None = None
        if path.is_symlink():
            content = os.readlink(path)
        elif path.is_file():
            content = path.read_bytes()
        found[str(path.relative_to(folder))] = (status.st_mode, content)
    return found


@dataclass
class Originals:
    """Trees with the same two code objects in them."""

    parent: Path
    files: dict[str, bytes]
    variants: dict[str, dict[int, bytes]]
    snapshot: dict[str, tuple[int, bytes | str | None]] = field(default_factory=dict)
    made: int = 0

    def make(self) -> Path:
        """A fresh tree."""
        self.made += 1
        folder = self.parent / f"tree{self.made}"
        for path, data in self.files.items():
            (folder / path).parent.mkdir(parents=True)
            (folder / path).write_bytes(data)
            (folder / path).chmod(0o640)
        (folder / "unrelated.txt").write_text("text")
        self.snapshot = snapshot(folder)
        return folder

    def supply(self, number: int = 1, *paths: str) -> Supply:
        """Replacements for the given files, or all."""
        wanted = [substitute(data, number) for path, data in self.files.items()
                  if not paths or path in paths]
        return {s.original_sha256: s for s in wanted}.get

    def sha256(self, path: str) -> str:
        return hashlib.sha256(self.files[path]).hexdigest()


@pytest.fixture
def originals(tmp_path: Path, shipped: dict[str, bytes]) -> Originals:
    return Originals(tmp_path, dict(shipped), {
        path: {n: variant(data, n) for n in (1, 2)} for path, data in shipped.items()})


@pytest.fixture(scope="session")
def shipped() -> dict[str, bytes]:
    """Two objects of AITER's, as its wheel ships them, and where they are to lie."""
    aiter = distribution("amd-aiter")
    return {place: Path(str(aiter.locate_file(f"aiter_meta/hsa/gfx942/{name}"))).read_bytes()
            for place, name in (("a/one.co", "layer_norm.co"), ("b/two.co", "layer_norm_qnt.co"))}
