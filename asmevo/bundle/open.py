"""Which container some bytes are, and the members along a path through nested ones."""

from __future__ import annotations

import io
from collections.abc import Sequence
from pathlib import Path

from asmevo.bundle import archive, wheel
from asmevo.bundle.archive import Archive
from asmevo.bundle.container import Container
from asmevo.bundle.elf_sections import is_elf64, machine
from asmevo.bundle.errors import BundleError, ReplacementError
from asmevo.bundle.fat_binary import FatBinary
from asmevo.bundle.fat_bundle import MAGICS, FatBundle
from asmevo.bundle.wheel import Wheel
from asmevo.codeobject.source import open_regular, read_file
from asmevo.codeobject.target import EM_AMDGPU

CONTAINER_LIMIT = 1 << 30
"""The largest file, in bytes, that is opened as a container."""

HEAD = 64
"""How many bytes of a file tell what it is."""

# A library in an archive in a wheel is 4 deep. A zip file can contain itself, so there is a limit.
DEPTH_LIMIT = 8

_ARCHIVES = (archive.MAGIC, archive.THIN_MAGIC)


def is_code_object(start: bytes | memoryview) -> bool:
    """Whether an AMDGPU ELF file starts with these bytes, of which 64 are enough."""
    view = memoryview(start)
    return is_elf64(view) and machine(view) == EM_AMDGPU


def may_contain(start: bytes | memoryview) -> bool:
    """Whether a file that starts with these 64 bytes is one that `open_container` reads."""
    head = bytes(start[:HEAD])
    if is_elf64(memoryview(head)):
        return not is_code_object(head)
    return head.startswith((*MAGICS, *_ARCHIVES, wheel.MAGIC))


def open_container(data: memoryview) -> Container:
    """Take one level apart. Raises `BundleError` on damage and on anything that is no container."""
    head = bytes(data[:HEAD])
    if is_code_object(head):
        raise BundleError("a code object has no members")
    if is_elf64(memoryview(head)):
        return FatBinary.of_host(data)
    if head.startswith(MAGICS):
        bundle = FatBundle.parse(data)
        return bundle if bundle.size == len(data) else FatBinary.of_bundles(data)
    if head.startswith(_ARCHIVES):
        return Archive.parse(data)
    if head.startswith(wheel.MAGIC):
        return Wheel(io.BytesIO(data))
    raise BundleError("not a 64-bit host ELF file, offload bundle, ar archive or zip file")


def open_file(path: Path) -> Container:
    """Take a file apart; raises `SourceError`."""
    with open_regular(path) as file:
        start = file.read(HEAD)
    if start.startswith(wheel.MAGIC):
        return Wheel(open_regular(path))
    return open_container(memoryview(read_file(path, CONTAINER_LIMIT)))


def read_member(root: Container, parts: Sequence[str]) -> memoryview:
    """The bytes at the end of a path of member names; raises `BundleError`.

    The name of a file's only offload bundle may be left out of the path.
    """
    containers, parts = _walk(root, parts)
    return containers[-1].read(parts[-1])


def _walk(root: Container, parts: Sequence[str]) -> tuple[list[Container], tuple[str, ...]]:
    """The containers along a path, and the path with what was left out."""
    _check_depth(parts)
    containers: list[Container] = [root]
    full: list[str] = []
    for part in parts:
        if full:
            containers.append(open_container(containers[-1].read(full[-1])))
        here = containers[-1]
        if isinstance(here, FatBinary) and len(here.names) == 1 and part not in here.names:
            full += here.names
            containers.append(open_container(here.read(full[-1])))
        full.append(part)
    return containers, tuple(full)


def _check_depth(parts: Sequence[str]) -> None:
    if not 0 < len(parts) <= DEPTH_LIMIT:
        raise BundleError(f"a member path has 1 to {DEPTH_LIMIT} parts, not {len(parts)}")


def descend(root: Container, parts: Sequence[str],
            known: Sequence[Container] = ()) -> list[Container]:
    """The containers along a path, one a part; ``known`` are the first of them if open already."""
    _check_depth(parts)
    containers = [root, *known[1:]]
    while len(containers) < len(parts):
        containers.append(open_container(containers[-1].read(parts[len(containers) - 1])))
    return containers


def replace_member(root: Container, parts: Sequence[str], content: bytes) -> bytes:
    """The root container's bytes with another member at the end of the path.

    Every other byte stays, except sizes, padding and compression around the member. Raises
    `ReplacementError` when the new member does not fit.
    """
    containers, parts = _walk(root, parts)
    limits = [None, *(c.room(part) for c, part in zip(containers, parts, strict=True))]
    result = content
    for container, part, limit in reversed(list(zip(containers, parts, limits, strict=False))):
        result = container.replaced(part, result, limit)
    if read_member(open_container(memoryview(result)), parts) != content:
        raise ReplacementError(f"'{parts[-1]}' does not read back as it was written")
    return result
