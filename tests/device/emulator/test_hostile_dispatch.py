"""Dispatches and code objects that make no sense: one typed sentence each, never a crash."""

from __future__ import annotations

import contextlib
from dataclasses import replace
from pathlib import Path
from typing import Any

import asmevo_core as core
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from asmevo.codeobject.container import Argument, CodeObject, Kernel
from asmevo.codeobject.elf import Section
from asmevo.codeobject.errors import CodeObjectError
from asmevo.device.device import DeviceFault, LaunchState, UnsupportedError
from asmevo.device.emulator import launch
from asmevo.device.emulator.emulator import EmulatedKernel, Emulator
from asmevo.device.emulator.hidden_arguments import with_hidden_arguments
from asmevo.device.emulator.image import IMAGE_BASE, image
from asmevo.dispatch.dispatch import Dispatch, ElementType, Pointer, Region, Role
from asmevo.errors import AsmEvoError
from tests.device.emulator.test_emulator import ADDRESS, CALLS, build, dispatch

_ENDS = [0, 1, 4095, 4096, IMAGE_BASE - 4096, IMAGE_BASE, IMAGE_BASE + 0x1000, ADDRESS,
         (1 << 47) - 4096, (1 << 47), (1 << 48) - 256, 1 << 48, (2 << 48) + 8, (1 << 63),
         (1 << 64) - 8192, (1 << 64) - 4352, (1 << 64) - 4096, (1 << 64) - 1, 1 << 64, 1 << 70, -1]
ADDRESSES = st.sampled_from(_ENDS) | st.integers(-1 << 65, 1 << 65)
DIMENSION = st.sampled_from([1, 2, 3, 0, -1, 64, 1024, 1025, 65536, 1 << 22, 1 << 31, 1 << 40])
TRIPLE = st.tuples(DIMENSION, st.sampled_from([1, 1, 2, 0, 1 << 20]), st.just(1))
REGION = st.builds(
    Region, st.sampled_from(["out", "a", "b"]), ADDRESSES,
    st.integers(0, 700).map(bytes), st.sampled_from(Role), st.just(ElementType.U32),
    st.sampled_from([4096, 0, 1, 64, -1]))
DISPATCHES = st.builds(
    Dispatch, st.just("d"), st.just("k"),
    st.sampled_from([ADDRESS, 0, IMAGE_BASE + 0x1000, (1 << 48) - 64, (1 << 64) - 64]).map(
        lambda a: a.to_bytes(8, "little") + bytes(4)) | st.binary(max_size=80),
    TRIPLE, TRIPLE, st.lists(REGION, max_size=3).map(tuple), st.just((Pointer(0, 0),)),
    st.sampled_from([0, 0, 512, 65536, 65537, -1, -512, 1 << 40]),
    relies_on_time=st.booleans())


@pytest.fixture(scope="module")
def calls(tmp_path_factory: pytest.TempPathFactory) -> CodeObject:
    """A kernel that jumps to computed addresses, and so has its code in memory."""
    return build(tmp_path_factory.mktemp("calls"), CALLS)


@pytest.fixture(scope="module")
def kernels(tmp_path_factory: pytest.TempPathFactory, calls: CodeObject) -> list[EmulatedKernel]:
    """Without and with a code image, on one host thread and on several."""
    device = [Emulator("test", None, 20_000, threads) for threads in (1, 3)]
    plain = build(tmp_path_factory.mktemp("plain"), dispatch_body())
    return [one.load(code_object, "k") for one in device for code_object in (plain, calls)]


def dispatch_body() -> str:
    """Writes LDS and memory behind its first pointer."""
    return """s_load_dwordx2 s[4:5], s[0:1], 0x0
v_lshlrev_b32_e32 v1, 2, v0
ds_write_b32 v1, v0
s_barrier
s_waitcnt lgkmcnt(0)
global_load_dword v2, v1, s[4:5]
s_waitcnt vmcnt(0)
global_store_dword v1, v2, s[4:5]
s_endpgm"""


def attempt(kernel: EmulatedKernel, launched: Dispatch) -> AsmEvoError | None:
    """The error of a launch, which must be one sentence."""
    try:
        result = kernel.run(launched)
    except (UnsupportedError, DeviceFault) as error:
        text = str(error)
        assert text
        assert "\n" not in text
        assert len(text) < 500
        return error
    assert [len(r) for r in result.regions] == [len(r.mapped) for r in launched.regions]
    return None


