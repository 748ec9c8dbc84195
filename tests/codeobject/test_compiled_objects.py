"""Objects of several functions with data and relocations: round trip, edits that move things."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Callable

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from asmevo.codeobject.assembly import Assembly, Edit, KernelBody
from asmevo.codeobject.build import build
from asmevo.codeobject.container import CodeObject
from asmevo.codeobject.disassemble import branch_target, program
from asmevo.codeobject.eh_frame import frame_pointers
from asmevo.codeobject.functions import functions, listing
from asmevo.codeobject.recover import recover
from asmevo.codeobject.relocation import relocations
from asmevo.codeobject.roundtrip import round_trip
from asmevo.codeobject.toolchain import Toolchain
from asmevo.errors import AsmEvoError

Compile = Callable[..., CodeObject]

FAR = ("-mllvm", "-amdgpu-s-branch-bits=5")
VARIANTS = [
    ("multi.hip", "gfx942", 4), ("multi.hip", "gfx942", 5), ("multi.hip", "gfx942", 6),
    ("multi.hip", "gfx90a", 5), ("multi.hip", "gfx950", 5),
    ("multi.hip", "gfx942:xnack+", 5), ("multi.hip", "gfx942:sramecc+:xnack-", 5),
    ("multi.hip", "gfx90a:sramecc-:xnack-", 6), ("multi.hip", "gfx90a:xnack+", 4),
    ("multi.hip", "gfx950:sramecc+:xnack+", 6),
    ("far.hip", "gfx942", 5, *FAR), ("far.hip", "gfx90a", 5, *FAR), ("written.s", "gfx942", 5),
    ("strings.hip", "gfx942", 5), ("strings.hip", "gfx90a", 5), ("strings.hip", "gfx942", 5, "-g"),
    ("multi.hip", "gfx942", 5, "-g", "-O1"), ("multi.hip", "gfx950", 5, "-g", "-gdwarf-4"),
    ("merged.s", "gfx942", 5),
]
EDITED = [("multi.hip", "gfx942", 5), ("far.hip", "gfx942", 5, *FAR), ("written.s", "gfx942", 5)]
KERNEL_NAMES = ["first", "second", "third", "fourth", "_Z4weakILi1EEvPf", "_Z4weakILi2EEvPf"]


@pytest.mark.parametrize("variant", VARIANTS, ids=lambda v: "-".join(str(x) for x in v[:3]))
def test_whole_file_is_identical(compile_hip: Compile, toolchain: Toolchain,
                                 variant: tuple[str, str, int]) -> None:
    code_object = compile_hip(*variant)
    report = round_trip(code_object, toolchain)
    assert report.identical
    assert (report.fallback_count, report.annotation_count, report.masks) == (0, 0, ())
    assert code_object.version == variant[2]
    assert code_object.target.processor.split(":")[0] == variant[1].split(":")[0]
    assert f'.amdgcn_target "amdgcn-amd-amdhsa--{code_object.target.processor}"' in (
        report.assembly.text())


def test_variants_differ(compile_hip: Compile) -> None:
    """The target features and versions reach the object: otherwise the test above tests nothing."""
    assert len({(o.target, o.version) for o in (compile_hip(*v) for v in VARIANTS)}) == 10


def test_each_function_has_a_body(compile_hip: Compile) -> None:
    code_object = compile_hip("multi.hip")
    assembly = recover(code_object)
    symbols = [b.symbol for b in assembly.blocks if isinstance(b, KernelBody)]
    assert set(KERNEL_NAMES) == {k.symbol for k in code_object.kernels}
    assert set(symbols) == {*KERNEL_NAMES, "_ZL5twicei", "_ZL6thricei", "_Z8externalfi"}
    for kernel in code_object.kernels:
        lines = [line for line in assembly.body(kernel.symbol).lines if line.text]
        assert len(lines) == len(program(code_object, kernel.symbol).instructions)


def test_addresses_are_symbolic_as_the_compiler_wrote_them(compile_hip: Compile) -> None:
    text = recover(compile_hip("multi.hip")).text()
    references = re.findall(r"([\w.]+)@(\w+@\w+)\+4\+\(\.-\.L_pc_[0-9a-f]+\)", text)
    # In order of the code, as clang's own output has them.
    assert [name for name, kind in references if kind.endswith("@lo")] == [
        "initialised", "_ZL5twicei", "_ZL5table", "_Z8externalfi", "zeroed", "_ZL6thricei",
        "pointer", "preemptible", "dispatch",
        # The second and third element of the table.
        "_Z8externalfi", ".L.rodata_0184", "_Z8externalfi", ".L.rodata_0188"]
    assert [kind for name, kind in references if name == "preemptible"] == [
        "gotpcrel32@lo", "gotpcrel32@hi"]
    assert "\t.quad _ZL5twicei\n\t.quad _ZL6thricei\n" in text
    assert not re.search(r"s_addc?_u32 s\d+, s\d+, (0x[0-9a-f]{5,}|-\d{3,})", text)


def test_merged_constants_keep_the_flags_of_their_section(compile_hip: Compile) -> None:
    for variant, name in (("strings.hip", ".rodata"), ("merged.s", "mixed"), ("merged.s", "tags")):
        code_object = compile_hip(variant)
        section = code_object.section(name)
        assert section.flags == 0x32  # allocated, mergeable, strings
        assert (section.entry_size == 0) == (name != "tags")
        opened = re.findall(rf"\t\.section {name},.*", recover(code_object).text())
        assert opened[0].startswith(f'\t.section {name},"aMS",@progbits,1')


def test_idents_stand_where_the_original_has_them(compile_hip: Compile) -> None:
    """Otherwise the linker lays out debug information in another order."""
    code_object = compile_hip("multi.hip", "gfx942", 5, "-g", "-O1")
    names = [s.name for s in code_object.sections]
    assert names.index(".debug_str") < names.index(".comment") < names.index(".debug_line")
    text = recover(code_object).text()
    assert (text.index(".section .debug_str,") < text.index("\t.ident ")
            < text.index(".section .debug_line,"))


def test_written_constructs(compile_hip: Compile) -> None:
    text = recover(compile_hip("written.s")).text()
    for expected in (
        "\ts_call_b64 s[30:31], .L_0080\n", "\ts_branch kept_label\n", "\t.quad elsewhere+16\n",
        "\ts_add_u32 vcc_lo, vcc_lo, constant@rel32@lo+4+(.-.L_pc_0014)\n",
        "\ts_addc_u32 vcc_hi, vcc_hi, constant@rel32@hi+4+(.-.L_pc_0014)\n",
        "\ts_add_u32 s8, s8, behind@rel32@lo+4+(.-.L_pc_0044)\n\ts_addc_u32 s9, s9, 0\n",
        "\t.hidden callee\n", "\t.weak elsewhere\n", "@init_array\n",
    ):
        assert expected in text


class Resolved:
    """Where every address in an object's code and data leads, read from the bytes alone."""

    def __init__(self, code_object: CodeObject) -> None:
        self._object = code_object
        self.text = code_object.section(".text").address
        self.code: list[tuple[str, str, str]] = []
        for function in functions(code_object):
            for offset, size, text in listing(code_object, function):
                here = self.text + function.entry + offset
                target = branch_target(offset, text)
                if target is not None:
                    self._add(function.symbol, text.split()[0], self.text + function.entry + target)
                elif text.startswith("s_getpc_b64"):
                    self._add(function.symbol, "address", self._computed(here + size))
        self.data = [(r.symbol or self.name(r.addend), r.symbol and r.addend)
                     for r in relocations(code_object)]

    def _add(self, function: str, kind: str, address: int) -> None:
        self.code.append((function, kind, self.name(address)))

    def _computed(self, base: int) -> int:
        """Run s_add_u32 and s_addc_u32 with the literals behind ``base``."""
        text = self._object.section(".text")
        code = self._object.data[text.offset + base - self.text:][:256]
        literals: list[int] = []
        at = 0
        while len(literals) < 2 and at < len(code):
            word = int.from_bytes(code[at:at + 4], "little")
            literal = int.from_bytes(code[at + 4:at + 8], "little")
            # SOP2: s_add_u32 is opcode 0, s_addc_u32 opcode 4; source 1 is 255 for a literal.
            if word >> 23 in (0x100, 0x104):
                literals.append(literal if word >> 8 & 0xFF == 0xFF else 0)
            at += 8 if 255 in (word & 0xFF, word >> 8 & 0xFF) and word >> 30 == 2 else 4
        return (base + literals[0] + (literals[1] << 32)) & (1 << 64) - 1

    def name(self, address: int) -> str:
        """A symbol at the address, or the instruction or data there."""
        names = sorted(s.name for s in self._object.symbols
                       if s.value == address and s.section != "ABS" and s.name)
        if names:
            return names[0]
        for section in self._object.sections:
            if section.address and section.address <= address < section.address + section.size:
                if section.name == ".text":
                    function = max((f for f in functions(self._object)
                                    if f.entry <= address - self.text), key=lambda f: f.entry)
                    rows = listing(self._object, function)
                    texts = [self._plain(row) for row in rows
                             if self.text + function.entry + row[0] >= address]
                    return f"{function.symbol}: {texts[:4]}"
                return next((f"{s.name}+{address - s.value}" for s in self._object.symbols
                             if s.value <= address < s.value + s.size
                             and s.section == section.name),
                            f"{section.name}+{address - section.address}")
        return f"{address:#x}"

    @staticmethod
    def _plain(row: tuple[int, int, str]) -> str:
        """An instruction without what an edit elsewhere changes in it."""
        addition = row[1] == 8 and row[2].startswith("s_add")
        if addition or branch_target(row[0], row[2]) is not None:
            return row[2].split()[0]
        return row[2]


