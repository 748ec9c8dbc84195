"""LLVM's disassembler; the assembler is the reference for what it prints."""

from __future__ import annotations

import importlib.metadata
import io
import os
from dataclasses import replace

import pytest
from elftools.elf.elffile import ELFFile
from hypothesis import given, settings
from hypothesis import strategies as st

from asmevo.codeobject.container import CodeObject
from asmevo.codeobject.disassemble import branch_target, labels, program, rows
from asmevo.codeobject.disassembler import Disassembler, Row, shared
from asmevo.codeobject.errors import CodeObjectError, ToolchainError
from asmevo.codeobject.target import Target
from asmevo.codeobject.toolchain import Toolchain

GFX942 = Target("gfx942")


@pytest.mark.parametrize("text", [
    "s_and_b32 s1, s1, 0xffff",
    "v_add_f32_e32 v0, v1, v2",
    "v_add_f32_dpp v0, v1, v2 row_shr:1 row_mask:0xf bank_mask:0xf bound_ctrl:1",
    "v_cvt_f32_f16_sdwa v0, v1 dst_sel:DWORD dst_unused:UNUSED_PAD src0_sel:WORD_1",
    "buffer_load_dwordx4 v[0:3], v4, s[8:11], 0 offen offset:16 sc0 nt",
    "v_mfma_f32_32x32x8_f16 a[0:15], v[0:1], v[2:3], a[0:15]",
    "s_waitcnt vmcnt(3) lgkmcnt(0)",
    "ds_read_b128 v[4:7], v0 offset:1024",
])
def test_text_assembles_to_what_it_came_from(toolchain: Toolchain, text: str) -> None:
    data = toolchain.assemble(f'.amdgcn_target "{GFX942.triple}"\n{text}\n', GFX942)
    section = ELFFile(io.BytesIO(data)).get_section_by_name(".text")
    assert section is not None
    code = section.data()
    assert rows(code, GFX942) == ((0, len(code), text),)


@given(st.binary(max_size=64))
@settings(deadline=None)
def test_rows_cover_any_bytes_without_gaps(code: bytes) -> None:
    position = 0
    for offset, size, text in rows(code, GFX942):
        assert offset == position
        assert size > 0
        assert text
        assert ";" not in text
        position += size
    assert position == len(code)


@pytest.mark.parametrize(("code", "expected"), [
    ("ffffffff", ((0, 4, ".long 0xffffffff"),)),
    ("000081bf0102", ((0, 4, "s_endpgm"), (4, 2, ".byte 0x01, 0x02"))),
    ("01ff0186", ((0, 4, ".long 0x8601ff01"),)),
    # LLVM decodes it, with the remark that the 64-bit source is not aligned.
    ("01ff8186ffff0000", ((0, 4, ".long 0x8681ff01"),
                          (4, 4, "v_cndmask_b32_e32 v0, v255, v127, vcc"))),
])
def test_undecodable_words_become_data(code: str, expected: tuple[Row, ...]) -> None:
    assert rows(bytes.fromhex(code), GFX942) == expected


@pytest.mark.parametrize(("offset", "text", "target"), [
    (0, "s_branch 0", 4), (8, "s_branch 65533", 0), (100, "s_cbranch_scc1 7", 132),
    (0, "s_cbranch_vccnz 32767", 131072), (4, "s_call_b64 s[0:1], 2", 16),
    (0, "s_endpgm", None), (0, "s_setpc_b64 s[0:1]", None), (0, "s_mov_b32 s0, 5", None),
])
def test_branch_target(offset: int, text: str, target: int | None) -> None:
    assert branch_target(offset, text) == target


def test_branch_targets_equal_the_assemblers(toolchain: Toolchain) -> None:
    text = (f'.amdgcn_target "{GFX942.triple}"\nback:\n\ts_nop 0\n\ts_cbranch_scc0 ahead\n'
            "\ts_mov_b32 s0, 0x12345678\n\ts_branch back\nahead:\n\ts_endpgm\n")
    section = ELFFile(io.BytesIO(toolchain.assemble(text, GFX942))).get_section_by_name(".text")
    assert section is not None
    targets = [branch_target(offset, text) for offset, _, text in rows(section.data(), GFX942)]
    assert targets == [None, 20, None, 0, None]


