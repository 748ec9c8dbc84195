"""What every file that carries code objects has in common."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

SEPARATOR = "!"

_SHOWN = 8


class Container(Protocol):
    """Bytes with named members inside. ``names`` are distinct and in file order."""

    @property
    def names(self) -> tuple[str, ...]: ...

    def start(self, name: str) -> bytes:
        """At least the first 64 bytes of a member, or all of a shorter one."""
        ...

    def read(self, name: str) -> memoryview:
        """A member. Raises `BundleError` when there is no such member or it is damaged."""
        ...

    def room(self, name: str) -> int | None:
        """How many bytes a replacement of the member may have; None when nothing limits it."""
        ...

    def replaced(self, name: str, content: bytes, limit: int | None) -> bytes:
        """The container with another member, at most ``limit`` bytes long, all else unchanged.

        Raises `ReplacementError` when the container cannot hold it.
        """
        ...


def quote(name: str) -> str:
    """A file name as one part of a member path."""
    return name.replace("%", "%25").replace(SEPARATOR, "%21")


def listed(names: Sequence[str]) -> str:
    """The first few names, and how many more there are, for an error about another name."""
    more = f" and {len(names) - _SHOWN} more" if len(names) > _SHOWN else ""
    return (", ".join(f"'{name}'" for name in names[:_SHOWN]) or "none") + more


def unique(names: Sequence[str]) -> tuple[str, ...]:
    """Names told apart: the second ``a.o`` becomes ``a.o[1]``."""
    taken = set(names)
    seen: set[str] = set()
    counts: dict[str, int] = {}
    result = []
    for name in names:
        own = name
        while own in seen or (own != name and own in taken):
            counts[name] = counts.get(name, 0) + 1
            own = f"{name}[{counts[name]}]"
        seen.add(own)
        result.append(own)
    return tuple(result)