def edited(assembly: Assembly, symbol: str, position: int, count: int) -> Assembly:
    return assembly.apply([Edit(symbol, position, position, ("s_nop 11",) * count, "test")])


def positions(assembly: Assembly) -> list[tuple[str, int]]:
    """Every place in a function in front of an instruction that is not filler."""
    return [(b.symbol, i) for b in assembly.blocks if isinstance(b, KernelBody)
            for i, line in enumerate(b.lines) if line.text and not line.padding]


@pytest.mark.parametrize("variant", EDITED, ids=lambda v: v[0])
@settings(max_examples=25, deadline=None,
          suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_insertion_keeps_every_address(compile_hip: Compile, toolchain: Toolchain,
                                       variant: tuple[str, str, int], data: st.DataObject) -> None:
    original = compile_hip(*variant)
    assembly = recover(original)
    symbol, position = data.draw(st.sampled_from(positions(assembly)))
    changed = edited(assembly, symbol, position, data.draw(st.integers(1, 9)))
    rebuilt = CodeObject.parse(build(original, changed, toolchain))
    before, after = Resolved(original), Resolved(rebuilt)
    assert after.data == before.data
    assert len(after.code) == len(before.code)
    for old, new in zip(before.code, after.code, strict=True):
        assert new[:2] == old[:2]
        # What is inserted in front of a target is what the target leads to.
        assert new[2] == old[2] or "s_nop 11" in new[2]
    for kernel in rebuilt.kernels:
        assert kernel.entry % 256 == 0


def test_insertion_into_an_address_computation(compile_hip: Compile, toolchain: Toolchain) -> None:
    original = compile_hip("multi.hip")
    assembly = recover(original)
    for body in (b for b in assembly.blocks if isinstance(b, KernelBody)):
        for index, line in enumerate(body.lines):
            if "@lo+4" in line.text or "@hi+4" in line.text:
                changed = edited(assembly, body.symbol, index, 1)
                rebuilt = CodeObject.parse(build(original, changed, toolchain))
                assert [c[2] for c in Resolved(rebuilt).code if c[1] == "address"] == [
                    c[2] for c in Resolved(original).code if c[1] == "address"]


def test_growing_data_keeps_every_address(compile_hip: Compile, toolchain: Toolchain) -> None:
    """Somebody adds a constant in the text in front of the others."""
    original = compile_hip("multi.hip")
    assembly = recover(original)
    tail = assembly.blocks[-1]
    assert isinstance(tail, str)
    grown = tail.replace("_ZL5table:\n", "\t.zero 32\n_ZL5table:\n", 1)
    assert grown != tail
    changed = Assembly(assembly.original_sha256, (*assembly.blocks[:-1], grown))
    rebuilt = CodeObject.parse(build(original, changed, toolchain))
    assert Resolved(rebuilt).code == Resolved(original).code
    assert Resolved(rebuilt).data == Resolved(original).data


def test_frame_description_follows_its_function(compile_hip: Compile, toolchain: Toolchain) -> None:
    original = compile_hip("written.s")
    assert "\t.long alias-.\n" in recover(original).text()
    changed = edited(recover(original), "kernel", 0, 40)
    rebuilt = CodeObject.parse(build(original, changed, toolchain))
    (pointer,) = frame_pointers(rebuilt)
    assert pointer.target == next(s.value for s in rebuilt.symbols if s.name == "callee")


@settings(max_examples=60, deadline=None)
@given(changes=st.lists(st.tuples(st.integers(0, 1 << 14), st.integers(0, 255)), min_size=1,
                        max_size=6))
@pytest.mark.parametrize("file", ["multi.hip", "written.s"])
def test_damaged_object_is_refused_or_survives(compile_hip: Compile, toolchain: Toolchain,
                                               file: str, changes: list[tuple[int, int]]) -> None:
    """Sections, symbols, relocations and frames are read from bytes that nobody vouches for."""
    data = bytearray(compile_hip(file).data)
    for position, value in changes:
        data[position % len(data)] = value
    with contextlib.suppress(AsmEvoError):
        report = round_trip(CodeObject.parse(bytes(data)), toolchain)
        assert report.identical == (report.first_difference is None)
