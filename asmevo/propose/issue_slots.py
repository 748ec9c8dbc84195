"""How many issue slots of four cycles a result needs until it can be used."""

from __future__ import annotations

from asmevo.isa.instruction import Instruction, Unit
from asmevo.isa.registers import SGPR_LIMIT, VCC_MASK

# Issue slots of four cycles until a result can be used: a heuristic for ordering only, rounded
# from the latencies of an L2 hit, the scalar cache and LDS.
_LATENCY = {
    Unit.VMEM: 120, Unit.FLAT: 120, Unit.SMEM: 40, Unit.LDS: 16, Unit.TRANS: 4, Unit.MFMA: 8,
    Unit.VALU: 2,
}
_VALU = (Unit.VALU, Unit.TRANS, Unit.MFMA)
_SCALARS = VCC_MASK | ((1 << SGPR_LIMIT) - 1)
_LANE_READS = ("v_readlane_b32", "v_readfirstlane_b32")


def slots_between(producer: Instruction, consumer: Instruction) -> int:
    """Slots from issuing one instruction to issuing another that depends on it."""
    shared = producer.writes & consumer.reads
    if not shared:
        return 1
    distance = _LATENCY.get(producer.unit, 1) if producer.unit in _VALU or producer.is_load else 1
    if producer.unit in _VALU:
        if consumer.encoding == "dpp" or (shared & _SCALARS and consumer.unit in _VALU):
            distance = max(distance, 3)
        elif consumer.op in _LANE_READS:
            distance = max(distance, 2)
        elif shared & _SCALARS and consumer.unit is Unit.VMEM:
            distance = max(distance, 6)
    return distance
