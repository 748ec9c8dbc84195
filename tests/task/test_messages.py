"""What is wrong with a configuration is said in one sentence that names the key."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from asmevo.failure import explain
from asmevo.report.result import Result


def sentence(run: Callable[..., Result], *overrides: str) -> str:
    """What the command line would print for these overrides."""
    with pytest.raises(Exception) as caught:  # noqa: PT011 - whatever it is, it must be explained
        run(*overrides)
    text = explain(caught.value)
    assert text is not None, repr(caught.value)
    assert "\n" not in text
    return text


@pytest.mark.parametrize(("overrides", "words"), [
    (("device.matrix_sums=foo",), ["device.matrix_sums", "sequential, cdna3", "'foo'"]),
    (("device.threads=x",), ["device.threads", "'x'"]),
    (("device.instruction_budget=1e99",), ["device.instruction_budget", "1e+99"]),
    (("device.watchdog_seconds=nan",), ["device.watchdog_seconds", "nan"]),
    (("device.timing=foo",), ["device.timing", "'foo'"]),
    (("device.timing.parameters.machine.waves_per_simd=x",),
     ["timing.machine.waves_per_simd", "'x'"]),
    (("device.timing.parameters.models.mi300x.machine.xcds=x",), ["timing.machine.xcds", "'x'"]),
    (("device.timing.parameters.models.mi300x.machine.xcds=200",), ["7600 compute units", "4096"]),
    (("device.model=mi3",), ["mi300x, mi308x", "'mi3'"]),
    (("+device.thredas=2",), ["unknown configuration key 'device.thredas'"]),
    (("device._target_=asmevo.nope",), ["device._target_", "there is no 'asmevo.nope'"]),
    (("device._target_=os.system",),
     ["device: Target 'os.system' is blocklisted because it allows config data to control "
      "executable behavior or belongs to an execution-capable target family. It cannot be "
      "authorized"]),
    (("+kernel.operation.foo=1",), ["unknown configuration key 'kernel.operation.foo'"]),
    (("~kernel.source.path",), ["kernel.source lacks 'path'"]),
    (("kernel.launch.workgroup=[0,1,1]",), ["launch.workgroup", "[0, 1, 1]"]),
    (("kernel.buffers.0.count=1e9",), ["count of buffer 'out'"]),
    (("kernel.scalars.0.value=null",), ["value of scalar 'epsilon'"]),
    (("kernel.buffers.3.name=offsets",), ["ResidualRmsNorm needs the buffer 'bias'"]),
    (("kernel.scalars.0.name=e",), ["ResidualRmsNorm needs", "scalar 'epsilon'"]),
    (("kernel.shapes=[]",), ["declares no shapes;"]),
    (("kernel.buffers=[]", "kernel.accuracy=null"), ["declares no buffers;"]),
    (("task.families=[]",), ["task.families is empty"]),
    (("kernel=aiter_fmha_fwd_bf16", "kernel.choices.mask=foo"),
     ["kernel.choices.mask is 'foo'", "kernel.choices.infix has no 'foo' (full, causal)"]),
])
def test_one_sentence(run: Callable[..., Result], tmp_path: Path, overrides: tuple[str, ...],
                      words: list[str]) -> None:
    text = sentence(run, "task=run", *overrides)
    for word in words:
        assert word in text
    assert json.loads((tmp_path / "run" / "result.json").read_text())["status"] == "error"


@pytest.mark.parametrize(("override", "said"), [
    ("device.model.name=x", "unknown configuration key 'device.model.name'"),
    ("device.tming.machine=x",
     "unknown configuration key 'device.tming', did you mean 'device.timing'?"),
    ("device.thread=2",
     "unknown configuration key 'device.thread', did you mean 'device.threads'?"),
])
def test_unknown_keys(command_line: Callable[..., subprocess.CompletedProcess[str]],
                      override: str, said: str) -> None:
    done = command_line("task=run", override)
    assert (done.returncode, done.stderr) == (2, f"asmevo: {said}\n")


def test_an_unknown_key_of_a_yaml_file(
        command_line: Callable[..., subprocess.CompletedProcess[str]], tmp_path: Path) -> None:
    (tmp_path / "own" / "kernel").mkdir(parents=True)
    (tmp_path / "own" / "kernel" / "mine.yaml").write_text(
        "defaults: [schema, _self_]\nname: mine\nbufers: []\n")
    done = command_line("--config-dir", "own", "task=run", "kernel=mine")
    assert done.returncode == 2
    assert done.stderr == ("asmevo: kernel/mine.yaml: unknown configuration key 'kernel.bufers', "
                           "did you mean 'kernel.buffers'?\n")


def test_a_wrong_setting_leaves_a_result(
        command_line: Callable[..., subprocess.CompletedProcess[str]],
        read_result: Callable[[], dict[str, Any]]) -> None:
    done = command_line("task=run", "kernel=aiter_fmha_fwd_bf16", "kernel.choices.mask=foo")
    assert done.returncode == 2
    result = read_result()
    assert result["status"] == "error"
    assert f"asmevo: {result['error']}\n" == done.stderr
