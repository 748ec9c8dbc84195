"""What counts as a new candidate, and what is an old one under other names."""

from __future__ import annotations

import pytest

from asmevo.codeobject.assembly import Assembly, KernelBody, Line
from asmevo.search.fingerprint import fingerprint


def of(text: str) -> str:
    """The fingerprint of lines; ``name:`` in front of an instruction is a label."""
    lines = []
    labels: tuple[str, ...] = ()
    for line in text.strip().splitlines():
        if line.strip().endswith(":"):
            labels += (line.strip()[:-1],)
        else:
            lines.append(Line(line.strip(), labels))
            labels = ()
    if labels:
        lines.append(Line("", labels))
    return fingerprint(Assembly("0" * 64, (KernelBody("k", tuple(lines)),)), "k")


BASE = """
v_add_f32_e32 v3, v1, v2
.L1:
s_add_u32 s4, s4, 0x10
global_load_dwordx2 v[6:7], v3, s[8:9] offset:16
s_cbranch_scc1 .L1
v_mfma_f32_16x16x16_f16 a[0:3], v[6:7], v[6:7], a[0:3]
s_branch .L2
.L2:
"""


@pytest.mark.parametrize(("old", "new"), [
    (".L1", ".Lentirely_another_name"),
    ("0x10", "16"),
    ("0x10", "0x00000010"),
    ("v3, v1, v2", "v3,v1,   v2"),
    ("offset:16", "offset:0x10"),
    # Registers renamed throughout in the same order, gaps included.
    ("v3", "v4"),
    ("v[6:7]", "v[5:6]"),
    ("s[8:9]", "s[10:11]"),
    ("a[0:3]", "a[4:7]"),
])
def test_another_notation_is_nothing_new(old: str, new: str) -> None:
    assert old in BASE
    assert of(BASE.replace(old, new)) == of(BASE)


@pytest.mark.parametrize(("old", "new"), [
    ("v3, v1, v2", "v3, v2, v1"),
    ("s_add_u32", "s_sub_u32"),
    ("0x10", "0x11"),
    ("offset:16", "offset:32"),
    ("s_branch .L2", "s_branch .L1"),
    # v1 and v2 change places with v3 everywhere: another order.
    ("v3", "v0"),
    ("v[6:7], v3", "v[2:3], v3"),
    # Eight more registers have to be allocated.
    ("v[6:7]", "v[8:9]"),
])
def test_what_changes_the_kernel_is_new(old: str, new: str) -> None:
    assert old in BASE
    assert of(BASE.replace(old, new)) != of(BASE)


def test_labels_count_by_where_they_are() -> None:
    assert of("s_nop 0\n.L1:\ns_branch .L1") != of(".L1:\ns_nop 0\ns_branch .L1")
