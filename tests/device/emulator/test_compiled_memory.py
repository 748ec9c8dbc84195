"""Compiled kernels that use memory in every way a compiler knows, against NumPy."""

from __future__ import annotations

import struct
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from hydra import compose, initialize_config_dir
from hydra.utils import instantiate

from asmevo.codeobject.container import CodeObject
from asmevo.codeobject.target import Target
from asmevo.codeobject.toolchain import ZigToolchain
from asmevo.device.device import LaunchState, UnsupportedError, WorkgroupOrder
from asmevo.device.emulator.emulator import Emulator
from asmevo.dispatch.dispatch import Dispatch, ElementType, Pointer, Region, Role

_SOURCE = Path(__file__).with_name("memory_kernels.hip")
_FIRST = 0x7A00_0000_0000
Array = npt.NDArray[Any]


@dataclass(frozen=True)
class Compiled:
    """Kernels on an emulator; ``run`` gives what the arrays hold after a launch."""

    device: Emulator
    code_object: CodeObject

    def run(self, kernel: str, *arguments: Array | int, groups: tuple[int, int, int] = (1, 1, 1),
            workgroup: tuple[int, int, int] = (64, 1, 1), dynamic_lds: int = 0,
            state: LaunchState | None = None, ends_early: bool = True) -> list[Array]:
        kernarg, regions, pointers = bytearray(), list[Region](), list[Pointer]()
        for argument in arguments:
            if isinstance(argument, int):
                kernarg += struct.pack("<i", argument)
                continue
            kernarg += bytes(-len(kernarg) % 8)
            address = _FIRST + 0x10_0000 * len(regions)
            pointers.append(Pointer(len(kernarg), len(regions)))
            kernarg += struct.pack("<Q", address)
            regions.append(Region(str(len(regions)), address, argument.tobytes(), Role.INOUT,
                                  ElementType.OPAQUE))
        loaded = self.device.load(self.code_object, kernel)
        if not ends_early:
            size = self.code_object.kernel(kernel).kernarg_segment_size
            kernarg = kernarg.ljust(size, b"\0")
        else:
            first = [a.offset for a in self.code_object.kernel(kernel).arguments
                     if a.value_kind.startswith("hidden")]
            kernarg += bytes(min(first, default=len(kernarg)) - len(kernarg))
        result = loaded.run(
            Dispatch(kernel, kernel, bytes(kernarg), groups, workgroup, tuple(regions),
                     tuple(pointers), dynamic_lds), state or LaunchState(3))
        arrays = [a for a in arguments if not isinstance(a, int)]
        return [np.frombuffer(data[r.guard:-r.guard], a.dtype)
                for data, r, a in zip(result.regions, regions, arrays, strict=True)]


