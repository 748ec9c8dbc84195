"""Applying edits: instructions spliced, every label kept where it belongs."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from asmevo.codeobject.assembly import Assembly, Edit, EditError, KernelBody, Line

KERNEL = "k"


def document(lines: tuple[Line, ...]) -> Assembly:
    return Assembly("0" * 64, ("head\n", KernelBody(KERNEL, lines), "tail\n"))


@st.composite
def bodies(draw: st.DrawFn) -> tuple[Line, ...]:
    """Instructions ``i0, i1...`` with labels named after the instruction they stand before."""
    count = draw(st.integers(0, 12))
    counts = draw(st.lists(st.integers(0, 2), min_size=count + 1, max_size=count + 1))
    lines = [Line(f"i{i}" if i < count else "", tuple(f"L{i}_{k}" for k in range(n)))
             for i, n in enumerate(counts)]
    return tuple(lines if lines[-1].labels else lines[:-1])


@st.composite
def cases(draw: st.DrawFn) -> tuple[tuple[Line, ...], list[Edit]]:
    lines = draw(bodies())
    count = sum(1 for line in lines if line.text)
    points = sorted(draw(st.lists(st.integers(0, count), max_size=8)))
    edits = [
        Edit(KERNEL, start, stop,
             tuple(f"e{index}.{k}" for k in range(draw(st.integers(0, 3)))), "")
        for index, (start, stop) in enumerate(zip(points[::2], points[1::2], strict=False))
    ]
    return lines, draw(st.permutations(edits))


def instructions(lines: tuple[Line, ...]) -> list[str]:
    return [line.text for line in lines if line.text]


def labels(lines: tuple[Line, ...]) -> list[str]:
    return [label for line in lines for label in line.labels]


@given(cases())
def test_instructions_are_spliced(case: tuple[tuple[Line, ...], list[Edit]]) -> None:
    lines, edits = case
    expected = instructions(lines)
    # Later edits first, so that the indices of the earlier ones stay valid; an insertion goes in
    # front of what starts at the same place.
    for edit in sorted(edits, key=lambda e: (e.start, e.stop, edits.index(e)), reverse=True):
        expected[edit.start:edit.stop] = edit.lines
    assert instructions(document(lines).apply(edits).body(KERNEL).lines) == expected


@given(cases())
def test_every_label_survives_in_order(case: tuple[tuple[Line, ...], list[Edit]]) -> None:
    lines, edits = case
    assert labels(document(lines).apply(edits).body(KERNEL).lines) == labels(lines)


@given(cases())
def test_labels_stay_with_their_instruction(case: tuple[tuple[Line, ...], list[Edit]]) -> None:
    lines, edits = case
    starts = {edit.start for edit in edits}
    edited = document(lines).apply(edits).body(KERNEL).lines
    for line in edited:
        # What no edit starts at still has exactly its own labels, or those of deleted neighbours.
        if line.text.startswith("i") and int(line.text[1:]) not in starts:
            own = tuple(x for x in line.labels if x.startswith(f"L{line.text[1:]}_"))
            original = next(x for x in lines if x.text == line.text)
            assert own == original.labels


@given(cases())
def test_empty_lines_only_at_the_end(case: tuple[tuple[Line, ...], list[Edit]]) -> None:
    lines, edits = case
    assert all(line.text for line in document(lines).apply(edits).body(KERNEL).lines[:-1])


LINES = (Line("a", ("A",)), Line("b"), Line("c", ("C",)), Line("", ("END",)))


@pytest.mark.parametrize(("edit", "text"), [
    (Edit(KERNEL, 0, 0, ("x",), ""), "A:\n\tx\n\ta\n\tb\nC:\n\tc\nEND:\n"),
    (Edit(KERNEL, 2, 2, ("x", "y"), ""), "A:\n\ta\n\tb\nC:\n\tx\n\ty\n\tc\nEND:\n"),
    (Edit(KERNEL, 0, 3, (), ""), "A:\nC:\nEND:\n"),
    (Edit(KERNEL, 1, 3, ("x",), ""), "A:\n\ta\n\tx\nC:\nEND:\n"),
    (Edit(KERNEL, 0, 1, (), ""), "A:\n\tb\nC:\n\tc\nEND:\n"),
    (Edit(KERNEL, 3, 3, ("x",), ""), "A:\n\ta\n\tb\nC:\n\tc\nEND:\n\tx\n"),
])
def test_text_of_one_edit(edit: Edit, text: str) -> None:
    assert document(LINES).apply([edit]).text() == f"head\n{text}tail\n"


@pytest.mark.parametrize("edits", [
    [Edit(KERNEL, 0, 2, (), ""), Edit(KERNEL, 1, 3, (), "")],
    [Edit(KERNEL, 0, 2, (), ""), Edit(KERNEL, 1, 1, ("x",), "")],
    [Edit(KERNEL, 2, 4, (), "")],
    [Edit(KERNEL, -1, 1, (), "")],
    [Edit(KERNEL, 2, 1, (), "")],
    [Edit("other", 0, 1, (), "")],
])
def test_edit_that_does_not_fit(edits: list[Edit]) -> None:
    with pytest.raises(EditError):
        document(LINES).apply(edits)
