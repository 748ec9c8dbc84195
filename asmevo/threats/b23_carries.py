"""B23: sums of addresses lose their carry, right while no buffer crosses a line of 4 GiB."""

from __future__ import annotations

from asmevo.gates.verdict import Gate
from asmevo.threats.threat import Threat
from asmevo.threats.trick import Rewritten, edited, replaced
from asmevo.threats.weaker import Weaker

_LOST = ("lost-carry", "fault-memory", "fault-crash")
_STEP = "v_lshl_add_u64 v[4:5], v[4:5], 0, "
# Upper words of the addresses of the rows of a workgroup.
_ROWS = {"input": "s17", "residual": "s37", "sum": "s33", "output": "s13"}

THREATS = (
    *(Threat("B23", f"the address of the {what} does not carry", "layer_norm",
             edited(replaced(f"s_addc_u32 {high}, 0, {high}", "s_nop 0")),
             Gate.G2, _LOST, Weaker.STATIC) for what, high in _ROWS.items()),
    Threat("B23", "no address carries", "layer_norm",
           Rewritten(lambda line: "s_nop 0" if line in {
               f"s_addc_u32 {high}, 0, {high}" for high in _ROWS.values()} else line),
           Gate.G2, _LOST, Weaker.STATIC),
    Threat("B23", "the steps of a vector's address do not carry", "softmax",
           Rewritten(lambda line: ("v_add_u32_e32 v4, 0x800, v4" if line.startswith(_STEP)
                                   else line)),
           Gate.G2, _LOST, Weaker.STATIC),
)
