"""Analyses of the programs that were looked at last, for questions that follow one another."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import Any, Generic, TypeVar

T = TypeVar("T")


class Recent(Generic[T]):
    """What was made of the last few objects, which are told apart by identity.

    For immutable objects whose comparison would cost as much as the analysis. It keeps them alive.
    """

    def __init__(self, most: int) -> None:
        self._kept: deque[tuple[tuple[Any, ...], T]] = deque(maxlen=most)

    def get(self, make: Callable[[], T], *objects: Any) -> T:
        """What ``make`` made when it was last asked for these objects."""
        for known, made in tuple(self._kept):
            if all(a is b for a, b in zip(known, objects, strict=True)):
                return made
        made = make()
        self._kept.appendleft((objects, made))
        return made
