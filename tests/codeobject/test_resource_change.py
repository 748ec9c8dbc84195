"""Resources that a rebuild declares anew, and the report of what that does."""

from __future__ import annotations

import re
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from asmevo.codeobject.assembly import Assembly, Edit, KernelBody
from asmevo.codeobject.build import build
from asmevo.codeobject.container import CodeObject, Kernel
from asmevo.codeobject.descriptor import KernelDescriptor
from asmevo.codeobject.errors import CodeObjectError, RebuildError
from asmevo.codeobject.interface import Interface, differences, outside_hash
from asmevo.codeobject.occupancy import Limit
from asmevo.codeobject.rebuild import rebuild
from asmevo.codeobject.recover import recover
from asmevo.codeobject.requirements import Declaration, required_kernel, with_resources
from asmevo.codeobject.resource_change import ResourceChange, Resources
from asmevo.codeobject.resources import Allocation, with_allocation
from asmevo.codeobject.source import InstalledFile
from asmevo.codeobject.target import Target
from asmevo.codeobject.toolchain import Toolchain

KERNEL = "layer_norm_kernel_func"


def inserted(original: CodeObject, *lines: str) -> Assembly:
    symbol = original.kernel().symbol
    return recover(original).apply([Edit(symbol, 0, 0, lines, "test")])


def frozen(code_object: CodeObject) -> KernelDescriptor:
    """The descriptor without the sizes that these tests change."""
    return replace(code_object.kernel().descriptor, group_segment_fixed_size=0,
                   private_segment_fixed_size=0, compute_pgm_rsrc1=0, compute_pgm_rsrc3=0,
                   kernel_code_entry_byte_offset=0)


def test_lds_is_declared_in_both_places(toolchain: Toolchain, layer_norm: CodeObject) -> None:
    small = rebuild(layer_norm, recover(layer_norm), toolchain, allow_lower=True, lds_bytes=4096)
    kernel = small.kernel()
    assert kernel.descriptor.group_segment_fixed_size == 4096
    assert kernel.metadata[".group_segment_fixed_size"] == 4096
    assert frozen(small) == frozen(layer_norm)
    larger = rebuild(small, recover(small), toolchain, lds_bytes=8192).kernel()
    assert larger.descriptor.group_segment_fixed_size == 8192
    assert larger.metadata[".group_segment_fixed_size"] == 8192
    # Gates compare with the original's interface: a declared size is a change that they name.
    assert any("group segment" in text for text in differences(
        Interface.of(layer_norm, layer_norm.kernel()), Interface.of(small, kernel)))


@pytest.mark.parametrize(("lds", "lower", "message"), [
    (65537, False, "can have 0 to 65536 bytes, not 65537"), (-1, True, "not -1"),
    (4096, False, "4096 need leave to lower it .*task.allow_lower=true"),
    (1024, True, "reaches byte 1988 of LDS"),
])
def test_impossible_lds_sizes(toolchain: Toolchain, layer_norm: CodeObject, lds: int, lower: bool,
                              message: str) -> None:
    with pytest.raises(RebuildError, match=message):
        rebuild(layer_norm, recover(layer_norm), toolchain, allow_lower=lower, lds_bytes=lds)


def test_lds_beyond_the_declared_size(toolchain: Toolchain, layer_norm: CodeObject) -> None:
    small = rebuild(layer_norm, recover(layer_norm), toolchain, allow_lower=True, lds_bytes=4096)
    fits = inserted(small, "v_mov_b32_e32 v1, 0x800", "ds_read_b32 v2, v1 offset:2044")
    beyond = inserted(small, "v_mov_b32_e32 v1, 0x800", "ds_read_b32 v2, v1 offset:2045")
    likely = inserted(small, "ds_read_b32 v2, v200 offset:4093")
    rebuild(small, fits, toolchain)
    with pytest.raises(RebuildError, match="reaches byte 4097 of LDS and declares 4096"):
        rebuild(small, beyond, toolchain)
    with pytest.raises(RebuildError, match="reaches byte 4097 of LDS or beyond"):
        rebuild(small, likely, toolchain)
    rebuild(small, beyond, toolchain, lds_bytes=4097)


