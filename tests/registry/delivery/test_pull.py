"""The pull policy: what is handed out, and the code of every refusal."""

from __future__ import annotations

import re
import sqlite3
import subprocess
import sys
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from asmevo.__main__ import config_folder
from asmevo.codeobject.container import CodeObject
from asmevo.device.device import TimingSource
from asmevo.gates.verdict import Gate, Outcome, Verdict
from asmevo.registry import pull
from asmevo.registry.audit.finding import FindingCode
from asmevo.registry.audit.verify import verify
from asmevo.registry.blobs.store import BlobStore
from asmevo.registry.errors import BlobError, PullError, PullRefusal, RegistryError
from asmevo.registry.judgement import LEAST, MOST
from asmevo.registry.registry import Registry
from asmevo.registry.signing.statement import issue
from tests.registry.conftest import STRICT

if TYPE_CHECKING:
    from tests.registry.conftest import Scene

GFX90A = 0x3F  # LLVM "User Guide for AMDGPU Backend", e_flags


def execute(scene: Scene, statement: str) -> None:
    with closing(sqlite3.connect(scene.registry.path / "asmevo.db")) as connection:
        connection.execute(statement)
        connection.commit()


def restate(scene: Scene) -> None:
    """State what the rows say now, as their owner could: then only what they say counts."""
    with scene.registry._database.write() as session:
        for record in scene.registry.replacements():
            issue(session, record.candidate_id, scene.registry._blobs)


def refusal(scene: Scene, **arguments: object) -> PullRefusal:
    with pytest.raises(PullError) as caught:
        pull(scene.registry, original=scene.original.sha256, **arguments)  # type: ignore[arg-type]
    assert "\n" not in str(caught.value)
    return caught.value.code


def blob(scene: Scene, sha256: str) -> Path:
    return scene.registry.path / "blobs" / sha256[:2] / f"{sha256}.zst"


def test_gives_the_best_by_hash_or_file(scene: Scene, tmp_path: Path) -> None:
    scene.commit("slow", number=1, speedup=1.1)
    best = scene.commit("fast", number=2, speedup=1.3)
    file = tmp_path / "layer_norm.co"
    file.write_bytes(scene.original.data)
    for original in (scene.original.sha256, scene.original.sha256.upper(), file, str(file)):
        found = pull(scene.registry, original=original, kernel=scene.kernel, device="gfx942")
        assert found.record == best
        assert found.data == scene.variant(2).data


def test_modelled_needs_to_be_asked_for(scene: Scene) -> None:
    modelled = scene.commit("m", number=1, speedup=9.0, source=TimingSource.MODELLED)
    assert refusal(scene) is PullRefusal.MODELLED_ONLY
    with pytest.raises(PullError, match="--allow-modelled"):
        pull(scene.registry, original=scene.original.sha256)
    found = pull(scene.registry, original=scene.original.sha256, allow_modelled=True)
    assert found.record == modelled


def test_measured_is_preferred_to_any_modelled(scene: Scene) -> None:
    scene.commit("m", number=1, speedup=9.0, source=TimingSource.MODELLED)
    measured = scene.commit("h", number=2, speedup=1.1)
    for allow in (False, True):
        found = pull(scene.registry, original=scene.original.sha256, allow_modelled=allow)
        assert found.record == measured


def test_nothing_there(scene: Scene) -> None:
    assert refusal(scene) is PullRefusal.NONE
    scene.commit("c", number=1)
    assert refusal(scene, kernel="other") is PullRefusal.NONE
    with pytest.raises(PullError) as caught:
        pull(scene.registry, original="0" * 64)
    assert caught.value.code is PullRefusal.NONE


@pytest.mark.parametrize("given", ["", "missing.co", "a" * 63, "nul\0", "/"])
def test_original_that_cannot_be_read(scene: Scene, given: str) -> None:
    with pytest.raises(RegistryError, match="original") as caught:
        pull(scene.registry, original=given)
    assert not isinstance(caught.value, PullError)


