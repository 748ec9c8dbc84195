"""Code objects, and tools that nobody here wrote to pack them with."""

from __future__ import annotations

import ctypes
import importlib.metadata
import os
import subprocess
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from asmevo.bundle.offload_bundle import build
from asmevo.codeobject.source import InstalledFile
from asmevo.codeobject.toolchain import ZigToolchain

HOST_ID = "host-x86_64-unknown-linux-gnu-"
HOST_SOURCE = """
#define __global__ __attribute__((global))
struct dim3 { unsigned x, y, z; };
typedef struct ihipStream_t *hipStream_t;
typedef int hipError_t;
extern "C" {
hipError_t hipLaunchKernel(const void *, dim3, dim3, void **, unsigned long, hipStream_t);
hipError_t __hipPopCallConfiguration(dim3 *, dim3 *, unsigned long *, hipStream_t *);
__global__ void NAME(float *p) { *p = 1.0f; }
}
"""


@pytest.fixture(scope="session")
def gfx942() -> bytes:
    return InstalledFile("amd-aiter", "aiter_meta/hsa/gfx942/layer_norm.co").read()


@pytest.fixture(scope="session")
def gfx950() -> bytes:
    return InstalledFile("amd-aiter", "aiter_meta/hsa/gfx950/fmha_v3_bwd/"
                         "bwd_hd128_dq_shuffle.co").read()


@pytest.fixture(scope="session")
def bundle(gfx942: bytes, gfx950: bytes) -> bytes:
    return build([(HOST_ID, b""), ("hipv4-amdgcn-amd-amdhsa--gfx942", gfx942),
                  ("hipv4-amdgcn-amd-amdhsa--gfx950", gfx950)])


class _Parameters(ctypes.Structure):
    _fields_ = (("format", ctypes.c_int), ("level", ctypes.c_int),
                ("long_distance", ctypes.c_bool))


class _Expected(ctypes.Structure):
    _fields_ = (("value", ctypes.c_void_p), ("error", ctypes.c_uint8))


class LlvmBundler:
    """LLVM's own reader and writer of compressed bundles, out of the rocm-llvm-python wheel."""

    _CLASS = "_ZN4llvm6object23CompressedOffloadBundle"

    def __init__(self) -> None:
        distribution = importlib.metadata.distribution("rocm-llvm-python")
        file = next(f for f in distribution.files or () if f.name == "librocmllvm.so")
        library = ctypes.CDLL(str(distribution.locate_file(file)))
        self._buffer = library.LLVMCreateMemoryBufferWithMemoryRangeCopy
        self._buffer.restype = ctypes.c_void_p
        self._buffer.argtypes = (ctypes.c_char_p, ctypes.c_size_t, ctypes.c_char_p)
        self._start = library.LLVMGetBufferStart
        self._size = library.LLVMGetBufferSize
        self._start.restype, self._size.restype = ctypes.c_void_p, ctypes.c_size_t
        self._start.argtypes = self._size.argtypes = (ctypes.c_void_p,)
        self._compress = library[f"{self._CLASS}8compressENS_11compression6ParamsERKNS_12"
                                 "MemoryBufferEtb"]
        self._compress.argtypes = (ctypes.c_void_p, _Parameters, ctypes.c_void_p, ctypes.c_uint16,
                                   ctypes.c_bool)
        self._decompress = library[f"{self._CLASS}10decompressERKNS_12MemoryBufferEb"]
        self._decompress.argtypes = (ctypes.c_void_p, ctypes.c_void_p, ctypes.c_bool)
        self._compress.restype = self._decompress.restype = None

    def compress(self, content: bytes, version: int, method: int, level: int = 3) -> bytes:
        result = _Expected()
        buffer = self._buffer(content, len(content), b"bundle")
        self._compress(ctypes.byref(result), _Parameters(method, level, method == 1), buffer,
                       version, False)
        return self._content(result)

    def decompress(self, data: bytes) -> bytes:
        result = _Expected()
        self._decompress(ctypes.byref(result), self._buffer(data, len(data), b"bundle"), False)
        return self._content(result)

    def _content(self, result: _Expected) -> bytes:
        assert not result.error & 1, "LLVM refused the bundle"
        return ctypes.string_at(self._start(result.value), self._size(result.value))


@pytest.fixture(scope="session")
def llvm() -> LlvmBundler:
    return LlvmBundler()


Zig = Callable[..., None]


@pytest.fixture(scope="session")
def zig(tmp_path_factory: pytest.TempPathFactory) -> Zig:
    """Runs a tool of the ziglang wheel (LLVM 22) in a directory."""
    program = ZigToolchain()._assembler[0]
    cache = str(tmp_path_factory.mktemp("zig"))
    environment = {"PATH": os.defpath, "HOME": cache, "ZIG_GLOBAL_CACHE_DIR": cache,
                   "ZIG_LOCAL_CACHE_DIR": cache}

    def run(*arguments: str, directory: Path) -> None:
        done = subprocess.run([program, *arguments], cwd=directory, env=environment,
                              capture_output=True, text=True, timeout=120, check=False)
        assert done.returncode == 0, done.stderr

    return run


HostObject = Callable[[Path, str, bytes], Path]


@pytest.fixture(scope="session")
def host_object(zig: Zig) -> HostObject:
    """Lets clang embed a fat binary into a host object, as it does when it compiles HIP."""

    def compile_host(directory: Path, name: str, fat_binary: bytes) -> Path:
        (directory / f"{name}.hipfb").write_bytes(fat_binary)
        (directory / f"{name}.hip").write_text(HOST_SOURCE.replace("NAME", name))
        zig("clang", "-x", "hip", "-target", "x86_64-linux-gnu", "--offload-host-only",
            "-nogpuinc", "-nogpulib", "-fPIC", "-O1", "-c", f"{name}.hip", "-o", f"{name}.o",
            "-Xclang", "-fcuda-include-gpubinary", "-Xclang", f"{name}.hipfb",
            directory=directory)
        return directory / f"{name}.o"

    return compile_host


SharedLibrary = Callable[[Path, Sequence[bytes]], Path]


@pytest.fixture(scope="session")
def shared_library(zig: Zig, host_object: HostObject) -> SharedLibrary:
    """Links a host library of several fat binaries, which LLD then aligns."""

    def link(directory: Path, fat_binaries: Sequence[bytes]) -> Path:
        objects = [host_object(directory, f"kernel{i}", fat_binary).name
                   for i, fat_binary in enumerate(fat_binaries)]
        zig("ld.lld", "-shared", "--unresolved-symbols=ignore-all", *objects, "-o", "lib.so",
            directory=directory)
        return directory / "lib.so"

    return link