def test_scratch_only_when_declared(toolchain: Toolchain, layer_norm: CodeObject) -> None:
    assembly = inserted(layer_norm, "scratch_store_dword off, v0, off offset:12")
    with pytest.raises(RebuildError, match="uses scratch, of which the kernel declares none"):
        rebuild(layer_norm, assembly, toolchain)
    with pytest.raises(RebuildError, match="reaches byte 16 of scratch and declares 12"):
        rebuild(layer_norm, assembly, toolchain, scratch_bytes=12)
    result = rebuild(layer_norm, assembly, toolchain, scratch_bytes=16)
    kernel = result.kernel()
    assert kernel.descriptor.private_segment_fixed_size == 16
    assert kernel.descriptor.enable_private_segment
    assert kernel.metadata[".private_segment_fixed_size"] == 16
    # Declared once, it is there for the next edit.
    rebuild(result, inserted(result, "scratch_load_dword v0, off, off"), toolchain)


def test_scratch_cannot_be_added_where_its_setup_takes_sgprs(layer_norm: CodeObject) -> None:
    old = replace(layer_norm, target=Target("gfx90a"))
    with pytest.raises(RebuildError, match="scratch cannot be added to a gfx90a kernel"):
        required_kernel(old, layer_norm.kernel(), layer_norm, Declaration(scratch_bytes=16))


def test_metadata_rises_within_the_allocated_granule(toolchain: Toolchain,
                                                     layer_norm: CodeObject) -> None:
    small = rebuild(layer_norm, recover(layer_norm), toolchain, allow_lower=True)
    count = small.kernel().metadata[".vgpr_count"]
    assert count == 223
    result = rebuild(small, inserted(small, "v_mov_b32_e32 v223, 0"), toolchain)
    assert result.kernel().metadata[".vgpr_count"] == 224
    assert frozen(result) == frozen(small)
    assert result.kernel().descriptor.compute_pgm_rsrc1 == (
        small.kernel().descriptor.compute_pgm_rsrc1)


def test_report(toolchain: Toolchain, layer_norm: CodeObject) -> None:
    small = rebuild(layer_norm, recover(layer_norm), toolchain, allow_lower=True, lds_bytes=2048)
    change = ResourceChange.between(layer_norm, small)
    assert change.changed
    assert (change.before.vgprs, change.after.vgprs) == (512, 224)
    assert change.before.occupancy.limited_by == (Limit.VGPRS, Limit.LDS)
    assert change.before.occupancy.waves_per_simd == 1
    assert change.after.occupancy.waves_per_simd == 2
    assert change.after.occupancy.workgroups_per_cu == 2
    assert change.after.occupancy.limited_by == (Limit.VGPRS,)
    table = {name: (before, after) for name, before, after in change.rows()}
    assert table["LDS bytes"] == ("65536", "2048")
    assert table["waves per SIMD"] == ("1", "2")
    assert table["limited by"] == ("VGPRs, LDS", "VGPRs")
    assert not ResourceChange.between(layer_norm, layer_norm).changed
    launched = Resources.of(small.kernel(), small.target, workgroup_size=64,
                            launch_lds_bytes=60000)
    assert launched.occupancy.workgroups_per_cu == 1
    assert launched.occupancy.limited_by == (Limit.LDS,)


