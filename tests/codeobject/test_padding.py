"""Filler follows an edit: a directive in the text, left out when instructions are counted."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import pytest

from asmevo.codeobject.assembly import Assembly, Edit, KernelBody, Line
from asmevo.codeobject.build import build
from asmevo.codeobject.container import CodeObject
from asmevo.codeobject.errors import RebuildError
from asmevo.codeobject.functions import functions, listing
from asmevo.codeobject.padding import instruction_rows
from asmevo.codeobject.rebuild import rebuild
from asmevo.codeobject.recover import recover
from asmevo.codeobject.toolchain import Toolchain

NOP = "s_nop 0"
BODY = KernelBody("k", (
    Line("s_endpgm", ("A",)), Line(NOP, padding=".p2align 8"), Line(NOP, padding=".p2align 8"),
    Line("s_nop 5", ("B",)), Line(NOP, padding=".p2alignl 6, 0xbf800000"),
))


def test_padding_is_one_directive() -> None:
    text = "".join(BODY.text())
    assert text == ("A:\n\ts_endpgm\n\t.p2align 8\nB:\n\ts_nop 5\n"
                    "\t.p2alignl 6, 0xbf800000\n")


def test_statements_cover_the_lines_in_order() -> None:
    statements = list(BODY.statements())
    assert [text for text, _ in statements] == [
        "s_endpgm", ".p2align 8", "s_nop 5", ".p2alignl 6, 0xbf800000"]
    assert tuple(line for _, lines in statements for line in lines) == BODY.lines


def test_an_edit_within_padding_replaces_it() -> None:
    assembly = Assembly("0" * 64, (BODY,)).apply([Edit("k", 2, 3, ("s_nop 7",), "")])
    assert assembly.text() == ("A:\n\ts_endpgm\n\t.p2align 8\n\ts_nop 7\nB:\n\ts_nop 5\n"
                               "\t.p2alignl 6, 0xbf800000\n")


@pytest.mark.parametrize("count", [0, 1, 7, 40])
def test_each_line_of_an_edited_function_has_its_row(
        triton_objects: Mapping[str, CodeObject], compile_hip: Callable[..., CodeObject],
        toolchain: Toolchain, count: int) -> None:
    for original in (triton_objects["gfx942/add"], compile_hip("multi.hip")):
        assembly = recover(original)
        for symbol in [f.symbol for f in functions(original)]:
            edit = Edit(symbol, 1, 1, ("s_nop 11",) * count, "test")
            changed = assembly.apply([edit])
            rebuilt = CodeObject.parse(build(original, changed, toolchain))
            function = next(f for f in functions(rebuilt) if f.symbol == symbol)
            rows = instruction_rows(changed.body(symbol), listing(rebuilt, function),
                                    function.entry)
            mnemonics = [line.text.split()[0] for line in changed.body(symbol).lines
                         if line.text and not line.padding]
            assert [text.split()[0] for _, _, text in rows] == mnemonics


@pytest.mark.parametrize("texts", [
    ["s_endpgm"], ["s_endpgm", "s_nop 5", "s_nop 1"], ["s_endpgm", "s_nop 5"] + [NOP] * 64,
])
def test_other_counts_are_refused(texts: list[str]) -> None:
    body = KernelBody("k", (Line("s_endpgm"), Line("s_nop 5")))
    rows = [(4 * i, 4, text) for i, text in enumerate(texts)]
    with pytest.raises(RebuildError, match="2 lines of 'k' became"):
        instruction_rows(body, rows, 0)


def test_a_prologue_may_fill_its_256_bytes_and_no_more(
        triton_objects: Mapping[str, CodeObject], toolchain: Toolchain) -> None:
    """Firmware that preloads arguments enters at a fixed distance, whatever stands in front."""
    original = triton_objects["gfx942/add"]
    symbol = original.kernel().symbol
    assembly = recover(original)
    padding = sum(1 for line in assembly.body(symbol).lines if line.padding)

    def edited(count: int) -> CodeObject:
        nops = Edit(symbol, 1, 1, (NOP,) * count, "test")
        return rebuild(original, assembly.apply([nops]), toolchain)

    full = edited(padding)
    second = [text for offset, _, text in listing(full, functions(full)[0]) if offset == 256]
    assert second == [text for offset, _, text in listing(original, functions(original)[0])
                      if offset == 256]
    with pytest.raises(RebuildError, match="second entry"):
        edited(padding + 1)