def test_several_kernels_must_be_told_apart(scene: Scene) -> None:
    first = scene.commit("c", number=1)
    scene.kernel = "another"
    other = scene.commit("d", number=2)
    assert refusal(scene) is PullRefusal.AMBIGUOUS_KERNEL
    assert other.kernel == "another"
    assert refusal(scene, kernel="another") is PullRefusal.INTERFACE_MISMATCH  # there is none
    assert pull(scene.registry, original=scene.original.sha256,
                kernel=scene.original.kernels[0].symbol).record == first


def test_isa_that_was_asked_for(scene: Scene) -> None:
    scene.commit("c", number=1)
    assert refusal(scene, device="gfx90a") is PullRefusal.ISA_MISMATCH


@pytest.mark.parametrize("lie", [False, True])
def test_replacement_for_another_isa(scene: Scene, lie: bool,
                                     monkeypatch: pytest.MonkeyPatch) -> None:
    data = bytearray(scene.variant(1).data)
    data[48] = GFX90A
    monkeypatch.setattr(scene, "variant", lambda number: CodeObject.parse(bytes(data)))
    assert scene.commit("c", number=1).isa == "gfx90a"
    if lie:  # then only the bytes tell
        execute(scene, "UPDATE code_object SET isa = 'gfx942'")
        restate(scene)
    assert refusal(scene) is PullRefusal.ISA_MISMATCH


@pytest.mark.parametrize("damage", ["truncated", "missing", "exchanged"])
@pytest.mark.parametrize("which", ["replacement", "original"])
def test_damaged_blob(scene: Scene, damage: str, which: str) -> None:
    record = scene.commit("c", number=1)
    hashes = [record.object_sha256, record.original_sha256]
    victim, other = (blob(scene, h) for h in (hashes if which == "replacement" else hashes[::-1]))
    if damage == "truncated":
        victim.write_bytes(victim.read_bytes()[:-9])
    elif damage == "missing":
        victim.unlink()
    else:
        victim.write_bytes(other.read_bytes())
    assert refusal(scene) is PullRefusal.BLOB_CORRUPT


@pytest.mark.parametrize("which", ["object", "statement"])
def test_what_cannot_be_read_just_now_is_not_called_tampered(
        scene: Scene, monkeypatch: pytest.MonkeyPatch, which: str) -> None:
    """A disk or an object store that fails is no reason to look for an intruder."""
    record = scene.commit("c", number=1)
    get = BlobStore.get

    def failing(store: BlobStore, sha256: str) -> bytes:
        if (sha256 == record.object_sha256) == (which == "object"):
            raise BlobError("cannot read blob: input/output error")
        return get(store, sha256)

    monkeypatch.setattr(BlobStore, "get", failing)
    with pytest.raises(RegistryError, match="input/output error") as caught:
        pull(scene.registry, original=scene.original.sha256)
    assert not isinstance(caught.value, PullError)
    codes = [finding.code for finding in verify(scene.registry).findings]
    assert FindingCode.BLOB_UNREADABLE in codes


@pytest.mark.parametrize("statement", [
    "DELETE FROM verdict WHERE gate = 'G0'",
    "DELETE FROM verdict WHERE gate = 'G1'",
    "DELETE FROM verdict WHERE gate = 'G2' AND attempt = 2",
    "DELETE FROM verdict WHERE gate = 'G3'",
    "DELETE FROM verdict WHERE gate = 'G4'",
    "UPDATE verdict SET outcome = 'fail' WHERE gate = 'G2' AND attempt = 3",
    "UPDATE verdict SET outcome = 'missing' WHERE gate = 'G4'",
    "DELETE FROM timing",
    "UPDATE timing SET source = 'modelled'",
    "UPDATE replacement SET evidence_complete = 0",
    "UPDATE replacement SET object_sha256 = original_sha256",
    "UPDATE candidate SET kernel = 'other'",
])
def test_incomplete_or_contradictory_evidence(scene: Scene, statement: str) -> None:
    scene.commit("c", number=1)
    execute(scene, statement)
    assert refusal(scene) is PullRefusal.STATEMENT_MISMATCH
    restate(scene)
    assert refusal(scene) is PullRefusal.EVIDENCE_INCOMPLETE