@given(launched=DISPATCHES, number=st.integers(0, 3))
@settings(max_examples=400, deadline=None)
def test_arbitrary_dispatches(kernels: list[EmulatedKernel], launched: Dispatch,
                              number: int) -> None:
    attempt(kernels[number], launched)
    with contextlib.suppress(UnsupportedError):
        kernels[number].sanitize(launched)


def region(address: int, size: int = 256, guard: int = 0) -> Region:
    return Region("out", address, bytes(size), Role.OUTPUT, ElementType.U32, guard)


@pytest.mark.parametrize(("changes", "what"), [
    ({"workgroup": (0, 1, 1)}, "1 to 1024 work-items"),
    ({"workgroup": (-64, -1, 1)}, "1 to 1024 work-items"),
    ({"grid": (0, 1, 1)}, "workgroups"),
    ({"grid": (1 << 26, 1, 1)}, r"2\^32 - 1 work-items in each dimension"),
    ({"dynamic_lds": -4}, "-4 bytes of dynamic LDS"),
    ({"dynamic_lds": 1 << 40}, "bytes of LDS"),
    ({"regions": (region(100, guard=101),)}, "leaves the 64-bit address space"),
    ({"regions": (region(ADDRESS, guard=1 << 36),)}, "guard of 68719476736 bytes"),
    ({"regions": (region((1 << 64) - 255),)}, "leaves the 64-bit address space"),
    ({"regions": (region(1 << 64),)}, "leaves the 64-bit address space"),
    ({"regions": (region(ADDRESS, guard=-1),)}, "leaves the 64-bit address space"),
    ({"kernarg": b""}, "kernarg, dispatch 'd' has 0"),
    ({"kernarg": bytes(4096)}, "kernarg, dispatch 'd' has 4096")])
def test_what_the_device_has_no_room_for(kernels: list[EmulatedKernel], changes: dict[str, Any],
                                         what: str) -> None:
    with pytest.raises(UnsupportedError, match=what):
        kernels[0].run(dispatch(**changes))


def test_the_last_bytes_of_the_address_space_are_memory(kernels: list[EmulatedKernel]) -> None:
    at = (1 << 64) - 256
    kernarg = at.to_bytes(8, "little") + bytes(4)
    assert attempt(kernels[0], dispatch(1, regions=(region(at),), kernarg=kernarg)) is None
    behind = (at + 4).to_bytes(8, "little") + bytes(4)
    error = attempt(kernels[0], dispatch(1, regions=(region(at),), kernarg=behind))
    assert isinstance(error, DeviceFault)
    assert error.address == 0  # the last lane's address wraps around


def test_regions_may_lie_where_a_launch_would_put_its_own(kernels: list[EmulatedKernel]) -> None:
    taken = 0x0000_1000_0000_0000  # of the kernarg
    kernarg = taken.to_bytes(8, "little") + bytes(4)
    for kernel in kernels:
        launched = dispatch(1, regions=(region(taken),), kernarg=kernarg)
        assert attempt(kernel, launched) is None
    error = attempt(kernels[1], dispatch(1, regions=(region(IMAGE_BASE + 0x1000, 1 << 16),)))
    assert isinstance(error, UnsupportedError)
    assert "overlap" in str(error)


def test_regions_of_no_bytes_hold_nothing(kernels: list[EmulatedKernel]) -> None:
    for address in (ADDRESS, 0, (1 << 64) - 1):
        error = attempt(kernels[0], dispatch(1, regions=(region(address, 0),)))
        assert isinstance(error, DeviceFault)
        assert error.kind == "memory"


def described(tmp_path: Path, size: int, *hidden: tuple[str, int, int]) -> Kernel:
    """A kernel whose metadata lists further arguments: kind, offset and size."""
    kernel = build(tmp_path).kernel("k")
    arguments = tuple(Argument("", offset, width, kind, None, None, None)
                      for kind, offset, width in hidden)
    return replace(kernel, kernarg_segment_size=size, arguments=kernel.arguments + arguments)


@pytest.mark.parametrize(("size", "argument", "what"), [
    (16, ("hidden_block_count_x", 12, 1), "has 1 bytes, too few for 300"),
    (16, ("hidden_block_count_x", 12, 0), "has 0 bytes, too few for 300"),
    (16, ("hidden_shared_base", 12, 2), "has 2 bytes, too few for 65536"),
    (16, ("hidden_queue_ptr", 12, 4), "does not provide argument 'hidden_queue_ptr'"),
    ((1 << 32) - 1, ("hidden_none", 12, 8), "takes 4294967295 bytes of kernarg")])
