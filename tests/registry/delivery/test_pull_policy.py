"""Which of several replacements is handed out, where it may run, and who must have signed it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgpack
import pytest

from asmevo.codeobject.container import CodeObject
from asmevo.device.device import TimingSource
from asmevo.gates.verdict import Gate, Outcome, Verdict
from asmevo.registry import Policy, PullError, PullRefusal, Replacement, pull
from asmevo.registry.errors import RegistryError, TrustError
from asmevo.registry.registry import Registry
from asmevo.registry.signing.keys import generate, load_signing_key
from tests.registry.conftest import STRICT, unprivileged
from tests.registry.delivery.test_pull import execute, refusal, restate

if TYPE_CHECKING:
    from tests.registry.conftest import Scene

PASS = Verdict(Gate.G3, Outcome.PASS, "ok", "1.2x", {"speedup": 1.2})


def pulled(scene: Scene, **arguments: Any) -> Replacement:
    return pull(scene.registry, original=scene.original.sha256, **arguments)


def test_the_path_of_a_registry_is_enough(scene: Scene) -> None:
    record = scene.commit("c", number=1)
    for path in (scene.registry.path, str(scene.registry.path)):
        assert pull(path, original=scene.original.sha256).record == record


# -- policies --------------------------------------------------------------------------------------


def test_policies(scene: Scene) -> None:
    best = scene.commit("best", number=1, speedup=1.5)
    steady = scene.commit("steady", number=2, speedup=1.3)
    scene.commit("lucky", number=3, speedup=1.4)
    newest = scene.commit("newest", number=4, speedup=1.1)
    scene.registry.record_second_timing("steady", 1.29, PASS, confirmed=True)
    scene.registry.record_second_timing("lucky", 1.01, PASS, confirmed=True)

    def chosen(policy: Policy | str) -> str:
        return pulled(scene, policy=policy).record.candidate_id

    assert chosen(Policy.BEST) == best.candidate_id
    assert chosen("newest") == newest.candidate_id
    assert chosen("confirmed") == steady.candidate_id
    with pytest.raises(RegistryError, match="best, confirmed, newest"):
        chosen("luckiest")


def test_nothing_is_confirmed(scene: Scene) -> None:
    scene.commit("c", number=1)
    assert refusal(scene, policy="confirmed") is PullRefusal.NOT_CONFIRMED


@pytest.mark.parametrize("policy", list(Policy))
def test_measured_is_ahead_of_modelled_in_every_policy(scene: Scene, policy: Policy) -> None:
    measured = scene.commit("h", number=1, speedup=1.1)
    scene.commit("m", number=2, speedup=9.0, source=TimingSource.MODELLED)
    for name in ("h", "m"):
        scene.registry.record_second_timing(name, 1.1, PASS, confirmed=True)
    found = pulled(scene, policy=policy, allow_modelled=True)
    assert found.record.candidate_id == measured.candidate_id


# -- what is passed over ---------------------------------------------------------------------------


def test_the_next_best_and_why_not_the_best(scene: Scene) -> None:
    scene.commit("withdrawn", number=1, speedup=1.9)
    scene.registry.record_second_timing("withdrawn", 0.9, PASS, confirmed=False)
    scene.commit("weak", number=2, speedup=1.8, judged=None)
    scene.commit("unstated", number=3, speedup=1.7)
    execute(scene, "DELETE FROM statement WHERE candidate_id = 'unstated'")
    good = scene.commit("good", number=4, speedup=1.2)
    scene.commit("worse", number=5, speedup=1.1, judged=None)
    found = pulled(scene)
    assert found.record == good
    assert [(s.speedup, s.code) for s in found.skipped] == [
        (1.9, PullRefusal.WITHDRAWN), (1.8, PullRefusal.WEAKER_GATES),
        (1.7, PullRefusal.NO_STATEMENT)]
    assert all(s.object_sha256 in s.reason for s in found.skipped)


def test_of_several_refusals_the_one_that_came_furthest(scene: Scene) -> None:
    """It is the one that whoever pulls can most likely do something about."""
    scene.commit("withdrawn", number=1, speedup=1.9)
    scene.registry.record_second_timing("withdrawn", 0.9, PASS, confirmed=False)
    scene.commit("modelled", number=2, speedup=1.1, source=TimingSource.MODELLED)
    with pytest.raises(PullError, match=r"allow-modelled.* \(others: withdrawn\)$") as caught:
        pulled(scene)
    assert caught.value.code is PullRefusal.MODELLED_ONLY


# -- evidence --------------------------------------------------------------------------------------


def test_the_sanitizer_is_no_verification(scene: Scene) -> None:
    scene.commit("c", number=1)
    execute(scene, """UPDATE verdict SET evidence = '{"sanitized": "m4"}' """
                   "WHERE gate = 'G2' AND attempt = 2")
    restate(scene)
    with pytest.raises(PullError, match="G2 has 2 of 3 passes"):
        pulled(scene)


@pytest.mark.parametrize(("ran", "refused"), [(STRICT.dispatches, False), (6, True), (0, True)])
def test_held_out_inputs_were_run(scene: Scene, ran: int, refused: bool) -> None:
    """Of `STRICT`'s inputs two are held out, and those run last."""
    scene.commit("c", number=1)
    execute(scene, f"""UPDATE verdict SET evidence = '{{"dispatches": {ran}}}' """
                   "WHERE gate = 'G2' AND attempt = 3")
    restate(scene)
    if refused:
        with pytest.raises(PullError, match=f"ran {ran} of 8 inputs") as caught:
            pulled(scene)
        assert caught.value.code is PullRefusal.EVIDENCE_INCOMPLETE
    else:
        pulled(scene)


