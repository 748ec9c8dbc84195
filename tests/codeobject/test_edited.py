"""Edited text comes back as an assembly, whatever an editor does to spacing, comments and names."""

from __future__ import annotations

import contextlib
import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from asmevo.codeobject.assembly import Assembly, KernelBody, Line
from asmevo.codeobject.container import CodeObject
from asmevo.codeobject.edited import header, read_edited
from asmevo.codeobject.encoding import Encoding
from asmevo.codeobject.errors import RebuildError
from asmevo.codeobject.metadata import metadata_yaml
from asmevo.codeobject.recover import recover
from asmevo.errors import AsmEvoError

# Two kernels, a label that the object keeps (kept) and one that it does not.
FIRST = KernelBody("first", (
    Line("s_load_dword s2, s[0:1], 0x0"), Line("s_waitcnt lgkmcnt(0)", ("kept",)),
    Line("s_cbranch_scc1 kept", (".L_0010",)), Line("s_branch .L_0010"),
    Line(".long 0xd3b50000, 0x12345678 // v_nonsense v0, v1"), Line("s_endpgm"),
    Line("", (".Lend",)),
))
SECOND = KernelBody("second", (Line("s_nop 0"), Line("s_endpgm")))
DOCUMENT = Assembly("ab" * 32, (
    '\t.amdgcn_target "amdgcn-amd-amdhsa--gfx942"\n\t.local kept\n\t.text\nfirst:\n', FIRST,
    "\t.size first, .-first\n\t.text\nsecond:\n", SECOND,
    "\t.size second, .-second\n\t.amdgpu_metadata\n---\nname: 'a // b; c'\n...\n"
    "\t.end_amdgpu_metadata\n",
))
TEXT = DOCUMENT.text()


def body(text: str, symbol: str = "first") -> tuple[Line, ...]:
    return read_edited(text, DOCUMENT).assembly.body(symbol).lines


def test_unedited_text_is_the_assembly() -> None:
    assert read_edited(TEXT, DOCUMENT).assembly == DOCUMENT
    assert read_edited(header("x", "ab" * 32) + TEXT, DOCUMENT).assembly == DOCUMENT


@pytest.mark.parametrize("change", [
    lambda t: t.replace("\n", "\r\n"),
    lambda t: t.replace("\t", "    "),
    lambda t: t.replace("\n", "\n\n"),
    lambda t: t.replace("\n", "   // a comment; with anything .incbin \"x\"\n"),
    lambda t: t.replace("\ts_", "\t/* first */ s_"),
    lambda t: "# a line\n; another\n/* three\nlines\n*/\n" + t,
    lambda t: t.replace(", ", ",  "),
    lambda t: t.replace("kept:\n\t", "kept: "),
    lambda t: t.rstrip("\n"),
    lambda t: t.replace(".L_0010", ".Lloop"),
])
def test_what_an_editor_may_do_without_a_trace(change: object) -> None:
    assert callable(change)
    text = change(TEXT)
    assert text != TEXT
    edited = read_edited(text, DOCUMENT).assembly
    assert edited.text().replace(".Lloop", ".L_0010") == TEXT


def test_comment_signs_in_quoted_text_are_not_comments() -> None:
    with pytest.raises(RebuildError, match="name: 'a // X; c'"):
        read_edited(TEXT.replace("a // b", "a // X"), DOCUMENT)


def test_lines_are_inserted_replaced_and_deleted() -> None:
    lines = body(TEXT.replace("\ts_branch .L_0010\n", "\tv_mov_b32_e32 v1, v2\n\ts_nop 1 ; why\n"))
    assert [line.text for line in lines[3:5]] == ["v_mov_b32_e32 v1, v2", "s_nop 1"]
    assert len(lines) == len(FIRST.lines) + 1
    lines = body(TEXT.replace("\ts_branch .L_0010\n", ""))
    assert [line.text for line in lines] == [
        line.text for line in FIRST.lines if line.text != "s_branch .L_0010"]


def test_new_labels_stay_out_of_the_symbol_table() -> None:
    text = TEXT.replace("s_branch .L_0010", "s_branch again").replace("kept:", "again:\nkept:")
    lines = body(text)
    assert lines[1].labels == (".Lagain", "kept")
    assert lines[3].text == "s_branch .Lagain"


