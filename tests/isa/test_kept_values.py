"""A candidate's values, of which those of kept code are the original's: as if all were looked at.

Random edits of real kernels: AITER's layer norm and mixture of experts, and LLVM's code for a loop
that lanes leave one by one.
"""

from __future__ import annotations

import random
import re
from collections.abc import Mapping
from dataclasses import dataclass

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from asmevo.codeobject.container import CodeObject
from asmevo.codeobject.disassemble import program
from asmevo.codeobject.entry import entry_sources
from asmevo.codeobject.source import InstalledFile
from asmevo.codeobject.toolchain import ZigToolchain
from asmevo.compiler.hip import HipSource
from asmevo.gates.argument_uses import ArgumentUses
from asmevo.gates.launch_uses import LaunchUses
from asmevo.gates.operand_uses import OperandUses
from asmevo.isa.kept_values import KeptValues
from asmevo.isa.program import Program
from asmevo.isa.registers import EXEC_HI, EXEC_LO, VGPR0, members
from asmevo.isa.value_numbers import Numbers, Taint
from asmevo.isa.values import KERNARG_POINTER, Source, Values

_REGISTER = re.compile(r"\b([vs])(\d+)\b")
_FIXED = ("s_cbranch", "s_branch", "s_endpgm", "s_setpc", "s_swappc", "s_getpc")
_KINDS = ("delete", "copy", "swap", "rename", "rename", "rename", "nop", "move", "itself", "offset",
          "wide")
# A line and the label in front of it; no line where an edit has removed it.
Line = tuple[str, str]

ENTRY = {
    0: Source(f"{KERNARG_POINTER} word 0", Taint.KERNARG),
    1: Source(f"{KERNARG_POINTER} word 1", Taint.KERNARG),
    2: Source("workgroup id x", Taint.WORKGROUP), VGPR0: Source("work-item id", Taint.WORK_ITEM),
    EXEC_LO: Source("exec", value=-1), EXEC_HI: Source("exec", value=-1),
}


@dataclass(frozen=True)
class Original:
    """A kernel with its values, as lines that can be edited."""

    lines: tuple[Line, ...]
    entry: Mapping[int, Source]
    numbers: Numbers
    values: Values
    uses: OperandUses

    @staticmethod
    def of(code: Program, entry: Mapping[int, Source]) -> Original:
        names = {target: f"L{target}" for target in code.targets if target is not None}
        lines = []
        for k, i in enumerate(code.instructions):
            target = code.targets[k]
            text = i.text if target is None else f"{i.text.rsplit(' ', 1)[0]} L{target}"
            lines.append((names.get(k, ""), text))
        numbers = Numbers()
        values = Values(written(lines), entry, numbers)
        return Original(tuple(lines), entry, numbers, values,
                        OperandUses.of(values, (), original=True))

    def kept(self, code: Program) -> KeptValues:
        return KeptValues(code, self.entry, self.numbers, self.values)


def written(lines: list[Line]) -> Program:
    rows: list[tuple[int, int, str]] = []
    labels = {}
    for label, text in lines:
        if label:
            labels[4 * len(rows)] = label
        if text:
            rows.append((4 * len(rows), 4, text))
    return Program.from_disassembly(rows, labels)


def edited(lines: tuple[Line, ...], rng: random.Random) -> list[Line]:
    """A few edits, mostly near one another; what becomes of the kernel does not matter."""
    found = list(lines)
    middle, spread = rng.randrange(len(found)), rng.choice([5, 50, len(found)])
    for _ in range(rng.choice([1, 1, 2, 3, 6])):
        at = min(max(0, middle + rng.randint(-spread, spread)), len(found) - 2)
        label, text = found[at]
        if text and not text.startswith(_FIXED):
            _edit(found, at, label, text, rng)
    return found


def _edit(found: list[Line], at: int, label: str, text: str, rng: random.Random) -> None:
    bank, source, target = rng.choice("vs"), rng.randrange(24), rng.randrange(24)
    move = "v_mov_b32_e32" if bank == "v" else "s_mov_b32"
    _, other = found[rng.randrange(len(found))]
    behind_label, behind = found[at + 1]
    match rng.choice(_KINDS):
        case "delete":
            found[at] = label, ""
        case "copy" if other and not other.startswith(_FIXED):
            found.insert(at + 1, ("", other))
        case "swap" if behind and not behind_label and not behind.startswith(_FIXED):
            found[at:at + 2] = [(label, behind), ("", text)]
        case "rename" if registers := list(_REGISTER.finditer(text)):
            one = rng.choice(registers)
            number = rng.choice([rng.randrange(16), max(0, int(one[2]) + rng.randint(-3, 3))])
            found[at] = label, f"{text[:one.start()]}{one[1]}{number}{text[one.end():]}"
        case "nop":
            found.insert(at + 1, ("", "s_nop 0"))
        case "move":
            found.insert(at + 1, ("", f"{move} {bank}{target}, {bank}{source}"))
        case "itself":
            found.insert(at + 1, ("", f"{move} {bank}{source}, {bank}{source}"))
        case "offset":
            found[at] = label, re.sub(
                r"offset:(\d+)", lambda m: f"offset:{int(m[1]) + 16}", text)
        case "wide":
            found[at] = label, text.replace("_e32 ", "_e64 ")