def test_modelled_row_relabelled_as_measured(scene: Scene) -> None:
    scene.commit("c", number=1, source=TimingSource.MODELLED)
    execute(scene, "UPDATE replacement SET timing_source = 'measured'")
    assert refusal(scene) is PullRefusal.STATEMENT_MISMATCH
    restate(scene)
    assert refusal(scene) is PullRefusal.EVIDENCE_INCOMPLETE


@pytest.mark.parametrize("named", ["replacement", "timing", "run", "source"])
def test_an_emulator_has_measured_nothing(scene: Scene, named: str) -> None:
    """Whoever alters every row that says so is still told by the name of the device."""
    scene.commit("c", number=1)
    execute(scene, "UPDATE run SET device_source = 'modelled'" if named == "source" else
            f"UPDATE {named} SET device = 'emulator:gfx942:mi300x'")
    assert refusal(scene) is PullRefusal.STATEMENT_MISMATCH
    restate(scene)
    with pytest.raises(PullError, match=r"called measured, but its (device 'emulator:gfx942:mi300x'"
                                         r" is an emulator|run .* timings are modelled)") as caught:
        pull(scene.registry, original=scene.original.sha256)
    assert caught.value.code is PullRefusal.EVIDENCE_INCOMPLETE


def test_another_device_than_the_run_had(scene: Scene) -> None:
    scene.commit("c", number=1)
    execute(scene, "UPDATE replacement SET device = 'device-other'")
    restate(scene)
    assert refusal(scene) is PullRefusal.EVIDENCE_INCOMPLETE


@pytest.mark.parametrize("speedup", ["'abc'", "9e999", "x'00'"])
@pytest.mark.parametrize("table", ["replacement", "second_timing"])
def test_a_speedup_that_is_no_number(scene: Scene, table: str, speedup: str) -> None:
    scene.commit("c", number=1)
    scene.registry.record_second_timing(
        "c", 1.2, Verdict(Gate.G3, Outcome.PASS, "ok", ""), confirmed=True)
    execute(scene, f"UPDATE {table} SET speedup = {speedup}")
    assert refusal(scene) is PullRefusal.STATEMENT_MISMATCH
    with pytest.raises(RegistryError, match=r"is not a positive number|malformed row") as caught:
        scene.registry.replacements()
    assert "\n" not in str(caught.value)


WEAKER = [
    ({"cosine": 1e-5}, "gates.cosine was 1e-05, below 0.9999"),
    ({"max_abs": 1e30}, "gates.max_abs was 1e+30, above 0.001"),
    ({"repeats": 2}, "gates.repeats was 2, below 3"),
    ({"precision_slack": 9.0}, "gates.precision_slack was 9, above 0.05"),
    ({"sanitize": False}, "gates.sanitize was off"),
    ({"extra_ops": ("s_trap",)}, "gates.extra_ops allowed s_trap"),
    ({"epsilon": 0.0}, "gates.epsilon was 0, below 0.002"),
    ({"s_floor": 0.5}, "gates.s_floor was 0.5, below 1"),
    ({"replaced": ("equality=my.Gate",)}, "gates.equality=my.Gate replaced a built-in gate"),
    ({"held_out": 0}, "no dispatch was held out"),
    ({"dispatches": 0}, "it was judged on no dispatch"),
    (None, "it is not recorded by which thresholds it was judged"),
]