def test_new_label_does_not_collide() -> None:
    text = TEXT.replace("kept:", ".Lagain:\nagain:\nkept:").replace(
        "s_branch .L_0010", "s_branch again")
    lines = body(text)
    assert lines[1].labels[0] == ".Lagain"
    assert lines[1].labels[1] not in (".Lagain", "again")
    assert lines[3].text == f"s_branch {lines[1].labels[1]}"


def test_a_kept_label_renamed_throughout_keeps_its_symbol() -> None:
    assert read_edited(re.sub(r"\bkept\b", "main_loop", TEXT), DOCUMENT).assembly == DOCUMENT


# Two kept labels and an address computed from a made-up one.
NAMES = Assembly("ab" * 32, (
    "\t.local first_loop\n\t.local last_loop\n\t.text\nfirst:\n",
    KernelBody("first", (
        Line("s_getpc_b64 s[4:5]"),
        Line("s_add_u32 s4, s4, .L.data_0000@rel32@lo+4+(.-.L_pc_0004)", (".L_pc_0004",)),
        Line("s_cbranch_scc1 last_loop", ("first_loop",)), Line("s_cbranch_scc0 .L_00c0"),
        Line("s_nop 1", ("last_loop",)), Line("s_cbranch_vccz first_loop"),
        Line("s_endpgm", (".L_00c0",)), Line("", (".Lend_0100",)),
    )),
    "\t.size first, .Lend_0100-first\nsecond:\n",
    KernelBody("second", (Line("s_branch .L_0258"), Line("s_endpgm", (".L_0258",)))),
    "\t.size second, .-second\n\t.data\n.L.data_0000:\n\t.long .L_00c0-.\n\t.long last_loop-.\n",
))


@pytest.mark.parametrize("label", [
    "_00c0", "_pc_0004", "_0258", ".L_new", "_00c0_", "end_0100", ".data_0000", "scratch",
])
def test_a_new_label_moves_no_other(label: str) -> None:
    text = NAMES.text().replace("first_loop:\n", f"{label}:\nfirst_loop:\n")
    edited = read_edited(text, NAMES).assembly
    new = [line.labels for line in edited.body("first").lines][2][0]
    assert new.startswith(".L")
    assert f"{new}:" not in NAMES.text()
    assert edited.text().replace(f"{new}:\n", "") == NAMES.text()


@pytest.mark.parametrize(("one", "other"), [(".L_00c0", "_00c0"), (".L_0258", ".L_0258_")])
def test_two_new_labels_stay_two(one: str, other: str) -> None:
    text = NAMES.text().replace("\ts_branch .L_0258\n.L_0258:\n", (
        f"{one}x:\n\ts_nop 3\n{other}x:\n\ts_branch {one}x\n\ts_branch {other}x\n"))
    lines = read_edited(text, NAMES).assembly.body("second").lines
    assert [line.text for line in lines[1:3]] == [
        f"s_branch {lines[0].labels[0]}", f"s_branch {lines[1].labels[0]}"]
    assert lines[0].labels != lines[1].labels


def swapped(text: str) -> str:
    other = {"first_loop": "last_loop", "last_loop": "first_loop"}
    return re.sub("first_loop|last_loop", lambda match: other[match[0]], text)


def test_kept_labels_swapped_throughout_are_the_original() -> None:
    code, data = NAMES.text().split("\t.data\n")
    # As long as data names one of them it would come to mean the other.
    with pytest.raises(RebuildError, match="'last_loop' is named here"):
        read_edited(f"{swapped(code)}\t.data\n{data}", NAMES)
    plain = Assembly(NAMES.original_sha256, (
        *NAMES.blocks[:-1], "\t.size second, .-second\n"))
    assert swapped(plain.text()) != plain.text()
    assert read_edited(swapped(plain.text()), plain).assembly == plain


