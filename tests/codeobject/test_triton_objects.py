"""HSACO that Triton compiles: every one identical, and what is special about them editable."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from asmevo.codeobject.assembly import Edit
from asmevo.codeobject.build import build
from asmevo.codeobject.container import CodeObject
from asmevo.codeobject.disassemble import branch_target, program, rows
from asmevo.codeobject.recover import recover
from asmevo.codeobject.roundtrip import round_trip
from asmevo.codeobject.toolchain import Toolchain

Objects = Mapping[str, CodeObject]

ISAS = ("gfx90a", "gfx942", "gfx950")


@pytest.mark.parametrize("isa", ISAS)
def test_whole_files_are_identical(triton_objects: Objects, toolchain: Toolchain,
                                   isa: str) -> None:
    own = {name: o for name, o in triton_objects.items() if o.target.isa == isa}
    assert len(own) >= 18
    for name, code_object in own.items():
        report = round_trip(code_object, toolchain)
        assert report.identical, name
        assert (report.fallback_count, report.annotation_count) == (0, 0), name


@pytest.mark.parametrize("isa", ISAS)
def test_objects_have_what_they_are_compiled_for(triton_objects: Objects, isa: str) -> None:
    """The round trip above covers these constructs only as long as Triton makes them."""
    def text(name: str) -> str:
        return recover(triton_objects[f"{isa}/{name}"]).text()

    plain = text("add")
    assert "\t.set amdgpu.max_num_vgpr, 0x" in plain
    assert '\t.section .debug_info,"",@progbits\n' in plain
    assert '\t.section .AMDGPU.gpr_maximums,"",@progbits\n' in plain
    assert plain.count("\ts_nop 0\n") >= 256
    assert "_polynomial" in text("calls")
    assert "@rel32@lo+4" in text("calls")
    assert "\ts_swappc_b64 " in text("calls")
    assert "v_mfma_" in text("gemm_f16")
    assert "v_div_fixup_f64" in text("float64")
    spilling = triton_objects[f"{isa}/spilling"].kernel().descriptor
    assert spilling.private_segment_fixed_size > 0
    assert triton_objects[f"{isa}/softmax"].kernel().descriptor.group_segment_fixed_size == 0


@pytest.mark.parametrize("isa", ISAS)
@pytest.mark.parametrize("name", ["add", "calls", "softmax"])
def test_second_entry_stays_where_firmware_looks_for_it(
        triton_objects: Objects, toolchain: Toolchain, isa: str, name: str) -> None:
    original = triton_objects[f"{isa}/{name}"]
    kernel = original.kernel()
    assert kernel.descriptor.kernarg_preload_length
    before = program(original)
    assembly = recover(original)
    assert "\n\t.p2align 8\n" in "".join(assembly.body(kernel.symbol).text())
    for position in (0, 1, 80):
        edit = Edit(kernel.symbol, position, position, ("s_nop 11",) * 3, "test")
        rebuilt = CodeObject.parse(build(original, assembly.apply([edit]), toolchain))
        listing = rows(rebuilt.code(rebuilt.kernel()), rebuilt.target)
        branch = next(r for r in listing if r[2].startswith("s_branch"))
        assert branch_target(*branch[::2]) == 256
        old = next(i.text for i, at in zip(before.instructions, _offsets(original), strict=True)
                   if at == 256)
        assert next(text for offset, _, text in listing if offset == 256) == old


def _offsets(code_object: CodeObject) -> list[int]:
    return [row[0] for row in rows(code_object.code(code_object.kernel()), code_object.target)]


def test_nops_behind_the_function_stay_outside_it(triton_objects: Objects,
                                                  toolchain: Toolchain) -> None:
    original = triton_objects["gfx942/add"]
    size = next(s.size for s in original.symbols if s.name == "add")
    assert size < original.kernel().size
    edit = Edit("add", 70, 70, ("s_nop 11",) * 2, "test")
    rebuilt = CodeObject.parse(build(original, recover(original).apply([edit]), toolchain))
    assert next(s.size for s in rebuilt.symbols if s.name == "add") == size + 8
