"""``keygen``, ``sign`` and what ``pull`` tells a deployment script."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from asmevo.device.device import TimingSource
from asmevo.registry.errors import PullRefusal
from asmevo.registry.signing.keys import load_signing_key, parse_line
from tests.registry.command.test_cli import document, run, run_process
from tests.registry.delivery.test_pull import execute

if TYPE_CHECKING:
    import subprocess

    from tests.registry.conftest import Scene


def keygen(*arguments: object) -> subprocess.CompletedProcess[str]:
    """``keygen`` needs no registry and has no option for one."""
    return run("keygen", *arguments, folder=Path())


def test_keygen(tmp_path: Path) -> None:
    done = keygen("-o", tmp_path / "key", "--comment", "release")
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout == (tmp_path / "key.pub").read_text()
    assert parse_line(done.stdout)[1] == "release"
    again = keygen("-o", tmp_path / "key")
    assert again.returncode == 2
    assert again.stderr == (f"asmevo-registry: {tmp_path / 'key'} exists; keys are never "
                            "overwritten\n")
    made = json.loads(keygen("-o", tmp_path / "other", "--json").stdout)
    assert made == {"schema_version": 1, "private_file": str(tmp_path / "other"),
                    "public_file": str(tmp_path / "other.pub"),
                    "public_key": load_signing_key(tmp_path / "other").public_key}


def test_from_a_key_to_a_trusted_replacement(scene: Scene, tmp_path: Path) -> None:
    """What docs/registry.md shows, each as a process of its own."""
    folder, key, output = scene.registry.path, tmp_path / "key", tmp_path / "new.co"
    record = scene.commit("c", number=1)
    pull = ("pull", "--original", scene.original.sha256, "--device", "gfx942:sramecc+:xnack-",
            "--trust", tmp_path / "key.pub", "-o", output)
    assert keygen("-o", key).returncode == 0
    refused = run_process(*pull, folder=folder)
    assert (refused.returncode, output.exists()) == (3, False)
    assert "is not signed" in refused.stderr
    signed = run_process("sign", "--key", key, record.object_sha256[:10], folder=folder)
    assert (signed.returncode, signed.stderr) == (0, "")
    assert load_signing_key(key).public_key in signed.stdout
    done = run_process(*pull, "--json", folder=folder)
    assert (done.returncode, done.stderr) == (0, "")
    told = json.loads(done.stdout)
    assert told["signers"] == [load_signing_key(key).public_key]
    assert told["skipped"] == []
    assert scene.registry.load_object(told["statement_sha256"]).startswith(b'{"assembly_sha256"')
    assert output.read_bytes() == scene.variant(1).data


def test_sign(scene: Scene, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = scene.registry.path
    keygen("-o", tmp_path / "key")
    assert run("sign", "--all", "--key", tmp_path / "key", folder=folder).returncode == 1
    one, two = scene.commit("c", number=1), scene.commit("d", number=2)
    key = load_signing_key(tmp_path / "key").public_key
    assert document("sign", one.object_sha256, "--key", tmp_path / "key", folder=folder) == {
        "public_key": key, "replacements": 1, "signed": 1}
    monkeypatch.setenv("ASMEVO_SIGNING_KEY", str(tmp_path / "key"))
    assert document("sign", "--all", folder=folder) == {
        "public_key": key, "replacements": 2, "signed": 1}
    execute(scene, f"DELETE FROM statement WHERE candidate_id = '{two.candidate_id}'")
    unstated = run("sign", "--all", folder=folder)
    assert (unstated.returncode, unstated.stdout) == (2, "")
    assert "--state" in unstated.stderr
    assert document("sign", "--all", "--state", folder=folder)["replacements"] == 2
    execute(scene, "UPDATE replacement SET speedup = 9 WHERE candidate_id = 'd'")
    changed = run("sign", "--all", folder=folder)
    assert changed.returncode == 2
    assert "speedup was 1.25 and is 9.0" in changed.stderr


def test_stating_what_an_older_version_committed(scene: Scene, tmp_path: Path) -> None:
    """Also where nobody signs."""
    scene.commit("c", number=1)
    execute(scene, "DELETE FROM statement")
    pull = ("pull", "--original", scene.original.sha256, "-o", tmp_path / "new.co")
    refused = run(*pull, folder=scene.registry.path)
    assert (refused.returncode, "sign --state" in refused.stderr) == (3, True)
    done = run("sign", "--all", "--state", folder=scene.registry.path)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout == "stated 1 replacement, without a signature\n"
    assert run(*pull, folder=scene.registry.path).returncode == 0


@pytest.mark.parametrize("arguments", [
    (), ("--all",), ("--all", "abcdef", "--key", "key"), ("--key", "key"),
    ("--key", "none", "--all"), ("--key", "key", "0" * 64), ("--key", "key", "xyz"),
    ("--key", "open", "--all"), ("--key", "key.pub", "--all"), ("--key", "", "--all"),
])
def test_what_cannot_be_signed(scene: Scene, tmp_path: Path, arguments: tuple[str, ...],
                               monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    scene.commit("c", number=1)
    keygen("-o", "key")
    keygen("-o", "open")
    Path("open").chmod(0o644)
    done = run("sign", *arguments, folder=scene.registry.path)
    assert (done.returncode, done.stdout) == (2, "")
    assert len(done.stderr.splitlines()) == 1


STATUSES = {
    1: "DELETE FROM replacement; DELETE FROM statement",
    3: "DELETE FROM statement",
    4: "UPDATE replacement SET speedup = 9",
}


@pytest.mark.parametrize("status", STATUSES)
def test_exit_statuses_of_pull(scene: Scene, tmp_path: Path, status: int) -> None:
    """A deployment script keeps the original for each, and tells somebody of the last."""
    scene.commit("c", number=1)
    for statement in STATUSES[status].split("; "):
        execute(scene, statement)
    output = tmp_path / "new.co"
    output.write_bytes(b"the one before")
    done = run("pull", "--original", scene.original.sha256, "-o", output, "--force",
               folder=scene.registry.path)
    assert (done.returncode, done.stdout) == (status, "")
    assert len(done.stderr.splitlines()) == 1
    assert output.read_bytes() == b"the one before"


def test_every_code_is_in_the_help(capsys: pytest.CaptureFixture[str]) -> None:
    shown = run("pull", "--help", folder=Path()).stdout
    for code in PullRefusal:
        assert code.value in shown
    assert "exit status:" in shown


def test_what_was_passed_over_is_told(scene: Scene, tmp_path: Path) -> None:
    scene.commit("weak", number=1, speedup=1.5, judged=None)
    scene.commit("good", number=2, speedup=1.2)
    arguments = ("pull", "--original", scene.original.sha256, "-o", tmp_path / "new.co", "--force")
    done = run(*arguments, folder=scene.registry.path)
    assert done.returncode == 0
    assert done.stderr.startswith("asmevo-registry: passed over 1.5000x: ")
    assert len(done.stderr.splitlines()) == 1
    [skipped] = document(*arguments, folder=scene.registry.path)["skipped"]
    assert set(skipped) == {"object_sha256", "speedup", "code", "reason"}
    assert skipped["code"] == "weaker-gates"


@pytest.mark.parametrize(("arguments", "words"), [
    (("--policy", "luck"), "--policy"), (("--device", "gfx1"), "the device is unknown"),
    (("--trust", "none"), "no such file"), (("--trust", ""), "empty"),
    (("--isa", "gfx942:xnack"), "the device is unknown"),
])
def test_bad_options_of_pull(scene: Scene, tmp_path: Path, arguments: tuple[str, ...],
                             words: str) -> None:
    scene.commit("c", number=1)
    done = run("pull", "--original", scene.original.sha256, "-o", tmp_path / "new.co", *arguments,
               folder=scene.registry.path)
    assert done.returncode == 2
    assert words in done.stderr
    assert not (tmp_path / "new.co").exists()


def test_policies_of_pull(scene: Scene, tmp_path: Path) -> None:
    scene.commit("best", number=1, speedup=1.5)
    scene.commit("newest", number=2, speedup=1.2)
    told = document("pull", "--original", scene.original.sha256, "-o", tmp_path / "new.co",
                    "--policy", "newest", folder=scene.registry.path)
    assert told["replacement"]["speedup"] == 1.2
    refused = document("pull", "--original", scene.original.sha256, "-o", tmp_path / "other.co",
                       "--policy", "confirmed", folder=scene.registry.path, status=3)
    assert refused["code"] == "not-confirmed"


def test_names_of_the_registry_are_printed_harmlessly(scene: Scene, tmp_path: Path) -> None:
    """A kernel's name comes from the registry, and what is refused is told with it."""
    scene.kernel = "evil\x1b[2J\nname"
    scene.commit("c", number=1, source=TimingSource.MEASURED)
    scene.kernel = "other"
    scene.commit("d", number=2)
    done = run("pull", "--original", scene.original.sha256, "-o", tmp_path / "new.co",
               folder=scene.registry.path)
    assert done.returncode == 3
    assert "\x1b" not in done.stderr
    assert len(done.stderr.splitlines()) == 1