def test_branch_labels_swapped_in_front_of_the_code_only_are_an_edit() -> None:
    text = re.sub("^(first|last)_loop:", lambda m: swapped(m[0]), NAMES.text(), flags=re.MULTILINE)
    lines = read_edited(text, NAMES).assembly.body("first").lines
    assert [line.labels for line in lines[2:5:2]] == [("last_loop",), ("first_loop",)]
    assert [line.text for line in lines] == [
        line.text for block in NAMES.blocks[1:2] if isinstance(block, KernelBody)
        for line in block.lines]


@pytest.mark.parametrize(("old", "new", "words"), [
    (".L_00c0:\n", "", ["line 24", "'.L_00c0' is not defined"]),
    (".L_0258:\n", "", ["line 19", "'.L_0258' is not defined"]),
    (".Lend_0100:\n", "", ["line 16", "'.Lend_0100' is not defined"]),
    (".L_0258:\n", ".L_0258:\n.L_00c0:\n", ["line 21", "'.L_00c0'", "line 14"]),
    (".L_0258:\n", "first:\n.L_0258:\n", ["line 20", "'first'", "line 4"]),
    ("\ts_nop 1\n", "$x:\n\ts_nop 1\n", ["line 12", "'$x'", "'$'"]),
    ("\ts_nop 1\n", "\ts_branch $x\n", ["line 12", "'s_branch $x'", "'$'"]),
])
def test_names_are_refused_with_their_line(old: str, new: str, words: list[str]) -> None:
    assert NAMES.text().count(old) == 1
    with pytest.raises(RebuildError) as caught:
        read_edited(NAMES.text().replace(old, new), NAMES)
    for word in words:
        assert word in str(caught.value)


@pytest.mark.parametrize("character", "\r\v\f\0\x1b\x1e\x85\u2028\u2029")
@pytest.mark.parametrize("place", ["\ts_nop{} 0", "\ts_nop 0 // {} s_nop 1"])
def test_what_is_a_line_end_only_to_some_is_refused(character: str, place: str) -> None:
    text = TEXT.replace("\ts_nop 0", place.format(character))
    with pytest.raises(RebuildError, match=f"^line 17: .*U\\+{ord(character):04X}"):
        read_edited(text, DOCUMENT)


@pytest.mark.parametrize("space", "\xa0\u2003\u3000")
def test_only_the_assemblers_spaces_are_spaces(space: str) -> None:
    with pytest.raises(RebuildError, match=r"^line 17: "):
        read_edited(TEXT.replace("\ts_nop 0", f"\ts_nop{space}0"), DOCUMENT)


@pytest.mark.parametrize(("text", "words"), [
    ("\ufeff" + TEXT, "byte order mark"), (TEXT.replace("\n", "\r"), "carriage returns"),
])
def test_what_an_editor_may_save_otherwise_is_named(text: str, words: str) -> None:
    with pytest.raises(RebuildError, match=words):
        read_edited(text, DOCUMENT)


