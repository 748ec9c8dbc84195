"""Target IDs, and which code may be loaded where."""

from __future__ import annotations

import pytest

from asmevo.codeobject.errors import CodeObjectError
from asmevo.codeobject.target import Feature, Target


@pytest.mark.parametrize(("text", "xnack", "sramecc"), [
    ("gfx942", Feature.ANY, Feature.ANY),
    ("gfx942:sramecc+:xnack-", Feature.OFF, Feature.ON),
    ("gfx942:xnack-:sramecc+", Feature.OFF, Feature.ON),
    ("amdgcn-amd-amdhsa--gfx942:xnack+", Feature.ON, Feature.ANY),
])
def test_target_ids(text: str, xnack: Feature, sramecc: Feature) -> None:
    target = Target.from_id(text)
    assert (target.isa, target.xnack, target.sramecc) == ("gfx942", xnack, sramecc)
    assert Target.from_id(target.triple) == target


@pytest.mark.parametrize("text", [
    "", "gfx", "gfx1100", "GFX942", "gfx942:", "gfx942:xnack", "gfx942:xnack*", "gfx942:tgsplit+",
    "gfx942:xnack+:xnack-", "gfx942:xnack++", "gfx942 ", ":xnack+", "gfx9-4-generic",
])
def test_what_is_no_target_id(text: str) -> None:
    with pytest.raises(CodeObjectError) as caught:
        Target.from_id(text)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(("code", "device", "runs"), [
    ("gfx942", "gfx942", True),
    ("gfx942", "gfx942:sramecc+:xnack-", True),
    ("gfx942:xnack-", "gfx942:sramecc+:xnack-", True),
    ("gfx942:xnack-", "gfx942:sramecc+:xnack+", False),
    ("gfx942:xnack+", "gfx942:sramecc+:xnack-", False),
    ("gfx942:sramecc-", "gfx942:sramecc+:xnack-", False),
    ("gfx942:sramecc+:xnack-", "gfx942:sramecc+:xnack-", True),
    ("gfx942:xnack-", "gfx942", False),  # not known of the device: it may be either
    ("gfx950", "gfx942", False),
    ("gfx90a", "gfx942", False),
])
def test_where_code_runs(code: str, device: str, runs: bool) -> None:
    assert Target.from_id(code).runs_on(Target.from_id(device)) is runs


@pytest.mark.parametrize("flags", [0x4C, 0x54C])
def test_code_that_fixes_nothing_runs_in_every_setting(flags: int) -> None:
    """Flags of hand-written objects say that a feature is unsupported, or nothing of it."""
    target, _ = Target.from_flags(flags, 2)
    assert target.runs_on(Target.from_id("gfx942:sramecc-:xnack+"))
