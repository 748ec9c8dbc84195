"""What may stand in the place of what."""

from __future__ import annotations

import pytest

from asmevo.deploy.check import check_alike
from asmevo.deploy.errors import DeployError, DeployRefusal
from tests.registry.conftest import variant


def code(original: bytes, replacement: bytes) -> DeployRefusal:
    with pytest.raises(DeployError) as caught:
        check_alike(original, replacement)
    assert "\n" not in str(caught.value)
    return caught.value.code


def changed(data: bytes, at: int, value: int) -> bytes:
    return data[:at] + bytes([value]) + data[at + 1:]


def test_an_edited_object_is_alike(shipped: dict[str, bytes]) -> None:
    for data in shipped.values():
        before, after = check_alike(data, variant(data))
        assert (before.data, after.data) == (data, variant(data))


@pytest.mark.parametrize(("at", "value"), [
    (48, 0x3F), (48, 0x4F),  # gfx90a, gfx950: LLVM "User Guide for AMDGPU Backend", e_flags
    (49, 0x2), (49, 0x3), (49, 0x8), (49, 0xC),  # xnack off and on, sramecc off and on
    (8, 2), (8, 4),  # code object versions
    (7, 0), (16, 1), (0, 0), (18, 0)])
def test_other_processors_features_and_versions(shipped: dict[str, bytes], at: int,
                                                value: int) -> None:
    data = shipped["a/one.co"]
    assert data[at] != value
    assert code(data, changed(data, at, value)) is DeployRefusal.ARCHITECTURE


def test_what_is_no_object(shipped: dict[str, bytes]) -> None:
    data = shipped["a/one.co"]
    assert code(data, b"") is DeployRefusal.ARCHITECTURE
    assert code(data, data[:64]) is DeployRefusal.INTERFACE
    assert code(data, data[:-200]) is DeployRefusal.INTERFACE


def test_another_interface(shipped: dict[str, bytes]) -> None:
    one, two = shipped.values()
    assert code(one, two) is DeployRefusal.INTERFACE
    size = one.index(b".kernarg_segment_size") + len(b".kernarg_segment_size")
    assert code(one, changed(one, size + 1, one[size + 1] ^ 8)) is DeployRefusal.INTERFACE
