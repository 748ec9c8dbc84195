"""Edited kernels: same interface, right targets, hostile text refused."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from asmevo.codeobject.assembly import Assembly, Edit, KernelBody, Line
from asmevo.codeobject.container import CodeObject
from asmevo.codeobject.disassemble import program, rows
from asmevo.codeobject.encoding import UNCHANGED, Encoding
from asmevo.codeobject.errors import AssemblerError, RebuildError
from asmevo.codeobject.functions import functions, listing
from asmevo.codeobject.interface import Interface, differences, outside_hash
from asmevo.codeobject.rebuild import rebuild, validate_line
from asmevo.codeobject.recover import recover
from asmevo.codeobject.resources import Allocation
from asmevo.codeobject.roundtrip import round_trip
from asmevo.codeobject.source import InstalledFile
from asmevo.codeobject.target import Target
from asmevo.codeobject.toolchain import Toolchain
from asmevo.errors import AsmEvoError
from asmevo.isa.registers import AGPR0, SGPR_LIMIT, VGPR0, members

KERNEL = "layer_norm_kernel_func"
LABELS = ("label_01B3", "label_03F6")


def edited(code_object: CodeObject, *edits: tuple[int, int, tuple[str, ...]]) -> Assembly:
    return recover(code_object).apply(
        [Edit(KERNEL, start, stop, lines, "test") for start, stop, lines in edits])


def test_no_edit_gives_the_original(layer_norm: CodeObject, toolchain: Toolchain) -> None:
    assert rebuild(layer_norm, recover(layer_norm), toolchain) == layer_norm


@pytest.mark.parametrize("position", [0, 200, 434, 435, 436, 642])
def test_insertion_keeps_branch_targets(layer_norm: CodeObject, toolchain: Toolchain,
                                        position: int) -> None:
    before = program(layer_norm)
    result = rebuild(layer_norm, edited(layer_norm, (position, position, ("s_nop 5",))), toolchain)
    after = program(result)
    texts = [i.text for i in after.instructions]
    assert texts[position] == "s_nop 5"
    for index, target in enumerate(before.targets):
        moved = index + (index >= position)
        if target is None:
            assert texts[moved] == before.instructions[index].text
            continue
        # A label in front of the insertion stays in front of it.
        assert after.targets[moved] == target + (target > position)
    kernel = layer_norm.kernel()
    assert result.kernel().size == kernel.size + 4
    assert not differences(Interface.of(layer_norm, kernel), Interface.of(result, result.kernel()))
    assert outside_hash(result, result.kernel()) == outside_hash(layer_norm, kernel)


def test_several_edits_at_once(layer_norm: CodeObject, toolchain: Toolchain) -> None:
    assembly = edited(layer_norm, (3, 3, ("s_nop 0",)), (18, 21, ()), (100, 101, ("s_nop 1",) * 3))
    texts = [i.text for i in program(rebuild(layer_norm, assembly, toolchain)).instructions]
    expected = [i.text for i in program(layer_norm).instructions]
    expected[100:101] = ["s_nop 1"] * 3
    expected[18:21] = []
    expected[3:3] = ["s_nop 0"]
    assert [t for t in texts if "branch" not in t] == [t for t in expected if "branch" not in t]


@st.composite
def legal_lines(draw: st.DrawFn) -> str:
    v, s = st.integers(0, 255), st.integers(0, 99)
    return draw(st.sampled_from([
        f"v_add_f32_e32 v{draw(v)}, v{draw(v)}, v{draw(v)}", f"s_mov_b32 s{draw(s)}, s{draw(s)}",
        f"v_mov_b32_e32 v{draw(st.integers(0, 249))}, 0x{draw(st.integers(100, 1 << 31)):x}",
        f"s_nop {draw(st.integers(0, 15))}", f"s_waitcnt vmcnt({draw(st.integers(0, 62))})",
        f"ds_read_b32 v{draw(v)}, v250 offset:{draw(st.integers(1, 65532))}",
        f"v_accvgpr_read_b32 v{draw(v)}, a{draw(v)}",
    ]))


@given(st.lists(st.tuples(st.integers(0, 643), st.lists(legal_lines(), min_size=1, max_size=3)),
                min_size=1, max_size=4, unique_by=lambda edit: edit[0]))
@settings(max_examples=25, deadline=None)
def test_legal_edits_decode_to_what_was_written(
        layer_norm: CodeObject, toolchain: Toolchain, insertions: list[tuple[int, list[str]]],
) -> None:
    assembly = edited(layer_norm, *((at, at, tuple(lines)) for at, lines in insertions))
    result = rebuild(layer_norm, assembly, toolchain)
    expected = [line.text for line in assembly.body(KERNEL).lines if line.text]
    listing = [text for _, _, text in rows(result.code(result.kernel()), result.target)]
    assert [t for t in listing if "branch" not in t] == [t for t in expected if "branch" not in t]
    recovered = recover(result).body(KERNEL)
    assert [line.text for line in recovered.lines if "branch" in line.text] == [
        t for t in expected if "branch" in t]


@pytest.mark.parametrize("line", [
    "", " ", "s_nop 0; s_nop 0", "s_nop 0\ns_nop 0", "s_nop 0\r", "s_nop 0 // x", "s_nop 0 # x",
    "s_nop /* */ 0", '.incbin "/etc/passwd"', ".include 'x'", ".long 0", ".macro m", "label:",
    "s_nop 0 \\", "x = 1", "s_mov_b32 s0, x=1", ".set x, 1", "my_macro 1", "S_NOP 0",
    's_nop "0"', "s_nop 0\u2028", "s_nop\t0", "s_nop 0\0", "s_mov_b32 s0, 1 @", "s_mov_b32 s0, {0}",
    "s_mov_b32 s0, " + "1+" * 200 + "1", "s_nop_0: s_nop 0:",
    "s_branch nowhere", "s_branch 5", "s_branch .", "s_branch label_01B3+4", "s_cbranch_scc1",
    f"s_branch {KERNEL}", f"s_mov_b32 s0, {KERNEL}", "s_mov_b32 s0, label_01B3",
    "s_mov_b32 s0, label_03F6-label_01B3", "s_mov_b32 s0, _DYNAMIC", "s_mov_b32 s0, .",
    "s_mov_b32 s0, .L_0000", "s_getpc_b64 s[0:1]", "s_setpc_b64 s[0:1]",
    "s_swappc_b64 s[0:1], s[2:3]", "s_call_b64 s[0:1], label_01B3",
    "scratch_load_dword v0, v1, off",
    "s_mov_b32 s0, undefined_symbol", "s_mov_b32 s0, undefined_symbol@rel32@lo",
])
def test_hostile_line_is_refused(layer_norm: CodeObject, toolchain: Toolchain, line: str) -> None:
    with pytest.raises(AsmEvoError) as caught:
        rebuild(layer_norm, edited(layer_norm, (5, 6, (line, "s_nop 0"))), toolchain)
    assert "\n" not in str(caught.value)


@given(st.text(max_size=40))
def test_accepted_text_is_one_statement(text: str) -> None:
    try:
        validate_line(text, LABELS, (KERNEL,))
    except RebuildError:
        return
    assert text.isascii()
    assert not set(text) & set(";#/\\\"'\n\r={}@<>%*\t\0")
    assert text[0] not in "."


@pytest.mark.parametrize("line", [
    "v_add_f32 v0, v1, v2", "v_mul_f32_e32 v0, 0.5, v1", "v_fma_f32 v0, -4.0, v1, 0.15915494",
    "v_mov_b32_e32 v0, 0x3f800000", "s_waitcnt vmcnt(0) & lgkmcnt(0)", "s_cbranch_scc0 label_01B3",
    "v_mul_f32_e64 v0, -v1, |v2| clamp mul:2", "s_endpgm",
    "v_mov_b32_dpp v0, v1 quad_perm:[0,1,2,3] row_mask:0xf bank_mask:0xf",
    "buffer_load_dword v0, v1, s[4:7], 0 offen offset:16 sc0", "global_load_dword v0, v[2:3], off",
])
def test_plain_instruction_is_accepted(line: str) -> None:
    validate_line(line, LABELS, (KERNEL,))


def test_assembler_error_names_the_line(layer_norm: CodeObject, toolchain: Toolchain) -> None:
    with pytest.raises(AssemblerError, match=r"invalid instruction .* in 'v_add_f33 v0, v1, v2'|"
                                             r"invalid instruction.* 'v_add_f33 v0, v1, v2'"):
        rebuild(layer_norm, edited(layer_norm, (5, 6, ("v_add_f33 v0, v1, v2",))), toolchain)


def replaced(assembly: Assembly, *lines: Line, keep: bool = True) -> Assembly:
    """The assembly with lines put in front of its body (or instead of it)."""
    body = assembly.body(KERNEL)
    rest = body.lines if keep else ()
    return replace(assembly, blocks=tuple(
        KernelBody(KERNEL, (*lines, *rest)) if isinstance(b, KernelBody) else b
        for b in assembly.blocks))


def test_document_may_not_change_elsewhere(layer_norm: CodeObject, toolchain: Toolchain) -> None:
    base = recover(layer_norm)
    head, body, tail = base.blocks
    assert isinstance(head, str)
    assert isinstance(tail, str)
    cases = {
        "recovered from another object": replace(base, original_sha256="0" * 64),
        "outside the kernel's instructions": replace(base, blocks=(head + "\n", body, tail)),
        "other blocks": replace(base, blocks=(head, body)),
        "other labels": replaced(base, Line("s_nop 0", ("new",))),
        "other labels ": replaced(base, Line("s_endpgm"), keep=False),
        "empty line": replaced(base, Line("")),
    }
    cases["outside the kernel's instructions "] = replace(
        base, blocks=(head, body, tail.replace("kernarg_size 0", "kernarg_size 8")))
    for message, assembly in cases.items():
        with pytest.raises(RebuildError, match=message.strip()):
            rebuild(layer_norm, assembly, toolchain)


def test_everything_deleted_is_refused(layer_norm: CodeObject, toolchain: Toolchain) -> None:
    with pytest.raises(AsmEvoError):
        rebuild(layer_norm, edited(layer_norm, (0, 643, ())), toolchain)


def test_registers_beyond_the_declaration_are_declared(layer_norm: CodeObject,
                                                       toolchain: Toolchain) -> None:
    declared = Allocation.of(layer_norm.kernel().descriptor)
    assert declared.sgprs == 104
    result = rebuild(layer_norm, edited(layer_norm, (0, 0, ("s_mov_b32 s99, 0",))), toolchain)
    kernel = result.kernel()
    assert kernel.descriptor.next_free_sgpr == 102
    assert kernel.metadata[".sgpr_count"] == 106  # s99 and the six behind it, as LLVM counts
    assert kernel.metadata[".vgpr_count"] == 512
    assert outside_hash(result, kernel) == outside_hash(layer_norm, layer_norm.kernel())


def test_growing_vgprs_and_agprs(toolchain: Toolchain) -> None:
    small = rebuild_lowered(toolchain)
    declared = Allocation.of(small.kernel().descriptor)
    body = recover(small).body(small.kernel().symbol)
    for line, vgprs, accum, count in (
        (f"v_mov_b32_e32 v{declared.vgprs}, 0", declared.vgprs + 8, declared.accum_offset,
         declared.vgprs + 1),
        ("v_accvgpr_write_b32 a0, v0", declared.vgprs + 8, declared.accum_offset,
         declared.accum_offset + 1),
        ("v_accvgpr_write_b32 a255, v0", declared.accum_offset + 256, declared.accum_offset,
         declared.accum_offset + 256),
    ):
        assembly = recover(small).apply([Edit(body.symbol, 0, 0, (line,), "test")])
        kernel = rebuild(small, assembly, toolchain).kernel()
        assert kernel.descriptor.next_free_vgpr == vgprs, line
        assert kernel.descriptor.accum_offset == accum
        assert kernel.metadata[".vgpr_count"] == count


def rebuild_lowered(toolchain: Toolchain) -> CodeObject:
    """Layer norm with the least registers that its code needs."""
    data = InstalledFile("amd-aiter", "aiter_meta/hsa/gfx942/layer_norm.co").read()
    original = CodeObject.parse(data)
    return rebuild(original, recover(original), toolchain, allow_lower=True)


def test_lowering_only_when_asked(layer_norm: CodeObject, toolchain: Toolchain) -> None:
    lowered = rebuild_lowered(toolchain)
    kernel = lowered.kernel()
    assert lowered.code(kernel) == layer_norm.code(layer_norm.kernel())
    used = 0
    for instruction in program(lowered).instructions:
        used |= instruction.reads | instruction.writes
    vgprs = [r - VGPR0 for r in members(used) if VGPR0 <= r < AGPR0]
    sgprs = [r for r in members(used) if r < SGPR_LIMIT]
    assert 224 - 8 < max(vgprs) + 1 <= 224
    assert kernel.descriptor.next_free_vgpr == 224
    assert max(sgprs) + 1 <= kernel.descriptor.next_free_sgpr < max(sgprs) + 1 + 8
    assert kernel.metadata[".vgpr_count"] == max(vgprs) + 1
    assert outside_hash(lowered, kernel) == outside_hash(layer_norm, layer_norm.kernel())


def test_bits_without_an_operand_are_the_originals(toolchain: Toolchain) -> None:
    """AITER's gfx950 objects set bits in v_mfma_scale that LLVM neither prints nor writes."""
    original = CodeObject.parse(InstalledFile(
        "amd-aiter", "aiter_meta/hsa/gfx950/f4gemm/"
        "f4gemm_bf16_per1x32Fp4_BpreShuffle_128x128.co").read())
    report = round_trip(original, toolchain)
    symbol = original.kernel().symbol
    assert report.identical
    assert rebuild(original, report.assembly, toolchain) == original
    lines = list(report.assembly.body(symbol).lines)
    at = next(i for i, line in enumerate(lines) if line.encoding != UNCHANGED)
    moved = report.assembly.apply([Edit(symbol, 0, 0, ("s_nop 0",), "test")])
    assert rebuild(original, moved, toolchain).kernel().size >= original.kernel().size
    for line in (replace(lines[at], encoding=Encoding(0x8000)),
                 replace(lines[at - 1], encoding=lines[at].encoding, text="s_nop 0"),
                 replace(lines[at], encoding=Encoding(0, lines[at].encoding.set))):
        body = KernelBody(symbol, (*lines[:at], line, *lines[at + 1:]))
        changed = replace(report.assembly, blocks=tuple(
            body if isinstance(b, KernelBody) else b for b in report.assembly.blocks))
        with pytest.raises(RebuildError, match=r"the original has no '\w+' with the bits // enc:"):
            rebuild(original, changed, toolchain)


