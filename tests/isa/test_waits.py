"""Outstanding memory operations: hand-written cases, a path simulator, production kernels."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from asmevo.isa.cfg import Cfg
from asmevo.isa.instruction import Unit, WaitCount
from asmevo.isa.program import Program
from asmevo.isa.violation import Violation
from asmevo.isa.waits import awaited, loosest_wait, loosest_waits, missing_waits, outstanding

Write = Callable[[str], Program]
Pair = tuple[str, int, int]


def _pairs(violations: tuple[Violation, ...]) -> set[Pair]:
    return {(v.kind, v.producer, v.consumer) for v in violations}


LOAD = "global_load_dword v{}, v[8:9], off"

CASES = {
    "read of a pending load": (
        f"{LOAD.format(0)}\n v_mov_b32_e32 v1, v0\n s_endpgm", {("missing-vmcnt", 0, 1)}),
    "overwrite of a pending load": (
        f"{LOAD.format(0)}\n v_mov_b32_e32 v0, v1\n s_endpgm", {("missing-vmcnt", 0, 1)}),
    "a sufficient wait": (
        f"{LOAD.format(0)}\n s_waitcnt vmcnt(0)\n v_mov_b32_e32 v1, v0\n s_endpgm", set()),
    "the wrong counter": (
        f"{LOAD.format(0)}\n s_waitcnt lgkmcnt(0)\n v_mov_b32_e32 v1, v0\n s_endpgm",
        {("missing-vmcnt", 0, 2)}),
    "younger operations count": (
        f"{LOAD.format(0)}\n {LOAD.format(1)}\n s_waitcnt vmcnt(1)\n"
        " v_mov_b32_e32 v2, v0\n v_mov_b32_e32 v3, v1\n s_endpgm", {("missing-vmcnt", 1, 4)}),
    "stores count in vmcnt": (
        f"{LOAD.format(0)}\n global_store_dword v[8:9], v4, off\n s_waitcnt vmcnt(1)\n"
        " v_mov_b32_e32 v2, v0\n s_endpgm", set()),
    "two loads of one kind write in order": (
        f"{LOAD.format(0)}\n {LOAD.format(0)}\n s_waitcnt vmcnt(0)\n s_endpgm", set()),
    "loads of two kinds do not": (
        f"{LOAD.format(0)}\n ds_read_b32 v0, v1\n s_endpgm", {("missing-vmcnt", 0, 1)}),
    "a store's data may be a pending load": (
        f"{LOAD.format(0)}\n global_store_dword v[8:9], v0, off\n s_endpgm",
        {("missing-vmcnt", 0, 1)}),
    "LDS returns in order": (
        "ds_read_b32 v0, v4\n ds_read_b32 v1, v4\n s_waitcnt lgkmcnt(1)\n"
        " v_mov_b32_e32 v2, v0\n s_endpgm", set()),
    "scalar loads return out of order": (
        "s_load_dword s0, s[2:3], 0x0\n s_load_dword s1, s[2:3], 0x4\n s_waitcnt lgkmcnt(1)\n"
        " s_mov_b32 s5, s0\n s_endpgm", {("missing-lgkmcnt", 0, 3)}),
    "zero waits for scalar loads": (
        "s_load_dword s0, s[2:3], 0x0\n s_waitcnt lgkmcnt(0)\n s_mov_b32 s5, s0\n s_endpgm", set()),
    "scalar loads do not stand in for LDS": (
        "ds_read_b32 v0, v4\n s_load_dword s0, s[2:3], 0x0\n s_waitcnt lgkmcnt(1)\n"
        " v_mov_b32_e32 v2, v0\n s_endpgm", {("missing-lgkmcnt", 0, 3)}),
    "a flat load needs both counters": (
        "flat_load_dword v0, v[2:3]\n s_waitcnt vmcnt(0)\n v_mov_b32_e32 v1, v0\n s_endpgm",
        {("missing-lgkmcnt", 0, 2)}),
    "a permute is an LDS operation": (
        "ds_bpermute_b32 v0, v1, v2\n v_mov_b32_e32 v3, v0\n s_endpgm",
        {("missing-lgkmcnt", 0, 1)}),
    "an atomic that returns nothing": (
        "global_atomic_add v[2:3], v0, off\n v_mov_b32_e32 v0, 0\n s_endpgm", set()),
    "an atomic that returns": (
        "global_atomic_add v1, v[2:3], v0, off sc0\n v_mov_b32_e32 v2, v1\n s_endpgm",
        {("missing-vmcnt", 0, 1)}),
    "LDS written before a barrier": (
        "ds_write_b32 v0, v1\n s_barrier\n s_endpgm", {("missing-lgkmcnt-barrier", 0, 1)}),
    "LDS written and waited for": (
        "ds_write_b32 v0, v1\n s_waitcnt lgkmcnt(0)\n s_barrier\n s_endpgm", set()),
    "a load to LDS before a barrier": (
        "buffer_load_dword v0, s[4:7], 0 offen lds\n s_waitcnt lgkmcnt(0)\n s_barrier\n s_endpgm",
        {("missing-vmcnt-barrier", 0, 2)}),
    "an LDS read at a barrier": ("ds_read_b32 v0, v1\n s_barrier\n s_endpgm", set()),
    "a wait on one path only": (
        f"{LOAD.format(0)}\n s_cbranch_scc0 join\n s_waitcnt vmcnt(0)\n join:\n"
        " v_mov_b32_e32 v1, v0\n s_endpgm", {("missing-vmcnt", 0, 3)}),
    "the path with fewer younger loads decides": (
        f"{LOAD.format(0)}\n s_cbranch_scc0 join\n {LOAD.format(1)}\n join:\n s_waitcnt vmcnt(1)\n"
        " v_mov_b32_e32 v2, v0\n s_endpgm", {("missing-vmcnt", 0, 4)}),
    "a load pending around a loop": (
        f"again:\n v_mov_b32_e32 v1, v0\n {LOAD.format(0)}\n s_cbranch_scc0 again\n s_endpgm",
        {("missing-vmcnt", 1, 0)}),
    "a skipped load does not move others back": (
        f"{LOAD.format(0)}\n s_setvskip s0, 0\n {LOAD.format(1)}\n s_setvskip 0, 0\n"
        " s_waitcnt vmcnt(1)\n v_mov_b32_e32 v2, v0\n s_endpgm", {("missing-vmcnt", 0, 5)}),
    "loads of one region are skipped together": (
        f"s_setvskip s0, 0\n {LOAD.format(0)}\n {LOAD.format(1)}\n s_waitcnt vmcnt(1)\n"
        " v_mov_b32_e32 v2, v0\n s_setvskip 0, 0\n s_endpgm", set()),
    "loads of two regions are not": (
        f"s_setvskip s0, 0\n {LOAD.format(0)}\n s_setvskip s0, 1\n {LOAD.format(1)}\n"
        " s_waitcnt vmcnt(1)\n v_mov_b32_e32 v2, v0\n s_setvskip 0, 0\n s_endpgm",
        {("missing-vmcnt", 1, 5)}),
    "unreachable code": (f"s_endpgm\n {LOAD.format(0)}\n v_mov_b32_e32 v1, v0\n s_endpgm", set()),
}


@pytest.mark.parametrize("case", CASES)
def test_missing_waits(write: Write, case: str) -> None:
    text, expected = CASES[case]
    assert _pairs(missing_waits(write(text))) == expected


def test_the_needed_bound_is_the_loosest_that_would_do(write: Write) -> None:
    loads = "\n".join(LOAD.format(n) for n in (0, 1, 2, 3))
    (violation,) = missing_waits(write(f"{loads}\n v_mov_b32_e32 v4, v1\n s_endpgm"))
    assert (violation.needed, violation.found) == (2, 63)


def test_a_full_counter_completes_the_oldest(write: Write) -> None:
    def after(younger: int) -> Program:
        lines = [LOAD.format(0), *[LOAD.format(1)] * younger, "v_mov_b32_e32 v2, v0", "s_endpgm"]
        return write("\n".join(lines))

    assert missing_waits(after(63)) == ()
    assert _pairs(missing_waits(after(62))) == {("missing-vmcnt", 0, 63)}


# --- An independent model: every path is walked with explicit queues of operations in flight. ---

_LINES = st.one_of(
    st.integers(0, 2).map(lambda n: LOAD.format(n)),
    st.integers(0, 2).map(lambda n: f"global_store_dword v[8:9], v{n}, off"),
    st.integers(0, 2).map(lambda n: f"ds_read_b32 v{n}, v7"),
    st.just("ds_write_b32 v7, v6"),
    st.integers(0, 1).map(lambda n: f"s_load_dword s{n}, s[8:9], 0x0"),
    st.integers(0, 2).map(lambda n: f"v_mov_b32_e32 v5, v{n}"),
    st.integers(0, 2).map(lambda n: f"v_mov_b32_e32 v{n}, v5"),
    st.integers(0, 1).map(lambda n: f"s_mov_b32 s5, s{n}"),
    st.just("s_barrier"),
    st.integers(0, 3).map(lambda n: f"s_waitcnt vmcnt({n})"),
    st.integers(0, 3).map(lambda n: f"s_waitcnt lgkmcnt({n})"),
    st.tuples(st.integers(0, 3), st.integers(0, 3)).map(
        lambda n: f"s_waitcnt vmcnt({n[0]}) lgkmcnt({n[1]})"),
)
_BRANCHES = st.integers(0, 9).map(lambda n: f"s_cbranch_scc0 l{n}")


def _program(lines: list[str]) -> Program:
    """``lN`` stands for line N, or for the final ``s_endpgm``."""
    rows = []
    for index, line in enumerate([*lines, "s_endpgm"]):
        head, found, label = line.partition(" l")
        if found and label.isdigit():
            line = f"{head} {min(int(label), len(lines)) - index - 1}"
        rows.append((4 * index, 4, line))
    return Program.from_disassembly(rows, {})


Queues = tuple[tuple[int, ...], tuple[int, ...], frozenset[int]]


def _walk(program: Program) -> set[Pair]:
    """Simulate all paths: queues of vector, LDS and scalar operations, slowest possible memory."""
    cfg = Cfg.of(program)
    found: set[Pair] = set()
    seen: set[tuple[int, Queues]] = set()
    frontier: list[tuple[int, Queues]] = [(0, ((), (), frozenset()))]
    for _ in range(2 * len(program) + 1):
        following: list[tuple[int, Queues]] = []
        for index, queues in frontier:
            if (index, queues) not in seen:
                seen.add((index, queues))
                found |= set(_conflicts(program, index, queues))
                after = _after(program, index, queues)
                following += [(n, after) for n in cfg.next_indices(index)]
        frontier = following
    return found


def _conflicts(program: Program, index: int, queues: Queues) -> Iterator[Pair]:
    instruction = program.instructions[index]
    vector, lds, scalar = queues
    for counter, queue, unit in (("vmcnt", vector, Unit.VMEM), ("lgkmcnt", lds, Unit.LDS),
                                 ("lgkmcnt", tuple(scalar), None)):
        for producer in queue:
            operation = program.instructions[producer]
            if instruction.unit is Unit.BARRIER:
                if operation.is_store:
                    yield f"missing-{counter}-barrier", producer, index
                continue
            touched = instruction.reads
            if instruction.unit is not unit:
                touched |= instruction.writes
            if operation.writes & touched:
                yield f"missing-{counter}", producer, index


def _after(program: Program, index: int, queues: Queues) -> Queues:
    instruction = program.instructions[index]
    vector, lds, scalar = queues
    if instruction.wait is not None:
        vmcnt, lgkmcnt = instruction.wait.vmcnt, instruction.wait.lgkmcnt
        if vmcnt is not None:
            vector = vector[len(vector) - min(vmcnt, len(vector)):]
        if lgkmcnt is not None:
            lds = lds[len(lds) - min(lgkmcnt, len(lds)):]
            scalar = scalar if lgkmcnt else frozenset()
    elif instruction.unit is Unit.VMEM:
        vector = (*vector, index)[-63:]
    elif instruction.unit is Unit.LDS:
        lds = (*lds, index)[-15:]
    elif instruction.unit is Unit.SMEM:
        scalar |= {index}
    return vector, lds, scalar


@settings(max_examples=300, deadline=None)
@given(st.lists(st.one_of(_LINES, _LINES, _LINES, _BRANCHES), min_size=1, max_size=12))
def test_missing_waits_are_those_of_some_path(lines: list[str]) -> None:
    program = _program(lines)
    assert _pairs(missing_waits(program)) == _walk(program)


@settings(max_examples=200, deadline=None)
@given(st.lists(_LINES, max_size=12))
def test_a_wait_is_for_what_it_takes_out_of_flight(lines: list[str]) -> None:
    program = _program(lines)
    queues: Queues = ((), (), frozenset())
    expected = {}
    for index in range(len(lines)):
        before = {k for queue in queues for k in queue}
        queues = _after(program, index, queues)
        if program.instructions[index].wait is not None:
            expected[index] = tuple(sorted(before - {k for queue in queues for k in queue}))
    assert awaited(program) == expected


def test_a_wait_in_a_loop_is_for_the_round_before_as_well(write: Write) -> None:
    program = write(f"""
        {LOAD.format(0)}
        top:
        s_waitcnt vmcnt(0)
        v_mov_b32_e32 v1, v0
        {LOAD.format(0)}
        s_cbranch_scc1 top
        s_endpgm""")
    assert awaited(program) == {1: (0, 3)}


def _with_wait(lines: list[str], index: int, wait: WaitCount) -> set[Pair]:
    counters = [f"{name}({value})" for name, value in
                (("vmcnt", wait.vmcnt), ("lgkmcnt", wait.lgkmcnt)) if value is not None]
    changed = lines.copy()
    changed[index] = f"s_waitcnt {' '.join(counters)}" if counters else "s_nop 0"
    return _walk(_program(changed))


@settings(max_examples=200, deadline=None)
@given(st.lists(st.one_of(_LINES, _LINES, _BRANCHES), min_size=1, max_size=12))
def test_the_loosest_wait_adds_no_violation(lines: list[str]) -> None:
    program = _program(lines)
    known = _walk(program)
    for index, instruction in enumerate(program.instructions):
        if instruction.wait is not None:
            assert _with_wait(lines, index, loosest_wait(program, index)) <= known


@settings(max_examples=300, deadline=None)
@given(st.lists(st.one_of(_LINES, _LINES, _BRANCHES), min_size=1, max_size=12))
def test_several_waits_are_as_loose_as_one_after_the_other(lines: list[str]) -> None:
    program = _program(lines)
    waits = [k for k, i in reversed(list(enumerate(program.instructions))) if i.wait is not None]
    one_by_one: dict[int, WaitCount] = {}
    edited = program
    for index in waits:
        loosest = one_by_one[index] = loosest_wait(edited, index)
        edited = _edited(edited, index, _text(loosest))
    assert loosest_waits(program, waits) == one_by_one
    # What was asked about one program says nothing of the next.
    assert loosest_waits(program, waits) == one_by_one


def _text(wait: WaitCount) -> str:
    bounds = [f"{c}({b})" for c in ("vmcnt", "expcnt", "lgkmcnt")
              if (b := getattr(wait, c)) is not None]
    return "s_waitcnt " + " ".join(bounds) if bounds else "s_nop 0"


@settings(max_examples=200, deadline=None)
@given(st.lists(_LINES, min_size=1, max_size=14))
def test_a_looser_wait_adds_one_on_a_straight_line(lines: list[str]) -> None:
    program = _program(lines)
    known = _walk(program)
    for index, instruction in enumerate(program.instructions):
        if instruction.wait is None:
            continue
        found = loosest_wait(program, index)
        if found.vmcnt is not None:
            looser = WaitCount(found.vmcnt + 1, None, found.lgkmcnt)
            assert not _with_wait(lines, index, looser) <= known
        if found.lgkmcnt is not None:
            looser = WaitCount(found.vmcnt, None, found.lgkmcnt + 1)
            assert not _with_wait(lines, index, looser) <= known


def test_only_waits_can_be_loosened(write: Write) -> None:
    with pytest.raises(ValueError, match="s_waitcnt"):
        loosest_wait(write("s_endpgm"), 0)


# --- Production kernels. ---


def _edited(program: Program, index: int, text: str) -> Program:
    rows = [(program.offsets[n], program.offsets[n + 1] - program.offsets[n],
             text if n == index else i.text) for n, i in enumerate(program.instructions)]
    labels = {program.offsets[n]: name for n, name in program.labels.items()}
    return Program.from_disassembly(rows, labels)


def test_top_k_softmax_waits_for_everything(small_kernels: list[Program]) -> None:
    for program in small_kernels[1:]:
        assert missing_waits(program) == ()


def test_layer_norm_misses_waits_on_paths_it_never_takes(kernel: Callable[[str], Program]) -> None:
    """Its loop runs exactly once (s53 counts from 0 to 1), so two edges are never taken: the exit
    before the first iteration, behind which loads still look pending, and no store is in flight at
    a barrier that another wave depends on: output rows are private to the wave."""
    program = kernel("layer_norm.co")
    last = Cfg.of(program).blocks[-1]
    for violation in missing_waits(program):
        if violation.kind == "missing-vmcnt":
            assert last.start <= violation.consumer < last.end
        else:
            assert violation.kind == "missing-vmcnt-barrier"
            assert violation.producer_text.startswith("buffer_store_dwordx4")


@pytest.mark.parametrize("removed", [True, False])
def test_removing_or_loosening_a_needed_wait_is_found(
        kernel: Callable[[str], Program], removed: bool) -> None:
    checked = 0
    for name in ("layer_norm.co", "topksoftmax/topksoftmax_4x128x8.co"):
        program = kernel(name)
        known = _pairs(missing_waits(program))
        for index, instruction in enumerate(program.instructions):
            if instruction.wait is None:
                continue
            loosest = loosest_wait(program, index)
            for counter in ("vmcnt", "lgkmcnt"):
                bound = getattr(loosest, counter)
                if bound is None:
                    continue
                other = "lgkmcnt" if counter == "vmcnt" else "vmcnt"
                kept = getattr(instruction.wait, other)
                parts = [] if kept is None else [f"{other}({kept})"]
                if not removed:
                    parts.append(f"{counter}({bound + 1})")
                text = f"s_waitcnt {' '.join(parts)}" if parts else "s_nop 0"
                assert not _pairs(missing_waits(_edited(program, index, text))) <= known
                assert _pairs(missing_waits(_edited(
                    program, index, f"s_waitcnt {counter}({bound}) {other}(0)"))) <= known
                checked += 1
    assert checked >= 12


def test_what_may_be_in_flight_is_told_with_its_position() -> None:
    program = _program([
        "buffer_load_dword v1, v0, s[4:7], 0 offen", "buffer_load_dword v2, v0, s[4:7], 0 offen",
        "ds_write_b32 v0, v0", "s_endpgm"])
    found = outstanding(program, (3,))[3]
    assert {(o.index, o.counter, o.ordered, o.position, o.publishes) for o in found} == {
        (0, "vmcnt", True, 1, False), (1, "vmcnt", True, 0, False),
        (2, "lgkmcnt", True, 0, True)}
