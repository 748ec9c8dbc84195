"""``asmevo-registry deploy`` as a deployment script runs it."""

from __future__ import annotations

import json
import re
import shlex
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from asmevo.codeobject.container import CodeObject
from asmevo.device.device import TimingSource
from asmevo.registry.registry import Registry
from tests.deploy.conftest import look_up, snapshot
from tests.registry.command.test_cli import run
from tests.registry.conftest import Scene, make_dispatch

if TYPE_CHECKING:
    import subprocess


def deploy(scene: Scene, *arguments: object) -> subprocess.CompletedProcess[str]:
    done = run("deploy", *arguments, folder=scene.registry.path)
    assert "Traceback" not in done.stderr
    return done


def document(scene: Scene, *arguments: object, status: int = 0) -> dict[str, Any]:
    done = deploy(scene, *arguments, "--json")
    assert done.returncode == status, done.stderr
    found: dict[str, Any] = json.loads(done.stdout)
    assert found["schema_version"] == 1
    return found


@pytest.fixture
def tree(scene: Scene, tmp_path: Path) -> Path:
    """A folder with the original under another name, and something else."""
    tree = tmp_path / "tree"
    tree.mkdir()
    (tree / "kernels.bin").write_bytes(scene.original.data)
    (tree / "readme").write_text("text")
    return tree


def test_a_file_there_and_back(scene: Scene, tree: Path) -> None:
    before = snapshot(tree)
    best = scene.commit("fast", number=2, speedup=1.5)
    scene.commit("slow", number=1, speedup=1.1)
    assert deploy(scene, "status", tree).returncode == 1
    tried = deploy(scene, "file", tree, "--dry-run")
    assert (tried.returncode, snapshot(tree)) == (0, before)
    assert f"'kernels.bin' would get {best.object_sha256} for {scene.original.sha256}" in (
        tried.stdout)
    assert "1.5000x measured" in tried.stdout
    done = deploy(scene, "file", tree / "kernels.bin")
    assert done.returncode == 0
    assert "now holds" in done.stdout
    assert (tree / "kernels.bin").read_bytes() == scene.variant(2).data
    again = deploy(scene, "file", tree)
    assert (again.returncode, "already holds" in again.stdout) == (0, True)
    status = deploy(scene, "status", tree)
    assert status.returncode == 0
    assert status.stdout.startswith(f"deployed: 'kernels.bin' {best.object_sha256}")
    (back,) = re.findall("^rollback: asmevo-registry (.*)$", done.stdout, re.MULTILINE)
    done = run(*shlex.split(back), folder=scene.registry.path)
    assert (done.returncode, snapshot(tree)) == (0, before)
    assert deploy(scene, "rollback", tree).returncode == 0
    assert deploy(scene, "status", tree).returncode == 1


def test_json(scene: Scene, tree: Path) -> None:
    best = scene.commit("fast", number=2)
    done = document(scene, "file", tree)
    (change,) = done["changes"]
    (swap,) = change["swaps"]
    assert change["original_sha256"] == change["before_sha256"] == scene.original.sha256
    assert change["after_sha256"] == swap["replacement_sha256"] == best.object_sha256
    assert (swap["speedup"], swap["timing_source"]) == (1.25, "measured")
    assert re.fullmatch("[0-9a-f]{64}", swap["statement_sha256"])
    (file,) = document(scene, "status", tree)["files"]
    assert (file["state"], file["backup"]) == ("deployed", True)
    assert document(scene, "rollback", tree)["restored"] == ["kernels.bin"]


def test_nothing_for_it(scene: Scene, tree: Path) -> None:
    done = deploy(scene, "file", tree)
    assert (done.returncode, done.stderr) == (1, "")
    assert "nothing to deploy" in done.stdout


