"""What a file carries: code objects with their targets, sizes and kernels, and choosing by them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from asmevo.bundle.fat_bundle import FatBundle
from asmevo.bundle.find import FoundObject, MemberReader, find_objects
from asmevo.bundle.kernels import elf_target, kernel_symbols
from asmevo.codeobject.errors import SourceError


@dataclass(frozen=True, slots=True)
class Listed:
    """One code object and what its container says about it.

    ``entry_id`` and ``offset`` are those of its bundle (the offset in bytes from the start of the
    uncompressed bundle), and ``compression`` is the bundle's, e.g. ``CCOB v3 zstd``; all three are
    None outside a bundle. ``target`` is the target ID. ``refused`` says why an object cannot be
    read; it then has no kernels.
    """

    found: FoundObject
    entry_id: str | None
    triple: str | None
    target: str
    offset: int | None
    size: int
    compression: str | None
    kernels: tuple[str, ...]
    refused: str | None

    @property
    def name(self) -> str:
        return self.found.name


def list_objects(path: Path) -> Iterator[Listed]:
    """Everything `find_objects` finds, described; raises as it does."""
    for found in find_objects(path):
        yield _describe(found)


def select_objects(path: Path, target: str | None = None,
                   kernel: str | None = None) -> Iterator[Listed]:
    """The readable objects below ``path`` for a target and with a kernel of that symbol.

    ``target`` is a processor, or a target ID whose features the object must state alike.
    """
    for listed in list_objects(path):
        if listed.refused is not None or (kernel is not None and kernel not in listed.kernels):
            continue
        if target is None or set(target.split(":")) <= set(listed.target.split(":")):
            yield listed


def _describe(found: FoundObject) -> Listed:
    entry_id = triple = offset = compression = refused = None
    target, size = "", 0
    kernels: tuple[str, ...] = ()
    read = found.read
    try:
        if isinstance(read, MemberReader) and isinstance(bundle := read.container, FatBundle):
            entry = bundle.entry(read.parts[-1])
            entry_id, triple, target, offset = entry.id, entry.triple, entry.target, entry.offset
            compression = bundle.compression.describe() if bundle.compression else None
        data = read()
        size = len(data)
        target = target or elf_target(data)
        kernels = kernel_symbols(memoryview(data))
    except SourceError as error:
        refused = str(error)
    return Listed(found, entry_id, triple, target, offset, size, compression, kernels, refused)
