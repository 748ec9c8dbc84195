"""An emulator of either machine with parameters of one's choice."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from hydra import compose, initialize_config_dir
from hydra.utils import instantiate

from asmevo.codeobject.toolchain import ZigToolchain
from asmevo.device.emulator.emulator import Emulator
from asmevo.validation.bench import Bench
from asmevo.validation.microbenchmark import Microbenchmark
from asmevo.validation.microbenchmarks import microbenchmarks
from asmevo.validation.row import ValidationRow

CONF = Path(__file__).parents[2] / "conf"

Measure = Callable[..., ValidationRow]


def emulator(*overrides: str, device: str = "emulator") -> Emulator:
    with initialize_config_dir(str(CONF / "device"), version_base="1.3"):
        made = instantiate(compose(device, overrides=list(overrides)))
    assert isinstance(made, Emulator)
    return made


def published(name: str, compute_units: int = 304) -> Microbenchmark:
    (found,) = (b for b in microbenchmarks()
                if b.name == name and b.compute_units in (None, compute_units))
    return found


@pytest.fixture(scope="session")
def measure() -> Measure:
    """The row of one microbenchmark, under a cycle model with some parameters changed."""
    def row(benchmark: Microbenchmark, *overrides: str) -> ValidationRow:
        return Bench(emulator(*overrides), ZigToolchain(), [benchmark]).row(0)
    return row