def test_refused_by_the_pull(scene: Scene, tree: Path) -> None:
    before = snapshot(tree)
    scene.commit("m", number=1, source=TimingSource.MODELLED)
    done = deploy(scene, "file", tree)
    assert done.returncode == 3
    assert done.stderr.startswith("asmevo-registry: modelled-only: ")
    assert done.stderr.count("\n") == 1
    found = document(scene, "file", tree, status=3)
    assert [entry["code"] for entry in found["refused"]] == ["modelled-only"]
    assert snapshot(tree) == before
    done = deploy(scene, "file", tree, "--allow-modelled")
    assert done.returncode == 0
    assert "1.2500x modelled on" in done.stdout


def test_what_was_passed_over_is_said(scene: Scene, tree: Path) -> None:
    scene.commit("weak", number=1, speedup=9.0, judged=None)
    scene.commit("c", number=2)
    done = deploy(scene, "file", tree)
    assert done.returncode == 0
    assert done.stderr.startswith("asmevo-registry: passed over 9.0000x: ")
    done = deploy(scene, "file", tree, "--allow-weaker")
    assert done.stderr.startswith("asmevo-registry: judged by less than the default gates: ")


def test_a_trust_list_counts(scene: Scene, tree: Path, tmp_path: Path) -> None:
    scene.commit("c", number=1)
    assert run("keygen", "-o", tmp_path / "key", folder=scene.registry.path).returncode == 0
    trusted = next(path for path in tmp_path.iterdir() if path.name.startswith("key")
                   and path.suffix == ".pub")
    done = deploy(scene, "file", tree, "--trust", trusted)
    assert done.returncode == 3
    assert done.stderr.startswith("asmevo-registry: unsigned: ")


def test_a_tampered_registry_changes_nothing(scene: Scene, tree: Path) -> None:
    before = snapshot(tree)
    record = scene.commit("c", number=1)
    sha256 = record.object_sha256
    blob = scene.registry.path / "blobs" / sha256[:2] / f"{sha256}.zst"
    blob.write_bytes(blob.read_bytes()[:-5])
    done = deploy(scene, "file", tree)
    assert done.returncode == 4
    assert done.stderr.startswith("asmevo-registry: blob-corrupt: ")
    assert snapshot(tree) == before
    assert document(scene, "file", tree, status=4)["code"] == "blob-corrupt"


def test_an_original_that_is_not_there(scene: Scene, tree: Path, tmp_path: Path) -> None:
    (tmp_path / "other.co").write_bytes(scene.variant(9).data)
    for original in (tmp_path / "other.co", scene.variant(9).sha256):
        done = deploy(scene, "file", tree, "--original", original)
        assert done.returncode == 3
        assert done.stderr.startswith("asmevo-registry: original-not-found: ")
    scene.commit("c", number=1)
    (tmp_path / "same.co").write_bytes(scene.original.data)
    assert deploy(scene, "file", tree, "--original", tmp_path / "same.co").returncode == 0
    again = deploy(scene, "file", tree, "--original", tree / "kernels.bin")  # a replacement by now
    assert (again.returncode, "already holds" in again.stdout) == (0, True)


def test_foreign_changes(scene: Scene, tree: Path) -> None:
    scene.commit("c", number=1)
    deploy(scene, "file", tree)
    (tree / "kernels.bin").write_bytes(b"foreign")
    assert deploy(scene, "status", tree).returncode == 3
    assert deploy(scene, "status", tree).stdout.startswith("foreign-change: ")
    done = deploy(scene, "rollback", tree)
    assert done.returncode == 3
    assert done.stderr.startswith("asmevo-registry: foreign-change: ")
    assert deploy(scene, "rollback", tree, "--force", "--dry-run").returncode == 0
    assert (tree / "kernels.bin").read_bytes() == b"foreign"
    assert deploy(scene, "rollback", tree, "--force").returncode == 0
    assert (tree / "kernels.bin").read_bytes() == scene.original.data