# A bit of s_load and of global_load that LLVM decodes and does not write back, and a word that is
# no instruction at all.
_IGNORED, _UNKNOWN = {"s": 1 << 60, "g": 1 << 45}, 0xBFFF0000


def with_odd_words(original: CodeObject, symbols: Sequence[str], *, unknown: bool) -> CodeObject:
    """The object with one instruction in each function that does not encode back to its bytes."""
    data = bytearray(original.data)
    for function in functions(original):
        if function.symbol not in symbols:
            continue
        offset, size, text = next(
            row for row in listing(original, function)
            if (row[1] == 4 and row[2].startswith("v_") if unknown else "_load_dword" in row[2]))
        at = original.section(".text").offset + function.entry + offset
        word = int.from_bytes(data[at:at + size], "little")
        bits = _UNKNOWN if unknown else word ^ _IGNORED[text[0]]
        data[at:at + size] = bits.to_bytes(size, "little")
    return CodeObject.parse(bytes(data))


@pytest.mark.parametrize("unknown", [False, True], ids=["annotated", "data"])
@pytest.mark.parametrize("symbols", [
    ("first",), ("first", "second"), ("_ZL5twicei",), ("_ZL5twicei", "first", "second", "third")])
def test_what_does_not_encode_back_is_no_edit(
        compile_hip: Callable[..., CodeObject], toolchain: Toolchain, symbols: Sequence[str],
        unknown: bool) -> None:
    original = with_odd_words(compile_hip("multi.hip"), symbols, unknown=unknown)
    report = round_trip(original, toolchain)
    assert report.identical
    assert (report.fallback_count if unknown else report.annotation_count) == len(symbols)
    assert rebuild(original, report.assembly, toolchain) == original
    for symbol in ("first", "second", "fourth"):
        changed = report.assembly.apply([Edit(symbol, 0, 0, ("s_nop 0",), "test")])
        result = rebuild(original, changed, toolchain)
        assert rows(result.code(result.kernel(symbol)), result.target)[0][2] == "s_nop 0"
        # Nothing else lost its bits.
        assert outside_hash(result, result.kernel(symbol)) == (
            outside_hash(original, original.kernel(symbol)))
        again = round_trip(result, toolchain)
        assert (again.fallback_count, again.annotation_count) == (
            report.fallback_count, report.annotation_count)
    wider = rebuild(original, report.assembly, toolchain, kernel="second", lds_bytes=512)
    assert wider.kernel("second").descriptor.group_segment_fixed_size == 512