def test_a_confirmation_that_says_otherwise(scene: Scene) -> None:
    scene.commit("c", number=1)
    scene.registry.record_second_timing("c", 1.2, PASS, confirmed=True)
    execute(scene, "UPDATE second_timing SET outcome = 'missing'")
    restate(scene)
    assert refusal(scene, policy="confirmed") is PullRefusal.EVIDENCE_INCOMPLETE


# -- the device ------------------------------------------------------------------------------------


def flagged(scene: Scene, flags: int) -> None:
    """Make original and variants for a processor with those ELF flags."""
    def with_flags(code: CodeObject) -> CodeObject:
        data = bytearray(code.data)
        data[48:52] = flags.to_bytes(4, "little")
        return CodeObject.parse(bytes(data))

    scene.original = with_flags(scene.original)
    scene.registry.record_original(scene.original, "flagged")


@pytest.mark.parametrize(("flags", "device", "code"), [
    (0x54C, "gfx942", None),
    (0x54C, "gfx942:sramecc+:xnack-", None),
    (0x54C, "amdgcn-amd-amdhsa--gfx942:sramecc+:xnack+", None),
    (0x54C, "gfx950", PullRefusal.ISA_MISMATCH),
    (0xE4C, "gfx942:sramecc+:xnack-", None),
    (0xE4C, "gfx942:sramecc+:xnack+", PullRefusal.ISA_MISMATCH),
    (0xE4C, "gfx942:sramecc-:xnack-", PullRefusal.ISA_MISMATCH),
    (0xE4C, "gfx942:xnack-", PullRefusal.ISA_MISMATCH),
    (0xE4C, "gfx942", PullRefusal.ISA_MISMATCH),
    (0xE4C, None, None),  # what runs the original runs it too
])
def test_features_of_the_device(scene: Scene, flags: int, device: str | None,
                                code: PullRefusal | None) -> None:
    """E_flags 0x54c leave both features open, 0xe4c are sramecc+ and xnack- (LLVM, V4 flags)."""
    flagged(scene, flags)
    record = scene.commit("c", number=1)
    if code is None:
        assert pulled(scene, device=device).record == record
    else:
        assert refusal(scene, device=device) is code