@pytest.mark.parametrize(("arguments", "status"), [
    (("file",), 2), (("file", "/nowhere"), 2), (("triton", "/nowhere"), 2),
    (("status", "/nowhere"), 2), (("rollback", "/nowhere"), 2), ((), 2), (("rocblas", "."), 2),
    (("aiter", "/usr", "--overlay", "/tmp/x"), 3), (("rollback", ".", "--force", "--forget"), 2)])
def test_mistakes_are_one_sentence(scene: Scene, arguments: tuple[str, ...], status: int) -> None:
    done = deploy(scene, *arguments)
    assert done.returncode == status
    assert done.stdout == ""
    assert "asmevo-registry" in done.stderr


def test_an_aiter_overlay(scene: Scene, tmp_path: Path) -> None:
    best = scene.commit("c", number=1)
    base, overlay = tmp_path / "aiter_meta", tmp_path / "over lay"
    for folder in ("csrc", "hsa/gfx942"):
        (base / folder).mkdir(parents=True)
    (base / "csrc/host.cu").write_text("")
    (base / "hsa/gfx942/layer_norm.co").write_bytes(scene.original.data)
    before = snapshot(base)
    done = deploy(scene, "aiter", base, "--overlay", overlay)
    assert done.returncode == 0
    assert f"export AITER_META_DIR='{overlay}'" in done.stdout.splitlines()
    assert f"os.environ[\"AITER_ASM_DIR\"] = '{overlay}/hsa/gfx942/'" in done.stdout
    assert CodeObject.parse((overlay / "hsa/gfx942/layer_norm.co").read_bytes()
                            ).sha256 == best.object_sha256
    assert deploy(scene, "rollback", overlay).returncode == 0
    assert snapshot(base) == before


def test_triton_from_the_registry_to_its_lookup(registry: Registry, tmp_path: Path) -> None:
    """Every kernel of a cache for which there is something, found by itself."""
    pytest.importorskip("triton")
    cache = tmp_path / "cache"
    look_up(cache, "add", "softmax")
    (file,) = cache.glob("*/softmax.hsaco")
    original = CodeObject.parse(file.read_bytes())
    dispatch = make_dispatch("softmax")
    registry.record_original(original, "triton")
    registry.record_dispatches([dispatch])
    run_id = registry.start_run(task="optimize", config="a: 1\n", seed=1, toolchain={},
                                device="device-measured", device_source="measured")
    scene = Scene(registry, original, "softmax", dispatch, run_id)
    best = scene.commit("c", number=1)
    before = snapshot(cache)
    done = deploy(scene, "triton", cache, "--copy-to", tmp_path / "copy")
    assert done.returncode == 0
    assert f"export TRITON_CACHE_DIR={tmp_path}/copy" in done.stdout.splitlines()
    assert snapshot(cache) == before
    assert look_up(tmp_path / "copy", "softmax")["softmax"]["asm"] == best.object_sha256
    assert deploy(scene, "triton", cache).returncode == 0
    found = look_up(cache, "add", "softmax")
    assert found["softmax"]["asm"] == best.object_sha256
    assert all(entry["hit"] for entry in found.values())
    assert deploy(scene, "rollback", cache).returncode == 0
    assert snapshot(cache) == before


def test_triton_by_default(scene: Scene, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """The cache is where Triton itself would look for it."""
    (tmp_path / ".triton/cache").mkdir(parents=True)
    (tmp_path / "other").mkdir()
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.delenv("TRITON_HOME", raising=False)
    monkeypatch.delenv("TRITON_CACHE_DIR", raising=False)
    assert f"'{tmp_path}/.triton/cache'" in deploy(scene, "triton").stdout
    monkeypatch.setenv("TRITON_HOME", str(tmp_path / "other"))
    (tmp_path / "other/.triton/cache").mkdir(parents=True)
    assert f"'{tmp_path}/other/.triton/cache'" in deploy(scene, "triton").stdout
    monkeypatch.setenv("TRITON_CACHE_DIR", str(tmp_path / "other"))
    assert f"'{tmp_path}/other'" in deploy(scene, "triton").stdout
