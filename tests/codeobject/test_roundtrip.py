"""Recovery and the byte-exact gate on real objects, and that the gate can fail."""

from __future__ import annotations

import contextlib
import importlib.metadata
import struct
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from asmevo.codeobject.container import CodeObject
from asmevo.codeobject.disassemble import rows
from asmevo.codeobject.errors import CodeObjectError, ToolchainError
from asmevo.codeobject.lld17 import without_relro_padding
from asmevo.codeobject.recover import recover
from asmevo.codeobject.roundtrip import round_trip
from asmevo.codeobject.source import InstalledFile
from asmevo.codeobject.target import Target
from asmevo.codeobject.toolchain import Toolchain
from asmevo.errors import AsmEvoError

FOLDER = "aiter_meta/hsa/gfx942/"
TOPKSOFTMAX = sorted(
    str(file).removeprefix(FOLDER)
    for file in importlib.metadata.distribution("amd-aiter").files or ()
    if str(file).startswith(f"{FOLDER}topksoftmax/") and file.suffix == ".co"
)
OTHERS = [
    "layer_norm.co",
    "layer_norm_qnt.co",
    "all_reduce.co",
    "gemm_a8w8_m128_splitK.co",
    "fmoe_fp8_blockscale_g1u1_subGU_256.co",
    "fmoe_f16.co",                                     # a function symbol with a size
    "pa_a16w8_f16_2tg_g8_i8.co",                       # the same, code object version 5
    "fmoe/silu/fmoe_fp8_g1u1_subGU_128_silu_tkw1.co",  # linked by LLD 17
]


def read(path: str) -> CodeObject:
    return CodeObject.parse(InstalledFile("amd-aiter", FOLDER + path).read())


class Tampered:
    """A toolchain that assembles other text than it is given."""

    def __init__(self, inner: Toolchain, old: str, new: str) -> None:
        self._inner, self._old, self._new = inner, old, new

    def assemble(self, text: str, target: Target) -> bytes:
        return self._inner.assemble(text.replace(self._old, self._new, 1), target)

    def link(self, relocatable: bytes, *, version_comment: str | None = None) -> bytes:
        return self._inner.link(relocatable, version_comment=version_comment)

    def versions(self) -> Mapping[str, str]:
        return self._inner.versions()


class Flipped:
    """A toolchain whose linker writes one bit wrongly."""

    def __init__(self, inner: Toolchain, offset: int) -> None:
        self._inner, self._offset = inner, offset

    def assemble(self, text: str, target: Target) -> bytes:
        return self._inner.assemble(text, target)

    def link(self, relocatable: bytes, *, version_comment: str | None = None) -> bytes:
        data = bytearray(self._inner.link(relocatable, version_comment=version_comment))
        data[self._offset] ^= 0x10
        return bytes(data)

    def versions(self) -> Mapping[str, str]:
        return self._inner.versions()


def test_topksoftmax_family_is_complete() -> None:
    assert len(TOPKSOFTMAX) >= 4


@pytest.mark.parametrize("path", OTHERS + TOPKSOFTMAX)
def test_whole_file_is_identical(path: str, toolchain: Toolchain) -> None:
    code_object = read(path)
    report = round_trip(code_object, toolchain)
    assert report.identical
    assert (report.first_difference, report.section, report.masks) == (None, None, ())
    assert report.fallback_count == 0
    assert report.instruction_count == len(
        rows(code_object.code(code_object.kernel()), code_object.target))
    assert set(report.versions) == {"assembler", "linker", "origin", "disassembler"}


def test_rejected_text_of_recovery_is_its_own_limit(layer_norm: CodeObject,
                                                    toolchain: Toolchain) -> None:
    """Nobody wrote the text, so a bare assembler message would help nobody."""
    bad = Tampered(toolchain, '\t.section .rodata,"a"', '\t.section .rodata,"aMS"')
    with pytest.raises(CodeObjectError, match=r"^recovery does not handle this object: .*line \d+"):
        round_trip(layer_norm, bad)


def test_every_branch_is_symbolic(layer_norm: CodeObject) -> None:
    body = recover(layer_norm).body("layer_norm_kernel_func")
    branches = [line.text for line in body.lines if "branch" in line.text]
    assert branches
    assert all(text.split()[1].startswith("label_") for text in branches)
    assert [label for line in body.lines for label in line.labels] == ["label_01B3", "label_03F6"]


