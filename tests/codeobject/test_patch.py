"""Edits written into the bytes: nothing else changes, and what cannot be proven is refused."""

from __future__ import annotations

import contextlib
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from asmevo.codeobject.assembly import Edit, KernelBody, Line
from asmevo.codeobject.container import CodeObject
from asmevo.codeobject.disassemble import branch_target, rows
from asmevo.codeobject.errors import AssemblerError, CodeObjectError, RebuildError
from asmevo.codeobject.interface import Interface, differences, outside_hash
from asmevo.codeobject.patch import check_patch, edits_between, listing, patch
from asmevo.codeobject.rebuild import rebuild
from asmevo.codeobject.recover import recover
from asmevo.codeobject.source import InstalledFile
from asmevo.codeobject.target import Target
from asmevo.codeobject.toolchain import Toolchain
from asmevo.errors import AsmEvoError

KERNEL = "layer_norm_kernel_func"

# Calls through resolved and unresolved addresses, a table of functions behind relocations.
_SOURCE = """
#define GLOBAL extern "C" __attribute__((global)) void
#define DEVICE __attribute__((device)) __attribute__((noinline)) float
DEVICE scaled(float x, float y) { return x * y / 3.0f + 1.0f; }
DEVICE shifted(float x, float y) { return x - y; }
typedef float (*Function)(float, float);
__attribute__((device)) __attribute__((used)) Function table[2] = {scaled, shifted};
GLOBAL first(float *a, int n) {
    int i = __builtin_amdgcn_workitem_id_x();
    if (i < n) a[i] = a[i] * 2.0f + 1.0f;
}
GLOBAL calling(float *a) {
    int i = __builtin_amdgcn_workitem_id_x();
    a[i] = scaled(a[i], a[i + 1]);
}
GLOBAL choosing(float *a, int k) {
    int i = __builtin_amdgcn_workitem_id_x();
    a[i] = table[k & 1](a[i], a[i + 1]);
}
"""


_DOCUMENT = """
	.amdgcn_target "amdgcn-amd-amdhsa--gfx942"
	.text
	.globl far
	.p2align 8
	.type far,@function
far:
	{body}
	.section .rodata,"a",@progbits
	.p2align 6
	.amdhsa_kernel far
	.amdhsa_next_free_vgpr 8
	.amdhsa_next_free_sgpr 16
	.amdhsa_accum_offset 8
	.end_amdhsa_kernel
	.amdgpu_metadata
---
amdhsa.kernels:
  - .name: far
    .symbol: far.kd
    .kernarg_segment_size: 0
    .kernarg_segment_align: 8
    .group_segment_fixed_size: 0
    .private_segment_fixed_size: 0
    .wavefront_size: 64
    .sgpr_count: 22
    .vgpr_count: 8
    .max_flat_workgroup_size: 256
amdhsa.version: [1, 2]
amdhsa.target: amdgcn-amd-amdhsa--gfx942
...
	.end_amdgpu_metadata
"""


@pytest.fixture(scope="module", params=["gfx90a", "gfx942", "gfx950"])
def compiled(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory,
             toolchain: Toolchain) -> CodeObject:
    folder = tmp_path_factory.mktemp(request.param)
    source, assembly = folder / "k.hip", folder / "k.s"
    source.write_text(_SOURCE)
    subprocess.run(
        [sys.executable, "-m", "ziglang", "clang", "-x", "hip", f"--offload-arch={request.param}",
         "--offload-device-only", "-nogpuinc", "-nogpulib", "-O3", "-S", str(source), "-o",
         str(assembly)], check=True, timeout=120)
    text = Path(assembly).read_text()
    return CodeObject.parse(toolchain.link(toolchain.assemble(text, Target(request.param))))


def decoded(code_object: CodeObject, kernel: str | None = None) -> list[str]:
    code = code_object.code(code_object.kernel(kernel))
    return [text for _, _, text in rows(code, code_object.target)]


def edit(start: int, stop: int, *lines: str, kernel: str = KERNEL) -> Edit:
    return Edit(kernel, start, stop, lines, "test")


