"""Values that a column of JSON can hold."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from asmevo.registry.errors import RegistryError

if TYPE_CHECKING:
    from asmevo.gates.verdict import JsonValue


def json_object(value: Mapping[str, JsonValue]) -> dict[str, Any]:
    """A copy that standard JSON can hold.

    JSON has no infinities and no NaN; they become the strings ``inf``, ``-inf`` and ``nan``. Any
    other type that JSON lacks raises `RegistryError`.
    """
    return {str(key): json_value(item) for key, item in value.items()}


def json_value(value: object) -> Any:
    """`json_object` for any value."""
    if isinstance(value, Mapping):
        return json_object(value)
    if isinstance(value, list | tuple):
        return [json_value(item) for item in value]
    if isinstance(value, float):
        return float(value) if math.isfinite(value) else str(float(value))
    if value is None or isinstance(value, bool | int | str):
        return value
    raise RegistryError(f"a record holds a value of type {type(value).__name__}, which is not JSON")
