"""Which kernel YAMLs declare what a row of the table launched, and with what values."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field

from asmevo.dispatch.expression import evaluate
from asmevo.errors import AsmEvoError
from asmevo.validation.tuned_rows import TunedRow


class UnknownKernelError(AsmEvoError):
    """No kernel YAML declares the kernel of a row."""


@dataclass(frozen=True, slots=True)
class Declaration:
    """A YAML of ``conf/kernel/`` and the overrides that make it the kernel and shape of a row.

    ``cleared``: bytes of the output that the same call clears before, in a kernel of its own.
    """

    name: str
    overrides: tuple[str, ...]
    cleared: int = 0


@dataclass(frozen=True, slots=True)
class _Rule:
    """For kernels that ``pattern`` matches: the YAML ``name``.

    Groups of ``pattern`` with an upper-case name are constants of the YAML, the others choices.
    ``constants``, ``choices`` and ``shape`` give more of them, as expressions over the row's sizes,
    the constants and CU, the number of compute units; a shape of the YAML has no other variables.
    ``cleared`` is that of the declaration.
    """

    pattern: str
    name: str
    shape: Mapping[str, str]
    constants: Mapping[str, str] = field(default_factory=dict)
    choices: Mapping[str, str] = field(default_factory=dict)
    cleared: str = "0"


_PRODUCT = {"M": "M", "N": "N", "K": "K"}
_SPLIT = {"S": "S"}
_EXPERTS = {"T": "T", "D": "D", "I": "I", "E": "E", "K": "K"}
_PARTS = {"T": "T", "D": "D", "P": "I / N", "E": "E", "K": "K"}
_ROWS = {"B": "B", "S": "S", "H": "H"}
# The output in bf16: of a product whose depth is shared, and of experts, who all add to it.
_IF_SPLIT = "2 * M * N * min(1, S - 1)"
_TOKENS = "2 * T * D"
_PERSISTENT = {"G": "CU"}
_ATTENTION = {"B": "B", "S": "S", "T": "T", "H": "H", "R": "R"}

_RULES = (
    _Rule(r"I8gemm_bf16_perTokenI8_BpreShuffle_(?P<R>\d+)x(?P<C>\d+)",
          "aiter_i8gemm_public", _PRODUCT, _SPLIT, cleared=_IF_SPLIT),
    _Rule(r"fp8gemm_bf16_blockscale_BpreShuffle_(?P<R>\d+)x128",
          "aiter_fp8gemm_blockscale", _PRODUCT, _SPLIT, cleared=_IF_SPLIT),
    _Rule(r"fmoe_stage1_bf16_pertokenFp8_g1u1_(?P<M>\d+)x(?P<N>\d+)_(?P<variant>\w+)",
          "aiter_fmoe_stage1", _PARTS),
    _Rule(r"fmoe_stage1_bf16_pertokenInt8_g1u1_(?P<M>\d+)x(?P<N>\d+)_(?P<variant>\w+)",
          "aiter_fmoe_stage1_int8", _PARTS),
    _Rule(r"fmoe_stage1_bf16_pertokenFp8_doweight_g1u1_(?P<M>\d+)x(?P<N>\d+)_(?P<variant>\w+)",
          "aiter_fmoe_stage1_doweight", _PARTS),
    _Rule(r"fmoe_stage1_bf16_pertokenFp8_blockscale_g1u1_(?P<M>\d+)x(?P<N>\d+)_(?P<variant>\w+)",
          "aiter_fmoe_stage1_blockscale", _PARTS),
    _Rule(r"fmoe_bf16_pertokenFp8_g1u1_vs_silu_1tg_32x(?P<N>\d+)", "aiter_fmoe_fp8", _PARTS,
          cleared=_TOKENS),
    _Rule(r"fmoe_bf16_blockscaleFp8_g1u1_(?P<variant>(no)?vs_silu_1tg)_(?P<R>\d+)x(?P<N>\d+)",
          "aiter_fmoe_blockscale", _EXPERTS, cleared=_TOKENS),
    _Rule(r"fmoe_bf16_blockscaleFp8_g1u1_(?P<variant>(no)?vs_silu_1tg_ps)_(?P<R>\d+)x(?P<N>\d+)",
          "aiter_fmoe_blockscale_ps", _EXPERTS, _PERSISTENT, cleared=_TOKENS),
    # Symbols that do not have the names of their files.
    _Rule(r"fmoe_bf16_blockscaleFp8_g1u1_vs_silu_(?P<R>64)x(?P<N>256)",
          "aiter_fmoe_blockscale", _EXPERTS, choices={"variant": "vs_silu_1tg"},
          cleared=_TOKENS),
    _Rule(r"fmoe_bf16_blockscaleFp8_g1u1_vs_ps_silu_(?P<R>64)x(?P<N>256)",
          "aiter_fmoe_blockscale_ps", _EXPERTS, _PERSISTENT, {"variant": "vs_silu_1tg_psx"},
          cleared=_TOKENS),
    _Rule(r"bf16gemm_fp32bf16_tn_(?P<R>\d+)x64_splitk_clean", "aiter_bf16gemm", _PRODUCT, _SPLIT),
    # The README's commands leave rounding at ties away from zero forwards and cut backwards.
    _Rule(r"fwd_hd128_bf16_(?P<mask>full|causal)", "aiter_fmha_fwd_bf16", _ATTENTION,
          choices={"rounding": "rtna"}),
    _Rule(r"bwd_hd128_bf16_\w+", "aiter_fmha_bwd_odo", _ROWS),
    _Rule(r"bwd_hd128_bf16_full_a16", "aiter_fmha_bwd_a16", _ATTENTION,
          choices={"mask": "full", "rounding": "rtz"}),
    _Rule(r"bwd_hd128_bf16_causal_a16", "aiter_fmha_bwd_a16", _ATTENTION,
          choices={"mask": "top_left", "rounding": "rtz"}),
    _Rule(r"bwd_hd128_bf16_full_a32", "aiter_fmha_bwd", _ATTENTION,
          choices={"mask": "full", "rounding": "rtz"}),
    _Rule(r"bwd_hd128_bf16_causal_a32", "aiter_fmha_bwd", _ATTENTION,
          choices={"mask": "top_left", "rounding": "rtz"}),
    _Rule(r"bwd_hd128_bf16_\w+_a32", "aiter_fmha_bwd_dq_convert", _ROWS,
          choices={"rounding": "rtz"}),
)
_SPLITTING = frozenset({"aiter_i8gemm_public", "aiter_fp8gemm_blockscale"})


def declarations(row: TunedRow) -> tuple[Declaration, ...]:
    """The kernels of a row, in the order of their launches: attention backward has several.

    Raises `UnknownKernelError` naming the row's kernel.
    """
    found = tuple(_declaration(rule, match, row) for rule in _RULES
                  if (match := re.fullmatch(rule.pattern, row.kernel)) is not None)
    if not found:
        raise UnknownKernelError(f"no kernel YAML declares '{row.kernel}'")
    return found


def _declaration(rule: _Rule, match: re.Match[str], row: TunedRow) -> Declaration:
    named = match.groupdict()
    constants = {name: int(value) for name, value in named.items() if name.isupper()}
    choices = {name: value for name, value in named.items() if not name.isupper()}
    # A size of the row may have the name of a constant of the YAML, which counts in expressions.
    known = {**row.sizes, "CU": row.compute_units, **constants}
    shape = {name: evaluate(value, {**known, **row.sizes} if name == value else known)
             for name, value in rule.shape.items()}
    constants |= {name: evaluate(value, known) for name, value in rule.constants.items()}
    choices |= rule.choices
    split = rule.name in _SPLITTING and constants.get("S", 1) > 1
    name = f"{rule.name}_splitk" if split else rule.name
    sizes = ",".join(f"{key}: {value}" for key, value in shape.items())
    return Declaration(name, (
        *(f"kernel.constants.{key}={value}" for key, value in constants.items()),
        *(f"kernel.choices.{key}={value}" for key, value in choices.items()),
        f"kernel.shapes=[{{{sizes}}}]", "kernel.held_out_shapes=[]",
    ), evaluate(rule.cleared, row.sizes))
