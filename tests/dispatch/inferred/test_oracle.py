"""What holds whatever kernel is inferred."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any, cast

import pytest
from omegaconf import OmegaConf

from asmevo.codeobject.container import CodeObject
from asmevo.codeobject.recover import recover
from asmevo.codeobject.source import LocalFile
from asmevo.device.device import Device
from asmevo.dispatch.comparison import Tolerance
from asmevo.dispatch.dispatch import Role
from asmevo.dispatch.inferred.declaration import declaration_text
from asmevo.dispatch.inferred.fact import Confidence
from asmevo.dispatch.inferred.inference import Inferred
from asmevo.dispatch.inferred.inference_error import InferenceError
from asmevo.dispatch.inferred.oracle import InferredOracle
from asmevo.dispatch.kernel import Kernel, declare
from asmevo.gates.baseline import Baseline, OracleError
from asmevo.task.probe import probe

Infer = Callable[[CodeObject, str], Inferred]
BARE = Kernel("undeclared", LocalFile("unused"), "saxpy")


def test_inference_is_deterministic(hip: CodeObject, infer: Infer, device: Device) -> None:
    oracle = InferredOracle()
    again = oracle.infer(BARE, hip, probe(device.load(hip, "saxpy")))
    first = infer(hip, "saxpy")
    assert again == first
    metadata = hip.kernel("saxpy").metadata
    assert [d.sha256 for d in oracle.dispatches(again.kernel, "saxpy", metadata)] == [
        d.sha256 for d in oracle.dispatches(first.kernel, "saxpy", metadata)]


def test_dispatches_have_guards_families_and_held_out_inputs(
        hip: CodeObject, infer: Infer) -> None:
    dispatches = InferredOracle().dispatches(
        infer(hip, "saxpy").kernel, "saxpy", hip.kernel("saxpy").metadata)
    assert {d.family for d in dispatches if not d.held_out} == {"normal", "tiny", "boundary"}
    assert any(d.held_out for d in dispatches)
    assert all(r.guard == 4096 for d in dispatches for r in d.regions)


def test_the_declaration_can_be_copied_into_a_yaml(hip: CodeObject, infer: Infer) -> None:
    found = infer(hip, "matmul")
    text = declaration_text(found)
    keys = cast(dict[str, Any], OmegaConf.to_container(OmegaConf.create(text)))
    assert declare("undeclared", LocalFile("unused"), **keys) == found.kernel
    assert all(fact.subject in text for fact in found.facts)


def test_every_part_says_how_sure_it_is(hip: CodeObject, infer: Infer) -> None:
    facts = {f.subject: f for f in infer(hip, "saxpy").facts}
    assert {"launch.workgroup", "launch.grid.x", "scalars.arg_10.type"} <= set(facts)
    for offset in ("00", "08"):
        assert {f"buffers.arg_{offset}.{key}" for key in ("role", "element", "count")} <= set(facts)
    assert facts["buffers.arg_00.role"].confidence is Confidence.CONFIRMED
    assert facts["scalars.arg_10.value"].confidence is Confidence.ASSUMED


def test_a_kernel_that_declares_something_is_refused(hip: CodeObject, infer: Infer,
                                                     device: Device) -> None:
    given = replace(BARE, shapes=({"M": 4},))
    with pytest.raises(InferenceError, match="use oracle=declared"):
        InferredOracle().infer(given, hip, probe(device.load(hip, "saxpy")))


@pytest.mark.parametrize("wrong", ["role", "count", "grid"])
def test_a_wrong_inference_is_noticed(hip: CodeObject, infer: Infer, device: Device,
                                      wrong: str) -> None:
    """An input called an output, a buffer larger than what is written, a grid that does nothing."""
    kernel = infer(hip, "relu").kernel
    out, given = kernel.buffers
    assert kernel.launch is not None
    assert (out.role, given.role) == (Role.OUTPUT, Role.INPUT)
    kernel = {
        "role": replace(kernel, buffers=(out, replace(given, role=Role.OUTPUT))),
        "count": replace(kernel, buffers=(replace(out, count=f"3 * {out.count}"), given)),
        "grid": replace(kernel, scalars=[replace(s, value=0) for s in kernel.scalars]),
    }[wrong]
    dispatches = InferredOracle().dispatches(kernel, "relu", hip.kernel("relu").metadata)
    with pytest.raises(OracleError):
        Baseline(hip, "relu", recover(hip), dispatches, device).self_check(Tolerance())