@pytest.mark.parametrize("device", ["", "gfx1100", "gfx942:xnack", "mi300x"])
def test_a_device_that_is_none(scene: Scene, device: str) -> None:
    scene.commit("c", number=1)
    with pytest.raises(RegistryError, match="the device is unknown") as caught:
        pulled(scene, device=device)
    assert not isinstance(caught.value, PullError)


# -- the interface ---------------------------------------------------------------------------------


def descriptor_byte(code: CodeObject, offset: int, value: int) -> bytes:
    symbol = next(s for s in code.symbols if s.name == f"{code.kernels[0].symbol}.kd")
    section = code.section(symbol.section)
    data = bytearray(code.data)
    data[section.offset + symbol.value - section.address + offset] = value
    return bytes(data)


def noted(code: CodeObject, change: Callable[[dict[str, Any]], None]) -> bytes:
    """The object with a metadata note of the same length and other content."""
    old = code.metadata_note()
    document = msgpack.unpackb(old)
    change(document)
    new = msgpack.packb(document)
    assert len(new) == len(old)
    return code.data.replace(old, new)


def _rename(document: dict[str, Any]) -> None:
    argument = document["amdhsa.kernels"][0][".args"][0]
    argument[".value_kind"] = argument[".value_kind"][::-1]


def _wider(document: dict[str, Any]) -> None:
    document["amdhsa.kernels"][0][".max_flat_workgroup_size"] += 1


def _version(document: dict[str, Any]) -> None:
    document["amdhsa.version"] = [1, 1]


INTERFACES: dict[str, Callable[[CodeObject], bytes]] = {
    "more LDS": lambda code: descriptor_byte(code, 1, 0x7F),
    "scratch": lambda code: descriptor_byte(code, 4, 64),
    "kernarg size": lambda code: descriptor_byte(code, 8, 8),
    "user SGPRs": lambda code: descriptor_byte(code, 52, 0x14),
    "workgroup ids": lambda code: descriptor_byte(code, 53, 0),
    "float mode": lambda code: descriptor_byte(code, 50, 0),
    "arguments": lambda code: noted(code, _rename),
    "workgroup size": lambda code: noted(code, _wider),
    "metadata": lambda code: noted(code, _version),
    "kernel symbol": lambda code: code.data.replace(
        code.kernels[0].symbol.encode(), b"x" + code.kernels[0].symbol.encode()[1:]),
    "no code object": lambda code: code.data[:64] + b"\0" * 64,
}


@pytest.mark.parametrize("name", INTERFACES)
def test_another_interface_than_the_original(scene: Scene, name: str) -> None:
    """G1 saw to it, but whoever launches relies on it: the bytes are compared again."""
    data = INTERFACES[name](scene.variant(1))
    assert data != scene.variant(1).data
    sha256 = scene.registry._blobs.put(data)
    best = scene.commit("c", number=1, speedup=1.5)
    other = scene.commit("d", number=2, speedup=1.1)
    execute(scene, f"UPDATE code_object SET sha256 = '{sha256}' "
                   f"WHERE sha256 = '{best.object_sha256}'")
    for table in ("replacement", "candidate"):
        execute(scene, f"UPDATE {table} SET object_sha256 = '{sha256}' "
                       f"WHERE object_sha256 = '{best.object_sha256}'")
    restate(scene)
    found = pulled(scene)
    assert found.record.object_sha256 == other.object_sha256
    assert [s.code for s in found.skipped] == [PullRefusal.INTERFACE_MISMATCH]
    execute(scene, "DELETE FROM replacement WHERE candidate_id = 'd'")
    execute(scene, "DELETE FROM statement WHERE candidate_id = 'd'")
    assert refusal(scene) is PullRefusal.INTERFACE_MISMATCH


# -- signatures ------------------------------------------------------------------------------------


