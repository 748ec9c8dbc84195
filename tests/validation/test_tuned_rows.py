"""The table of AITER's measured times, and which kernels its rows are."""

from __future__ import annotations

from collections import Counter

import pytest

from asmevo.dispatch.expression import evaluate
from asmevo.validation.tuned_kernels import UnknownKernelError, declarations
from asmevo.validation.tuned_rows import (
    TunedRow,
    TunedTableError,
    at_most,
    read_rows,
    tuned_rows,
)

HEAD = "family,kernel,compute_units,shape,microseconds,source\n"
GOOD = "i8gemm,I8gemm_bf16_perTokenI8_BpreShuffle_32x128,80,M=192 N=128 K=5120 S=8,7.5835,a.csv\n"


def test_every_family_of_the_table() -> None:
    counts = Counter((row.family, row.compute_units) for row in tuned_rows())
    assert counts == {
        ("i8gemm", 80): 16, ("i8gemm", 304): 16, ("fp8gemm", 80): 206, ("bf16gemm", 80): 8,
        ("fmoe", 80): 15, ("fmoe", 304): 14, ("fmoe_stage1", 80): 45, ("fmoe_stage1", 304): 6,
        ("fmha_fwd", 304): 50, ("fmha_bwd", 304): 100,
    }


def test_a_row() -> None:
    row, = read_rows(HEAD + GOOD)
    assert (row.compute_units, row.microseconds, row.source) == (80, 7.5835, "a.csv")
    assert row.sizes == {"M": 192, "N": 128, "K": 5120, "S": 8}


@pytest.mark.parametrize(("found", "given", "complaint"), [
    ("7.5835", "0", "line 2: the time '0' is not one"),
    ("7.5835", "nan", "the time 'nan'"),
    ("7.5835", "fast", "the time 'fast'"),
    ("7.5835", "", "line 2 has no microseconds"),
    (",80,", ",-80,", "line 2: '-80' compute units"),
    ("K=5120", "K=0", "shape 'M=192 N=128 K=0 S=8' is not a list of sizes"),
    ("K=5120", "M=5120", "is not a list of sizes"),
    ("M=192 N", "M=192  N", "is not a list of sizes"),
    (",a.csv", "", "line 2 has 5 columns, not 6"),
])
def test_a_line_that_is_no_measurement(found: str, given: str, complaint: str) -> None:
    with pytest.raises(TunedTableError, match=complaint):
        read_rows(HEAD + GOOD.replace(found, given))


def test_a_table_of_something_else() -> None:
    with pytest.raises(TunedTableError, match="columns are M, N, not family"):
        read_rows("M,N\n1,2\n")


def test_few_rows_of_each_family_are_spread_over_its_times() -> None:
    rows = [TunedRow(family, "k", units, f"M={time}", float(time), "a.csv")
            for family, units in (("a", 80), ("a", 304), ("b", 80)) for time in range(1, 101)]
    chosen = at_most(reversed(rows), 4)
    assert [(r.family, r.compute_units) for r in chosen[::4]] == [("b", 80), ("a", 304), ("a", 80)]
    assert [row.microseconds for row in chosen[:4]] == [13, 38, 63, 88]
    assert at_most(rows, 1000) == sorted(rows, key=rows.index)


def test_a_kernel_for_every_row() -> None:
    """Tiles divide what the kernels want them to, so that grids are whole."""
    for row in tuned_rows():
        launched = declarations(row)
        assert len(launched) == (1 if row.family != "fmha_bwd" else 3 if "a32" in row.kernel else 2)
        if row.family in ("fmoe", "fmoe_stage1"):
            assert all(size > 0 for size in row.sizes.values())


def test_a_kernel_that_nobody_declared() -> None:
    row, = read_rows(HEAD + GOOD.replace("perTokenI8", "perTensorI8"))
    with pytest.raises(UnknownKernelError, match="'I8gemm_bf16_perTensorI8_BpreShuffle_32x128'"):
        declarations(row)


def test_what_a_name_and_a_shape_say() -> None:
    declared, = declarations(read_rows(HEAD + GOOD)[0])
    assert declared.name == "aiter_i8gemm_public_splitk"
    assert declared.cleared == 2 * 192 * 128
    assert declared.overrides == (
        "kernel.constants.R=32", "kernel.constants.C=128", "kernel.constants.S=8",
        "kernel.shapes=[{M: 192,N: 128,K: 5120}]", "kernel.held_out_shapes=[]")


def test_only_a_shared_depth_is_cleared() -> None:
    declared, = declarations(read_rows(HEAD + GOOD.replace("S=8", "S=1"))[0])
    assert (declared.name, declared.cleared) == ("aiter_i8gemm_public", 0)


def test_a_constant_of_the_kernel_is_not_a_size_of_the_row() -> None:
    """N is a tile's columns for a first stage, and K an expert's count for both."""
    row, = (r for r in tuned_rows() if r.kernel.endswith("doweight_g1u1_32x64_4tg_pf3"))
    declared, = declarations(row)
    parts = evaluate("I / N", {**row.sizes, "N": 64})
    assert declared.overrides[:3] == (
        "kernel.constants.M=32", "kernel.constants.N=64", "kernel.choices.variant=4tg_pf3")
    assert f"P: {parts}," in declared.overrides[3]
    assert "K: 2}" in declared.overrides[3]


def test_persistent_workgroups_are_as_many_as_compute_units() -> None:
    row = next(r for r in tuned_rows() if "_ps_" in r.kernel and r.compute_units == 304)
    declared, = declarations(row)
    assert declared.name == "aiter_fmoe_blockscale_ps"
    assert "kernel.constants.G=304" in declared.overrides
    assert declared.cleared == 2 * row.sizes["T"] * row.sizes["D"]
