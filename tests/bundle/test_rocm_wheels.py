"""Libraries that ROCm's own compilers built, out of wheels that are too large to depend on.

pip download --no-deps -d DIRECTORY bitsandbytes==0.50.2 cupy-rocm-7-0==14.2.0
ASMEVO_TEST_WHEELS=DIRECTORY pytest -m wheels tests/bundle
"""

from __future__ import annotations

import io
import os
import zipfile
from collections import Counter
from pathlib import Path

import pytest

from asmevo.bundle.compressed import Method
from asmevo.bundle.fat_binary import FatBinary
from asmevo.bundle.fat_bundle import FatBundle
from asmevo.bundle.listing import list_objects
from asmevo.bundle.offload_bundle import build
from asmevo.bundle.open import read_member, replace_member
from asmevo.codeobject.container import CodeObject

pytestmark = pytest.mark.wheels

RECOVERABLE = ("gfx90a", "gfx942", "gfx950")


def wheel(pattern: str) -> Path:
    directory = os.environ.get("ASMEVO_TEST_WHEELS", "")
    found = sorted(Path(directory).glob(pattern)) if directory else []
    if not found:
        pytest.skip(f"ASMEVO_TEST_WHEELS names no directory with {pattern}")
    return found[-1]


@pytest.fixture(scope="module")
def bitsandbytes() -> Path:
    return wheel("bitsandbytes-0.50.2-*manylinux*x86_64.whl")


@pytest.fixture(scope="module")
def cupy() -> Path:
    return wheel("cupy_rocm_7_0-14.2.0-cp311-*.whl")


def library(path: Path, name: str) -> bytes:
    with zipfile.ZipFile(io.BytesIO(path.read_bytes())) as archive:
        return archive.read(name)


def test_bitsandbytes(bitsandbytes: Path) -> None:
    listed = list(list_objects(bitsandbytes))
    assert not any(x.refused for x in listed)
    assert len(listed) == 218
    counts = Counter(x.target for x in listed)
    assert {t: counts[t] for t in RECOVERABLE} == {"gfx90a": 12, "gfx942": 12, "gfx950": 10}
    assert Counter(x.compression for x in listed) == {"CCOB v2 zstd": 58, "CCOB v3 zstd": 160}
    for x in listed:
        if x.target in RECOVERABLE:
            kernels = CodeObject.parse(x.found.read()).kernels
            assert tuple(k.symbol for k in kernels) == x.kernels
            assert len(kernels) in (24, 151)


def test_cupy(cupy: Path) -> None:
    listed = list(list_objects(cupy))
    assert not any(x.refused for x in listed)
    assert Counter(x.target for x in listed) == dict.fromkeys(
        ("gfx1030", "gfx1100", "gfx1101", "gfx1200", "gfx1201", "gfx908", *RECOVERABLE), 3)
    assert {x.compression for x in listed} == {None}
    assert {len(x.kernels) for x in listed} == {1388, 820, 48}


def test_our_writer_equals_rocms_bundler(cupy: Path) -> None:
    data = memoryview(library(cupy, "cupy/random/_generator_api.cpython-311-x86_64-linux-gnu.so"))
    bundle = FatBundle.parse(FatBinary.of_host(data).read("hip_fatbin[0]")).bundle
    written = build([(e.id, bytes(bundle.content(e))) for e in bundle.entries])
    assert written == bundle.data[:bundle.size]


def test_replacing_in_a_compressed_library(bitsandbytes: Path) -> None:
    data = library(bitsandbytes, "bitsandbytes/libbitsandbytes_rocm72.so")
    host = FatBinary.of_host(memoryview(data))
    parts = ("hip_fatbin[1]", "gfx942")
    bundle = FatBundle.parse(host.read(parts[0]))
    assert bundle.compression is not None
    assert (bundle.compression.version, bundle.compression.method) == (3, Method.ZSTD)
    original = bytes(read_member(host, parts))
    place = host.place(parts[0])
    # Shorter by a section name: the compressed bundle must still fit before the section's end.
    new = original[:-8]
    replaced = replace_member(host, parts, new)
    assert len(replaced) == len(data)
    assert replaced[:place.offset] == data[:place.offset]
    assert replaced[place.offset + place.room:] == data[place.offset + place.room:]
    again = FatBinary.of_host(memoryview(replaced))
    assert read_member(again, parts) == new
    for name in bundle.names:
        if name not in ("gfx942", "host-x86_64-unknown-linux-gnu-"):
            assert read_member(again, (parts[0], name)) == read_member(host, (parts[0], name))
