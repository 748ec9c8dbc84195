"""The metadata note: LLVM must make the same msgpack bytes of the YAML."""

from __future__ import annotations

import io
from typing import Any

import msgpack
import pytest
from elftools.elf.elffile import ELFFile
from hypothesis import given, settings
from hypothesis import strategies as st

from asmevo.codeobject.container import CodeObject
from asmevo.codeobject.elf import read_notes
from asmevo.codeobject.errors import CodeObjectError
from asmevo.codeobject.metadata import decode_metadata, metadata_yaml
from asmevo.codeobject.target import Target
from asmevo.codeobject.toolchain import Toolchain

TEXT = st.text("abzAZ019 _.,:*&<>()[]{}$@+=~!?|^%-", max_size=24)
COUNT = st.integers(0, (1 << 32) - 1)


@st.composite
def arguments(draw: st.DrawFn) -> dict[str, object]:
    entry = {".offset": draw(COUNT), ".size": draw(COUNT),
             ".value_kind": draw(st.sampled_from(["by_value", "global_buffer"])),
             ".name": draw(TEXT), ".type_name": draw(TEXT),
             ".is_const": draw(st.booleans())}
    return dict(draw(st.permutations(list(entry.items()))))


@st.composite
def documents(draw: st.DrawFn) -> dict[str, object]:
    """A document that LLVM's metadata verifier accepts, with keys in any order."""
    entry: dict[str, object] = {
        ".name": draw(TEXT), ".symbol": "k.kd", ".kernarg_segment_size": draw(COUNT),
        ".group_segment_fixed_size": draw(COUNT), ".private_segment_fixed_size": draw(COUNT),
        ".kernarg_segment_align": draw(COUNT), ".wavefront_size": 64, ".sgpr_count": draw(COUNT),
        ".vgpr_count": draw(COUNT), ".max_flat_workgroup_size": draw(COUNT),
        ".args": draw(st.lists(arguments(), min_size=1, max_size=3)),
        ".reqd_workgroup_size": draw(st.lists(COUNT, min_size=3, max_size=3)),
    }
    entry = dict(draw(st.permutations(list(entry.items()))))
    document: dict[str, object] = {"amdhsa.kernels": [entry], "amdhsa.version": [1, 2],
                                   "amdhsa.target": "amdgcn-amd-amdhsa--gfx942"}
    return dict(draw(st.permutations(list(document.items()))))


@given(documents())
@settings(max_examples=60, deadline=None)
def test_yaml_becomes_the_same_note(toolchain: Toolchain, document: dict[str, object]) -> None:
    note = msgpack.packb(document)
    decoded = decode_metadata(note)
    assert decoded == document
    text = ('.amdgcn_target "amdgcn-amd-amdhsa--gfx942"\n.amdgpu_metadata\n'
            f"{metadata_yaml(decoded)}.end_amdgpu_metadata\n")
    data = toolchain.assemble(text, Target("gfx942"))
    section = ELFFile(io.BytesIO(data)).get_section_by_name(".note")
    assert section is not None
    notes = read_notes(section.data())
    assert [(owner, kind) for owner, kind, _ in notes] == [(b"AMDGPU", 32)]
    # LLVM keeps maps in the order of their keys, so compare what both mean, then key by key.
    assert msgpack.unpackb(notes[0][2]) == document


def test_layer_norm_note_is_byte_exact(layer_norm: CodeObject, toolchain: Toolchain) -> None:
    text = ('.amdgcn_target "amdgcn-amd-amdhsa--gfx942"\n.amdgpu_metadata\n'
            f"{metadata_yaml(layer_norm.metadata)}.end_amdgpu_metadata\n")
    data = toolchain.assemble(text, Target("gfx942"))
    section = ELFFile(io.BytesIO(data)).get_section_by_name(".note")
    assert section is not None
    assert read_notes(section.data())[0][2] == layer_norm.metadata_note()


def nested(depth: int) -> Any:
    node: Any = 0
    for _ in range(depth):
        node = [node]
    return node


@pytest.mark.parametrize(("note", "message"), [
    (b"", "not valid msgpack"),
    (b"\xdf\xff\xff\xff\xff", "not valid msgpack"),
    (b"\xdd\xff\xff\xff\xff\x00", "not valid msgpack"),
    (b"\x80\x80", "not valid msgpack"),
    (b"\xc1", "not valid msgpack"),
    (msgpack.packb([1]), "is not a map"),
    (msgpack.packb({"a": b"bytes"}), "holds a bytes"),
    (msgpack.packb({"a": msgpack.ExtType(4, b"x")}), "holds a ExtType"),
    (b"\x82\xa1a\x01\xa1a\x02", "same key twice"),
    (b"\x81\x01\x02", "not valid msgpack"),
    (b"\x81\xa1a\xa2\xff\xfe", "not valid msgpack"),
    (msgpack.packb({"a": nested(60)}), "nests deeper"),
    (b"\x81\xa1a" + b"\x91" * 5000 + b"\x00", "nests deeper|not valid msgpack"),
])
def test_hostile_note_refused(note: bytes, message: str) -> None:
    with pytest.raises(CodeObjectError, match=message):
        decode_metadata(note)


@given(st.binary(max_size=200))
def test_random_notes_never_escape(note: bytes) -> None:
    try:
        decode_metadata(note)
    except CodeObjectError as error:
        assert str(error)


@pytest.mark.parametrize("value", [
    'x\n.incbin "/etc/passwd"', "x; .end_amdgpu_metadata; .incbin", "a'b", 'a"b', "a\\b", "/* ",
    "// x", "# x", "\x00", "caf\u00e9", 1.5, None,
])
def test_text_that_could_leave_the_document_is_refused(value: object) -> None:
    with pytest.raises(CodeObjectError, match="metadata"):
        metadata_yaml({"amdhsa.kernels": [{".name": value}]})
    if isinstance(value, str):
        with pytest.raises(CodeObjectError, match="metadata"):
            metadata_yaml({value: 1})
