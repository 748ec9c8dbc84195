"""The opcode table: every operation AsmEvo knows, by name without encoding suffix.

One table serves all processors of :mod:`asmevo.isa.targets`.
"""

from __future__ import annotations

from collections.abc import Mapping

from asmevo.isa.form import Form
from asmevo.isa.memory_ops import MEMORY_FORMS
from asmevo.isa.scalar_ops import SCALAR_FORMS
from asmevo.isa.vector_ops import VECTOR_FORMS

OPCODES: Mapping[str, Form] = SCALAR_FORMS | VECTOR_FORMS | MEMORY_FORMS

# What LLVM decodes and the model refuses by name: a register that only M0 knows, control flow
# through hidden stacks, trap returns, address translation, and half of a scaled matrix operation.
UNMODELLED = frozenset({
    "s_movrels_b32", "s_movrels_b64", "s_movreld_b32", "s_movreld_b64", "s_cbranch_g_fork",
    "s_cbranch_i_fork", "s_cbranch_join", "s_rfe_b64", "s_rfe_restore_b64", "s_atc_probe",
    "s_atc_probe_buffer", "s_dcache_discard", "s_dcache_discard_x2", "v_mfma_ld_scale_b32",
})

ENCODING_SUFFIXES = ("e32", "e64", "dpp", "sdwa")


def find(mnemonic: str) -> tuple[str, str, Form] | None:
    """Operation, encoding and form of a mnemonic; ``None`` when it is not in the table.

    The encoding is ``""`` when the mnemonic has no suffix.
    """
    form = OPCODES.get(mnemonic)
    if form is not None:
        return mnemonic, "", form
    op, _, suffix = mnemonic.rpartition("_")
    form = OPCODES.get(op)
    if form is None or not form.suffixed or suffix not in ENCODING_SUFFIXES:
        return None
    return op, suffix, form