_SEVERAL = """
#define GLOBAL extern "C" __attribute__((global)) void
__attribute__((device)) __attribute__((noinline)) float scaled(float x, float y) {
    return x * y / 3.0f + 1.0f;
}
__attribute__((constant)) float table[4] = {1, 2, 3, 4};
typedef float (*Function)(float, float);
__attribute__((device)) __attribute__((used)) Function pointers[2] = {scaled, scaled};
GLOBAL first(float *a, int n) {
    int i = __builtin_amdgcn_workitem_id_x();
    if (i < n) a[i] = a[i] * 2.0f + 1.0f;
}
GLOBAL calling(float *a) {
    int i = __builtin_amdgcn_workitem_id_x();
    a[i] = scaled(a[i], table[i & 3]);
}
GLOBAL last(float *a) { a[__builtin_amdgcn_workitem_id_x()] = table[1]; }
"""


def compiled(folder: Path, isa: str) -> str:
    """Assembly of three kernels, a device function and constants."""
    (folder / "k.hip").write_text(_SEVERAL)
    subprocess.run(
        [sys.executable, "-m", "ziglang", "clang", "-x", "hip", f"--offload-arch={isa}",
         "--offload-device-only", "-nogpuinc", "-nogpulib", "-O3", "-S", str(folder / "k.hip"),
         "-o", str(folder / "k.s")], check=True, timeout=120)
    return (folder / "k.s").read_text()


@pytest.fixture(scope="module")
def source(tmp_path_factory: pytest.TempPathFactory) -> str:
    return compiled(tmp_path_factory.mktemp("kernels"), "gfx942")


def test_code_that_only_moved_is_not_a_change(source: str, toolchain: Toolchain) -> None:
    """An insertion moves what follows, and with it the distances between code and data."""
    def made(text: str) -> CodeObject:
        return CodeObject.parse(toolchain.link(toolchain.assemble(text, Target("gfx942"))))

    original = made(source)
    grown = made(re.sub(r"^first:.*\n; %bb.0:\n", lambda m: m[0] + "\ts_nop 0\n" * 70, source,
                        flags=re.MULTILINE))
    first = original.kernel("first")
    assert grown.kernel("first").size > first.size
    assert grown.code(grown.kernel("calling")) != original.code(original.kernel("calling"))
    assert outside_hash(grown, grown.kernel("first")) == outside_hash(original, first)
    tables = [o.section_data(o.section(".rela.dyn")) for o in (original, grown)]
    assert tables[0] != tables[1]
    for old, new in (("s_mov_b32 s32, 0", "s_mov_b32 s32, 4"),
                     ("table@rel32@lo+4", "table@rel32@lo+8"),
                     ("v_mul_f32_e32 v0, v0, v1", "v_mul_f32_e32 v0, v1, v0"),
                     ("\t.quad\t_Z6scaledff\n", "\t.quad\t_Z6scaledff+4\n"),
                     ("_Z6scaledff@rel32@lo+4", "last@rel32@lo+4")):
        assert old in source, old
        other = made(source.replace(old, new))
        assert outside_hash(other, other.kernel("first")) != outside_hash(original, first), old


def test_calls_use_the_functions_registers(source: str, toolchain: Toolchain) -> None:
    original = CodeObject.parse(toolchain.link(toolchain.assemble(source, Target("gfx942"))))
    bigger = source.replace("v_mul_f32_e32 v0, v0, v1", "v_mul_f32_e32 v0, v0, v1\n"
                            "\tv_mov_b32_e32 v77, 0")
    result = CodeObject.parse(toolchain.link(toolchain.assemble(bigger, Target("gfx942"))))
    for symbol, count in (("first", None), ("last", None), ("calling", 78)):
        kernel = original.kernel(symbol)
        needed = required_kernel(original, kernel, result, Declaration())
        assert needed.metadata[".vgpr_count"] == (count or kernel.metadata[".vgpr_count"])


@pytest.fixture(scope="module", params=["gfx90a", "gfx942", "gfx950"])
def several(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory,
            toolchain: Toolchain) -> CodeObject:
    text = compiled(tmp_path_factory.mktemp(request.param), request.param)
    return CodeObject.parse(toolchain.link(toolchain.assemble(text, Target(request.param))))