def assert_same(original: Original, code: Program) -> int:
    """The values that both ways find are the same; gives how many instructions were kept."""
    kept = original.kept(code)
    full = Values(code, original.entry, original.numbers)
    for index, i in enumerate(code.instructions):
        if not full.cfg.reachable(index):
            continue
        for register in members(i.reads):
            assert kept.before(index, register) == full.before(index, register), i.text
            assert kept.exact_before(index, register) == full.exact_before(index, register), i.text
            assert kept.loaded_before(index, register) == full.loaded_before(index, register)
        for register in members(i.writes):
            assert kept.after(index, register) == full.after(index, register), i.text
            assert kept.exact_after(index, register) == full.exact_after(index, register), i.text
            assert kept.from_memory(index, register) == full.from_memory(index, register)
    assert LaunchUses.of(kept) == LaunchUses.of(full)
    assert ArgumentUses.of(kept) == ArgumentUses.of(full)
    # With the indices, in the same order.
    mine = OperandUses.of(kept, (), original=False, known=original.uses)
    assert repr(mine) == repr(OperandUses.of(full, (), original=False))
    return len(kept.kept)


def _of_object(data: bytes) -> Original:
    code_object = CodeObject.parse(data)
    return Original.of(program(code_object), entry_sources(code_object.kernel(None).descriptor))


@pytest.fixture(scope="module")
def layer_norm() -> Original:
    return _of_object(InstalledFile("amd-aiter", "aiter_meta/hsa/gfx942/layer_norm.co").read())


@pytest.fixture(scope="module")
def experts() -> Original:
    """4,411 instructions."""
    return _of_object(InstalledFile(
        "amd-aiter", "aiter_meta/hsa/gfx942/fmoe_fp8_blockscale_g1u1_subGU_256.co").read())


@pytest.fixture(scope="module")
def gelu(tmp_path_factory: pytest.TempPathFactory) -> Original:
    return _of_object(HipSource("level1/gelu.hip", ZigToolchain(), "asmevo.kernelbench").read())


@settings(max_examples=25, deadline=None)
@given(seed=st.integers(0, 1 << 32))
def test_random_edits_of_a_layer_norm(layer_norm: Original, seed: int) -> None:
    rng = random.Random(seed)
    assert_same(layer_norm, written(edited(layer_norm.lines, rng)))


@settings(max_examples=60, deadline=None)
@given(seed=st.integers(0, 1 << 32))
def test_random_edits_of_a_loop_that_lanes_leave(gelu: Original, seed: int) -> None:
    rng = random.Random(seed)
    assert_same(gelu, written(edited(gelu.lines, rng)))


@settings(max_examples=4, deadline=None)
@given(seed=st.integers(0, 1 << 32))
def test_random_edits_of_a_mixture_of_experts(experts: Original, seed: int) -> None:
    rng = random.Random(seed)
    assert_same(experts, written(edited(experts.lines, rng)))


def test_most_of_a_kernel_is_kept(experts: Original) -> None:
    lines = list(experts.lines)
    at = next(k for k in range(2000, len(lines)) if lines[k][1].startswith("v_mul_f32"))
    lines[at] = lines[at][0], lines[at][1].replace("_e32 ", "_e64 ")
    lines.insert(at, ("", "v_mov_b32_e32 v0, v0"))
    assert assert_same(experts, written(lines)) == len(experts.lines)


# A row of 1 KiB, halved again and again; only lanes below the argument at 0x14 store it.
SMALL = """
s_load_dwordx2 s[4:5], s[0:1], 0x0
s_load_dwordx2 s[6:7], s[0:1], 0x10
s_waitcnt lgkmcnt(0)
s_lshl_b32 s12, s2, 10
v_lshl_add_u32 v1, v0, 2, s12
global_load_dword v2, v1, s[4:5]
s_waitcnt vmcnt(0)
loop:
v_mul_f32_e32 v3, 0.5, v2
v_add_u32_e32 v4, 4, v1
s_add_u32 s6, s6, -1
s_cmp_lg_u32 s6, 0
s_cbranch_scc1 loop
v_mov_b32_e32 v6, v4
v_cmp_gt_u32_e32 vcc, s7, v0
s_and_saveexec_b64 s[8:9], vcc
global_store_dword v6, v3, s[4:5]
s_or_b64 exec, exec, s[8:9]
s_mov_b64 exec, -1
v_mov_b32_e32 v5, s6
v_add_u32_e32 v8, 1, v6
s_endpgm
"""


def changed(*edits: tuple[str, str]) -> tuple[set[str], Program]:
    """The instructions of a candidate that are not kept."""
    def lines(text: str) -> list[Line]:
        found, label = [], ""
        for line in text.strip().splitlines():
            if line.endswith(":"):
                label = line[:-1]
            else:
                found.append((label, line))
                label = ""
        return found

    candidate = SMALL
    for old, new in edits:
        assert old in candidate
        candidate = candidate.replace(old, new)
    original = Original.of(written(lines(SMALL)), ENTRY)
    code = written(lines(candidate))
    assert_same(original, code)
    kept = original.kept(code).kept
    return {i.text for k, i in enumerate(code.instructions) if k not in kept}, code


