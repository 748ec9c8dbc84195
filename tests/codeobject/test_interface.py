"""The frozen interface sees every change that is not the kernel's own code or register counts."""

from __future__ import annotations

import pytest

from asmevo.codeobject.container import CodeObject
from asmevo.codeobject.descriptor_fields import FIELDS, Field, Word
from asmevo.codeobject.interface import (
    RESOURCE_FIELDS,
    Interface,
    differences,
    outside_hash,
)

WORD_OFFSETS = {Word.RSRC3: 44, Word.RSRC1: 48, Word.RSRC2: 52, Word.PROPERTIES: 56,
                Word.PRELOAD: 58}


def changed(code_object: CodeObject, section: str, offset: int, mask: int = 1) -> CodeObject:
    data = bytearray(code_object.data)
    data[code_object.section(section).offset + offset] ^= mask
    return CodeObject.parse(bytes(data))


def found(a: CodeObject, b: CodeObject) -> tuple[str, ...]:
    return differences(Interface.of(a, a.kernel()), Interface.of(b, b.kernel()))


@pytest.mark.parametrize("field", FIELDS, ids=lambda f: f.name)
def test_descriptor_bits(layer_norm: CodeObject, field: Field) -> None:
    position = WORD_OFFSETS[field.word] + field.position // 8
    other = changed(layer_norm, ".rodata", position, 1 << field.position % 8)
    same = outside_hash(other, other.kernel()) == outside_hash(layer_norm, layer_norm.kernel())
    if field.name in RESOURCE_FIELDS:
        assert found(layer_norm, other) == ()
        assert same
    else:
        assert len(found(layer_norm, other)) == 1
        assert found(layer_norm, other)[0].startswith(f"{field.name}: ")
        assert not same


@pytest.mark.parametrize(("offset", "name"), [
    (0, "group segment fixed size"), (4, "private segment fixed size"),
    (8, "descriptor kernarg size"),
])
def test_descriptor_sizes(layer_norm: CodeObject, offset: int, name: str) -> None:
    other = changed(layer_norm, ".rodata", offset)
    assert len(found(layer_norm, other)) == 1
    assert found(layer_norm, other)[0].startswith(name)
    assert outside_hash(other, other.kernel()) != outside_hash(layer_norm, layer_norm.kernel())


@pytest.mark.parametrize(("old", "new", "name"), [
    (b"OutBuffer", b"OutBuffex", "arguments"),
    (b"\xb5.kernarg_segment_size\xcc\xb0", b"\xb5.kernarg_segment_size\xcc\xc0",
     "kernarg segment size"),
    (b"\xaf.wavefront_size\x40",
     b"\xaf.wavefront_size\x20", "launch"),
    (b"label_01B3", b"label_01B4", "symbols"),
])
def test_metadata_and_symbols(layer_norm: CodeObject, old: bytes, new: bytes, name: str) -> None:
    assert old in layer_norm.data
    other = CodeObject.parse(layer_norm.data.replace(old, new))
    assert any(text.startswith(name) for text in found(layer_norm, other))
    assert outside_hash(other, other.kernel()) != outside_hash(layer_norm, layer_norm.kernel())


def test_register_counts_and_code_are_the_kernels_own(layer_norm: CodeObject) -> None:
    for other in (
        changed(layer_norm, ".text", 0),
        CodeObject.parse(layer_norm.data.replace(b"\xab.sgpr_count\x60", b"\xab.sgpr_count\x50")),
        CodeObject.parse(layer_norm.data.replace(b".vgpr_count\xcd\x02", b".vgpr_count\xcd\x01")),
    ):
        assert other != layer_norm
        assert found(layer_norm, other) == ()
        assert outside_hash(other, other.kernel()) == outside_hash(layer_norm, layer_norm.kernel())


@pytest.mark.parametrize("section", [".comment", ".gnu.hash", ".hash", ".dynstr", ".dynamic"])
def test_other_sections_count(layer_norm: CodeObject, section: str) -> None:
    other = changed(layer_norm, section, 0)
    assert outside_hash(other, other.kernel()) != outside_hash(layer_norm, layer_norm.kernel())
