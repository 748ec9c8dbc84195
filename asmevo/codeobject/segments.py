"""How far machine code provably reaches into LDS and scratch memory."""

from __future__ import annotations

import functools
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from asmevo.codeobject.descriptor import KernelDescriptor
from asmevo.codeobject.disassemble import branch_target
from asmevo.codeobject.disassembler import Row

# Data share instructions that touch no LDS memory.
_NO_LDS_MEMORY = re.compile(r"ds_(?:nop|swizzle|permute|bpermute|gws_|ordered_count)")
_UNKNOWN_ADDRESS = ("ds_append", "ds_consume", "ds_read_addtid", "ds_write_addtid")
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
_SCRATCH_BUFFER = "s[0:3]"


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


@dataclass(frozen=True, slots=True)
class _Access:
    """An access that ends ``size`` bytes behind the sum of ``addresses``; `None` is unknown."""

    private: bool
    addresses: tuple[str, ...] | None
    size: int


@dataclass(frozen=True, slots=True)
class _Step:
    """What one instruction does to memory segments and to known registers."""

    access: _Access | None
    clears: bool
    moves: tuple[str, str] | None
    writes: tuple[str, ...]


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
    segments = [Reach(), Reach()]
    known: dict[str, int] = {}
    for offset, _, text in listing:
        step = _step(text, scratch_buffer)
        if step.clears or offset in leaders:
            known.clear()
        if step.access is not None:
            segments[step.access.private] |= _reach(step.access, known)
        if step.moves is not None:
            register, source = step.moves
            value = _value(source, known)
            if value is None:
                known.pop(register, None)
            else:
                known[register] = value
        elif known:
            for register in step.writes:
                known.pop(register, None)
    return SegmentUse(*segments)


@functools.lru_cache(maxsize=1 << 16)
def _step(text: str, scratch_buffer: bool) -> _Step:
    clears = "exec" in text or _LOSES_ALL.match(text) is not None
    move = _MOVE.fullmatch(text)
    # Without knowing what an instruction writes, all that it names counts as written.
    writes = () if move or _KEEPS_REGISTERS.match(text) else tuple(_registers(text))
    return _Step(_access(text, scratch_buffer), clears,
                 (move[1], move[2]) if move else None, writes)


def _access(text: str, scratch_buffer: bool) -> _Access | None:
    mnemonic, _, rest = text.partition(" ")
    operands = [part.split(" ")[0] for part in rest.split(", ")]
    modifiers = {name: int(value) for name, value in _MODIFIER.findall(rest)}
    if mnemonic.startswith("ds_"):
        if _NO_LDS_MEMORY.match(mnemonic) or rest.endswith(" gds"):
            return None
        end = _lds_end(mnemonic, modifiers)
        if mnemonic.startswith(_UNKNOWN_ADDRESS):
            return _Access(False, None, end)
        return _Access(False, (operands["_read" in mnemonic or "_rtn" in mnemonic],), end)
    if "shared_base" in rest or "private_base" in rest:
        return _Access("private_base" in rest, None, 0)
    if _LDS_DMA.match(text):
        return _Access(False, None, 0)
    size = next((n for pattern, n in _SIZES if pattern.search(mnemonic)), 1)
    end = modifiers.get("offset", 0) + size
    if mnemonic.startswith("scratch_"):
        return _Access(True, (*operands[1:3],) if "_load" in mnemonic
                       else (operands[0], *operands[2:3]), end)
    if scratch_buffer and mnemonic.startswith("buffer_") and _SCRATCH_BUFFER in operands:
        buffer = operands.index(_SCRATCH_BUFFER)
        return _Access(True, (*operands[buffer - 1:buffer], *operands[buffer + 1:][:1]), end)
    return None


def _lds_end(mnemonic: str, modifiers: dict[str, int]) -> int:
    """Bytes from the register's address to the end of an LDS access."""
    size = next((n for pattern, n in _SIZES if pattern.search(mnemonic)), 4)
    if re.match(r"ds_\w*?2(?:st64)?_", mnemonic) and "offset" not in modifiers:
        stride = 64 * size if "st64" in mnemonic else size
        return max(modifiers.get("offset0", 0), modifiers.get("offset1", 0)) * stride + size
    return modifiers.get("offset", 0) + size


def _reach(access: _Access, known: dict[str, int]) -> Reach:
    base = 0
    for register in access.addresses or ():
        value = _value(register, known) if register != "off" else 0
        if value is None:
            return Reach(True, 0, access.size)
        base += value
    if access.addresses is None:
        return Reach(True, 0, access.size)
    base = (base + (1 << 31)) % (1 << 32) - (1 << 31)
    return Reach(True, max(base + access.size, 0), max(access.size, base + access.size))


def _registers(text: str) -> Iterator[str]:
    for file, single, first, last in _NAMES.findall(text):
        if single:
            yield file + single
        else:
            yield from (f"{file}{n}" for n in range(int(first), min(int(last), 255) + 1))


def _value(text: str, known: dict[str, int]) -> int | None:
    if text[:1] in ("v", "s"):
        return known.get(text)
    try:
        return int(text, 0)
    except ValueError:
        return None
