"""Checked access to fields of files that anybody may have written."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

from asmevo.profile.errors import ProfileError

UINT64 = 1 << 64
_SHOWN = 40


def check_file(path: Path, longest: int) -> None:
    """Raises ProfileError for what is no file, or one of more than ``longest`` bytes."""
    try:
        if not path.is_file():
            raise ProfileError(f"{path} cannot be read: it is not a file")
        if path.stat().st_size > longest:
            raise ProfileError(f"{path} is longer than {longest >> 20} MiB")
    except (OSError, ValueError) as error:
        raise ProfileError(f"{path} cannot be read: {error}") from None


class Fields:
    """The fields of one object of a file; ``place`` says in words which one it is."""

    def __init__(self, values: Any, path: Path, place: str) -> None:
        if not isinstance(values, dict):
            raise ProfileError(f"{path.name}: {place} is not an object of named fields")
        self._values = values
        self._path = path
        self._place = place

    def has(self, name: str) -> bool:
        return self._values.get(name) is not None

    def integer(self, name: str, low: int = 0, high: int = UINT64 - 1) -> int:
        """A whole number from ``low`` to ``high``, written as a number or as digits."""
        value = self._value(name)
        if isinstance(value, str) and value.isascii() and value.isdigit() and len(value) <= 20:
            value = int(value)
        if isinstance(value, bool) or not isinstance(value, int) or not low <= value <= high:
            raise self._wrong(name, f"a whole number from {low} to {high}", value)
        return value

    def number(self, name: str) -> float:
        """A finite number that is not negative."""
        value = self._value(name)
        if isinstance(value, str):
            try:
                value = float(value)
            except ValueError:
                raise self._wrong(name, "a number", value) from None
        if isinstance(value, bool) or not isinstance(value, (int, float)):
            raise self._wrong(name, "a number", value)
        try:
            found = float(value)
        except OverflowError:
            found = math.inf
        if not math.isfinite(found) or found < 0:
            raise self._wrong(name, "a finite number that is not negative", value)
        return found

    def text(self, name: str) -> str:
        value = self._value(name)
        if not isinstance(value, str):
            raise self._wrong(name, "a text", value)
        return value

    def flag(self, name: str) -> bool:
        """A truth value, also written as 0 or 1."""
        value = self._value(name)
        return value if isinstance(value, bool) else bool(self.integer(name, 0, 1))

    def inner(self, name: str) -> Fields:
        return Fields(self._value(name), self._path, f"{name} of {self._place}")

    def items(self, name: str) -> list[Any]:
        """A list, empty when there is no such field."""
        value = self._values.get(name)
        if value is None:
            return []
        if not isinstance(value, list):
            raise self._wrong(name, "a list", value)
        return value

    def entries(self, name: str) -> list[Fields]:
        return [Fields(value, self._path, f"{name}[{k}]")
                for k, value in enumerate(self.items(name))]

    def _value(self, name: str) -> Any:
        if name not in self._values or self._values[name] is None:
            raise ProfileError(f"{self._path.name}: {self._place} has no {name}")
        return self._values[name]

    def _wrong(self, name: str, wanted: str, value: object) -> ProfileError:
        shown = repr(value)
        shown = shown if len(shown) <= _SHOWN else shown[:_SHOWN] + "..."
        return ProfileError(
            f"{self._path.name}: {name} of {self._place} must be {wanted}, not {shown}")