def test_branch_targets_without_symbol_leave_no_trace(layer_norm: CodeObject) -> None:
    """Such labels must not reach the symbol table, so the text names them ``.L``."""
    symbols = tuple(s for s in layer_norm.symbols if not s.name.startswith("label_"))
    text = recover(replace(layer_norm, symbols=symbols, sha256="0" * 64)).text()
    assert ".local" not in text
    assert text.count("\n.L_") == 2


@pytest.mark.parametrize(("old", "new", "section"), [
    (".amdhsa_float_round_mode_32 0", ".amdhsa_float_round_mode_32 1", ".rodata"),
    ("'OutBuffer'", "'OutBuffex'", ".note"),
    ("s_endpgm", "s_endpgm\n\ts_nop 0", "headers"),
    ("label_01B3:", "label_01B3:\nextra:", "headers"),
])
def test_one_change_is_seen(layer_norm: CodeObject, toolchain: Toolchain, old: str, new: str,
                            section: str) -> None:
    report = round_trip(layer_norm, Tampered(toolchain, old, new))
    assert not report.identical
    assert report.first_difference is not None
    assert report.section == section


def test_one_wrong_instruction_is_seen(layer_norm: CodeObject, toolchain: Toolchain) -> None:
    """A toolchain that encodes one instruction wrongly costs that instruction its text."""
    report = round_trip(layer_norm, Tampered(toolchain, "\ts_and_b32 s1, s1, 0xffff\n",
                                             "\ts_and_b32 s1, s1, 0xfffe\n"))
    assert report.identical
    assert report.fallback_count == 1


@pytest.mark.parametrize("section", [".note", ".dynsym", ".rodata", ".text", ".dynamic", ".comment",
                                     ".symtab", ".strtab"])
def test_one_wrong_bit_is_seen(layer_norm: CodeObject, toolchain: Toolchain, section: str) -> None:
    offset = layer_norm.section(section).offset + layer_norm.section(section).size - 1
    report = round_trip(layer_norm, Flipped(toolchain, offset))
    assert not report.identical
    assert report.first_difference == offset
    assert report.section == section


def with_bits(code_object: CodeObject, changes: Mapping[int, int]) -> CodeObject:
    """The object with bits of its code flipped: byte offset in .text -> mask."""
    data = bytearray(code_object.data)
    for offset, mask in changes.items():
        data[code_object.section(".text").offset + offset] ^= mask
    return CodeObject.parse(bytes(data))


def test_bits_that_llvm_ignores_are_kept_beside_the_text(layer_norm: CodeObject,
                                                         toolchain: Toolchain) -> None:
    """Bit 13 of s_load_dwordx2, which LLVM decodes and does not write back."""
    report = round_trip(with_bits(layer_norm, {9: 0x20}), toolchain)
    assert report.identical
    assert (report.annotation_count, report.fallback_count) == (1, 0)
    assert "\ts_load_dwordx2 s[12:13], s[0:1], 0x0 // enc: |0x2000\n" in report.assembly.text()


@pytest.mark.parametrize(("changes", "fallbacks", "shown"), [
    # s_and_b64 with a misaligned operand: decoded with a remark.
    ({2: 0x80}, 1, ".long 0x8681ff01"),
    # A destination that the assembler rejects: v_cvt_f64_f32 into an odd register pair.
    ({0x50: 0x80, 0x51: 0x00 ^ 0x1E, 0x52: 0x03, 0x53: 0x5E}, 1, None),
])
def test_what_does_not_encode_back_is_kept_as_data(
        layer_norm: CodeObject, toolchain: Toolchain, changes: Mapping[int, int], fallbacks: int,
        shown: str | None) -> None:
    changed = with_bits(layer_norm, changes)
    report = round_trip(changed, toolchain)
    assert report.identical
    assert report.fallback_count == fallbacks
    data = [line.text for line in report.assembly.body("layer_norm_kernel_func").lines
            if line.text.startswith(".long")]
    assert len(data) == fallbacks
    if shown is not None:
        assert data == [shown]


