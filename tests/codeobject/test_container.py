"""Reading code objects, compared with pyelftools, and refusing everything else."""

from __future__ import annotations

import io
import pickle
import struct
from pathlib import Path

import pytest
from elftools.elf.elffile import ELFFile
from elftools.elf.sections import SymbolTableSection
from hypothesis import given, settings
from hypothesis import strategies as st

from asmevo.codeobject.container import CodeObject
from asmevo.codeobject.errors import CodeObjectError
from asmevo.codeobject.source import InstalledFile
from asmevo.codeobject.target import Feature, Target
from asmevo.errors import AsmEvoError

SECTION_TABLE_OFFSET = 0x28
FIELD = {"type": (4, "<I"), "offset": (0x18, "<Q"), "size": (0x20, "<Q")}


def read(path: str) -> bytes:
    return InstalledFile("amd-aiter", f"aiter_meta/hsa/gfx942/{path}").read()


LAYER_NORM = read("layer_norm.co")


def with_field(data: bytes, section: str, field: str, value: int) -> bytes:
    """The object with one field of one section header overwritten."""
    names = [s.name for s in CodeObject.parse(data).sections]
    table = struct.unpack_from("<Q", data, SECTION_TABLE_OFFSET)[0]
    position, layout = FIELD[field]
    changed = bytearray(data)
    struct.pack_into(layout, changed, table + names.index(section) * 64 + position, value)
    return bytes(changed)


def test_layer_norm_kernel(layer_norm: CodeObject) -> None:
    kernel = layer_norm.kernel()
    assert layer_norm.target == Target("gfx942", Feature.ANY, Feature.ANY)
    assert layer_norm.target.triple == "amdgcn-amd-amdhsa--gfx942"
    assert layer_norm.version == 5
    assert kernel.symbol == "layer_norm_kernel_func"
    assert (kernel.entry, kernel.size) == (0, 0x1188)
    assert (kernel.kernarg_segment_size, kernel.kernarg_segment_align) == (176, 4)
    assert layer_norm.code(kernel)[-4:] == bytes.fromhex("000081bf")
    pointers = [a for a in kernel.arguments if a.value_kind == "global_buffer"]
    assert [(a.name, a.offset, a.size, a.access) for a in pointers[:2]] == [
        ("OutBuffer", 0, 8, "read_write"), ("InBuffer", 16, 8, "read_only")]
    assert all(a.value_type == "i32" for a in kernel.arguments if a.value_kind == "by_value")


@pytest.mark.parametrize("path", [
    "layer_norm.co", "pa_a16w8_f16.co", "fmoe_int8_g1u1_smf_subGU_256.co",
    "fmoe/silu/fmoe_fp8_g1u1_subGU_128_silu_tkw1.co",
])
def test_tables_equal_pyelftools(path: str) -> None:
    data = read(path)
    ours = CodeObject.parse(data)
    elf = ELFFile(io.BytesIO(data))
    assert [(s.name, s.type, s.flags, s.address, s.offset, s.size, s.alignment)
            for s in ours.sections] == [
        (s.name, str(s["sh_type"]), s["sh_flags"], s["sh_addr"], s["sh_offset"], s["sh_size"],
         s["sh_addralign"]) for s in elf.iter_sections()]
    table = elf.get_section_by_name(".symtab")
    assert isinstance(table, SymbolTableSection)
    assert [(s.name, s.value, s.size, f"STT_{s.type}", f"STB_{s.binding}", f"STV_{s.visibility}")
            for s in ours.symbols] == [
        (s.name, s["st_value"], s["st_size"], s["st_info"]["type"], s["st_info"]["bind"],
         s["st_other"]["visibility"]) for s in table.iter_symbols()]
    text = elf.get_section_by_name(".text")
    assert text is not None
    assert ours.code(ours.kernel()) == text.data()


def test_identity_is_the_bytes(layer_norm: CodeObject) -> None:
    again = CodeObject.parse(layer_norm.data)
    assert again == layer_norm
    assert hash(again) == hash(layer_norm)
    assert pickle.loads(pickle.dumps(layer_norm)).kernel().symbol == layer_norm.kernel().symbol


def test_unknown_kernel_lists_what_is_there(layer_norm: CodeObject) -> None:
    with pytest.raises(CodeObjectError, match="no kernel 'nope'; its kernels: layer_norm_kernel"):
        layer_norm.kernel("nope")


def test_host_elf_is_named_by_machine() -> None:
    with pytest.raises(CodeObjectError, match="ELF machine 62 is not AMDGPU"):
        CodeObject.parse(Path("/bin/true").read_bytes())


