"""Whose signatures count: where the list comes from, and what it may not be."""

from __future__ import annotations

from pathlib import Path

import pytest

from asmevo.registry.errors import TrustError
from asmevo.registry.signing.keys import generate
from asmevo.registry.signing.trust import find_trust, load_trust

KEY = "asmevo-ed25519 " + "ab" * 32


@pytest.fixture
def registry(tmp_path: Path) -> Path:
    (tmp_path / "registry").mkdir()
    return tmp_path / "registry"


def test_keys_with_comments(tmp_path: Path) -> None:
    public = generate(tmp_path / "key", "our release key")
    file = tmp_path / "trusted"
    file.write_text(f"# who may sign\n\n  {KEY}\t \n" + (tmp_path / "key.pub").read_text())
    assert load_trust(file).keys == {"ab" * 32: "", public: "our release key"}
    assert load_trust(tmp_path / "key.pub").keys == {public: "our release key"}


def test_an_empty_list_trusts_nobody(tmp_path: Path) -> None:
    (tmp_path / "trusted").write_text("# nobody\n")
    assert load_trust(tmp_path / "trusted").keys == {}


@pytest.mark.parametrize("content", [
    b"x\n", b"ab" * 32, KEY.encode() + b"\nasmevo-ed25519\n", b"\xff\xfe", b"\0" * 10,
    b"-----BEGIN PUBLIC KEY-----\n", b"asmevo-ed25519 " + b"00" * 32, b"#" * (1 << 21),
])
def test_malformed_lists_are_errors(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "trusted").write_bytes(content)
    with pytest.raises(TrustError) as caught:
        load_trust(tmp_path / "trusted")
    assert "\n" not in str(caught.value)


def test_one_that_everybody_can_write(tmp_path: Path) -> None:
    (tmp_path / "trusted").write_text(KEY)
    (tmp_path / "trusted").chmod(0o646)
    with pytest.raises(TrustError, match="written by everybody"):
        load_trust(tmp_path / "trusted")


def test_where_it_comes_from(tmp_path: Path, registry: Path,
                             monkeypatch: pytest.MonkeyPatch) -> None:
    """What is given counts, then the environment, then the user's own."""
    assert find_trust(None, registry) is None
    files = {}
    for number, name in enumerate(("given", "named", "config/asmevo/trusted_keys")):
        file = tmp_path / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(f"asmevo-ed25519 {number:02x}{'ab' * 31}\n")
        files[name] = file

    def keys(given: Path | None) -> list[str]:
        found = find_trust(given, registry)
        assert found is not None
        return [key[:2] for key in found.keys]

    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    assert keys(None) == ["02"]
    monkeypatch.setenv("ASMEVO_TRUSTED_KEYS", str(files["named"]))
    assert keys(None) == ["01"]
    assert keys(files["given"]) == ["00"]


@pytest.mark.parametrize("how", ["given", "named", "empty", "unnamed", "dangling"])
def test_one_that_is_missing_is_an_error(tmp_path: Path, registry: Path, how: str,
                                         monkeypatch: pytest.MonkeyPatch) -> None:
    """Going on without would take everybody's signature, or none."""
    given: str | None = None
    if how in ("given", "empty"):
        given = str(tmp_path / "none") if how == "given" else ""
    elif how in ("named", "unnamed"):
        monkeypatch.setenv("ASMEVO_TRUSTED_KEYS", str(tmp_path / "none") if how == "named" else "")
    else:
        (tmp_path / "asmevo").mkdir()
        (tmp_path / "asmevo" / "trusted_keys").symlink_to("nowhere")
        monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    with pytest.raises(TrustError):
        find_trust(given, registry)


@pytest.mark.parametrize("how", ["inside", "link", "parent", "linked registry"])
def test_one_inside_of_the_registry_does_not_count(tmp_path: Path, registry: Path,
                                                   how: str) -> None:
    """Whoever can write the registry could add a key to it."""
    inside = registry / "keys" / "trusted"
    inside.parent.mkdir()
    inside.write_text(KEY)
    given = inside
    if how == "link":
        given = tmp_path / "trusted"
        given.symlink_to(inside)
    elif how == "parent":
        given = tmp_path / "registry" / ".." / "registry" / "keys" / "trusted"
    elif how == "linked registry":
        (tmp_path / "alias").symlink_to(registry)
        registry = tmp_path / "alias"
    with pytest.raises(TrustError, match="lies inside of registry"):
        find_trust(given, registry)