def check_only_the_range_changed(original: CodeObject, result: CodeObject, symbol: str,
                                 ranges: list[tuple[int, int]]) -> None:
    """Byte for byte, with offsets of the kernel's code."""
    kernel = original.kernel(symbol)
    base = original.section(".text").offset + kernel.entry
    assert len(result.data) == len(original.data)
    changed = [i for i, (a, b) in enumerate(zip(original.data, result.data, strict=True)) if a != b]
    assert all(any(base + a <= i < base + b for a, b in ranges) for i in changed)
    assert outside_hash(result, result.kernel(symbol)) == outside_hash(original, kernel)
    assert not differences(Interface.of(original, kernel),
                           Interface.of(result, result.kernel(symbol)))


def test_no_edit_is_the_original(layer_norm: CodeObject, toolchain: Toolchain) -> None:
    assert patch(layer_norm, None, [], toolchain) == layer_norm


def test_the_listing_is_what_recovery_gives(layer_norm: CodeObject) -> None:
    assert listing(layer_norm).body(KERNEL) == recover(layer_norm).body(KERNEL)


@st.composite
def neutral_lines(draw: st.DrawFn) -> tuple[str, int]:
    """One instruction in the registers that layer norm uses, and its size in bytes."""
    v, s = st.integers(0, 220), st.integers(0, 89)
    return draw(st.sampled_from([
        (f"v_add_f32_e32 v{draw(v)}, v{draw(v)}, v{draw(v)}", 4),
        (f"s_mov_b32 s{draw(s)}, s{draw(s)}", 4),
        (f"v_mov_b32_e32 v{draw(v)}, 0x{draw(st.integers(100, 1 << 31)):x}", 8),
        (f"s_nop {draw(st.integers(0, 15))}", 4),
        (f"v_fma_f32 v{draw(v)}, v{draw(v)}, v{draw(v)}, -v{draw(v)}", 8),
        (f"s_waitcnt vmcnt({draw(st.integers(0, 62))})", 4),
        (f"ds_read_b32 v{draw(v)}, v221 offset:{draw(st.integers(1, 255))}", 8),
        ("s_cbranch_scc1 label_01B3", 4), ("s_branch label_03F6", 4),
    ]))


