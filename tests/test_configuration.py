"""Every configuration composes, fits its schema and makes its component."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hydra import compose, initialize_config_dir
from hydra.errors import HydraException
from omegaconf import OmegaConf

from asmevo.__main__ import config_folder
from asmevo.config import register
from asmevo.propose.proposal import Direction, Proposal
from asmevo.propose.recording import NAME, Recorded, Recording
from asmevo.task.session import Session

CONF = Path(config_folder())
GROUPS = ("kernel", "device", "oracle", "gates", "profile", "proposer", "search", "registry",
          "toolchain")


@pytest.fixture(autouse=True)
def hydra_ready() -> Iterator[None]:
    register()
    with initialize_config_dir(str(CONF), version_base="1.3"):
        yield


def options() -> list[tuple[str, str]]:
    return [
        (group, file.stem) for group in GROUPS for file in sorted((CONF / group).glob("*.yaml"))
    ]


def _recording(folder: Path) -> Path:
    recording = Recording(folder / NAME)
    recording.add(Recorded("", Proposal((), "rule", Direction.SIMPLIFICATION, "")))
    recording.close()
    return folder


def composed(*overrides: str) -> Any:
    return compose("config", overrides=list(overrides))


@pytest.mark.parametrize("group", [*GROUPS, "task", "experiment"])
def test_every_group_has_an_option(group: str) -> None:
    assert list((CONF / group).glob("*.yaml"))


@pytest.mark.parametrize(("group", "option"), options())
def test_every_option_makes_its_component(
        group: str, option: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    if (group, option) == ("toolchain", "rocm"):
        pytest.skip("needs /opt/rocm, which is looked for when the toolchain is made")
    overrides = [f"{group}={option}", f"registry.path={tmp_path}"]
    if (group, option) in (("kernel", "file"), ("kernel", "member")):
        overrides.append("kernel.source.path=some.co")
    if (group, option) == ("kernel", "member"):
        overrides.append("kernel.source.member='hip_fatbin[0]!gfx942'")
    if (group, option) == ("proposer", "replay"):
        overrides.append(f"proposer.transcript={_recording(tmp_path)}")
    monkeypatch.setenv("ANTHROPIC_API_KEY", "sk-test-opens-nothing")
    if option == "captured":
        overrides += ["oracle=captured", f"oracle.path={tmp_path}"]
    session = Session(composed(*dict.fromkeys(overrides)), tmp_path)
    attribute = {"profile": "windows"}.get(group, group)
    assert getattr(session, attribute) is not None


@pytest.mark.parametrize("experiment", [f.stem for f in (CONF / "experiment").glob("*.yaml")])
def test_every_experiment_composes(experiment: str) -> None:
    assert OmegaConf.to_container(composed(f"experiment={experiment}"), resolve=False)


def test_topksoftmax_family_is_named_by_its_constants() -> None:
    kernel = composed("kernel=aiter_topksoftmax", "kernel.constants.R=12").kernel
    assert kernel.name == "aiter_topksoftmax_12x128x8"
    assert kernel.source.path.endswith("topksoftmax_12x128x8.co")


@pytest.mark.parametrize(
    "override",
    ["gates.epsilo=1", "search.sed=1", "kernel.shape=[]", "oracle.gard=1", "registry.pth=x",
     "search.budget.attemps=1", "gates.samples=many"],
)
def test_typos_and_wrong_types_are_errors(override: str) -> None:
    with pytest.raises(HydraException):
        composed(override)