@pytest.fixture(scope="module", params=[0, 8], ids=["loaded", "preloaded"])
def kernels(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Compiled:
    """The kernels with their arguments in memory, and with up to eight of them preloaded."""
    assembly = tmp_path_factory.mktemp("compiled") / "kernels.s"
    subprocess.run(
        [sys.executable, "-m", "ziglang", "clang", "-x", "hip", "--offload-arch=gfx942",
         "--offload-device-only", "-nogpuinc", "-nogpulib", "-O3", "-mcode-object-version=5",
         "-Wno-everything", "-mllvm",
         f"-amdgpu-kernarg-preload-count={request.param}", "-S", str(_SOURCE), "-o",
         str(assembly)], check=True, timeout=120)
    toolchain = ZigToolchain()
    linked = toolchain.link(toolchain.assemble(assembly.read_text(), Target("gfx942")))
    with initialize_config_dir(str(Path(__file__).parents[3] / "conf/device"), version_base="1.3"):
        device = instantiate(compose("emulator"))
    assert isinstance(device, Emulator)
    code_object = CodeObject.parse(linked)
    preloaded = [k.descriptor.kernarg_preload_length > 0 for k in code_object.kernels]
    assert all(preloaded) if request.param else not any(preloaded)
    return Compiled(device, code_object)


def rng(seed: int) -> np.random.Generator:
    return np.random.default_rng(seed)


def test_scratch_array_indexed_by_data(kernels: Compiled) -> None:
    assert kernels.code_object.kernel("histogram").descriptor.private_segment_fixed_size >= 320
    data = rng(1).integers(0, 256, (128, 37), dtype=np.uint8)
    expected = np.zeros((128, 64), np.uint32)
    for lane, row in enumerate(data):
        np.add.at(expected[lane], row & 63, np.arange(1, 38, dtype=np.uint32))
    out = kernels.run("histogram", data, np.ones(128 * 64, np.uint32), 37, workgroup=(128, 1, 1))
    np.testing.assert_array_equal(out[1].reshape(128, 64), expected)


def test_narrow_and_unaligned_scratch_through_flat_addresses(kernels: Compiled) -> None:
    data = rng(2).integers(0, 1 << 32, (64, 6), dtype=np.uint32)
    expected = np.zeros((64, 6, 5), np.uint32)
    for lane, row in enumerate(data):
        records = np.zeros(6, [("a", "u1"), ("b", "<u2"), ("c", "<u4"), ("d", "<u8"), ("e", "i1")])
        for k, x in enumerate(row.tolist()):
            records[k] = (x & 0xFF, x >> 3 & 0xFFFF, ~x & 0xFFFFFFFF, x << 7,
                          (x >> 24) - (x >> 31 << 8))
            if x % 6 > k:
                continue
            records["a"][x % 6] = x >> 5 & 0xFF
        # A write ahead of its element is overwritten when the loop gets there.
        for k, x in enumerate(row.tolist()):
            at = min(x % 6, k)
            expected[lane, k] = [int(records[name][at]) & 0xFFFFFFFF for name in "abcde"]
    out = kernels.run("narrow_scratch", data, np.zeros(64 * 30, np.uint32))
    np.testing.assert_array_equal(out[1].reshape(64, 6, 5), expected)


def test_narrow_global_memory(kernels: Compiled) -> None:
    n = 3 * 64 - 5
    r = rng(3)
    a, c = r.integers(-128, 128, 192, dtype=np.int8), r.integers(-32768, 32768, 192, np.int16)
    b, d = r.integers(0, 256, 192, dtype=np.uint8), r.integers(0, 65536, 192, dtype=np.uint16)
    out = kernels.run("narrow", a, b, c, d, np.full(192, 7, np.uint8), np.full(192, 7, np.uint16),
                      np.full(192, 7, np.int32), n, groups=(3, 1, 1))
    wide = [x.astype(np.int32) for x in (a, b, c, d)]
    expected = (wide[0] ^ wide[2], wide[1] ^ wide[3],
                wide[0] ^ wide[1] << 8 ^ wide[2] << 9 ^ wide[3] << 3)
    for found, value in zip(out[4:], expected, strict=True):
        np.testing.assert_array_equal(found[:n], value.astype(found.dtype)[:n])
        assert (found[n:] == 7).all()


@pytest.mark.parametrize("order", list(WorkgroupOrder))
def test_global_atomics(kernels: Compiled, order: WorkgroupOrder) -> None:
    r = rng(4)
    x = r.integers(0, 1 << 30, 256, dtype=np.int32)
    # Sums of these are exact in any order.
    y, z = r.integers(-1000, 1000, 256) / 8, (r.integers(-100, 100, 256) / 4).astype(np.float32)
    p, f = np.array([0, 0, 0, 0, 0, ~np.uint64(0)], np.uint64), np.zeros(8)
    f[4:] = -np.inf
    out = kernels.run("atomics", p, np.zeros(8 + 256, np.int32), f, np.zeros(4, np.float32), x, y,
                      z, groups=(4, 1, 1), state=LaunchState(5, order))
    bins = x & 3
    wide = x.astype(np.uint64)
    lanes = np.arange(256, dtype=np.uint64)
    sums = [int((wide[bins == k] << np.uint64(20)).sum()) for k in range(4)]
    flipped = np.bitwise_xor.reduce(wide << np.uint64(32) | lanes)
    kept = np.bitwise_and.reduce(~(wide << np.uint64(30)))
    assert out[0].tolist() == [*sums, int(flipped), int(kept)]
    q = out[1]
    assert q[0] == x.max()
    for k in range(4):
        winners = np.flatnonzero((q[8:] == 0) & (bins == k))
        assert winners.tolist() == [q[1 + k] - 1]
        assert set(q[8:][bins == k].tolist()) == {0, int(q[1 + k])}
    assert out[2].tolist() == [*(y[bins == k].sum() for k in range(4)),
                               *(y[bins == k].max() for k in range(4))]
    assert out[3].tolist() == [z[bins == k].sum() for k in range(4)]


def test_shared_atomics(kernels: Compiled) -> None:
    p = rng(5).integers(0, 1 << 24, (3, 128), dtype=np.uint32)
    out = kernels.run("shared_atomics", p, np.zeros(48, np.uint32), np.zeros(12, np.uint64),
                      np.zeros(12, np.float32), groups=(3, 1, 1), workgroup=(128, 1, 1))
    for group, row in enumerate(p):
        np.testing.assert_array_equal(out[1].reshape(3, 16)[group],
                                      np.bincount(row & 15, minlength=16))
        # Whatever the order, the lanes of a bin find 0, 1, ... before them.
        before = np.array([c * (c - 1) // 2 for c in np.bincount(row & 15, minlength=16)])
        floats = (0x3F800000 | row & 0xFFFF).view(np.float32)
        for k in range(4):
            total = int(row[row & 3 == k].astype(np.uint64).sum()) << 8
            assert out[2].reshape(3, 4)[group, k] == k + total + before[k::4].sum()
            np.testing.assert_allclose(out[3].reshape(3, 4)[group, k],
                                       floats[row & 3 == k].sum(dtype=np.float64), rtol=1e-5)


def test_dynamic_lds_follows_the_static_part(kernels: Compiled) -> None:
    p = rng(6).integers(0, 1 << 30, 64, dtype=np.uint32)
    out = kernels.run("dynamic_shared", p, np.zeros(257, np.uint32), dynamic_lds=1024)
    lanes = np.arange(64)
    expected = [(p[lanes ^ 7] + k) ^ p[lanes ^ 9] for k in range(4)]
    np.testing.assert_array_equal(out[1][:256].reshape(4, 64), expected)
    assert out[1][256] == 1024


def test_timers_advance_and_repeat(kernels: Compiled) -> None:
    first = kernels.run("timers", np.zeros(8, np.uint64))[0]
    again = kernels.run("timers", np.zeros(8, np.uint64))[0]
    assert (np.diff(first[::2].astype(np.int64)) > 0).all()
    assert (np.diff(first[1::2].astype(np.int64)) >= 0).all()
    np.testing.assert_array_equal(first, again)


def test_shuffles(kernels: Compiled) -> None:
    p = rng(7).integers(-1000, 1000, 64, dtype=np.int32)
    out = kernels.run("shuffles", p, np.zeros(256, np.int32))[1].reshape(4, 64)
    lanes = np.arange(64)
    for row, source in zip(out, (lanes ^ 5, lanes ^ 9, lanes ^ 3, lanes ^ 16), strict=True):
        np.testing.assert_array_equal(row, p[source])


@pytest.mark.parametrize("which", [0, 1, 2])
def test_flat_pointers_select_their_address_space(kernels: Compiled, which: int) -> None:
    p = rng(8).integers(-1000, 1000, (64, 2), dtype=np.int32)
    out = kernels.run("generic", p, np.zeros(64, np.int32), which)
    expected = np.zeros(64, np.int32)
    memory = p.copy()
    for lane in range(64):
        x = p[lane, 0] + 100
        if lane & 3 == which + 1:
            memory[lane] = x, 2 * x + 5
        elif lane & 3 == which:
            expected[lane] = 2 * x + 5
        else:
            expected[lane] = 2 * (x + 1) + 5
    np.testing.assert_array_equal(out[0].reshape(64, 2), memory)
    np.testing.assert_array_equal(out[1], expected)


@pytest.mark.parametrize("ends_early", [False, True])
def test_launch_values(kernels: Compiled, ends_early: bool) -> None:
    """The kernarg may end before the hidden arguments, or hold zeros for them."""
    groups, workgroup = (3, 2, 2), (4, 2, 3)
    out = kernels.run("launch_values", np.zeros(12 * 24 * 16, np.uint32), 16, groups=groups,
                      workgroup=workgroup, dynamic_lds=512, ends_early=ends_early)
    packet = [2 | 2 << 9 | 2 << 11 | 3 << 16, 4 | 2 << 16, 3, 12, 4, 6, 0, 512]
    # Block counts, group sizes, remainders; then the dimensions and the global offset.
    hidden = [3, 2, 2, 4 | 2 << 16, 3, 0, 3, 0]
    np.testing.assert_array_equal(out[0].reshape(-1, 16),
                                  np.tile(np.array([*packet, *hidden]), (288, 1)))


def test_a_kernarg_of_another_size_is_refused(kernels: Compiled) -> None:
    with pytest.raises(UnsupportedError, match="bytes of kernarg"):
        kernels.run("timers", np.zeros(8, np.uint64), 5, 6, ends_early=True)


def test_an_argument_that_only_a_runtime_has_is_refused(kernels: Compiled) -> None:
    with pytest.raises(UnsupportedError, match=r"hidden_queue_ptr|queue_ptr"):
        kernels.run("queue", np.zeros(1, np.uint64))


def test_results_do_not_depend_on_what_scratch_held(kernels: Compiled) -> None:
    data = rng(9).integers(0, 256, (64, 3), dtype=np.uint8)
    outs = [kernels.run("histogram", data, np.zeros(4096, np.uint32), 3, state=LaunchState(seed))[1]
            for seed in (1, 2)]
    np.testing.assert_array_equal(outs[0], outs[1])


def test_constants_and_variables_of_a_module(kernels: Compiled) -> None:
    """Addresses relative to the code, relocated pointers; every launch starts afresh."""
    table = np.array([int(x) for x in "3141592653589793238462643383279502884"], np.int32)
    p = rng(10).integers(0, 37, 64, dtype=np.int32)
    for _ in range(2):
        out = kernels.run("module_memory", p, np.zeros(128, np.int32))[1]
        np.testing.assert_array_equal(out[:64], table[p] * 100 + table[3 + (p & 7)])
        np.testing.assert_array_equal(out[64:], 7 + np.arange(64) % 4 + np.arange(64) // 4)


def test_calls_and_their_stack(kernels: Compiled) -> None:
    def fold(values: list[int]) -> int:
        total = 0
        for value in values:
            total = total * 31 + value & 0xFFFFFFFF
        return total

    def function(x: int, n: int) -> int:
        own = [x + k & 0xFFFFFFFF for k in range(24)]
        for k in range(n):
            own[(x + k * 7 & 0xFFFFFFFF) % 24] ^= k
        return fold(own) + fold(own[3:3 + n]) & 0xFFFFFFFF

    data = rng(11).integers(0, 1 << 32, 64, dtype=np.uint32)
    out = kernels.run("calls", data, 9)[0]
    assert out.tolist() == [function(int(x), 9) ^ function(lane, 5) for lane, x in enumerate(data)]