@given(st.data())
@settings(max_examples=60, deadline=None)
def test_edits_that_fit(layer_norm: CodeObject, toolchain: Toolchain, data: st.DataObject) -> None:
    before = rows(layer_norm.code(layer_norm.kernel()), layer_norm.target)
    body = listing(layer_norm).body(KERNEL)
    expected = [line.text for line in body.lines]
    edits: list[Edit] = []
    ranges: list[tuple[int, int]] = []
    starts = data.draw(st.lists(st.integers(0, 63), min_size=1, max_size=3, unique=True))
    for start in (10 * n + data.draw(st.integers(0, 2)) for n in sorted(starts, reverse=True)):
        stop = start + data.draw(st.integers(1, 7))
        room = sum(size for _, size, _ in before[start:stop])
        lines: list[str] = []
        for text, size in data.draw(st.lists(neutral_lines(), max_size=8)):
            if size <= room:
                lines.append(text)
                room -= size
        edits.append(edit(start, stop, *lines))
        expected[start:stop] = [*lines, *["s_nop 0"] * (room // 4)]
        ranges.append((before[start][0], before[stop - 1][0] + before[stop - 1][1]))
    labelled = [before[i][0] for i, line in enumerate(body.lines) if line.labels]
    entered = [place for place in labelled if any(a < place < b for a, b in ranges)]
    if entered:
        with pytest.raises(RebuildError, match="points into the replaced instructions"):
            patch(layer_norm, KERNEL, edits, toolchain)
        return
    result = patch(layer_norm, KERNEL, edits, toolchain)
    check_only_the_range_changed(layer_norm, result, KERNEL, ranges)
    assert [line.text for line in listing(result).body(KERNEL).lines] == expected


def test_a_branch_goes_where_it_says(layer_norm: CodeObject, toolchain: Toolchain) -> None:
    before = rows(layer_norm.code(layer_norm.kernel()), layer_norm.target)
    result = patch(layer_norm, None, [edit(100, 103, "s_nop 1", "s_cbranch_scc0 label_01B3")],
                   toolchain)
    after = rows(result.code(result.kernel()), result.target)
    offset, _, text = after[101]
    labels = {s.name: s.value - layer_norm.section(".text").address for s in layer_norm.symbols}
    assert text.startswith("s_cbranch_scc0")
    assert branch_target(offset, text) == labels["label_01B3"]
    assert offset == before[100][0] + 4


def test_a_patch_is_what_a_rebuild_of_the_same_length_gives(layer_norm: CodeObject,
                                                            toolchain: Toolchain) -> None:
    change = edit(10, 11, "v_lshlrev_b32_e32 v1, 10, v0")
    rebuilt = rebuild(layer_norm, recover(layer_norm).apply([change]), toolchain)
    assert patch(layer_norm, None, [change], toolchain) == rebuilt


@pytest.mark.parametrize(("change", "message"), [
    (edit(5, 5, "s_nop 0"), "would grow the code"),
    (edit(5, 6, *["v_fma_f32 v1, v2, v3, v4"] * 2), "bytes, the original"),
    (edit(250, 253, "s_nop 0"), "symbol 'label_01B3' points into the replaced instructions"),
    (edit(5, 6, "v_mov_b32_e32 v255, 0", kernel="other"), "an edit is of 'other'"),
    (edit(640, 700), "lies outside"),
    (edit(10, 12, "s_getpc_b64 s[0:1]"), "handles code addresses"),
    (edit(10, 14, "s_branch nowhere"), "does not branch to a label"),
    (edit(10, 14, "s_mov_b32 s0, undefined_symbol"), "names a symbol that the object does not"),
    (edit(10, 14, ".long 0"), "not one plain instruction"),
    (edit(10, 14, "s_mov_b32 s99, 0"), "registers that the descriptor does not allocate"),
    (edit(10, 14, "scratch_load_dword v0, v1, off"), "uses scratch"),
    (edit(10, 14, "ds_read_b32 v0, v1 offset:65535"), "LDS"),
])
def test_what_is_refused(layer_norm: CodeObject, toolchain: Toolchain, change: Edit,
                         message: str) -> None:
    with pytest.raises(RebuildError, match=message):
        patch(layer_norm, None, [change], toolchain)


def test_overlapping_edits_are_refused(layer_norm: CodeObject, toolchain: Toolchain) -> None:
    with pytest.raises(RebuildError, match="overlaps"):
        patch(layer_norm, None, [edit(5, 8), edit(7, 9)], toolchain)


def test_assembler_errors_come_through(layer_norm: CodeObject, toolchain: Toolchain) -> None:
    with pytest.raises(AssemblerError, match="v_add_f33"):
        patch(layer_norm, None, [edit(5, 8, "v_add_f33 v0, v1, v2")], toolchain)


def test_metadata_must_cover_the_registers(compiled: CodeObject, toolchain: Toolchain) -> None:
    """The descriptor allocates eight VGPRs, the metadata says how many of them are used."""
    kernel = compiled.kernel("first")
    count = kernel.metadata[".vgpr_count"]
    assert isinstance(count, int)
    assert count % 8
    at = next(i for i, t in enumerate(decoded(compiled, "first")) if t.startswith("v_fma"))
    with pytest.raises(RebuildError, match=r"by '\.vgpr_count', the metadata says"):
        patch(compiled, "first", [edit(at, at + 1, f"v_mov_b32_e32 v{count}, 0", kernel="first")],
              toolchain)


def test_kernels_beside_device_functions(compiled: CodeObject, toolchain: Toolchain) -> None:
    for symbol in ("first", "calling"):
        texts = decoded(compiled, symbol)
        at = next(i for i, t in enumerate(texts) if t.startswith("s_waitcnt"))
        result = patch(compiled, symbol, [edit(at, at + 1, "s_waitcnt lgkmcnt(0) vmcnt(0)",
                                               kernel=symbol)], toolchain)
        code = rows(compiled.code(compiled.kernel(symbol)), compiled.target)
        check_only_the_range_changed(compiled, result, symbol, [(code[at][0], code[at][0] + 4)])
        for other in compiled.kernels:
            if other.symbol != symbol:
                assert decoded(result, other.symbol) == decoded(compiled, other.symbol)


def test_parts_of_a_code_address_are_refused(compiled: CodeObject, toolchain: Toolchain) -> None:
    texts = decoded(compiled, "calling")
    at = texts.index(next(t for t in texts if t.startswith("s_getpc_b64")))
    for start, message in ((at, "handles code addresses"), (at + 1, "part of a code address"),
                           (at + 2, "part of a code address")):
        with pytest.raises(RebuildError, match=message):
            patch(compiled, "calling", [edit(start, start + 1, "s_nop 0", kernel="calling")],
                  toolchain)


def test_relocations_of_the_object_are_read(compiled: CodeObject, toolchain: Toolchain) -> None:
    """The table's entries point at the functions, which no kernel's code contains."""
    texts = decoded(compiled, "choosing")
    at = next(i for i, t in enumerate(texts) if t.startswith("s_waitcnt"))
    result = patch(compiled, "choosing", [edit(at, at + 1, "s_waitcnt 0", kernel="choosing")],
                   toolchain)
    assert decoded(result, "choosing")[at] == "s_waitcnt vmcnt(0) expcnt(0) lgkmcnt(0)"
    assert any(s.type == "SHT_RELA" for s in compiled.sections)
    data = bytearray(compiled.data)
    table = next(s for s in compiled.sections if s.type == "SHT_RELA")
    kernel = compiled.kernel("first")
    inside = compiled.section(".text").address + kernel.entry + 4
    kind = int.from_bytes(data[table.offset + 8:table.offset + 12], "little")
    data[table.offset + 8:table.offset + 24] = (13).to_bytes(8, "little") + inside.to_bytes(
        8, "little")
    assert kind in (3, 13)
    pointed = CodeObject.parse(bytes(data))
    first = rows(pointed.code(kernel), pointed.target)
    stop = next(i for i, (offset, _, _) in enumerate(first) if offset > 4)
    with pytest.raises(RebuildError, match=r"the pointer at address 0x.* points into"):
        patch(pointed, "first", [edit(0, stop, kernel="first")], toolchain)


def test_computed_jumps_are_refused(layer_norm: CodeObject, toolchain: Toolchain) -> None:
    data = bytearray(layer_norm.data)
    start = layer_norm.section(".text").offset + 0x84
    for word, message in ((0xBE801D02, "s_setpc_b64.*cannot be followed"),
                          (0xBE821C00, "s_getpc_b64.*is not a sum with literals")):
        data[start:start + 4] = word.to_bytes(4, "little")
        with pytest.raises(CodeObjectError, match=message):
            patch(CodeObject.parse(bytes(data)), None, [edit(300, 301, "s_nop 0")], toolchain)


def test_jumps_to_computed_addresses(toolchain: Toolchain) -> None:
    """A far branch can be followed; with an index added to its address it is a jump table."""
    def made(*between: str) -> CodeObject:
        # The target is the 21st s_nop: 16 bytes of code and 20 words behind s_getpc_b64.
        body = "\n\t".join(("s_getpc_b64 s[4:5]", "s_add_u32 s4, s4, 0x60", "s_addc_u32 s5, s5, 0",
                            *between, "s_setpc_b64 s[4:5]", *["s_nop 1"] * 24, "s_endpgm"))
        return CodeObject.parse(toolchain.link(toolchain.assemble(
            _DOCUMENT.format(body=body), Target("gfx942"))))

    far = made()
    target = 4 + 20
    patch(far, None, [edit(target, target + 4, "s_nop 7", kernel="far")], toolchain)
    with pytest.raises(RebuildError, match=r"'s_getpc_b64 .*points into the replaced"):
        patch(far, None, [edit(target - 1, target + 1, "s_nop 7", kernel="far")], toolchain)
    table = made("s_add_u32 s4, s4, s6")
    with pytest.raises(CodeObjectError, match=r"s_setpc_b64.* goes to an address that cannot be"):
        patch(table, None, [edit(10, 11, "s_nop 7", kernel="far")], toolchain)


def test_the_second_entry_of_a_preloaded_kernel(toolchain: Toolchain) -> None:
    """Firmware that preloads arguments enters 256 bytes behind the symbol."""
    text = _DOCUMENT.format(body="\n\t".join(["s_nop 0"] * 70 + ["s_endpgm"]))
    text = text.replace("\t.amdhsa_next_free_vgpr", "\t.amdhsa_kernarg_size 8\n"
                        "\t.amdhsa_user_sgpr_count 2\n"
                        "\t.amdhsa_user_sgpr_kernarg_preload_length 2\n\t.amdhsa_next_free_vgpr")
    original = CodeObject.parse(toolchain.link(toolchain.assemble(text, Target("gfx942"))))
    assert original.kernel().descriptor.kernarg_preload_length == 2
    patch(original, None, [edit(64, 66, "s_nop 1", kernel="far")], toolchain)
    with pytest.raises(RebuildError, match=r"the entry for preloaded arguments points into"):
        patch(original, None, [edit(63, 65, "s_nop 1", kernel="far")], toolchain)


def test_objects_that_recovery_refuses_can_be_patched(toolchain: Toolchain) -> None:
    original = CodeObject.parse(InstalledFile(
        "amd-aiter", "aiter_meta/hsa/gfx950/bf16gemm/bf16gemm_outf32_tn_32x64_pf3.co").read())
    symbol = original.kernel().symbol
    texts = decoded(original)
    at = next(i for i, t in enumerate(texts) if t.startswith("s_nop"))
    result = patch(original, None, [edit(at, at + 1, "s_nop 9", kernel=symbol)], toolchain)
    assert decoded(result)[at] == "s_nop 9"
    assert sum(a != b for a, b in zip(original.data, result.data, strict=True)) == 1


def test_edits_between_two_bodies(layer_norm: CodeObject) -> None:
    base = listing(layer_norm)
    edits = [edit(3, 5, "s_nop 3"), edit(440, 441), edit(641, 642, "s_nop 1", "s_nop 2")]
    changed = base.apply(edits)
    found = edits_between(base.body(KERNEL), changed.body(KERNEL))
    assert [(e.start, e.stop, e.lines) for e in found] == [(e.start, e.stop, e.lines)
                                                          for e in edits]
    assert base.apply(found) == changed
    assert edits_between(base.body(KERNEL), base.body(KERNEL)) == ()
    # A deletion across a label is one in front of it and one behind it.
    across = edits_between(base.body(KERNEL), base.apply([edit(250, 253)]).body(KERNEL))
    assert [(e.start, e.stop, e.lines) for e in across] == [(250, 251, ()), (251, 253, ())]
    renamed = tuple(Line(line.text, ("label",) if line.labels else ())
                    for line in base.body(KERNEL).lines)
    with pytest.raises(RebuildError, match="other labels"):
        edits_between(base.body(KERNEL), KernelBody(KERNEL, renamed))


@given(st.lists(st.text(alphabet="sv_nop mov0123456789,[]:.\"'\n;", max_size=30), max_size=3))
@settings(max_examples=40, deadline=None)
def test_hostile_text_gives_a_typed_error_or_a_legal_patch(
        layer_norm: CodeObject, toolchain: Toolchain, lines: list[str]) -> None:
    with contextlib.suppress(AsmEvoError):
        result = patch(layer_norm, None, [edit(200, 208, *lines)], toolchain)
        assert len(result.data) == len(layer_norm.data)


def test_a_patch_is_recognised(layer_norm: CodeObject, toolchain: Toolchain) -> None:
    branch = decoded(layer_norm).index(next(t for t in decoded(layer_norm) if "cbranch" in t))
    result = patch(layer_norm, None, [edit(10, 12, "s_nop 3"), edit(branch, branch + 1)], toolchain)
    check_patch(layer_norm, layer_norm, None, toolchain)
    check_patch(layer_norm, result, KERNEL, toolchain)
    rebuilt = rebuild(layer_norm, recover(layer_norm).apply([edit(5, 5, "s_nop 0")]), toolchain)
    data = bytearray(result.data)
    data[data.index(b"OutBuffer")] ^= 0x20
    for other, message in ((rebuilt, "lies elsewhere"), (CodeObject.parse(bytes(data)), "bytes")):
        with pytest.raises(RebuildError, match=message):
            check_patch(layer_norm, other, None, toolchain)