def edited(original: CodeObject, symbol: str, *lines: str) -> Assembly:
    return recover(original).apply([Edit(symbol, 0, 0, lines, "test")])


@pytest.mark.parametrize("symbol", ["first", "calling", "last"])
def test_one_kernel_of_several(several: CodeObject, toolchain: Toolchain, symbol: str) -> None:
    lines = ("v_mov_b32_e32 v90, 0", "v_accvgpr_write_b32 a3, v90", "s_mov_b32 s80, 0")
    result = rebuild(several, edited(several, symbol, *lines), toolchain, kernel=symbol)
    kernel = result.kernel(symbol)
    extra = 4 if several.target.isa == "gfx90a" else 6
    assert kernel.metadata[".vgpr_count"] == 92 + 4
    assert kernel.metadata[".agpr_count"] == 4
    assert kernel.metadata[".sgpr_count"] == 81 + extra
    assert Allocation.of(kernel.descriptor) == Allocation(96, 92, 88)
    assert outside_hash(result, kernel) == outside_hash(several, several.kernel(symbol))
    for other in several.kernels:
        if other.symbol != symbol:
            again = result.kernel(other.symbol)
            assert again.metadata == other.metadata
            assert Allocation.of(again.descriptor) == Allocation.of(other.descriptor)
    lowered = rebuild(result, recover(result).apply([Edit(symbol, 0, 3, (), "test")]), toolchain,
                      kernel=symbol, allow_lower=True)
    assert lowered.kernel(symbol).metadata == several.kernel(symbol).metadata
    assert lowered == several


def test_sizes_of_one_kernel_of_several(several: CodeObject, toolchain: Toolchain) -> None:
    result = rebuild(several, edited(several, "last", "ds_write_b32 v0, v0"), toolchain,
                     lds_bytes=2048)
    sizes = {k.symbol: k.descriptor.group_segment_fixed_size for k in result.kernels}
    assert sizes == {"first": 0, "calling": 0, "last": 2048}
    line = "scratch_store_dword off, v0, off"
    if several.target.isa == "gfx90a":
        with pytest.raises(RebuildError, match="scratch cannot be added to a gfx90a kernel"):
            rebuild(several, recover(several), toolchain, kernel="last", scratch_bytes=16)
    else:
        result = rebuild(several, edited(several, "last", line), toolchain, scratch_bytes=16)
        assert result.kernel("last").descriptor.enable_private_segment
        assert not result.kernel("first").descriptor.enable_private_segment


def test_largest_workgroup_still_fits(several: CodeObject, toolchain: Toolchain) -> None:
    """16 waves of a workgroup with 1024 work-items are 4 on each SIMD: 128 registers a wave."""
    assert several.kernel("last").metadata[".max_flat_workgroup_size"] == 1024
    result = rebuild(several, edited(several, "last", "v_mov_b32_e32 v127, 0"), toolchain)
    assert Resources.of(result.kernel("last"), result.target).occupancy.workgroups_per_cu == 1
    for lines in (("v_mov_b32_e32 v128, 0",), ("v_mov_b32_e32 v200, 0",),
                  ("v_mov_b32_e32 v120, 0", "v_accvgpr_write_b32 a4, v0")):
        with pytest.raises(RebuildError, match=r"of 1024 work-items, which 'last' .* takes "
                                               r"(136|208) VGPRs and \d+ SGPRs, for want of VGPRs"):
            rebuild(several, edited(several, "last", *lines), toolchain)


