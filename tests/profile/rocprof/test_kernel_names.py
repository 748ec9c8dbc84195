"""Names of kernels in recordings; mangled names and their meaning as `c++filt` has them."""

from __future__ import annotations

import pytest

from asmevo.profile.errors import ProfileError
from asmevo.profile.rocprof.kernel_names import qualified_name, recorded_names


@pytest.mark.parametrize(("symbol", "name"), [
    ("_Z5scalePff", "scale"),
    ("_ZN5aiter7mha_fwdE", "aiter::mha_fwd"),
    ("_ZN1a1b1cEPKfi", "a::b::c"),
    ("_Z3addIfEvPT_", None),  # void add<float>(float*)
    ("_ZN5aiter3addIfEEvPT_", None),
    ("layer_norm_kernel_func", None),
    ("_Z", None), ("_ZN", None), ("_Z99short", None), ("_ZN3abc", None), ("_Z0", None),
    ("_ZL5scalePf", None),
])
def test_qualified_names(symbol: str, name: str | None) -> None:
    assert qualified_name(symbol) == name


def test_the_symbol_comes_first_and_doubt_is_refused() -> None:
    shown = ["scale(float*, float)", "fill(float*)", "void other::scale(int)"]
    assert recorded_names("_Z5scalePff", [], shown) == {"scale(float*, float)"}
    assert recorded_names("_Z5scalePff", [], [*shown, "_Z5scalePff"]) == {"_Z5scalePff"}
    assert recorded_names("_Z5scalePff", ["fill(float*)"], shown) == {"fill(float*)"}
    assert recorded_names("fill", [], shown) == frozenset()
    with pytest.raises(ProfileError, match=r"may be any of scale\(double\), scale\(float"):
        recorded_names("_Z5scalePff", [], [*shown, "scale(double)"])