def test_unhandled_constructs_are_named(layer_norm: CodeObject) -> None:
    kernel = layer_norm.kernel()
    symbol = layer_norm.symbols[1]

    def refused(code_object: CodeObject, message: str) -> None:
        with pytest.raises(CodeObjectError, match=message):
            recover(replace(code_object, sha256=message))

    def added(**changes: Any) -> CodeObject:
        return replace(layer_norm, symbols=(*layer_norm.symbols, replace(symbol, **changes)))

    refused(replace(layer_norm, target=Target("gfx908")), "does not handle gfx908")
    refused(replace(layer_norm, kernels=()), "no kernels")
    refused(added(), "two symbols named 'label_01B3'")
    refused(added(type="TLS"), "the symbol 'label_01B3'")
    refused(added(section="COMMON"), "the symbol 'label_01B3'")
    refused(added(name="a\nb"), "symbol name")
    refused(added(name="x", value=symbol.value + 1), "x lies inside an instruction")
    refused(added(name="x", type="FUNC", size=1 << 20), "does not end where the next starts")
    functions = [s for s in layer_norm.symbols if s.type == "FUNC"]
    refused(replace(layer_norm, symbols=tuple(
        replace(s, value=s.value + 256) if s in functions else s for s in layer_norm.symbols)),
        "code in front of the first function")
    refused(replace(layer_norm, symbols=tuple(s for s in layer_norm.symbols
                                              if s not in functions)), "no function")
    preload = replace(kernel.descriptor, kernarg_preload=2)
    refused(replace(layer_norm, kernels=(replace(kernel, descriptor=preload),)), "preloading")
    sections = tuple(replace(s, type="SHT_RELR") if s.name == ".rodata" else s
                     for s in layer_norm.sections)
    refused(replace(layer_norm, sections=sections), "the section '.rodata'")


@pytest.mark.parametrize(("word", "message"), [
    (0xBE821C00, "s_getpc_b64"), (0xBE801F00, "s_rfe_b64"), (0xBF827FFF, "leaves the code"),
])
def test_code_addresses_and_stray_branches_are_named(layer_norm: CodeObject, word: int,
                                                     message: str) -> None:
    data = bytearray(layer_norm.data)
    start = layer_norm.section(".text").offset + 0x84  # s_waitcnt lgkmcnt(0)
    data[start:start + 4] = struct.pack("<I", word)
    with pytest.raises(CodeObjectError, match=message):
        recover(CodeObject.parse(bytes(data)))


def test_hostile_metadata_never_reaches_the_assembler(layer_norm: CodeObject) -> None:
    data = layer_norm.data.replace(b"OutBuffer", b'";.end "x')
    with pytest.raises(CodeObjectError, match="metadata text"):
        recover(CodeObject.parse(data))


def test_hostile_comment_never_reaches_the_assembler(layer_norm: CodeObject) -> None:
    data = layer_norm.data.replace(b"Linker: AMD LLD 18", b'x"\n.incbin "/etc/"')
    with pytest.raises(CodeObjectError, match="comment section holds text"):
        recover(CodeObject.parse(data))


DATA = InstalledFile("amd-aiter", f"{FOLDER}layer_norm.co").read()


@given(st.lists(st.tuples(st.integers(0, len(DATA) - 1), st.integers(0, 255)), min_size=1,
                max_size=6))
@settings(max_examples=80, deadline=None)
def test_damaged_object_is_refused_or_survives(toolchain: Toolchain,
                                               changes: list[tuple[int, int]]) -> None:
    """Whatever recovery accepts, the gate judges; nothing but a typed error comes out."""
    data = bytearray(DATA)
    for position, value in changes:
        data[position] = value
    with contextlib.suppress(AsmEvoError):
        code_object = CodeObject.parse(bytes(data))
        report = round_trip(code_object, toolchain)
        assert report.identical == (report.first_difference is None)


def test_lld17_layout_needs_the_padding_section(toolchain: Toolchain) -> None:
    old = read("fmoe/silu/fmoe_fp8_g1u1_subGU_128_silu_tkw1.co")
    with pytest.raises(ToolchainError, match=r"no \.relro_padding section"):
        without_relro_padding(old.data)
