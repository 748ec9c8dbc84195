"""The parameter table: what the YAML says is what the model uses, and nothing else gets in."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from omegaconf import OmegaConf

from asmevo.device.emulator.timing_parameters import (
    TimingParameterError,
    timing_parameters,
)

CONF = Path(__file__).parents[3] / "conf" / "device" / "emulator.yaml"

Table = dict[str, Any]


MODELS = ("mi300x", "mi308x")


def table() -> Table:
    parameters = OmegaConf.to_container(OmegaConf.load(CONF).timing.parameters)
    assert isinstance(parameters, dict)
    del parameters["_target_"]
    return {**parameters, "model": MODELS[0]}


def test_the_documented_machine_is_the_configured_one() -> None:
    """Figures of AMD's CDNA3 white paper."""
    parameters = timing_parameters(**table())
    assert parameters.machine.compute_units == 304
    assert timing_parameters(**{**table(), "model": "mi308x"}).machine.compute_units == 80
    assert parameters.memory.l2_bytes == 4 << 20
    assert parameters.memory.mall_bytes == 256 << 20
    assert parameters.memory.vl1d_bytes == 32 << 10
    assert parameters.machine.lds_bytes == 64 << 10


def test_every_number_is_an_integer_with_a_source() -> None:
    lines = CONF.read_text().splitlines()
    tables = table()
    of_models = [group for model in MODELS for group in tables["models"][model].values()]
    groups = [group for name, group in tables.items() if name not in ("model", "models")]
    for group in [*groups, *of_models]:
        for key, value in group.items():
            assert isinstance(value, int)
            (at,) = (i for i, row in enumerate(lines) if row.strip().startswith(f"{key}: {value}"))
            following = next(i for i in range(at + 1, len(lines) + 1)
                             if i == len(lines) or not lines[i].strip().startswith("#"))
            comment = " ".join(lines[at:following])
            assert re.search(r"#.*\[[HML]\]", comment), comment


def change(group: str, key: str, value: object) -> Callable[[Table], None]:
    def edit(parameters: Table) -> None:
        parameters[group][key] = value

    return edit


def remove(group: str, key: str) -> Callable[[Table], None]:
    def edit(parameters: Table) -> None:
        del parameters[group][key]

    return edit


@pytest.mark.parametrize(("edit", "message"), [
    (change("issue", "vallu", 4), r"timing\.issue\.vallu is not a parameter"),
    (remove("memory", "l2_latency"), r"timing\.memory\.l2_latency is missing"),
    (change("memory", "l2_latency", -1), "integer from 1"),
    (change("machine", "waves_per_simd", 0), "integer from 1"),
    (change("lds", "latency", 1.5), r"not 1\.5"),
    (change("lds", "latency", True), "not True"),
    (change("issue", "valu", 3), "integer from 4"),
    (change("issue", "misaligned_fetch", 4), "to 3"),
    (change("machine", "waves_per_simd", 9), "to 8"),
    (change("memory", "vl1d_bytes", 64), "integer from 128"),
    (change("memory", "mall_latency", 1 << 40), "integer from 1 to"),
    (lambda parameters: parameters.update(lds=None), "must be a table"),
    (lambda parameters: parameters.update(model="mi3"), "must be one of mi300x, mi308x, not 'mi3'"),
    (lambda parameters: parameters["models"]["mi300x"].update(lcd={}), "not a table of the model"),
    (change("machine", "xcds", 8), "is given twice"),
])
def test_a_wrong_table_is_refused_by_name(edit: Callable[[Table], None], message: str) -> None:
    parameters = table()
    edit(parameters)
    with pytest.raises(TimingParameterError, match=message):
        timing_parameters(**parameters)