@pytest.fixture
def keys(tmp_path: Path) -> tuple[Path, Path]:
    generate(tmp_path / "own", "own")
    generate(tmp_path / "foreign", "foreign")
    return tmp_path / "own", tmp_path / "foreign"


def public(key: Path) -> Path:
    return Path(f"{key}.pub")


def test_unsigned_and_foreign_signed_are_told_apart(scene: Scene, keys: tuple[Path, Path]) -> None:
    own, foreign = keys
    record = scene.commit("c", number=1)
    assert refusal(scene, trust=public(own)) is PullRefusal.UNSIGNED
    scene.registry.sign(["c"], load_signing_key(foreign))
    assert refusal(scene, trust=public(own)) is PullRefusal.UNTRUSTED
    assert pulled(scene).signers == (load_signing_key(foreign).public_key,)
    scene.registry.sign(["c"], load_signing_key(own))
    found = pulled(scene, trust=public(own))
    assert found.record == record
    assert found.signers == (load_signing_key(own).public_key,)
    assert len(pulled(scene).signers) == 2


def test_the_trusted_one_is_preferred_to_a_better_one(scene: Scene,
                                                      keys: tuple[Path, Path]) -> None:
    own, foreign = keys
    scene.commit("foreign", number=1, speedup=9.0)
    scene.registry.sign(["foreign"], load_signing_key(foreign))
    trusted = scene.commit("own", number=2, speedup=1.1)
    scene.registry.sign(["own"], load_signing_key(own))
    found = pulled(scene, trust=public(own))
    assert found.record == trusted
    assert [s.code for s in found.skipped] == [PullRefusal.UNTRUSTED]


def test_an_empty_list_refuses_everybody(scene: Scene, keys: tuple[Path, Path],
                                         tmp_path: Path) -> None:
    scene.commit("c", number=1)
    (tmp_path / "nobody").write_text("")
    scene.registry.sign(["c"], load_signing_key(keys[0]))
    assert refusal(scene, trust=tmp_path / "nobody") is PullRefusal.UNTRUSTED


def test_a_list_of_the_environment_counts(scene: Scene, keys: tuple[Path, Path],
                                          monkeypatch: pytest.MonkeyPatch) -> None:
    scene.commit("c", number=1)
    pulled(scene)
    monkeypatch.setenv("ASMEVO_TRUSTED_KEYS", str(public(keys[0])))
    assert refusal(scene) is PullRefusal.UNSIGNED


def test_a_list_in_the_registry_does_not(scene: Scene, keys: tuple[Path, Path]) -> None:
    scene.commit("c", number=1)
    inside = scene.registry.path / "trusted_keys"
    inside.write_text(public(keys[0]).read_text())
    with pytest.raises(TrustError, match="inside of registry"):
        pulled(scene, trust=inside)


def test_nor_does_one_beside_the_files_that_urls_name(
        scene: Scene, keys: tuple[Path, Path], tmp_path: Path) -> None:
    scene.commit("c", number=1)
    path = scene.registry.path
    apart = Registry(tmp_path, f"sqlite:///{path}/asmevo.db", f"file://{path}/blobs")
    for folder in (path, path / "blobs"):
        inside = folder / "trusted_keys"
        inside.write_text(public(keys[0]).read_text())
        with pytest.raises(TrustError, match="inside of registry"):
            pull(apart, original=scene.original.sha256, trust=inside, allow_modelled=True)
    apart.close()


def test_a_registry_that_may_only_be_read(scene: Scene, keys: tuple[Path, Path],
                                          open_path: Path) -> None:
    import shutil

    scene.commit("c", number=1)
    scene.registry.sign(["c"], load_signing_key(keys[0]))
    scene.registry.close()
    shutil.copytree(scene.registry.path, open_path / "registry")
    shutil.copy(public(keys[0]), open_path / "trusted")
    with unprivileged():
        found = pull(Registry(open_path / "registry"), original=scene.original.sha256,
                     trust=open_path / "trusted")
    assert len(found.signers) == 1