def test_hidden_arguments_that_do_not_fit(tmp_path: Path, size: int,
                                          argument: tuple[str, int, int], what: str) -> None:
    kernel = described(tmp_path, size, argument)
    with pytest.raises(UnsupportedError, match=what):
        with_hidden_arguments(kernel, dispatch(300))


@given(kind=st.sampled_from(["hidden_block_count_x", "hidden_group_size_y", "hidden_grid_dims",
                             "hidden_remainder_z", "hidden_private_base", "hidden_x", "hidden_",
                             "dynamic_shared_pointer", "by_value", ""]),
       offset=st.integers(0, 40) | st.just((1 << 32) - 1),
       width=st.integers(0, 16) | st.just((1 << 32) - 1), size=st.integers(0, 64))
@settings(max_examples=200, deadline=None)
def test_arbitrary_arguments(kernels: list[EmulatedKernel], kind: str, offset: int, width: int,
                             size: int) -> None:
    kernel = kernels[0]._kernel
    kernel = replace(kernel, kernarg_segment_size=size, arguments=(
        *kernel.arguments, Argument("", offset, width, kind, None, None, None)))
    with contextlib.suppress(UnsupportedError):
        assert len(with_hidden_arguments(kernel, dispatch(300))) == size


def test_preloaded_arguments_must_be_there() -> None:
    """The descriptor has its own idea of the kernarg's size, other than the metadata's."""
    layout = launch.RegisterLayout(8, 0, (), (12, 8), (-1, -1, -1), 1, 0, 256)
    with pytest.raises(UnsupportedError, match="preloads more than its kernarg"):
        launch.user_sgprs(layout, launch.kernarg_segment(bytes(12), LaunchState()), {})


def section(name: str, address: int, size: int) -> Section:
    return Section(name, "SHT_PROGBITS", 2, address, 0, size, 0, 0, 1, 0)


def test_sections_at_absurd_addresses_are_refused(tmp_path: Path) -> None:
    code_object = build(tmp_path)
    for address in (1 << 41, (1 << 64) - 64, (1 << 64) - 1):
        with pytest.raises(UnsupportedError, match="'far' lies at"):
            image(replace(code_object, sections=(*code_object.sections,
                                                 section("far", address, 32))))


def test_sections_of_one_name_keep_their_own_bytes(tmp_path: Path) -> None:
    code_object = build(tmp_path)
    twice = image(replace(code_object, sections=(section("a", 0x8000, 16),
                                                 section("a", 0x9000, 48))))
    assert [len(s.data) for s in twice] == [16, 48]


@given(data=st.data())
@settings(max_examples=200, deadline=None)
def test_code_objects_with_other_bytes(calls: CodeObject, data: st.DataObject) -> None:
    """Descriptor, metadata, code and tables, a few bytes at a time."""
    raw = bytearray(calls.data)
    starts = [s.offset for s in calls.sections if s.name in (".text", ".rodata", ".note")]
    for _ in range(data.draw(st.integers(1, 6))):
        at = data.draw(st.integers(0, len(raw) - 1)
                       | st.sampled_from(starts).flatmap(lambda a: st.integers(a, a + 63)))
        raw[at] = data.draw(st.integers(0, 255))
    try:
        code_object = CodeObject.parse(bytes(raw))
        symbol = code_object.kernel()
        kernel = Emulator("test", None, 3000).load(code_object, symbol.symbol)
    except AsmEvoError:
        return
    kernarg = b"".join((ADDRESS + 8 * k).to_bytes(8, "little") for k in range(64))
    launched = Dispatch("d", symbol.symbol, kernarg[:symbol.kernarg_segment_size], (2, 1, 1),
                        (256, 1, 1), (region(ADDRESS, 1 << 14),), ())
    with contextlib.suppress(UnsupportedError, DeviceFault, CodeObjectError):
        kernel.run(launched)


def test_core_refuses_initial_bytes_of_another_size() -> None:
    region = ("r", 0x1000, np.zeros(16, np.uint8), True)
    with pytest.raises(ValueError, match="another size"):
        core.Memory([region], [np.zeros(15, np.uint8)])
    with pytest.raises(ValueError, match="each region"):
        core.Memory([region], [None, None])
