"""Both versions can be read back from the rows, and nothing is called what it is not."""

from __future__ import annotations

import itertools
import random
from collections import Counter

import pytest

from asmevo.isa.program import Program
from asmevo.report.assembly_diff import Kind, Row, comparable, compared, counts, labels, parts
from asmevo.report.marked_assembly import differing, marked, tokens

WORDS = ("v_add_f32_e32 v{}, v{}, v1", "s_waitcnt vmcnt({})", "v_mul_f32_e32 v{}, 2.0, v{}",
         "s_nop {}", "global_load_dword v{}, v[{}:9], off")


def versions(seed: int, length: int = 120) -> tuple[list[str], list[str]]:
    """A version and one with lines moved, changed, taken out and put in."""
    chance = random.Random(seed)

    def line() -> str:
        return chance.choice(WORDS).format(chance.randrange(30), chance.randrange(9))

    old = [line() for _ in range(length)]
    new = list(old)
    for _ in range(chance.randrange(12)):
        at = chance.randrange(len(new))
        match chance.randrange(4):
            case 0:
                new.insert(chance.randrange(len(new)), new.pop(at))
            case 1:
                new[at] = line()
            case 2:
                del new[at]
            case 3:
                new.insert(at, line())
    return old, new


def checked(old: list[str], new: list[str]) -> tuple[Row, ...]:
    rows = compared(old, new)
    assert [row.old.index for row in rows if row.old] == list(range(len(old)))
    assert [row.new.index for row in rows if row.new] == list(range(len(new)))
    for row in rows:
        assert row.old or row.new
        for half, texts, others in ((row.old, old, new), (row.new, new, old)):
            if half is not None and half.kind is Kind.MOVED:
                assert half.other is not None
                assert texts[half.index] == others[half.other]
        if row.old and row.new:
            left, right = old[row.old.index], new[row.new.index]
            if Kind.SAME in (row.old.kind, row.new.kind):
                assert (row.old.kind, row.new.kind) == (Kind.SAME, Kind.SAME)
                assert left == right
            if Kind.CHANGED in (row.old.kind, row.new.kind):
                assert row.old.kind is row.new.kind
                assert left != right
                assert left.split()[0] == right.split()[0]
    # A line that is on both sides is never called gone or new.
    gone = Counter(old[r.old.index] for r in rows if r.old and r.old.kind is Kind.GONE)
    added = Counter(new[r.new.index] for r in rows if r.new and r.new.kind is Kind.NEW)
    assert not gone & added
    return rows


@pytest.mark.parametrize("seed", range(40))
def test_rows_are_both_versions(seed: int) -> None:
    old, new = versions(seed)
    rows = checked(old, new)
    assert counts(rows)[Kind.SAME] >= 120 - 30


@pytest.mark.parametrize(("old", "new"), [
    ([], []), (["a"], []), ([], ["a"]), (["a"], ["a"]), (["a 1"], ["a 2"]), (["a"] * 9, ["a"] * 5),
    (["a", "b"], ["b", "a"])])
def test_small_ones(old: list[str], new: list[str]) -> None:
    checked(old, new)


def test_a_reordered_block_is_moved_not_rewritten() -> None:
    old = [f"v_add_u32_e32 v{n}, v{n}, v0" for n in range(50)]
    new = old[:10] + old[20:30] + old[10:20] + old[30:]
    assert counts(checked(old, new)) == Counter({Kind.SAME: 40, Kind.MOVED: 10})


def test_long_ones_take_little_time() -> None:
    old = [f"v_fma_f32 v{n % 250}, v{n % 7}, v{n % 11}, v{n % 13}" for n in range(30_000)]
    new = [*old[:15_000], "s_nop 0", *old[15_007:]]
    assert counts(checked(old, new))[Kind.SAME] >= 29_900


@pytest.mark.parametrize("seed", range(10))
def test_parts_are_all_rows(seed: int) -> None:
    rows = compared(*versions(seed))
    found = list(parts(rows))
    assert tuple(row for part in found for row in part.rows) == rows
    for part in found:
        assert part.changed is not all(row.same for row in part.rows)
        if not part.changed and len(found) > 1:
            assert len(part.rows) >= 6
    assert all(one.changed is not other.changed
               for one, other in itertools.pairwise(found))


def test_branches_are_compared_by_label(program: Program) -> None:
    texts = comparable(program)
    assert texts[10] == "s_cbranch_scc1 L0"
    assert labels(program) == {2: "L0"}
    assert [texts[n] for n in range(12) if n != 10] == [
        program.instructions[n].text for n in range(12) if n != 10]


@pytest.mark.parametrize("line", [
    "v_mfma_f32_16x16x16_f16 v[16:19], v[4:5], a[8:9], v[16:19] cbsz:1", "s_waitcnt vmcnt(0)",
    "buffer_load_dwordx4 v[48:51], v212, s[16:19], 0 offen ; <x>", "", "s_cbranch_scc1 L12",
    "v_add_f32_e32 v1, -0.5, v2", ".long 0xdeadbeef", "<script>&"])
def test_marks_keep_the_text(line: str) -> None:
    assert "".join(text for _, text in tokens(line)) == line
    assert marked(line).striptags().split() == line.replace("<x>", "<x>").split()


def test_marks_name_what_a_part_is() -> None:
    kinds = {text: kind for kind, text in tokens("ds_read_b128 v[4:7], v9 offset:0x10 L3 vcc_lo")}
    assert kinds["ds_read_b128"] == "m"
    assert (kinds["v[4:7]"], kinds["v9"], kinds["vcc_lo"]) == ("r", "r", "r")
    assert (kinds["0x10"], kinds["L3"], kinds["offset"]) == ("n", "l", "w")


def test_what_differs_in_a_line() -> None:
    old, new = "v_add_f32_e32 v1, v2, v3", "v_add_f32_e32 v1, v9, v3"
    left, right = differing(old, new)
    assert [t for (_, t), d in zip(tokens(old), left, strict=True) if d] == ["v2"]
    assert [t for (_, t), d in zip(tokens(new), right, strict=True) if d] == ["v9"]
    assert "<b>" in marked(new, right)
