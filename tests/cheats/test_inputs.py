"""Kernels that are right for what is tested and nothing else (B3, B4, B12); vacuous oracles."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from hydra import compose, initialize_config_dir

from asmevo.__main__ import config_folder
from asmevo.config import register
from asmevo.gates.baseline import OracleError
from asmevo.gates.verdict import Gate, Verdict
from asmevo.task.session import Session

Judge = Callable[..., tuple[Verdict, ...]]


def test_a_scalar_cannot_be_built_in(layer_norm: Session, judge: Judge) -> None:
    """epsilon differs between dispatches."""
    verdicts = judge(layer_norm, ("replace", "v_add_f32_e64 v14, v14, s28", (
        "s_mov_b32 s40, 0x3727c5ac", "v_add_f32_e64 v14, v14, s40")))
    assert verdicts[-1].gate is Gate.G2


def test_a_stride_cannot_be_built_in(topksoftmax: Session, judge: Judge) -> None:
    verdicts = judge(topksoftmax, ("replace", "s_mov_b32 s20, s51", ("s_mov_b32 s20, 32",)))
    assert verdicts[-1].gate is Gate.G2


def test_a_path_cannot_be_dropped(topksoftmax: Session, judge: Judge) -> None:
    """Both values of `renormalize` are launched."""
    for constant in ("s_cmp_eq_u32 s50, s50", "s_cmp_lg_u32 s50, s50"):
        verdicts = judge(topksoftmax, ("replace", "s_cmp_eq_u32 s50, 0", (constant,)))
        assert not verdicts[-1].passed


def test_an_address_cannot_be_built_in(layer_norm: Session, judge: Judge) -> None:
    """Right only where the output lies at a high address of 0x7e00: buffers move over all of it."""
    verdicts = judge(layer_norm, ("replace", "s_or_b32 s13, s13, 0x40000", (
        "s_and_b32 s13, s13, 0", "s_or_b32 s13, s13, 0x47e00")))
    assert verdicts[-1].gate is Gate.G2


def _session(tmp_path: Path, *overrides: str) -> Session:
    register()
    with initialize_config_dir(config_folder(), version_base="1.3"):
        return Session(
            compose("config", overrides=[*overrides, f"registry.path={tmp_path}"]), tmp_path
        )


@pytest.mark.parametrize(
    ("overrides", "word"),
    [
        (("kernel=aiter_topksoftmax", "kernel.scalars.0.value=0"), "unwritten"),
        (("kernel.scalars.0.value=nan",), "never anything but"),
    ],
)
def test_a_vacuous_oracle_is_refused(
    tmp_path: Path, overrides: tuple[str, ...], word: str
) -> None:
    """The original writes nothing, or nothing but NaN: any kernel would equal it."""
    session = _session(tmp_path, *overrides)
    with pytest.raises(OracleError, match=word):
        session.baseline.self_check(session.gates.tolerance)
