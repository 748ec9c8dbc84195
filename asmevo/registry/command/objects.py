"""Objects by the first digits of their SHA-256."""

from __future__ import annotations

from typing import TYPE_CHECKING

from asmevo.registry.errors import RegistryError

if TYPE_CHECKING:
    from asmevo.registry.records import ObjectRecord
    from asmevo.registry.registry import Registry

MIN_PREFIX = 6


def find_object(registry: Registry, prefix: str) -> ObjectRecord | None:
    """The only object that ``prefix`` abbreviates; raises `RegistryError` where it is none."""
    if not is_prefix(prefix):
        raise RegistryError(f"{prefix[:80]!r} is not a SHA-256 or its first {MIN_PREFIX} or more "
                            "digits")
    found = registry.find_objects(prefix)
    if len(found) > 1:
        raise RegistryError(f"{len(found)} objects have a SHA-256 that starts with {prefix}")
    return found[0] if found else None


def is_prefix(text: str) -> bool:
    """Whether ``text`` can abbreviate a SHA-256."""
    return MIN_PREFIX <= len(text) <= 64 and not set(text.lower()) - set("0123456789abcdef")
