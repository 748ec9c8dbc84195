"""Descriptor fields and directives, compared with what LLVM's assembler makes of them."""

from __future__ import annotations

import io
from collections.abc import Mapping

import pytest
from elftools.elf.elffile import ELFFile
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from asmevo.codeobject.container import CodeObject
from asmevo.codeobject.descriptor import KernelDescriptor
from asmevo.codeobject.descriptor_fields import BY_NAME, FIELDS, Field, Word, directives_of
from asmevo.codeobject.errors import CodeObjectError
from asmevo.codeobject.target import Target
from asmevo.codeobject.toolchain import Toolchain

WIDTHS = {Word.RSRC1: 32, Word.RSRC2: 32, Word.RSRC3: 32, Word.PROPERTIES: 16, Word.PRELOAD: 16}
USER_SGPRS = {
    "enable_sgpr_dispatch_ptr": 2, "enable_sgpr_queue_ptr": 2, "enable_sgpr_kernarg_segment_ptr": 2,
    "enable_sgpr_dispatch_id": 2, "enable_sgpr_private_segment_size": 1,
    "enable_sgpr_private_segment_buffer": 4, "enable_sgpr_flat_scratch_init": 2,
}


def assembled(descriptors: list[KernelDescriptor], toolchain: Toolchain,
              isa: str = "gfx942") -> list[bytes]:
    """The descriptors that LLVM writes for the directives, in order."""
    text = [f'.amdgcn_target "amdgcn-amd-amdhsa--{isa}"', ".amdhsa_code_object_version 5"]
    for index, descriptor in enumerate(descriptors):
        text += [".text", f"k{index}:", "s_endpgm", ".rodata", f".amdhsa_kernel k{index}",
                 *descriptor.directives(isa), ".end_amdhsa_kernel"]
    data = toolchain.assemble("\n".join(text) + "\n", Target(isa))
    section = ELFFile(io.BytesIO(data)).get_section_by_name(".rodata")
    assert section is not None
    content = section.data()
    return [content[i:i + 64] for i in range(0, len(content), 64)]


def descriptor(words: Mapping[Word, int], group: int = 0, private: int = 0,
               kernarg: int = 0) -> KernelDescriptor:
    return KernelDescriptor(group, private, kernarg, 0, words[Word.RSRC1], words[Word.RSRC2],
                            words[Word.RSRC3], words[Word.PROPERTIES], words[Word.PRELOAD])


@st.composite
def descriptors(draw: st.DrawFn, isa: str = "gfx942") -> KernelDescriptor:
    """Any descriptor that a processor defines."""
    own = directives_of(isa)
    values = {f.name: 0 if f.reserved and f.name not in own
              else draw(st.integers(0, (1 << f.width) - 1)) for f in FIELDS}
    vgprs = values["granulated_workitem_vgpr_count"]
    values["accum_offset"] = draw(st.integers(0, min(63, vgprs * 2 + 1)))
    values["granulated_wavefront_sgpr_count"] = draw(st.integers(0, 13))
    values["enable_vgpr_workitem_id"] = draw(st.integers(0, 2))
    values["kernarg_preload_length"] = draw(st.integers(0, 5))
    values["kernarg_preload_offset"] = draw(st.integers(0, 511))
    preloaded = values["kernarg_preload_length"]
    if preloaded:
        values["enable_sgpr_kernarg_segment_ptr"] = 1
    least = preloaded + sum(size * values[name] for name, size in USER_SGPRS.items())
    most = min(16, values["granulated_wavefront_sgpr_count"] * 8 + 2) if preloaded else 31
    assume(least <= most)
    values["user_sgpr_count"] = draw(st.integers(least, most))
    words = dict.fromkeys(Word, 0)
    for field in FIELDS:
        words[field.word] |= values[field.name] << field.position
    size = st.integers(0, (1 << 32) - 1)
    kernarg = draw(st.integers((preloaded + values["kernarg_preload_offset"]) * 4, (1 << 32) - 1))
    return descriptor(words, draw(size), draw(size), kernarg)


@given(st.data())
@settings(max_examples=20, deadline=None)
@pytest.mark.parametrize("isa", ["gfx90a", "gfx942", "gfx950"])
def test_directives_reproduce_the_bytes(toolchain: Toolchain, isa: str,
                                        data: st.DataObject) -> None:
    batch = data.draw(st.lists(descriptors(isa), min_size=1, max_size=12))
    expected = [d.pack() for d in batch]
    # The entry offset is a relocation of the assembler's output, so it is 0 in both.
    assert assembled(batch, toolchain, isa) == expected


@given(st.binary(min_size=64, max_size=64))
def test_any_bytes_pack_again(data: bytes) -> None:
    assert KernelDescriptor.parse(data).pack() == data


def test_fields_cover_every_bit_once() -> None:
    for word, width in WIDTHS.items():
        fields = [f for f in FIELDS if f.word is word]
        assert sum(f.mask for f in fields) == (1 << width) - 1
        assert sum(f.width for f in fields) == width
    assert len(BY_NAME) == len(FIELDS)


def test_layer_norm(layer_norm: CodeObject) -> None:
    descriptor = layer_norm.kernel().descriptor
    assert (descriptor.next_free_vgpr, descriptor.accum_offset) == (512, 256)
    assert descriptor.group_segment_fixed_size == 65536
    assert descriptor.private_segment_fixed_size == 0
    assert descriptor.enable_sgpr_kernarg_segment_ptr
    assert descriptor.user_sgpr_count == 2
    assert descriptor.enable_sgpr_workgroup_id_x
    assert descriptor.enable_vgpr_workitem_id == 0
    assert not descriptor.tg_split


@pytest.mark.parametrize("field", [f for f in FIELDS if f.reserved], ids=lambda f: f.name)
def test_reserved_bits_are_refused_by_name(field: Field) -> None:
    words = dict.fromkeys(Word, 0)
    words[field.word] = 1 << field.position
    with pytest.raises(CodeObjectError, match=f"{field.word}.{field.name}"):
        descriptor(words).directives()


@pytest.mark.parametrize(("field", "value"), [
    ("granulated_wavefront_sgpr_count", 14), ("enable_vgpr_workitem_id", 3), ("accum_offset", 2),
    ("kernarg_preload_length", 1), ("kernarg_preload_offset", 1),
])
def test_undefined_values_are_refused_by_name(field: str, value: int) -> None:
    words = dict.fromkeys(Word, 0)
    words[BY_NAME[field].word] = value << BY_NAME[field].position
    name = "kernarg_preload" if "preload" in field else field
    with pytest.raises(CodeObjectError, match=name):
        descriptor(words).directives()


def test_reserved_bytes_are_refused(layer_norm: CodeObject) -> None:
    data = bytearray(layer_norm.kernel().descriptor.pack())
    data[30] = 1
    with pytest.raises(CodeObjectError, match="reserved bytes"):
        KernelDescriptor.parse(bytes(data)).directives()


@pytest.mark.parametrize("size", [0, 63, 65])
def test_wrong_size_is_refused(size: int) -> None:
    with pytest.raises(CodeObjectError, match="64 bytes"):
        KernelDescriptor.parse(bytes(size))