@pytest.mark.parametrize(("offset", "value", "message"), [
    (0, b"\x7fELX", "does not start with an ELF header"),
    (4, b"\x01", "a 32-bit little-endian ELF file"),
    (5, b"\x02", "a 64-bit big-endian ELF file"),
    (7, b"\x03", "OS ABI 3 is not AMDGPU_HSA"),
    (8, b"\x01", "ABI version 1 is not code object version 4, 5 or 6"),
    (16, b"\x01\x00", "ELF type 1 is not a linked code object"),
    (48, b"\xff\x05\x00\x00", "processor 0xff is not one of"),
    (48, b"\x4c\x05\x00\x80", "unknown bits in the ELF flags"),
    (58, b"\x20\x00", "section header table is missing or malformed"),
    (60, b"\x00\x00", "section header table is missing or malformed"),
    (62, b"\xff\xff", "section header table is missing or malformed"),
    (40, b"\xff" * 8, "section header table lies outside the file"),
    (32, b"\xff" * 8, "program header table is malformed or lies outside"),
])
def test_header_field_refused(offset: int, value: bytes, message: str) -> None:
    data = LAYER_NORM[:offset] + value + LAYER_NORM[offset + len(value):]
    with pytest.raises(CodeObjectError, match=message):
        CodeObject.parse(data)


@pytest.mark.parametrize(("data", "message"), [
    (b"", "does not start with an ELF header"),
    (LAYER_NORM[:40], "ELF header is truncated"),
    (LAYER_NORM[:-1], "truncated: the section header table"),
    (with_field(LAYER_NORM, ".text", "offset", 0xCF0), "'.rodata' and '.text' overlap"),
    (with_field(LAYER_NORM, ".text", "offset", 0x20), "'ELF header' and '.text' overlap"),
    (with_field(LAYER_NORM, ".text", "size", 1 << 63), "truncated: section '.text' ends at byte"),
    (with_field(LAYER_NORM, ".note", "size", 6), "the note section is truncated"),
    (with_field(LAYER_NORM, ".note", "size", 0x100), "a note is larger than its section"),
    (with_field(LAYER_NORM, ".note", "type", 1), "no AMDGPU metadata note"),
    (with_field(LAYER_NORM, ".symtab", "size", 47), "symbol table is malformed"),
    (with_field(LAYER_NORM, ".dynsym", "type", 2), "several symbol tables"),
    (with_field(LAYER_NORM, ".symtab", "type", 1), "no symbols for its kernel"),
    (LAYER_NORM.replace(b"\xa7.symbol", b"\xa7.simbol"), "a kernel without a '.kd' symbol"),
    (LAYER_NORM.replace(b"\xb5.kernarg_segment_size", b"\xb5.kernarg_segment_sixe"),
     "no valid '.kernarg_segment_size'"),
])
def test_malformed_structure_refused(data: bytes, message: str) -> None:
    with pytest.raises(CodeObjectError, match=message):
        CodeObject.parse(data)


def test_name_without_end_is_refused_quickly() -> None:
    changed = bytearray(LAYER_NORM)
    strings = CodeObject.parse(LAYER_NORM).section(".strtab")
    changed[strings.offset:strings.offset + strings.size] = b"a" * strings.size
    with pytest.raises(CodeObjectError, match="does not end within its string table"):
        CodeObject.parse(bytes(changed))


def test_descriptor_must_point_to_the_code(layer_norm: CodeObject) -> None:
    rodata = layer_norm.section(".rodata")
    changed = bytearray(layer_norm.data)
    changed[rodata.offset + 16] ^= 4
    with pytest.raises(CodeObjectError, match="does not point to its code"):
        CodeObject.parse(bytes(changed))


def parse_or_refuse(data: bytes) -> None:
    message = "accepted"
    try:
        code_object = CodeObject.parse(data)
        for kernel in code_object.kernels:
            code_object.code(kernel)
    except AsmEvoError as error:
        message = str(error)
    assert message
    assert "\n" not in message


@given(st.integers(0, len(LAYER_NORM)))
@settings(max_examples=200, deadline=None)
def test_truncation_never_escapes(length: int) -> None:
    parse_or_refuse(LAYER_NORM[:length])


# Code bytes cannot confuse the reader: aim at the headers, tables and notes around them.
STRUCTURE = [*range(0xD00), *range(0xD00 + 0x1188, len(LAYER_NORM))]


@given(st.lists(st.tuples(st.sampled_from(STRUCTURE), st.integers(0, 255)), min_size=1, max_size=8))
@settings(max_examples=600, deadline=None)
def test_byte_changes_never_escape(changes: list[tuple[int, int]]) -> None:
    data = bytearray(LAYER_NORM)
    for position, value in changes:
        data[position] = value
    parse_or_refuse(bytes(data))