def test_workgroup_that_the_kernel_requires(several: CodeObject, toolchain: Toolchain) -> None:
    result = CodeObject.parse(build(
        several, edited(several, "last", "v_mov_b32_e32 v200, 0"), toolchain))
    kernel = several.kernel("last")

    def needed(required: object, descriptor: KernelDescriptor = kernel.descriptor) -> Kernel:
        metadata = {**kernel.metadata, ".reqd_workgroup_size": required}
        return required_kernel(several, replace(kernel, metadata=metadata, descriptor=descriptor),
                               result, Declaration())

    assert Allocation.of(needed([64, 8, 1]).descriptor).vgprs == 208
    for required in ([64, 4, 3], [1024, 1, 1], [0, 1, 1], [64], ["64", 1, 1], [1 << 40] * 3):
        with pytest.raises(RebuildError, match="does not fit on a compute unit"):
            needed(required)
    # What could not be launched with the largest workgroup before is launched with a smaller one.
    large = with_allocation(kernel.descriptor, Allocation(136, 8, 16))
    assert Allocation.of(needed([1024, 1, 1], large).descriptor).vgprs == 208


def test_one_rebuild_edits_one_kernel(several: CodeObject, toolchain: Toolchain) -> None:
    both = recover(several).apply([Edit(symbol, 0, 0, ("s_nop 0",), "test")
                                   for symbol in ("first", "last")])
    with pytest.raises(RebuildError, match="'first' and 'last', but one rebuild edits one kernel"):
        rebuild(several, both, toolchain)
    with pytest.raises(RebuildError, match="'first' and 'last'"):
        rebuild(several, edited(several, "first", "s_nop 0"), toolchain, kernel="last")
    with pytest.raises(RebuildError, match="'_Z6scaledff', which is not a kernel"):
        rebuild(several, edited(several, "_Z6scaledff", "s_nop 0"), toolchain)
    with pytest.raises(CodeObjectError, match="no kernel 'middle'"):
        rebuild(several, recover(several), toolchain, kernel="middle")


def test_only_the_kernels_own_directives_change(source: str, toolchain: Toolchain) -> None:
    """Resources are rewritten in an object of several kernels without touching the others."""
    original = CodeObject.parse(toolchain.link(toolchain.assemble(source, Target("gfx942"))))
    layout = "".join(
        f"\t.amdhsa_kernel {k.symbol}\n\t\t.amdhsa_group_segment_fixed_size 0\n"
        "\t\t.amdhsa_private_segment_fixed_size 0\n\t\t.amdhsa_next_free_vgpr 8\n"
        "\t\t.amdhsa_accum_offset 8\n\t\t.amdhsa_next_free_sgpr 10\n\t.end_amdhsa_kernel\n"
        for k in original.kernels)
    notes = "\t.amdgpu_metadata\n---\n...\n\t.end_amdgpu_metadata\n"
    assembly = Assembly(original.sha256, (layout, KernelBody("first", ()), notes))
    kernel = original.kernel("last")
    after = required_kernel(original, kernel, original, Declaration(lds_bytes=512))
    changed = with_resources(assembly, original, kernel, after)
    before_lines, after_lines = layout.splitlines(), str(changed.blocks[0]).splitlines()
    assert [(a, b) for a, b in zip(before_lines, after_lines, strict=True) if a != b] == [
        ("\t\t.amdhsa_group_segment_fixed_size 0", "\t\t.amdhsa_group_segment_fixed_size 512")]
    assert after_lines.index("\t\t.amdhsa_group_segment_fixed_size 512") > before_lines.index(
        "\t.amdhsa_kernel last")
    assert str(changed.blocks[2]).count("'.group_segment_fixed_size': 512") == 1
    empty = Assembly(original.sha256, (KernelBody("first", ()), ""))
    with pytest.raises(RebuildError, match=r"no '\.amdhsa_kernel last' to change"):
        with_resources(empty, original, kernel, after)


def test_objects_of_another_processor_report_too() -> None:
    original = CodeObject.parse(InstalledFile(
        "amd-aiter", "aiter_meta/hsa/gfx950/bf16gemm/bf16gemm_outf32_tn_32x64_pf3.co").read())
    resources = Resources.of(original.kernel(), original.target)
    assert resources.occupancy.workgroups_per_cu >= 1
    assert resources.agprs == resources.vgprs - original.kernel().descriptor.accum_offset