@pytest.mark.parametrize("piece", ["/*", '"', '"\\', "'", "/* ", "\n/*", " \t", "x:", "/**/", "\n"])
def test_time_grows_with_the_length(piece: str) -> None:
    """Two million characters, of which a scan that starts over at each would never be done."""
    text = TEXT.replace("\ts_nop 0\n", piece * (2_000_000 // len(piece)))
    with contextlib.suppress(RebuildError):
        read_edited(text, DOCUMENT)


def test_an_open_comment_is_named() -> None:
    with pytest.raises(RebuildError, match=r"^line 17: the comment '/\* open' has no end"):
        read_edited(TEXT.replace("\ts_nop 0\n", "/* open\n\ts_nop 0\n"), DOCUMENT)


def test_sizes_are_ascii_digits() -> None:
    old = Assembly("ab" * 32, (
        "first:\n", FIRST, ".amdhsa_kernel first\n.amdhsa_group_segment_fixed_size 0\n"))
    assert read_edited(old.text().replace("size 0", "size 128"), old).lds_bytes == {"first": 128}
    with pytest.raises(RebuildError, match="fixed_size"):
        read_edited(old.text().replace("size 0", "size \u0661\u0662\u0668"), old)


@pytest.mark.parametrize(("size", "value"), [
    ("0x8000", 32768), ("0X8000", 32768), ("32768", 32768), ("0x0", 0), ("032768", None),
    ("32*1024", None), ("0x", None), ("-1", None), ("0x1FFFFFFFF", None), ("32768 1", None),
])
def test_sizes_are_numbers_of_the_assembler(size: str, value: int | None) -> None:
    line = ".amdhsa_group_segment_fixed_size"
    old = Assembly("ab" * 32, ("first:\n", FIRST, f".amdhsa_kernel first\n{line} 256\n"))
    text = old.text().replace(f"{line} 256", f"{line} {size}")
    if value is None:
        with pytest.raises(RebuildError, match="decimal number or a hexadecimal"):
            read_edited(text, old)
    else:
        assert read_edited(text, old).lds_bytes == {"first": value}


@pytest.mark.parametrize("segment", ["group", "private"])
def test_metadata_has_the_sizes_of_its_own_kernel(segment: str) -> None:
    size = f"{segment}_segment_fixed_size"
    kernels = ("first", "second", "odd name.kd")
    directives = "".join(f"\t.amdhsa_kernel {k}\n\t\t.amdhsa_{size} 0\n" for k in kernels)
    notes = metadata_yaml({"amdhsa.kernels": [
        {f".{size}": 0, ".name": k, ".symbol": f"{k}.kd", ".vgpr_count": 8} for k in kernels]})
    old = Assembly("ab" * 32, (
        "first:\n", FIRST, f"{directives}\t.amdgpu_metadata\n{notes}\t.end_amdgpu_metadata\n"))
    key = f"'.{size}': "

    def changed(kernel: int, metadata: int, value: str) -> str:
        """The text with a directive of 1024 and a metadata entry of some other value."""
        head, _, tail = old.text().partition("\t.amdgpu_metadata\n")
        declared = f".amdhsa_kernel {kernels[kernel]}\n\t\t.amdhsa_{size} "
        parts = tail.split(f"{key}0")
        parts[metadata] += f"{key}{value}"
        joined = "".join(part if i == metadata or i == len(parts) - 1 else f"{part}{key}0"
                         for i, part in enumerate(parts))
        return head.replace(f"{declared}0", f"{declared}1024") + "\t.amdgpu_metadata\n" + joined

    for kernel, name in enumerate(kernels[:2]):
        for metadata, other in enumerate(kernels):
            for value in ("1024", "0x400", "512"):
                text = changed(kernel, metadata, value)
                if kernel == metadata and value != "512":
                    found = read_edited(text, old)
                    assert (found.lds_bytes or found.scratch_bytes) == {name: 1024}
                else:
                    with pytest.raises(RebuildError, match=f"in the directives of '{other}'"):
                        read_edited(text, old)


def test_line_numbers_are_the_edited_texts() -> None:
    text = "\n\n" + TEXT.replace("kept:", "// more\nkept:").replace(
        "\ts_endpgm", "\tv_mov_b32_e32 v1, v2\n\ts_endpgm", 1)
    edited = read_edited(text, DOCUMENT)
    produced, wanted = edited.assembly.text().split("\n"), text.split("\n")
    assert len(edited.numbers) == len(produced) - 1
    numbered = [(line, wanted[n - 1]) for line, n in zip(produced, edited.numbers, strict=False)
                if n]
    assert len(numbered) == len(FIRST.lines) + len(SECOND.lines) + 3
    assert all(a == b for a, b in numbered)


@pytest.mark.parametrize(("old", "new", "words"), [
    ("gfx942", "gfx950", ["line 1", "gfx950"]),
    ("\t.size first, .-first\n", "", [".size first"]),
    ("kept:\n", "", ["kept", "symbol"]),
    ("kept:\n", "kept:\nkept:\n", ["kept", "line 6", "line 7"]),
    (".L_0010:\n", ".L_0010:\nkept:\n", ["kept"]),
    ("\t.local kept\n", "", ["line 2", ".text"]),
    ("\t.local kept\n", "\t.local other\n", ["kept"]),
    ("\ts_nop 0\n", "\t.incbin \"/etc/passwd\"\n", ["line 17", ".incbin"]),
    ("\ts_nop 0\n", "\t.include \"x\"\n", [".include"]),
    ("\ts_nop 0\n", "\t.macro m\n", [".macro"]),
    ("\ts_nop 0\n", "\t.long 0\n", [".long"]),
    ("\ts_nop 0\n", "\ts_getpc_b64 s[2:3]\n", ["s_getpc_b64", "code addresses"]),
    ("\ts_nop 0\n", "\ts_branch kept\n", ["line 17", "kept"]),
    ("\ts_nop 0\n", "\tx = 1\n", ["x = 1"]),
    ("\ts_nop 0\n", "\t/* open\n", ["/* open"]),
    ("\t.end_amdgpu_metadata\n", "\t.end_amdgpu_metadata\n\ts_nop 0\n", ["s_nop 0", "behind"]),
    ("\t.end_amdgpu_metadata\n", "", ["ends", ".end_amdgpu_metadata"]),
])
def test_what_may_not_change_is_named_with_its_line(old: str, new: str, words: list[str]) -> None:
    assert TEXT.count(old) >= 1
    with pytest.raises(RebuildError) as caught:
        read_edited(TEXT.replace(old, new, 1), DOCUMENT)
    for word in words:
        assert word in str(caught.value)
    assert "\n" not in str(caught.value)


PADDED = Assembly("ab" * 32, (
    "first:\n",
    KernelBody("first", (
        Line("s_branch .L_0100"), Line("s_nop 0", padding=".p2align 8"),
        Line("s_nop 0", padding=".p2align 8"), Line("s_nop 1", (".L_0100",)),
        Line("v_mfma_ld_scale_b32 v0, v1", encoding=Encoding(0x6000)), Line("s_endpgm"),
    )),
    "\t.size first, .-first\n",
))


def test_padding_and_encodings_survive_an_edit() -> None:
    text = PADDED.text()
    assert text.count("s_nop 0") == 0
    assert read_edited(text, PADDED).assembly == PADDED
    lines = read_edited(text.replace("v0, v1 ", "v0, v3 ").replace(
        "\ts_branch", "\ts_nop 7\n\ts_branch"), PADDED).assembly.body("first").lines
    assert [line.padding for line in lines] == ["", "", ".p2align 8", ".p2align 8", "", "", ""]
    assert lines[-2] == Line("v_mfma_ld_scale_b32 v0, v3", encoding=Encoding(0x6000))


@pytest.mark.parametrize(("old", "new", "words"), [
    ("\t.p2align 8\n", "", [".p2align 8", "missing"]),
    ("\t.p2align 8\n", "\t.p2align 8\n\t.p2align 8\n", ["line 4", ".p2align 8"]),
    ("\t.p2align 8\n", "\t.p2align 9\n", [".p2align 9"]),
    ("|0x6000", "|0x7000", ["line 6", "|0x7000"]),
    ("s_nop 1\n", "s_nop 1 // enc: |0x6000\n", ["line 5", "|0x6000"]),
])
def test_padding_and_encodings_are_the_originals(old: str, new: str, words: list[str]) -> None:
    assert old in PADDED.text()
    with pytest.raises(RebuildError) as caught:
        read_edited(PADDED.text().replace(old, new), PADDED)
    for word in words:
        assert word in str(caught.value)


def test_text_of_another_object() -> None:
    with pytest.raises(RebuildError, match=r"cdcd.*abab"):
        read_edited(header("x", "cd" * 32) + TEXT, DOCUMENT)


def test_real_object_unedited(layer_norm: CodeObject) -> None:
    assembly = recover(layer_norm)
    assert read_edited(assembly.text(), assembly).assembly == assembly


@settings(deadline=None)
@given(st.lists(st.tuples(st.integers(0, len(TEXT)), st.text(max_size=12))), st.data())
def test_any_text_gives_an_assembly_or_one_sentence(
    insertions: list[tuple[int, str]], data: st.DataObject
) -> None:
    text = TEXT
    for position, inserted in insertions:
        text = text[:position] + inserted + text[position + data.draw(st.integers(0, 3)):]
    try:
        edited = read_edited(text, DOCUMENT)
    except AsmEvoError:
        return
    # Nothing but the bodies can have changed.
    assert [b for b in edited.assembly.blocks if isinstance(b, str)] == [
        b for b in DOCUMENT.blocks if isinstance(b, str)]
    assert edited.assembly.text().count("\n") == len(edited.numbers)