@pytest.mark.parametrize(("changed", "words"), WEAKER)
def test_weaker_gates_need_to_be_asked_for(
        scene: Scene, changed: dict[str, Any] | None, words: str) -> None:
    judged = None if changed is None else replace(STRICT, **changed)
    weak = scene.commit("weak", number=1, speedup=9.0, judged=judged)
    assert weak.weaknesses == (words,)
    with pytest.raises(PullError, match="--allow-weaker") as caught:
        pull(scene.registry, original=scene.original.sha256)
    assert words in str(caught.value)
    assert caught.value.code is PullRefusal.WEAKER_GATES
    assert pull(scene.registry, original=scene.original.sha256, allow_weaker=True).record == weak
    strict = scene.commit("strict", number=2, speedup=1.1)
    assert pull(scene.registry, original=scene.original.sha256).record == strict


def test_stricter_gates_are_as_good(scene: Scene) -> None:
    judged = replace(STRICT, cosine=1.0, max_abs=0.0, repeats=9, epsilon=0.1, k=2.0)
    assert scene.commit("c", number=1, judged=judged).weaknesses == ()
    pull(scene.registry, original=scene.original.sha256)


@pytest.mark.parametrize("value", ["'[]'", "'{}'", "json_set(data, '$.cosine', 'x')",
                                   "json_set(data, '$.repeats', json('true'))"])
def test_a_malformed_judgement(scene: Scene, value: str) -> None:
    scene.commit("c", number=1)
    execute(scene, f"UPDATE judgement SET data = {value}")
    assert refusal(scene) is PullRefusal.STATEMENT_MISMATCH
    with pytest.raises(RegistryError, match="how a replacement was judged"):
        scene.registry.replacements()



def test_the_defaults_are_those_of_the_configuration() -> None:
    text = (Path(config_folder()) / "gates" / "default.yaml").read_text()
    for name, value in {**LEAST, **MOST}.items():
        assert re.search(rf"^{name}: {value:g}\b", text, re.MULTILINE), name


HEAVY = ("numpy", "sqlalchemy", "sqlmodel", "pydantic", "rich", "elftools", "torch", "hydra",
         "omegaconf", "msgpack", "zstandard", "cryptography")


@pytest.mark.parametrize("imported", [
    "from asmevo.registry import Policy, PullError, PullRefusal, Replacement, pull",
    "import asmevo.registry.delivery.pull", "import asmevo.registry.command.line"])
def test_importing_pull_is_light(imported: str) -> None:
    """What takes long is imported by the first call: a script may never make one."""
    code = f"import sys; {imported}; print(sorted(set({HEAVY!r}) & set(sys.modules)))"
    root = str(Path(sys.modules["asmevo"].__path__[0]).parent)
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True,
                          check=True, env={"PYTHONPATH": root})
    assert done.stdout.strip() == "[]"


def test_pulling_takes_no_device_and_no_configuration(scene: Scene) -> None:
    scene.commit("c", number=1)
    code = ("import sys; from asmevo.registry import pull; "
            f"pull({str(scene.registry.path)!r}, original={scene.original.sha256!r}); "
            "print(sorted({'numpy', 'hydra', 'omegaconf', 'torch', 'rich', 'asmevo_core', "
            "'asmevo.device.device', 'asmevo.gates.harness', 'asmevo.codeobject.disassembler'}"
            " & set(sys.modules)))")
    root = str(Path(sys.modules["asmevo"].__path__[0]).parent)
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True,
                          check=True, env={"PYTHONPATH": root})
    assert done.stdout.strip() == "[]"


def test_missing_registry(tmp_path: Path) -> None:
    with pytest.raises(RegistryError, match="no registry at"):
        pull(Registry(tmp_path / "none"), original="0" * 64)
    assert not (tmp_path / "none").exists()


def test_a_folder_of_blobs_that_is_not_there_is_no_damage(scene: Scene, tmp_path: Path) -> None:
    """A typo in --blobs, or a share that is not mounted, is nobody's tampering."""
    scene.commit("c", number=1)
    elsewhere = Registry(scene.registry.path, blobs_url=str(tmp_path / "none"))
    with pytest.raises(RegistryError, match="there is no folder of blobs") as caught:
        pull(elsewhere, original=scene.original.sha256)
    assert not isinstance(caught.value, PullError)
    elsewhere.close()
