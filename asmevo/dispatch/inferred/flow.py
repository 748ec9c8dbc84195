"""A forward analysis of where addresses, comparisons and stored values come from.

It follows every kernel argument from the scalar loads that fetch it through scalar and vector
arithmetic, lane moves and LDS, over all paths, until nothing changes. It over-approximates sources
and ignores EXEC: what it says is a lead that probing confirms, not a proof.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field

from asmevo.codeobject.descriptor import KernelDescriptor
from asmevo.dispatch.dispatch import ElementType
from asmevo.dispatch.inferred import abstract_value as av
from asmevo.dispatch.inferred.abstract_value import NOTHING, Value
from asmevo.dispatch.inferred.memory_operands import memory_operands
from asmevo.dispatch.inferred.operation_types import MOVES, SELECTS, operation_types
from asmevo.isa.access_width import access_bytes
from asmevo.isa.cfg import Cfg
from asmevo.isa.instruction import Instruction, Operand, OperandKind, Unit
from asmevo.isa.program import Program
from asmevo.isa.registers import EXEC_HI, REGISTER_COUNT, VGPR0, members

_F32 = av.type_bit(ElementType.F32)
_BF16 = av.type_bit(ElementType.BF16)
_TO_BF16 = _F32 | av.ROUNDING
_HALVES = _BF16 | av.type_bit(ElementType.F16)
_WORKGROUP_IDS = sum(av.WORKGROUP_ID)
_ONES = 0xFFFFFFFF
_UPPER_HALF = 0xFFFF0000
_MULTIPLIES = ("mul", "mad", "fma")
_INTEGERS_OF_ROUNDING = ("v_add3_u32", "v_add_u32", "v_bfe_u32", "v_or_b32", "v_and_or_b32",
                         "v_or3_b32")
State = list[Value]


@dataclass(frozen=True, slots=True)
class Access:
    """One access to global memory: sources of its address, and what it stores.

    ``pointers`` are the kernarg dwords of the pointers that may be its base; none when the address
    comes from elsewhere. ``indexed_by`` are the pointers whose contents its offset depends on.
    """

    index: int
    stores: bool
    loads: bool
    width: int
    pointers: tuple[int, ...]
    indexed_by: tuple[int, ...]
    high_dwords: int
    kinds: int
    raw: int


@dataclass
class Flow:
    """What the analysis found; sets of kernarg dwords are bit masks.

    ``votes`` count the operations that took an unchanged kernarg dword or the contents of a memory
    (both as a single bit of `abstract_value`) for a type. ``workgroup_ids`` are those in addresses,
    comparisons and stored values.
    """

    accesses: list[Access] = field(default_factory=list)
    votes: dict[int, Counter[ElementType]] = field(default_factory=dict)
    compared: int = 0
    tested: int = 0
    addressing: int = 0
    strides: int = 0
    used: int = 0
    data_dependent_branches: int = 0
    workgroup_ids: int = 0


def analyse(program: Program, descriptor: KernelDescriptor, pointers: frozenset[int]) -> Flow:
    """Follow the arguments of a kernel; ``pointers`` are the dwords where pointers start.

    Raises ControlFlowError for jumps to addresses that only the run knows.
    """
    cfg = Cfg.of(program)
    walk = _Walk(program, pointers)
    entry_states: dict[int, State] = {cfg.entry: _entry_state(descriptor)}
    rank = {block: number for number, block in enumerate(cfg.order)}
    pending = {cfg.entry}
    while pending:
        number = min(pending, key=rank.__getitem__)
        pending.remove(number)
        block = cfg.blocks[number]
        state = list(entry_states[number])
        lds, scratch = walk.lds, dict(walk.scratch)
        for index in range(block.start, block.end):
            walk.step(program.instructions[index], state)
        if walk.lds != lds:
            # Who reads LDS has to be looked at again.
            pending |= {b for b in entry_states if walk.reads_lds(cfg.blocks[b].start,
                                                                  cfg.blocks[b].end)}
        if walk.scratch != scratch:
            pending |= set(entry_states)
        for successor in block.successors:
            known = entry_states.get(successor)
            merged = state if known is None else [
                a if a is b else a.merged(b) for a, b in zip(known, state, strict=True)]
            if known is None or merged != known:
                entry_states[successor] = list(merged)
                pending.add(successor)
    walk.flow = Flow()
    walk.recording = True
    for number in cfg.order:
        state = list(entry_states[number])
        for index in range(cfg.blocks[number].start, cfg.blocks[number].end):
            walk.index = index
            walk.step(program.instructions[index], state)
    return walk.flow


def _entry_state(descriptor: KernelDescriptor) -> State:
    """Registers at entry (LLVM AMDGPUUsage, "Initial Kernel Execution State")."""
    state = [NOTHING] * REGISTER_COUNT
    at = 0
    for name, words in (("dispatch_ptr", 2), ("queue_ptr", 2), ("kernarg_segment_ptr", 2),
                        ("dispatch_id", 2), ("private_segment_size", 1)):
        if not getattr(descriptor, f"enable_sgpr_{name}"):
            continue
        if name == "kernarg_segment_ptr":
            state[at] = state[at + 1] = Value(av.KERNARG_ADDRESS, offset=0)
        at += words
    for k in range(descriptor.kernarg_preload_length):
        number = av.dword(descriptor.kernarg_preload_offset + k)
        state[at + k] = Value(number, number)
    at = descriptor.user_sgpr_count
    for axis, name in enumerate("xyz"):
        if getattr(descriptor, f"enable_sgpr_workgroup_id_{name}"):
            state[at] = Value(av.WORKGROUP_ID[axis])
            at += 1
    state[VGPR0] = Value(av.WORK_ITEM_ID)
    return state


class _Walk:
    """The transfer function, and what it records once the states are final."""

    def __init__(self, program: Program, pointers: frozenset[int]) -> None:
        self.program = program
        self.pointers = pointers
        self.pointer_mask = sum(av.dword(p) | av.dword(p + 1) for p in pointers)
        self.lds = NOTHING
        self.scratch: dict[str, Value] = {}
        self.flow = Flow()
        self.recording = False
        self.index = 0

    def reads_lds(self, start: int, end: int) -> bool:
        return any(i.unit is Unit.LDS and i.is_load for i in self.program.instructions[start:end])

    def step(self, instruction: Instruction, state: State) -> None:
        operands = instruction.operands
        if instruction.accesses_memory:
            self._memory(instruction, state)
            return
        if self.recording:
            self._record_uses(instruction, state)
        written = [r for r in members(instruction.writes) if not 124 <= r <= EXEC_HI + 2]
        if not written:
            return
        if instruction.op in MOVES:
            self._move(instruction, state)
            return
        destination = operands[0] if operands else None
        if (instruction.op.startswith(("v_cmp", "s_cmp")) or destination is None
                or destination.kind is not OperandKind.REGISTER):
            for register in written:
                state[register] = NOTHING
            return
        sources = [o for o in operands[1:] if o.kind is OperandKind.REGISTER
                   and not _is_mask(o)]
        if self._is_accumulating(instruction):
            sources.append(destination)
        low, everything = NOTHING, NOTHING
        for operand in sources:
            low = low.merged(state[operand.first])
            for k in range(operand.count):
                everything = everything.merged(state[operand.first + k])
        result = self._result(instruction, low, everything, state)
        high = self._result(instruction, everything, everything, state)
        offset = self._address_offset(instruction, state)
        for register in written:
            first = register == destination.first
            chosen = result if first and destination.count <= 2 else high
            if not destination.first <= register < destination.first + destination.count:
                chosen = NOTHING  # a carry
            elif first and offset is not None:
                chosen = Value(chosen.sources, offset=offset)
            state[register] = chosen

    @staticmethod
    def _is_accumulating(instruction: Instruction) -> bool:
        return bool(instruction.reads & instruction.writes) and instruction.op.startswith(
            ("v_fmac", "v_mac", "v_dot", "v_pk_fmac", "s_cmov", "s_addk", "s_mulk", "v_cvt_pk",
             "v_cvt_f32", "v_fma_mixhi", "v_mad_mixhi"))

    def _address_offset(self, instruction: Instruction, state: State) -> int | None:
        """An address into the kernarg stays one when a constant is added to it."""
        if instruction.op not in ("s_add_u32", "s_addc_u32"):
            return None
        for register, constant in (instruction.operands[1:3], instruction.operands[2:0:-1]):
            if (register.kind is OperandKind.REGISTER and constant.kind is OperandKind.CONSTANT
                    and (known := state[register.first].offset) is not None):
                return known + (constant.value if instruction.op == "s_add_u32" else 0)
        return None

    def _result(self, instruction: Instruction, value: Value, everything: Value,
                state: State) -> Value:
        op = instruction.op
        sources = value.sources
        if any(word.startswith(_MULTIPLIES) for word in op.split("_")[1:2]):
            sources = av.scaled(sources)
        constants = [_constant(o, state) for o in instruction.operands[1:]]
        kind, _ = operation_types(op)
        kinds = av.type_bit(kind) if kind is not None else 0
        shifted = 0
        match op:
            case "v_lshlrev_b32" if constants[:1] == [16]:
                shifted, kinds = everything.raw, 0
            case "v_lshlrev_b32":
                kinds = 0
            case "v_and_b32" if _UPPER_HALF in constants:
                shifted = everything.raw
                kinds = _BF16 if everything.kinds & _TO_BF16 else everything.kinds
            case "v_lshrrev_b32" if constants[:1] == [16] and everything.kinds & _TO_BF16:
                return Value(sources, kinds=_BF16)
            case "v_perm_b32" | "v_alignbit_b32" | "v_bfi_b32" | "v_and_or_b32" if (
                    everything.kinds & _TO_BF16
                    and not everything.kinds & ~(_TO_BF16 | _BF16)):
                if op == "v_and_or_b32" and _UPPER_HALF not in constants:
                    return Value(sources, kinds=av.ROUNDING)
                return Value(sources, kinds=_BF16)
            case "v_perm_b32" | "v_alignbit_b32" | "v_bfi_b32" | "v_and_or_b32" | "v_or_b32" \
                    | "v_lshl_or_b32" | "v_and_b32" | "v_lshrrev_b32" | "v_alignbyte_b32":
                kinds = everything.kinds
                if op in ("v_or_b32",) and kinds & _F32 and any(c is not None for c in constants):
                    kinds = av.ROUNDING
                if op in ("v_perm_b32", "v_alignbit_b32", "v_alignbyte_b32", "v_lshrrev_b32",
                          "v_and_b32"):
                    return Value(sources, everything.raw, kinds=kinds)
            case _ if op in _INTEGERS_OF_ROUNDING and everything.kinds & _TO_BF16 and (
                    not everything.kinds & ~(_TO_BF16 | _BF16)):
                kinds = av.ROUNDING
            case _ if op.startswith(("s_and", "s_or", "s_lsh", "s_ashr", "s_bfe")):
                kinds = 0
        return Value(sources, 0, shifted, kinds)

    def _move(self, instruction: Instruction, state: State) -> None:
        destination, *sources = instruction.operands
        if instruction.op in SELECTS:
            sources = sources[:2]
        if instruction.op in ("ds_bpermute_b32", "ds_permute_b32"):
            sources = sources[1:]
        registers = [o for o in sources if o.kind is OperandKind.REGISTER]
        if len(sources) == 1 and sources[0].kind is OperandKind.CONSTANT:
            for k in range(destination.count):
                state[destination.first + k] = Value(
                    constant=sources[0].value & _ONES if k == 0 else None)
            return
        moved = []
        for k in range(destination.count):
            value = NOTHING
            if instruction.op == "v_writelane_b32":  # the other lanes keep what they have
                value = state[destination.first]
            for operand in registers[k:k + 1] if instruction.op == "v_pk_mov_b32" else registers:
                part = state[operand.first + min(k, operand.count - 1)]
                value = part if value is NOTHING else value.merged(part)
            moved.append(value)
        for k, value in enumerate(moved):
            state[destination.first + k] = value

    def _memory(self, instruction: Instruction, state: State) -> None:
        if instruction.unit is Unit.LDS:
            self._lds(instruction, state)
            return
        found = memory_operands(instruction)
        written = list(members(instruction.writes & ~(7 << 124)))
        if found is None:
            self._scratch(instruction, written, state)
            return
        base = state[found.base.first]
        if instruction.unit is Unit.SMEM and base.sources & av.KERNARG_ADDRESS:
            self._kernarg_load(instruction, base, state)
            return
        high = state[found.base.first + 1].sources if found.base.count > 1 else base.sources
        offsets = NOTHING
        for operand in found.offsets:
            if operand.kind is OperandKind.REGISTER:
                for k in range(operand.count):
                    offsets = offsets.merged(state[operand.first + k])
        sources = base.sources | high | offsets.sources
        pointers = tuple(p for p in sorted(self.pointers)
                         if high & av.dword(p + 1) and base.sources & av.dword(p))
        memory = sum(av.contents(p) for p in pointers)
        if self.recording:
            self._record_access(instruction, found.data, sources, high, pointers, state)
            if found.resource:
                size = state[found.base.first + 2].sources
                self.flow.compared |= av.plain_dwords(size) | av.scaled_dwords(size)
        loaded = Value(memory, memory)
        for register in written:
            state[register] = loaded
        if instruction.modifier("lds") is not None or instruction.op.startswith("global_load_lds"):
            self.lds = self.lds.merged(loaded)

    def _kernarg_load(self, instruction: Instruction, base: Value, state: State) -> None:
        destination, _, offset = instruction.operands[:3]
        start = None
        if base.offset is not None and offset.kind is OperandKind.CONSTANT:
            start = base.offset + offset.value
        for k in range(destination.count):
            at = None if start is None else start // 4 + k
            bit = av.dword(at) if at is not None and 0 <= at < av.KERNARG_DWORDS else 0
            state[destination.first + k] = Value(bit, bit)

    def _lds(self, instruction: Instruction, state: State) -> None:
        written = [r for r in members(instruction.writes) if r >= VGPR0]
        if instruction.is_store or instruction.is_atomic:
            for operand in instruction.operands[1:]:
                if operand.kind is OperandKind.REGISTER:
                    for k in range(operand.count):
                        self.lds = self.lds.merged(state[operand.first + k])
        for register in written:
            state[register] = self.lds

    def _scratch(self, instruction: Instruction, written: list[int], state: State) -> None:
        """Spilled registers come back from where they went; of anything else nothing is known."""
        if not instruction.op.startswith("scratch_"):
            for register in written:
                state[register] = NOTHING
            return
        address = instruction.operands[1:] if instruction.is_load else instruction.operands[0::2]
        place = " ".join(o.text for o in address)
        start = instruction.modifier("offset")
        first = start if isinstance(start, int) else 0
        if instruction.is_load:
            for k, register in enumerate(written):
                state[register] = self.scratch.get(f"{place} {first + 4 * k}", NOTHING)
            return
        data = instruction.operands[1]
        for k in range(data.count):
            key = f"{place} {first + 4 * k}"
            value = state[data.first + k]
            old = self.scratch.get(key)
            self.scratch[key] = value if old is None else old.merged(value)

    def _record_access(self, instruction: Instruction, data: Operand | None, sources: int,
                       high: int, pointers: tuple[int, ...], state: State) -> None:
        stored = NOTHING
        if data is not None and data.kind is OperandKind.REGISTER:
            for k in range(data.count):
                stored = stored.merged(state[data.first + k])
        kinds = stored.kinds
        if instruction.op.endswith("_d16_hi") and kinds & _TO_BF16 and not kinds & _HALVES:
            kinds = kinds & ~_TO_BF16 | _BF16
        plain = av.plain_dwords(sources) & ~self.pointer_mask
        self.flow.addressing |= plain
        self.flow.strides |= av.scaled_dwords(sources) & ~self.pointer_mask
        self.flow.used |= av.plain_dwords(sources) | av.scaled_dwords(sources)
        self.flow.used |= av.plain_dwords(stored.sources) | av.scaled_dwords(stored.sources)
        self.flow.workgroup_ids |= (sources | stored.sources) & _WORKGROUP_IDS
        added = _atomic_kind(instruction)
        for kind in av.TYPES:
            if kind.is_float and added & av.type_bit(kind) and stored.raw:
                self._vote(stored.raw, kind)
        self.flow.accesses.append(Access(
            self.index, instruction.is_store or instruction.is_atomic,
            instruction.is_load or instruction.is_atomic, access_bytes(instruction) or 4,
            pointers, tuple(members(av.contents_dwords(sources))), av.plain_dwords(high),
            kinds | added, stored.raw))

    def _record_uses(self, instruction: Instruction, state: State) -> None:
        op = instruction.op
        compares = op.startswith(("v_cmp", "s_cmp")) or "min" in op or "max" in op
        _, expected = operation_types(op)
        operands = instruction.operands if op.startswith(("s_cmp", "s_bitcmp")) \
            else instruction.operands[1:]
        mixed = instruction.modifier("op_sel_hi") if op.startswith("v_fma_mix") else None
        factors = operands[:2] if op.startswith(("v_mfma", "v_smfmac")) else operands
        for number, operand in enumerate(operands):
            if operand.kind is not OperandKind.REGISTER or _is_mask(operand):
                continue
            if isinstance(mixed, tuple):
                expected = ElementType.F16 if mixed[number] else ElementType.F32
            for k in range(operand.count):
                value = state[operand.first + k]
                dwords = av.plain_dwords(value.sources)
                self.flow.used |= dwords | av.scaled_dwords(value.sources)
                if compares:
                    self.flow.workgroup_ids |= value.sources & _WORKGROUP_IDS
                if compares and (op.startswith("s_cmp") or self._branches_at_once(op)):
                    # A branch decided by memory: how much is done depends on what is there.
                    self.flow.data_dependent_branches |= av.contents_dwords(value.sources)
                if compares and "_eq_" not in op and "_lg_" not in op and "_ne_" not in op:
                    self.flow.compared |= dwords
                elif compares:
                    self.flow.tested |= dwords
                if expected is None or op in MOVES or operand not in factors:
                    continue
                if value.shifted and expected is ElementType.F32:
                    self._vote(value.shifted, ElementType.BF16)
                elif value.raw:
                    self._vote(value.raw, expected)

    def _branches_at_once(self, op: str) -> bool:
        """Whether all lanes take a branch by this comparison, not each its own part of a wave."""
        following = self.program.instructions[self.index + 1:self.index + 3]
        return op.startswith("v_cmp") and any(
            i.op in ("s_cbranch_vccz", "s_cbranch_vccnz") for i in following)

    def _vote(self, raw: int, kind: ElementType) -> None:
        for bit in members(raw):
            self.flow.votes.setdefault(bit, Counter())[kind] += 1


def _is_mask(operand: Operand) -> bool:
    """VCC, EXEC and M0 hold lanes and indices, not data."""
    return 104 <= operand.first < VGPR0


def _constant(operand: Operand, state: State) -> int | None:
    if operand.kind is OperandKind.CONSTANT:
        return operand.value & _ONES
    return state[operand.first].constant if operand.kind is OperandKind.REGISTER else None


def _atomic_kind(instruction: Instruction) -> int:
    if not instruction.is_atomic:
        return 0
    for word, kind in (("f32", ElementType.F32), ("f64", ElementType.F64),
                       ("f16", ElementType.F16), ("bf16", ElementType.BF16)):
        if word in instruction.op.split("_"):
            return av.type_bit(kind)
    return av.type_bit(ElementType.I32)


def votes_for(flow: Flow, bit: int) -> Mapping[ElementType, int]:
    """What was taken for which type; ``bit`` is a set of one."""
    return flow.votes.get(bit.bit_length() - 1, Counter())
