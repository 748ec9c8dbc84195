"""Which kernel YAML declares the kernel of a tuner's row, and with what values."""

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
    """A YAML of ``conf/kernel/`` and the overrides that make it the kernel and shape of a row."""

    name: str
    overrides: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class _Rule:
    """For kernels that ``pattern`` matches: the YAML ``name``.

    Groups of ``pattern`` with an upper-case name are constants of the YAML, the others choices.
    ``constants``, ``choices`` and ``shape`` give more of them, as expressions over the row's sizes,
    the constants and CU, the number of compute units; a shape of the YAML has no other variables.
    """

    pattern: str
    name: str
    shape: Mapping[str, str]
    constants: Mapping[str, str] = field(default_factory=dict)
    choices: Mapping[str, str] = field(default_factory=dict)


_PRODUCT = {"M": "M", "N": "N", "K": "K"}
_SPLIT = {"S": "S"}
_EXPERTS = {"T": "T", "D": "D", "I": "I", "E": "E", "K": "K"}
_PARTS = {"T": "T", "D": "D", "P": "I / N", "E": "E", "K": "K"}
_ATTENTION = {"B": "B", "S": "S", "T": "T", "H": "H", "R": "R"}

_RULES = (
    _Rule(r"I8gemm_bf16_perTokenI8_BpreShuffle_(?P<R>\d+)x(?P<C>\d+)",
          "aiter_i8gemm_public", _PRODUCT, _SPLIT),
    _Rule(r"fp8gemm_bf16_blockscale_BpreShuffle_(?P<R>\d+)x128",
          "aiter_fp8gemm_blockscale", _PRODUCT, _SPLIT),
    _Rule(r"fmoe_stage1_bf16_pertokenFp8_g1u1_(?P<M>\d+)x(?P<N>\d+)_(?P<variant>\w+)",
          "aiter_fmoe_stage1", _PARTS),
    _Rule(r"fwd_hd128_bf16_(?P<mask>full|causal)", "aiter_fmha_fwd_bf16", _ATTENTION),
)
_SPLITTING = frozenset({"aiter_i8gemm_public", "aiter_fp8gemm_blockscale"})


def declaration(row: TunedRow) -> Declaration:
    """Raises `UnknownKernelError` naming the kernel."""
    for rule in _RULES:
        match = re.fullmatch(rule.pattern, row.kernel)
        if match is not None:
            return _declaration(rule, match, row)
    raise UnknownKernelError(f"no kernel YAML declares '{row.kernel}'")


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
    ))
