"""An inferred declaration as the YAML that a person would have written."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import fields
from typing import Any

from omegaconf import OmegaConf

from asmevo.dispatch.inferred.inference import Inferred
from asmevo.dispatch.kernel import Buffer, Launch, Scalar

_HEAD = """\
# What was inferred of a kernel that declares nothing: the keys below can be copied into a kernel's
# YAML and corrected there. Every fact with how sure it is:
"""


def declaration_text(inferred: Inferred) -> str:
    """The declaration and, as comments, the facts it consists of."""
    kernel = inferred.kernel
    facts = "".join(f"#   {' '.join(str(fact).split())}\n" for fact in inferred.facts)
    assert kernel.launch is not None
    content: dict[str, Any] = {
        "symbol": kernel.symbol,
        "launch": _given(kernel.launch),
        "buffers": [_given(buffer) for buffer in kernel.buffers],
        "scalars": [_given(scalar) for scalar in kernel.scalars],
        "shapes": [dict(shape) for shape in kernel.shapes],
        "held_out_shapes": [dict(shape) for shape in kernel.held_out_shapes],
    }
    return _HEAD + facts + OmegaConf.to_yaml(OmegaConf.create(content))


def _given(part: Launch | Buffer | Scalar) -> Mapping[str, Any]:
    """The keys that differ from their defaults."""
    return {f.name: _plain(getattr(part, f.name)) for f in fields(part)
            if getattr(part, f.name) != f.default}


def _plain(value: object) -> object:
    if isinstance(value, str):
        return str(value)  # not the enumeration that it may be
    if isinstance(value, Sequence):
        return [_plain(item) for item in value]
    return value
