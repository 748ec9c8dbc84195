"""One fat binary of HIP: an offload bundle, compressed or not, with a code object a target."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

from asmevo.bundle import compressed, offload_bundle
from asmevo.bundle.compressed import CompressedBundle
from asmevo.bundle.container import listed
from asmevo.bundle.errors import BundleError
from asmevo.bundle.offload_bundle import BundleEntry, OffloadBundle

MAGICS = (offload_bundle.MAGIC, compressed.MAGIC)


@dataclass(frozen=True, slots=True)
class FatBundle:
    """A bundle whose members are named by target ID, or by entry ID where that is not unique."""

    data: memoryview
    bundle: OffloadBundle
    compression: CompressedBundle | None
    names: tuple[str, ...]

    @classmethod
    def parse(cls, data: memoryview) -> FatBundle:
        """The bundle at the start of ``data``; raises `BundleError`."""
        compression, stored = None, data
        if data[:len(compressed.MAGIC)] == compressed.MAGIC:
            compression = CompressedBundle.parse(data)
            data = memoryview(compression.content)
        bundle = OffloadBundle.parse(data)
        targets = Counter(e.target for e in bundle.entries)
        names = tuple(e.target if e.target and targets[e.target] == 1 else e.id
                      for e in bundle.entries)
        return cls(stored, bundle, compression, names)

    @property
    def size(self) -> int:
        """The length in the file, without padding behind the bundle."""
        return self.compression.size if self.compression else self.bundle.size

    def entry(self, name: str) -> BundleEntry:
        """The entry of that member name, entry ID, or processor when only one entry has it."""
        entries = self.bundle.entries
        found = [e for e, own in zip(entries, self.names, strict=True) if name in (own, e.id)]
        found = found or [e for e in entries if name and e.target.split(":")[0] == name]
        if len(found) != 1:
            raise BundleError(f"the bundle has {len(found) or 'no'} entries '{name}'; its "
                              f"entries: {listed(self.names)}")
        return found[0]

    def start(self, name: str) -> bytes:
        return bytes(self.read(name)[:64])

    def read(self, name: str) -> memoryview:
        return self.bundle.content(self.entry(name))

    def room(self, name: str) -> int | None:
        # The bundle may be laid out anew or compress better: only trying shows what fits.
        return None

    def replaced(self, name: str, content: bytes, limit: int | None) -> bytes:
        entry = self.entry(name)
        if self.bundle.content(entry) == content:
            # Another compressor than the original's would write other bytes.
            return bytes(self.data[:self.size])
        if self.compression is None:
            return self.bundle.replaced(entry, content, limit)
        return self.compression.recompressed(self.bundle.replaced(entry, content, None), limit)


def is_bundle(data: memoryview) -> bool:
    """Whether a bundle of either form starts here."""
    return any(data[:len(magic)] == magic for magic in MAGICS)


def stored_size(data: memoryview) -> int:
    """The length of the bundle of either form that starts here; raises `BundleError`."""
    if data[:len(compressed.MAGIC)] == compressed.MAGIC:
        return compressed.stored_size(data)
    return OffloadBundle.parse(data).size
