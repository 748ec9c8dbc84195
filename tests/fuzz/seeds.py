"""Write small containers of every kind into a directory, for the fuzzer to start from."""

from __future__ import annotations

import io
import struct
import sys
import zipfile
from pathlib import Path

from asmevo.bundle.compressed import Method, compress
from asmevo.bundle.offload_bundle import build
from asmevo.codeobject.source import InstalledFile


def host_elf(fat_binary: bytes) -> bytes:
    """The least ELF file with a ``.hip_fatbin`` section."""
    names = b"\0.shstrtab\0.hip_fatbin\0"
    names_at, fat_binary_at = 64, 64 + len(names)
    table_at = fat_binary_at + len(fat_binary)
    ident = b"\x7fELF\x02\x01\x01".ljust(16, b"\0")
    header = struct.pack("<16sHHIQQQIHHHHHH", ident, 1, 62, 1, 0, 0, table_at, 0, 64, 0, 0, 64, 3,
                         1)
    sections = [(0,) * 10, (1, 3, 0, 0, names_at, len(names), 0, 0, 1, 0),
                (11, 1, 2, 0, fat_binary_at, len(fat_binary), 0, 0, 1, 0)]
    return header + names + fat_binary + b"".join(
        struct.pack("<IIQQQQIIQQ", *section) for section in sections)


def main(directory: Path) -> None:
    directory.mkdir(parents=True, exist_ok=True)
    kernel = InstalledFile("amd-aiter", "aiter_meta/hsa/gfx942/layer_norm.co").read()
    bundle = build([("host-x86_64-unknown-linux-gnu-", b""),
                    ("hipv4-amdgcn-amd-amdhsa--gfx942", kernel)], 64)
    tiny = compress(build([("hip-amdgcn-amd-amdhsa--gfx942", b"BC\xc0\xde")], 8), 3, Method.ZSTD, 3)
    member = b"%-16s0           0     0     644     %-10d`\n"
    wheel = io.BytesIO()
    with zipfile.ZipFile(wheel, "w", zipfile.ZIP_DEFLATED) as file:
        file.writestr("lib.so", host_elf(bundle))
    seeds = {"bundle": bundle, "row": bundle + bytes(9) + tiny, "host": host_elf(bundle),
             "archive": b"!<arch>\n" + member % (b"a.o/", len(tiny)) + tiny,
             "wheel": wheel.getvalue(), "object": kernel}
    for version in (1, 2, 3):
        for method in Method:
            seeds[f"ccob{version}_{method.name.lower()}"] = compress(bundle, version, method, 6)
    for name, data in seeds.items():
        (directory / name).write_bytes(data)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
