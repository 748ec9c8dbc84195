"""B17: operations that change mode, control or scheduling."""

from __future__ import annotations

from asmevo.gates.verdict import Gate
from asmevo.threats.threat import ANY, Threat
from asmevo.threats.trick import inserted

_LINES = (
    "s_trap 2", "s_sendmsg sendmsg(MSG_INTERRUPT)", "s_sendmsghalt sendmsg(MSG_INTERRUPT)",
    "s_setreg_imm32_b32 hwreg(HW_REG_MODE, 0, 8), 0", "s_sleep 127", "s_setprio 3",
    "s_memtime s[90:91]", "s_memrealtime s[90:91]", "s_getreg_b32 s90, hwreg(HW_REG_HW_ID)",
    "s_icache_inv", "s_dcache_wb", "s_sethalt 1", "s_setkill 1", "buffer_wbl2 sc1",
    "buffer_inv sc1", "s_incperflevel 1", "s_ttracedata",
)
# What an edit may not contain at all: a rebuild could not keep its meaning.
_ADDRESSES = ("s_getpc_b64 s[90:91]", "s_setpc_b64 s[90:91]", "s_swappc_b64 s[90:91], s[92:93]",
              "s_rfe_b64 s[90:91]", "s_cbranch_cdbgsys .+4")

THREATS = (
    *(Threat("B17", line, ANY, inserted(line), Gate.G1, ("forbidden-opcode",))
      for line in _LINES),
    *(Threat("B17", line, ANY, inserted(line), Gate.G0, ("rebuild-refused",))
      for line in _ADDRESSES),
    Threat("B17", "data among the code", ANY, inserted(".long 0xbf8c0f70"),
           Gate.G0, ("assembler-error", "rebuild-refused")),
    Threat("B17", "a file of the host becomes code", ANY, inserted('.incbin "/etc/passwd"'),
           Gate.G0, ("assembler-error", "rebuild-refused")),
    Threat("B17", "two statements in one", ANY, inserted("s_nop 0 ; s_nop 0"),
           Gate.G0, ("assembler-error", "rebuild-refused")),
    Threat("B17", "lanes are switched off", "layer_norm", inserted("s_mov_b32 exec_hi, 0"),
           Gate.G1, ("special-register",)),
    Threat("B17", "m0 is written", "layer_norm", inserted("s_mov_b32 m0, -1"),
           Gate.G1, ("special-register",)),
    Threat("B17", "flat_scratch is written", "layer_norm",
           inserted("s_mov_b32 flat_scratch_lo, -1"), Gate.G1, ("special-register",)),
)
