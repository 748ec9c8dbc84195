"""The mathematical operation behind a kernel, as its YAML names it."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]
Arrays = Mapping[str, Array]
# Constants, shape variables and scalar arguments of one dispatch, by name.
Names = Mapping[str, int | float]


class Operation(ABC):
    """What a kernel computes, written without a look at its code.

    Buffers are flat arrays of their element's dtype (`ElementType.dtype`), by the names that the
    kernel's YAML gives them.
    """

    def prepare(self, arrays: Arrays, names: Names, rng: np.random.Generator) -> Arrays:
        """Contents for buffers whose random bytes would mean nothing: tables of indices, scales,
        blocks in a special order, outputs that the host clears. The others keep what they have.

        ``arrays`` holds what was generated for every buffer; sizes and dtypes may not change.
        """
        return {}

    @abstractmethod
    def reference(self, arrays: Arrays, names: Names) -> Arrays:
        """What the written buffers should hold, computed in float64 (or exact integers) from
        ``arrays``, the memory before the launch. NaN marks elements that mean nothing, such as
        padding; a buffer that is left out is not checked.
        """
