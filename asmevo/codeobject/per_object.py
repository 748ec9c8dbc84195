"""What is worked out about a code object, kept for as long as the object is."""

from __future__ import annotations

import functools
import threading
import weakref
from collections.abc import Callable
from typing import TypeVar

from asmevo.codeobject.container import CodeObject

T = TypeVar("T")

# Listings and texts are many times an object's size, so few of them may be kept.
_LIMIT = 4


def per_object(compute: Callable[[CodeObject], T]) -> Callable[[CodeObject], T]:
    """Remember the result for the last few objects, and forget it with the object itself.

    A plain cache would hold the largest objects of a corpus until others push them out. The result
    must not refer to the object.
    """
    known: weakref.WeakKeyDictionary[CodeObject, T] = weakref.WeakKeyDictionary()
    lock = threading.Lock()

    @functools.wraps(compute)
    def remembered(code_object: CodeObject) -> T:
        with lock:
            if code_object in known:
                return known[code_object]
        result = compute(code_object)
        with lock:
            known[code_object] = result
            while len(known) > _LIMIT:
                known.pop(next(known.keys()), None)
        return result

    return remembered
