"""Bits that LLVM ignores, kept as comments; and that no change of an instruction goes unseen."""

from __future__ import annotations

import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from asmevo.codeobject.assembly import Assembly, Edit, KernelBody, Line
from asmevo.codeobject.build import build, build_text
from asmevo.codeobject.container import CodeObject
from asmevo.codeobject.encoding import UNCHANGED, Encoding, applied, marked
from asmevo.codeobject.errors import AssemblerError, ToolchainError
from asmevo.codeobject.recover import recover
from asmevo.codeobject.roundtrip import round_trip
from asmevo.codeobject.source import InstalledFile
from asmevo.codeobject.toolchain import Toolchain

ANNOTATED = "aiter_meta/hsa/gfx950/f4gemm/f4gemm_bf16_per1x32Fp4_BpreShuffle_64x512.co"
KERNEL = "layer_norm_kernel_func"


@pytest.fixture(scope="module")
def annotated(toolchain: Toolchain) -> tuple[CodeObject, Assembly]:
    code_object = CodeObject.parse(InstalledFile("amd-aiter", ANNOTATED).read())
    return code_object, round_trip(code_object, toolchain).assembly


@given(st.binary(min_size=4, max_size=16), st.binary(min_size=16, max_size=16))
def test_mask_turns_one_into_the_other(assembled: bytes, other: bytes) -> None:
    original = other[:len(assembled)]
    mask = Encoding.between(assembled, original)
    value = int.from_bytes(assembled, "little") & ~mask.clear | mask.set
    assert value.to_bytes(len(assembled), "little") == original
    assert (mask == UNCHANGED) == (assembled == original)
    # What the comment says is what is read from it.
    _, read = marked(f"\ts_nop 0{mask.comment()}\n")
    assert read == (() if mask == UNCHANGED else (mask,))


def test_marking_keeps_line_numbers() -> None:
    text = "a\n\tb // enc: |0x6000\nc // x\n\td // enc: |0x1 &~0x20\n"
    marks, masks = marked(text)
    assert masks == (Encoding(0x6000), Encoding(1, 0x20))
    assert [re.sub(r"^\S+: ", "", line) for line in marks.splitlines()[:4]] == [
        "a", "\tb", "c // x", "\td"]


@pytest.mark.parametrize("comment", [
    "// enc:0x6000", "// enc: 0x6000", "// enc: |6000", "// enc: |0x", "// ENC: |0x1",
    "// enc: |0x" + "f" * 33, "// enc: |0x6000 and more",
])
def test_other_comments_are_comments(comment: str) -> None:
    assert marked(f"\ts_nop 0 {comment}\n") == (f"\ts_nop 0 {comment}\n", ())


def test_mask_beyond_the_code_is_refused(layer_norm: CodeObject, toolchain: Toolchain) -> None:
    mask = f" // enc: |0x1{'0' * 16}"
    text = recover(layer_norm).text().replace("\ts_endpgm\n", f"\ts_endpgm{mask}\n")
    with pytest.raises(ToolchainError, match="outside the code"):
        build_text(layer_norm, text, toolchain)
    with pytest.raises(ToolchainError, match="lacks the positions"):
        applied(toolchain.assemble("s_nop 0\n", layer_norm.target), [Encoding(1)],
                layer_norm.target)


@pytest.fixture(scope="module")
def loads(layer_norm: CodeObject, toolchain: Toolchain) -> CodeObject:
    """layer_norm.co with a load in front whose unused address register has bits."""
    text = recover(layer_norm).text().replace(
        f"\n{KERNEL}:\n",
        f"\n{KERNEL}:\n\tbuffer_load_dword v4, off, s[4:7], 0 // enc: |0x500000000\n"
        "\tv_mov_b32_e64 v3, v4 // enc: |0x800\n")
    code_object = CodeObject.parse(build_text(layer_norm, text, toolchain))
    assert round_trip(code_object, toolchain).annotation_count == 2
    return code_object