def test_what_reads_a_changed_value_is_not_kept() -> None:
    found, _ = changed(("v_lshl_add_u32 v1, v0, 2, s12", "v_lshl_add_u32 v1, v0, 3, s12"))
    assert found == {"v_lshl_add_u32 v1, v0, 3, s12", "global_load_dword v2, v1, s[4:5]",
                     "v_mul_f32_e32 v3, 0.5, v2", "v_add_u32_e32 v4, 4, v1",
                     "v_mov_b32_e32 v6, v4", "global_store_dword v6, v3, s[4:5]",
                     "v_add_u32_e32 v8, 1, v6"}


def test_a_copy_of_a_changed_value_in_other_code() -> None:
    copies = "v_mov_b32_e32 v7, v4\nv_mov_b32_e32 v6, v7"
    found, _ = changed(("v_mov_b32_e32 v6, v4", copies))
    assert found == set(copies.splitlines())
    found, _ = changed(("v_mov_b32_e32 v6, v4", copies),
                       ("v_lshl_add_u32 v1, v0, 2, s12", "v_lshl_add_u32 v1, v0, 3, s12"))
    assert "v_add_u32_e32 v8, 1, v6" in found


def test_around_a_loop() -> None:
    found, _ = changed(("s_add_u32 s6, s6, -1", "s_add_u32 s6, s6, -2"))
    assert {"s_add_u32 s6, s6, -2", "s_cmp_lg_u32 s6, 0", "v_mov_b32_e32 v5, s6"} < found
    assert not {i for i in found if i.startswith(("global", "v_cmp", "s_and"))}


@pytest.mark.parametrize(("old", "new"), [
    ("v_lshl_add_u32 v1, v0, 2, s12", "v_lshlrev_b32_e32 v1, 2, v0\nv_add_u32_e32 v1, s12, v1"),
    ("v_mul_f32_e32 v3, 0.5, v2", "v_mul_f32_e32 v3, 2.0, v2"),
    ("s_waitcnt vmcnt(0)", "v_mov_b32_e32 v1, v1\ns_waitcnt vmcnt(0)"),
    ("v_mov_b32_e32 v5, s6\n", ""),
    ("v_add_u32_e32 v4, 4, v1", "v_add_u32_e64 v4, 4, v1"),
])
def test_who_reads_the_same_value_is_kept(old: str, new: str) -> None:
    found, _ = changed((old, new))
    assert found <= set(new.splitlines())


@pytest.mark.parametrize(("old", "new"), [
    ("s_and_saveexec_b64 s[8:9], vcc", "s_and_saveexec_b64 s[10:11], vcc"),
    ("s_mov_b64 exec, -1", "s_mov_b64 exec, s[8:9]"),
    ("s_lshl_b32 s12, s2, 10", "s_mov_b32 s8, 0\ns_lshl_b32 s12, s2, 10"),
    ("s_cbranch_scc1 loop", "s_cbranch_scc0 loop"),
    ("s_waitcnt vmcnt(0)", "s_waitcnt vmcnt(0)\ns_cbranch_scc0 loop"),
])
def test_nothing_is_kept_where_lanes_or_paths_are_others(old: str, new: str) -> None:
    found, code = changed((old, new))
    assert len(found) == len({i.text for i in code.instructions})


# A value that only lanes of a mask need, and a selection by that mask, which does not look at the
# others. What is in the register in front of the stretch is another matter.
SELECTION = """
s_load_dwordx2 s[4:5], s[0:1], 0x0
s_load_dwordx2 s[6:7], s[0:1], 0x10
s_waitcnt lgkmcnt(0)
v_mov_b32_e32 v2, s6
v_cmp_gt_u32_e64 s[12:13], s7, v0
s_and_saveexec_b64 s[8:9], s[12:13]
v_mov_b32_e32 v2, s7
s_or_b64 exec, exec, s[8:9]
v_cndmask_b32_e64 v3, v2, v0, s[12:13]
v_add_u32_e32 v4, 1, v3
v_add_u32_e32 v5, 1, v0
s_endpgm
"""


def test_what_is_made_of_a_selection_whose_operand_changed_is_not_kept() -> None:
    original = Original.of(written([("", line) for line in SELECTION.strip().splitlines()]), ENTRY)
    lines = list(original.lines)
    at = next(k for k, line in enumerate(lines) if line[1] == "v_mov_b32_e32 v2, s6")
    lines.insert(at + 1, ("", "v_mov_b32_e32 v2, v2"))
    code = written(lines)
    assert_same(original, code)
    kept = original.kept(code).kept
    # The register was written, though with what it held.
    assert {i.text for k, i in enumerate(code.instructions) if k not in kept} == {
        "v_mov_b32_e32 v2, v2", "v_cndmask_b32_e64 v3, v2, v0, s[12:13]",
        "v_add_u32_e32 v4, 1, v3"}