def test_program_has_the_symbols_of_the_object(layer_norm: CodeObject) -> None:
    decoded = program(layer_norm)
    assert len(decoded) == 643
    assert sorted(decoded.labels.values()) == ["label_01B3", "label_03F6"]
    named = [decoded.labels[t] for t in decoded.targets if t is not None]
    assert set(named) == {"label_01B3", "label_03F6"}


def test_targets_without_symbol_get_names_that_clash_with_none(layer_norm: CodeObject) -> None:
    kernel = layer_norm.kernel()
    listing = rows(layer_norm.code(kernel), layer_norm.target)
    plain = labels(layer_norm, kernel, listing)
    locals_ = [s for s in layer_norm.symbols if s.name.startswith("label_")]
    others = [s for s in layer_norm.symbols if s not in locals_]
    offset = locals_[0].value - layer_norm.section(".text").address
    taken = replace(locals_[0], name=f".L_{offset:04x}", section="ABS")
    synthetic = labels(replace(layer_norm, symbols=(*others, taken)), kernel, listing)
    assert list(plain) == list(synthetic)
    assert all(name.startswith(".L_") for name in synthetic.values())
    assert taken.name not in synthetic.values()
    assert len(set(synthetic.values())) == len(synthetic)


def test_unknown_kernel(layer_norm: CodeObject) -> None:
    with pytest.raises(CodeObjectError, match="no kernel 'nope'"):
        program(layer_norm, "nope")


# Words of no instruction on which LLVM 22 dereferences null (found by flipping bits of AITER code).
CRASHES = ["fa7475eb335e01ff", "7808ffd14bff0500", "f994960a1c1781f7", "ff337cd0c0300000"]


@pytest.mark.parametrize("word", CRASHES)
def test_crash_of_llvm_costs_one_word(word: str) -> None:
    code = bytes.fromhex("000080bf" + word + "000081bf")
    listing = rows(code, GFX942)
    assert listing[0] == (0, 4, "s_nop 0")
    assert listing[1] == (4, 4, f".long 0x{int.from_bytes(code[4:8], 'little'):08x}")
    assert listing[-1] == (12, 4, "s_endpgm")


def test_code_that_only_crashes_is_refused() -> None:
    with pytest.raises(CodeObjectError, match="LLVM crashes on more than 64 words"):
        rows(bytes.fromhex(CRASHES[0]) * 100, GFX942)


def test_processor_without_disassembler() -> None:
    with pytest.raises(ToolchainError, match="LLVM cannot disassemble for 'gfx940'"):
        rows(b"\0" * 4, Target("gfx940"))
    assert rows(bytes.fromhex("000081bf"), GFX942) == ((0, 4, "s_endpgm"),)


def test_absurd_size_is_refused() -> None:
    with pytest.raises(CodeObjectError, match="more than any kernel"):
        Disassembler().rows("gfx942", bytes((16 << 20) + 4))


def test_killed_child_is_replaced() -> None:
    disassembler = Disassembler()
    code = bytes.fromhex("000081bf")
    expected = disassembler.rows("gfx942", code)
    child = disassembler._child
    assert child is not None
    child._process.kill()
    child._process.wait()
    assert disassembler.rows("gfx942", code) == expected
    disassembler.close()


def test_forked_process_gets_its_own_child() -> None:
    before = shared()
    before.version()
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        os.write(writer, b"other" if shared() is not before else b"same")
        os._exit(0)
    os.close(writer)
    os.waitpid(child, 0)
    assert os.read(reader, 16) == b"other"
    os.close(reader)
    assert shared() is before


def test_missing_llvm_is_one_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(name: str) -> importlib.metadata.Distribution:
        raise importlib.metadata.PackageNotFoundError(name)

    monkeypatch.setattr(importlib.metadata, "distribution", missing)
    with pytest.raises(ToolchainError, match=r"pip install rocm-llvm-python"):
        Disassembler().rows("gfx942", b"abcd")