@pytest.mark.parametrize(("old", "new", "line"), [
    ("off, s[4:7], 0", "v0, s[4:7], 0 offen", 0),
    ("off, s[4:7], 0", "v5, s[4:7], 0 idxen offset:8", None),
    ("off, s[4:7], 0", "off, s[8:11], s4 offset:16", None),
    ("v3, v4", "v3, s7", None),
])
def test_a_mask_never_changes_an_operand(
        loads: CodeObject, toolchain: Toolchain, old: str, new: str, line: int | None) -> None:
    text = round_trip(loads, toolchain).assembly.text()
    assert text.count(old) >= 1
    edited = text.replace(old, new, 1)
    first = next(i for i, row in enumerate(edited.split("\n"), 1) if "// enc:" in row)
    if line is None:
        CodeObject.parse(build_text(loads, edited, toolchain))
        return
    with pytest.raises(AssemblerError, match="another instruction") as caught:
        build_text(loads, edited, toolchain)
    assert caught.value.line == first + line
    assert new in caught.value.source


def test_an_error_in_a_commented_line_is_about_that_line(
        loads: CodeObject, toolchain: Toolchain) -> None:
    edited = round_trip(loads, toolchain).assembly.text().replace(
        "v_mov_b32_e64 v3, v4 ", "v_mov_b32_e64 v3, v4 clamp ")
    line = next(line for line in edited.split("\n") if "v4 clamp" in line)
    with pytest.raises(AssemblerError) as caught:
        build_text(loads, edited, toolchain)
    assert edited.split("\n")[caught.value.line - 1] == line
    assert caught.value.column == line.index("clamp") + 1
    assert caught.value.source.strip() == "v_mov_b32_e64 v3, v4 clamp"


def test_an_edit_keeps_the_annotations(annotated: tuple[CodeObject, Assembly],
                                       toolchain: Toolchain) -> None:
    code_object, assembly = annotated
    symbol = code_object.kernel().symbol
    edit = Edit(symbol, 100, 100, ("s_nop 11", "v_mov_b32_e32 v0, 0x12345678"), "test")
    changed = assembly.apply([edit])
    rebuilt = CodeObject.parse(build(code_object, changed, toolchain))
    report = round_trip(rebuilt, toolchain)
    assert report.identical
    assert report.annotation_count == sum(
        line.encoding != UNCHANGED for line in assembly.body(symbol).lines)
    assert report.assembly.body(symbol).lines[101].text == "v_mov_b32_e32 v0, 0x12345678"


def mutated(draw: st.DrawFn, text: str) -> str:
    """Another instruction, or the same one with a register or number changed."""
    numbers = list(re.finditer(r"(?<=[vsa])\d+(?=[,\s]|$)", text))
    kinds = ["nop", "delete", "twice"] + ["register"] * 3 * bool(numbers)
    kind = draw(st.sampled_from(kinds))
    if kind == "register":
        match = draw(st.sampled_from(numbers))
        other = (int(match[0]) + draw(st.integers(1, 90))) % 100
        return text[:match.start()] + str(other) + text[match.end():]
    return {"nop": f"s_nop {draw(st.integers(0, 15))}", "delete": "",
            "twice": f"{text}\n\t{text}"}[kind]


@given(st.data())
@settings(max_examples=60, deadline=None)
def test_one_changed_instruction_is_always_seen(
        layer_norm: CodeObject, annotated: tuple[CodeObject, Assembly], toolchain: Toolchain,
        data: st.DataObject) -> None:
    """Whatever assembles to other bytes is no round trip."""
    original, assembly = data.draw(st.sampled_from([(layer_norm, recover(layer_norm)), annotated]))
    body = next(b for b in assembly.blocks if isinstance(b, KernelBody))
    index = data.draw(st.integers(0, sum(1 for line in body.lines if line.text) - 1))
    line = body.lines[index]
    text = data.draw(st.composite(mutated)(line.text))
    if text == line.text:
        return
    lines = (*body.lines[:index], Line(text, line.labels, line.encoding if text else UNCHANGED),
             *body.lines[index + 1:])
    changed = Assembly(assembly.original_sha256, tuple(
        KernelBody(body.symbol, lines) if b is body else b for b in assembly.blocks))
    try:
        assert build(original, changed, toolchain) != original.data
    except AssemblerError:
        return


def test_one_changed_annotation_is_seen(annotated: tuple[CodeObject, Assembly],
                                        toolchain: Toolchain) -> None:
    original, assembly = annotated
    text = assembly.text()
    assert build_text(original, text, toolchain) == original.data
    assert build_text(original, text.replace("|0x6000", "|0x2000", 1), toolchain) != original.data
    assert build_text(original, text.replace(" // enc: |0x6000", "", 1), toolchain) != original.data
