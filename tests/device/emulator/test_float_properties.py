"""Any operands in any mode: fused operations of each format against exact rationals."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.device.emulator import exact_float as exact
from tests.device.emulator.exact_float import HALF, SINGLE, WIDE, Format, Mode

if TYPE_CHECKING:
    from tests.device.emulator.conftest import Bench

FORMATS = {"f16": HALF, "f32": SINGLE, "f64": WIDE}


def operand(form: Format) -> st.SearchStrategy[int]:
    """Specials, numbers next to them and next to each other's ties, and any bits."""
    near = st.builds(lambda x, d: (x + d) % (1 << form.width),
                     st.sampled_from(exact.specials(form)), st.integers(-2, 2))
    sparse = st.builds(
        lambda sign, field, high, low: sign * form.sign | field << form.mantissa
        | high << form.mantissa - 2 & (1 << form.mantissa) - 1 | low,
        st.integers(0, 1), st.integers(0, (1 << form.exponent) - 1), st.integers(0, 3),
        st.integers(0, 3))
    return near | sparse | st.integers(0, (1 << form.width) - 1)


@pytest.mark.parametrize("name", FORMATS)
@given(data=st.data(), fields=st.integers(0, 255))
@settings(max_examples=40, deadline=None,
          suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_fused(bench: Bench, name: str, data: st.DataObject, fields: int) -> None:
    form = FORMATS[name]
    bench.mode = fields
    shift = 0 if name == "f32" else 2
    mode = Mode.of(fields >> shift & 3, fields >> 4 + shift & 3)
    triples = data.draw(st.lists(st.tuples(*[operand(form)] * 3), min_size=8, max_size=8))
    a, b, c = (np.resize(np.array(column, np.uint64), 64)
               for column in zip(*triples, strict=True))
    registers = [f"v[{r}:{r + 1}]" if name == "f64" else f"v{r}" for r in (20, 2, 4, 6)]
    vector = {k: v for r, column in ((2, a), (4, b), (6, c), (20, a * np.uint64(0)))
              for k, v in exact.words(form, r, column).items()}
    found = bench.run([f"v_fma_{name} {', '.join(registers)}"], vector=vector,
                      vector_out=[20, 21]).vector
    np.testing.assert_array_equal(
        exact.joined(form, found, 20)[:8],
        exact.rows(lambda *v: exact.fma(form, mode, *v), a, b, c)[:8])