def test_text_without_its_annotations_is_an_edit(compile_hip: Callable[..., CodeObject],
                                                 toolchain: Toolchain) -> None:
    """LLVM reads and runs it as the same instruction, but bits of another kernel would be lost."""
    original = with_odd_words(compile_hip("multi.hip"), ("first",), unknown=False)
    changed = recover(original).apply([Edit("second", 0, 0, ("s_nop 0",), "test")])
    with pytest.raises(RebuildError, match="touch 'first' and 'second'"):
        rebuild(original, changed, toolchain)


class Counted:
    """A toolchain that counts its runs."""

    def __init__(self, inner: Toolchain) -> None:
        self._inner, self.runs = inner, 0

    def assemble(self, text: str, target: Target) -> bytes:
        self.runs += 1
        return self._inner.assemble(text, target)

    def link(self, relocatable: bytes, *, version_comment: str | None = None) -> bytes:
        return self._inner.link(relocatable, version_comment=version_comment)

    def versions(self) -> Mapping[str, str]:
        return self._inner.versions()


def test_rebuilds_share_one_round_trip(layer_norm: CodeObject, toolchain: Toolchain) -> None:
    counted = Counted(toolchain)
    assembly = edited(layer_norm, (0, 0, ("s_nop 0",)))
    rebuild(layer_norm, assembly, counted)
    assert counted.runs == 2
    rebuild(CodeObject.parse(layer_norm.data), assembly, counted)
    assert counted.runs == 3
    other = Counted(toolchain)
    round_trip(layer_norm, other)
    rebuild(layer_norm, assembly, other)
    assert other.runs == 2
