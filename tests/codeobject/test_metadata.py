"""The metadata note: LLVM must make the same msgpack bytes of the YAML."""

from __future__ import annotations

import contextlib
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

TEXT = st.one_of(
    st.text("abzAZ019 _.,:*&<>()[]{}$@+=~!?|^%-", max_size=24),
    st.sampled_from(["", "0", "0x1f", "-3", "1e5", ".5", "true", "False", "null", "~", "nan", "INF",
                     "Infinity", "yes", "-", "? a", "- b", "!str", "[a]", "{a: b}", "<<", "..."]),
)
KEY = st.from_regex(r"z[A-Za-z0-9_.-]{0,12}", fullmatch=True)
COUNT = st.integers(0, (1 << 32) - 1)


@st.composite
def arguments(draw: st.DrawFn) -> dict[str, object]:
    return {".is_const": draw(st.booleans()), ".name": draw(TEXT), ".offset": draw(COUNT),
            ".size": draw(COUNT), ".type_name": draw(TEXT),
            ".value_kind": draw(st.sampled_from(["by_value", "global_buffer"]))}


@st.composite
def documents(draw: st.DrawFn) -> dict[str, object]:
    """A document that LLVM's metadata verifier accepts, with the keys in the order it writes."""
    entry = {
        ".args": draw(st.lists(arguments(), min_size=1, max_size=3)),
        ".group_segment_fixed_size": draw(COUNT), ".kernarg_segment_align": draw(COUNT),
        ".kernarg_segment_size": draw(COUNT), ".max_flat_workgroup_size": draw(COUNT),
        ".name": draw(TEXT), ".private_segment_fixed_size": draw(COUNT),
        ".reqd_workgroup_size": draw(st.lists(COUNT, min_size=3, max_size=3)),
        ".sgpr_count": draw(COUNT), ".symbol": "k.kd", ".vgpr_count": draw(COUNT),
        ".wavefront_size": 64,
    }
    return {
        "amdhsa.kernels": [entry], "amdhsa.target": "amdgcn-amd-amdhsa--gfx942",
        "amdhsa.version": [1, 2], draw(KEY): {"x": [[1], [], {}], draw(KEY): draw(TEXT)},
    }


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
    assert notes[0][2] == note


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
    with contextlib.suppress(CodeObjectError):
        assert isinstance(decode_metadata(note), dict)


@pytest.mark.parametrize("key", ["", "0", "1.5", "nan", "true", "a b"])
def test_key_that_llvm_would_not_read_as_text_is_refused(key: str) -> None:
    with pytest.raises(CodeObjectError, match="metadata key"):
        metadata_yaml({key: 1})


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
