"""A search with a signing key: what it commits can be pulled by whoever trusts the key."""

from __future__ import annotations

from pathlib import Path

import pytest

from asmevo.registry import PullError, PullRefusal, pull
from asmevo.registry.registry import Registry
from asmevo.registry.signing.keys import generate
from tests.task.conftest import CommandLine, RunTask

SETTINGS = ("kernel.shapes=[{M:2}]", "kernel.held_out_shapes=[{M:4}]", "gates.isolate=false",
            "search.budget.attempts=2", "oracle.families=[normal]",
            "proposer.rules=[{_target_: asmevo.propose.rules.fuse_dpp.FuseDpp}]",
            "proposer.expected=null")


def test_what_a_search_commits_is_signed_with_its_second_timing(
        run: RunTask, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    public = generate(tmp_path / "key")
    generate(tmp_path / "foreign")
    monkeypatch.setenv("ASMEVO_SIGNING_KEY", str(tmp_path / "key"))
    result = run(*SETTINGS)
    assert result.commits >= 1
    assert result.original_sha256 is not None
    registry = Registry(tmp_path / "registry")
    found = pull(registry, original=result.original_sha256, device="gfx942:sramecc+:xnack-",
                 policy="confirmed", trust=tmp_path / "key.pub", allow_modelled=True)
    assert found.signers == (public,)
    assert found.record.speedup_again is not None
    with pytest.raises(PullError) as caught:
        pull(registry, original=result.original_sha256, trust=tmp_path / "foreign.pub",
             allow_modelled=True)
    assert caught.value.code is PullRefusal.UNTRUSTED


@pytest.mark.parametrize("key", ["none", "open", ""])
def test_a_search_without_its_key_does_not_start(
        command_line: CommandLine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch,
        key: str) -> None:
    generate(tmp_path / "open")
    (tmp_path / "open").chmod(0o644)
    monkeypatch.setenv("ASMEVO_SIGNING_KEY", key and str(tmp_path / key))
    done = command_line(*SETTINGS)
    assert done.returncode == 2
    assert "signing key" in done.stderr
    assert len(done.stderr.splitlines()) == 1
    assert not (tmp_path / "registry").exists()
