"""How far machine code provably reaches into LDS and scratch memory."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from asmevo.codeobject.descriptor import KernelDescriptor
from asmevo.codeobject.disassemble import branch_target
from asmevo.codeobject.disassembler import Row

# Data share instructions that touch no LDS memory.
_NO_LDS_MEMORY = re.compile(r"ds_(?:nop|swizzle|permute|bpermute|gws_|ordered_count)")
_LDS_DMA = re.compile(r"(?:buffer|global)_load_\w+ .*\blds\b|global_load_lds_")
_SIZES = (
    (re.compile(r"(?:_b128|_dwordx4)"), 16), (re.compile(r"(?:_b96|_dwordx3)"), 12),
    (re.compile(r"(?:_[biuf]64|_x2|_dwordx2)"), 8), (re.compile(r"(?:_[biuf]32|_dword|_pk_)"), 4),
    (re.compile(r"(?:_[biuf]16|_short)"), 2), (re.compile(r"(?:_[biu]8|_[us]byte|_byte)"), 1),
)
_MODIFIER = re.compile(r"\b(offset[01]?):(\d+)")
_MOVE = re.compile(r"(?:v_mov_b32_e32|s_mov_b32) ([vs]\d+), "
                   r"(-?(?:0x[0-9a-f]+|\d+)|[vs]\d+)")
_NAMES = re.compile(r"(?<![\w.])([vs])(?:(\d+)|\[(\d+):(\d+)\])(?![\w:])")
_KEEPS_REGISTERS = re.compile(r"ds_write|\w+_store_|s_nop|s_waitcnt|s_barrier|s_cbranch")
_LOSES_ALL = re.compile(r"s_(?:swappc|setpc|call|set_gpr_idx)|v_cmpx|v_movrel|s_movrel")


@dataclass(frozen=True, slots=True)
class Reach:
    """Bytes of one memory segment that code uses.

    ``proven`` is the end of the farthest access whose address is a constant, ``likely`` that of
    the farthest access by its constant offset alone, which is right unless its register holds a
    negative address. ``used`` says that there is any access.
    """

    used: bool = False
    proven: int = 0
    likely: int = 0

    def __or__(self, other: Reach) -> Reach:
        return Reach(self.used or other.used, max(self.proven, other.proven),
                     max(self.likely, other.likely))


@dataclass(frozen=True, slots=True)
class SegmentUse:
    """Use of the group (LDS) and private (scratch) segments."""

    group: Reach = Reach()
    private: Reach = Reach()

    def __or__(self, other: SegmentUse) -> SegmentUse:
        return SegmentUse(self.group | other.group, self.private | other.private)


def segment_use(listing: Sequence[Row], descriptor: KernelDescriptor) -> SegmentUse:
    """Scan disassembled code of a kernel.

    Constants are followed through moves within basic blocks. Of flat instructions, which can reach
    both segments, only that code reads the segments' base addresses is seen. Without architected
    flat scratch, buffer instructions on the private segment buffer (``s[0:3]``) are scratch
    accesses.
    """
    leaders = {branch_target(offset, text) for offset, _, text in listing}
    scratch_buffer = bool(descriptor.enable_private_segment
                          and descriptor.field("enable_sgpr_private_segment_buffer"))
    use = SegmentUse()
    known: dict[str, int] = {}
    for offset, _, text in listing:
        if offset in leaders or "exec" in text or _LOSES_ALL.match(text):
            known.clear()
        use |= _access(text, known, scratch_buffer)
        _step(text, known)
    return use


def _access(text: str, known: dict[str, int], scratch_buffer: bool) -> SegmentUse:
    mnemonic, _, rest = text.partition(" ")
    operands = [part.split(" ")[0] for part in rest.split(", ")]
    modifiers = {name: int(value) for name, value in _MODIFIER.findall(rest)}
    if mnemonic.startswith("ds_") and not _NO_LDS_MEMORY.match(mnemonic):
        if rest.endswith(" gds"):
            return SegmentUse()
        end = _lds_end(mnemonic, modifiers)
        if mnemonic.startswith(("ds_append", "ds_consume", "ds_read_addtid", "ds_write_addtid")):
            return SegmentUse(group=Reach(True, 0, end))
        address = 1 if "_read" in mnemonic or "_rtn" in mnemonic else 0
        return SegmentUse(group=_reach([operands[address]], end, known))
    if "shared_base" in rest or "private_base" in rest:
        return SegmentUse(Reach("shared_base" in rest), Reach("private_base" in rest))
    if _LDS_DMA.match(text):
        return SegmentUse(group=Reach(True))
    size = next((n for pattern, n in _SIZES if pattern.search(mnemonic)), 1)
    end = modifiers.get("offset", 0) + size
    if mnemonic.startswith("scratch_"):
        addresses = operands[1:3] if "_load" in mnemonic else [operands[0], *operands[2:3]]
        return SegmentUse(private=_reach(addresses, end, known))
    if scratch_buffer and mnemonic.startswith("buffer_") and "s[0:3]" in operands:
        buffer = operands.index("s[0:3]")
        return SegmentUse(private=_reach(operands[buffer - 1:buffer] + operands[buffer + 1:][:1],
                                         end, known))
    return SegmentUse()


def _lds_end(mnemonic: str, modifiers: dict[str, int]) -> int:
    """Bytes from the register's address to the end of an LDS access."""
    size = next((n for pattern, n in _SIZES if pattern.search(mnemonic)), 4)
    if re.match(r"ds_\w*?2(?:st64)?_", mnemonic) and "offset" not in modifiers:
        stride = 64 * size if "st64" in mnemonic else size
        return max(modifiers.get("offset0", 0), modifiers.get("offset1", 0)) * stride + size
    return modifiers.get("offset", 0) + size


def _reach(addresses: Sequence[str], end: int, known: dict[str, int]) -> Reach:
    base = 0
    for register in addresses:
        if register == "off":
            continue
        value = known.get(register) if register[:1] in "vs" else _integer(register)
        if value is None:
            return Reach(True, 0, end)
        base += value
    base = (base + (1 << 31)) % (1 << 32) - (1 << 31)
    return Reach(True, max(base + end, 0), max(end, base + end))


def _step(text: str, known: dict[str, int]) -> None:
    """Forget what the instruction may write, and learn what a move of a constant writes."""
    if move := _MOVE.fullmatch(text):
        value = known.get(move[2]) if move[2][0] in "vs" else _integer(move[2])
        if value is None:
            known.pop(move[1], None)
        else:
            known[move[1]] = value
    elif not _KEEPS_REGISTERS.match(text):
        for name in _registers(text):
            known.pop(name, None)


def _registers(text: str) -> Iterator[str]:
    for file, single, first, last in _NAMES.findall(text):
        if single:
            yield file + single
        else:
            yield from (f"{file}{n}" for n in range(int(first), min(int(last), 255) + 1))


def _integer(text: str) -> int | None:
    try:
        return int(text, 0)
    except ValueError:
        return None
