"""Keys in files, signatures, and OpenSSL as the reference for both."""

from __future__ import annotations

import hashlib
import os
import shutil
import stat
import subprocess
from contextlib import AbstractContextManager
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from asmevo.registry.errors import KeyFileError
from asmevo.registry.signing.keys import (
    Domain,
    generate,
    is_public_key,
    load_signing_key,
    message,
    parse_line,
    verifies,
)

if TYPE_CHECKING:
    from collections.abc import Callable

SHA = hashlib.sha256(b"a statement").hexdigest()
needs_openssl = pytest.mark.skipif(shutil.which("openssl") is None,
                                   reason="the openssl command is not installed")


def openssl(*arguments: object) -> subprocess.CompletedProcess[bytes]:
    return subprocess.run(["openssl", *map(str, arguments)], capture_output=True, check=False)


@pytest.fixture
def key_file(tmp_path: Path) -> Path:
    generate(tmp_path / "key", "release")
    return tmp_path / "key"


def test_a_pair_of_keys(key_file: Path) -> None:
    key = load_signing_key(key_file)
    assert parse_line(Path(f"{key_file}.pub").read_text()) == (key.public_key, "release")
    signature = key.sign(Domain.STATEMENT, SHA)
    assert verifies(key.public_key, signature, Domain.STATEMENT, SHA)
    assert signature == key.sign(Domain.STATEMENT, SHA)  # RFC 8032: nothing random in it


def test_the_private_half_is_for_its_owner_only(key_file: Path) -> None:
    assert stat.S_IMODE(key_file.stat().st_mode) == 0o600
    assert "PRIVATE" not in repr(load_signing_key(key_file))
    assert "PRIVATE" not in Path(f"{key_file}.pub").read_text()


@pytest.mark.parametrize("change", ["key", "signature", "domain", "hash"])
def test_a_signature_of_something_else(key_file: Path, tmp_path: Path, change: str) -> None:
    key = load_signing_key(key_file)
    signature = key.sign(Domain.STATEMENT, SHA)
    flipped = signature[:-1] + ("0" if signature[-1] != "0" else "1")
    arguments: dict[str, tuple[str, str, Domain, str]] = {
        "key": (generate(tmp_path / "other"), signature, Domain.STATEMENT, SHA),
        "signature": (key.public_key, flipped, Domain.STATEMENT, SHA),
        "domain": (key.public_key, signature, Domain.BUNDLE, SHA),
        "hash": (key.public_key, signature, Domain.STATEMENT, "0" * 64),
    }
    assert not verifies(*arguments[change])


@pytest.mark.parametrize(("key", "signature", "sha256"), [
    ("", "0" * 128, SHA), ("0" * 63, "0" * 128, SHA), ("zz" * 32, "0" * 128, SHA),
    ("ab" * 32, "", SHA), ("ab" * 32, "xy" * 64, SHA), ("ab" * 32, "0" * 128, "x"),
    ("ab" * 32, "0" * 128, SHA + "\n"), ("ab" * 32 + "\n", "0" * 128, SHA),
])
def test_malformed_signatures_do_not_verify(key: str, signature: str, sha256: str) -> None:
    assert not verifies(key, signature, Domain.STATEMENT, sha256)


def small_order_points() -> set[bytes]:
    """By the curve's equation, -x² + y² = 1 + dx²y² (RFC 8032, section 5.1), and its addition."""
    p = 2**255 - 19
    d = -121665 * pow(121666, -1, p) % p

    def double(x: int, y: int) -> tuple[int, int]:
        k = d * x * x * y * y % p
        return (2 * x * y * pow(1 + k, -1, p) % p, (y * y + x * x) * pow(1 - k, -1, p) % p)

    root = pow(2, (p - 1) // 4, p)  # of -1
    # Twice a point of order 8 has y = 0: then y² = -x², so x = ±iy, and 1 + dx²y² = -x² + y² = 2y².
    found = set()
    for y in range_of_order_8(p, d):
        for x in (root * y % p, -root * y % p):
            point, times = (x, y), 1
            while point != (0, 1):
                found.add(point)
                point, times = double(*point), times + 1
                assert times <= 4
    return {(y | (x & 1) << 255).to_bytes(32, "little") for x, y in {*found, (0, 1)}}


def range_of_order_8(p: int, d: int) -> list[int]:
    """All y with 1 - dy⁴ = 2y², by the quadratic formula and square roots modulo p."""
    def roots(square: int) -> list[int]:
        root = pow(square, (p + 3) // 8, p)
        if root * root % p != square % p:
            root = root * pow(2, (p - 1) // 4, p) % p
        return [root, -root % p] if root * root % p == square % p else []

    halves = [(-1 + s) * pow(d, -1, p) % p for s in roots(1 + d)]
    return [y for half in halves for y in roots(half)]


def test_keys_with_which_anybody_can_sign() -> None:
    """A point of small order verifies signatures that no private key made."""
    points = small_order_points()
    assert len(points) == 8
    for point in points:
        assert not is_public_key(point.hex())
        flipped = bytes([*point[:31], point[31] ^ 0x80])  # the other sign of x, or none such
        assert not is_public_key(flipped.hex())
    beyond = (2**255 - 19 + 1).to_bytes(32, "little")  # 1, written as no canonical number
    assert not is_public_key(beyond.hex())
    assert not verifies("01" + "00" * 31, "01" + "00" * 63, Domain.STATEMENT, SHA)


def test_nothing_is_overwritten(key_file: Path, tmp_path: Path) -> None:
    for taken in ("key", "key.pub", "other.pub", "dangling"):
        path = tmp_path / taken
        if taken == "dangling":
            path.symlink_to(tmp_path / "nowhere")
        elif not path.exists():
            path.write_text("mine")
        before = None if taken == "dangling" else path.read_bytes()
        with pytest.raises(KeyFileError, match="never overwritten"):
            generate(tmp_path / taken.removesuffix(".pub"))
        assert before is None or path.read_bytes() == before
    assert not (tmp_path / "other").exists()
    assert not (tmp_path / "nowhere").exists()


def test_a_folder_that_cannot_be_written(open_path: Path,
                                         as_user: Callable[[], AbstractContextManager[None]],
                                         ) -> None:
    open_path.chmod(0o555)
    with as_user(), pytest.raises(KeyFileError, match="permission denied"):
        generate(open_path / "key")
    with pytest.raises(KeyFileError, match="no such file or folder"):
        generate(open_path / "none" / "key")


@pytest.mark.parametrize("comment", ["two\nlines", "\x1b[31m", "x" * 201])
def test_comments_are_one_printable_line(tmp_path: Path, comment: str) -> None:
    with pytest.raises(KeyFileError, match="comment"):
        generate(tmp_path / "key", comment)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("mode", [0o640, 0o604, 0o610, 0o601, 0o666, 0o777])
def test_a_key_that_others_can_access(key_file: Path, mode: int) -> None:
    key_file.chmod(mode)
    with pytest.raises(KeyFileError, match="accessed by others than its owner") as caught:
        load_signing_key(key_file)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("mode", [0o600, 0o400])
def test_a_key_that_nobody_else_can_access(key_file: Path, mode: int) -> None:
    key_file.chmod(mode)
    load_signing_key(key_file)


def pem(tmp_path: Path, *arguments: str) -> bytes:
    target = tmp_path / "made"
    done = openssl("genpkey", *arguments, "-out", target)
    assert done.returncode == 0, done.stderr
    return target.read_bytes()


@needs_openssl
@pytest.mark.parametrize(("arguments", "words"), [
    (("-algorithm", "X25519"), "not an Ed25519 key"),
    (("-algorithm", "ED448"), "not an Ed25519 key"),
    (("-algorithm", "RSA", "-pkeyopt", "rsa_keygen_bits:1024"), "not an Ed25519 key"),
    (("-algorithm", "ED25519", "-aes256", "-pass", "pass:secret"), "encrypted"),
])
def test_other_keys(tmp_path: Path, arguments: tuple[str, ...], words: str) -> None:
    file = tmp_path / "key"
    file.write_bytes(pem(tmp_path, *arguments))
    file.chmod(0o600)
    with pytest.raises(KeyFileError, match=words):
        load_signing_key(file)


HOSTILE = {
    "empty": b"", "text": b"hello\n", "zeros": bytes(100), "long": b"-" * (1 << 15),
    "torn": b"-----BEGIN PRIVATE KEY-----\nMC4CAQAwBQYDK2VwBCIEI",
    "no base64": b"-----BEGIN PRIVATE KEY-----\n!!!!\n-----END PRIVATE KEY-----\n",
    "no asn1": b"-----BEGIN PRIVATE KEY-----\nAAAA\n-----END PRIVATE KEY-----\n",
    "public": b"-----BEGIN PUBLIC KEY-----\nAAAA\n-----END PUBLIC KEY-----\n",
    "secret": b"asmevo-ed25519 " + b"ab" * 32,
}


@pytest.mark.parametrize("content", HOSTILE.values(), ids=HOSTILE)
def test_hostile_key_files(tmp_path: Path, content: bytes) -> None:
    file = tmp_path / "key"
    file.write_bytes(content)
    file.chmod(0o600)
    with pytest.raises(KeyFileError) as caught:
        load_signing_key(file)
    assert "\n" not in str(caught.value)
    assert "abab" not in str(caught.value)  # what is there may be a secret in the wrong place


def test_what_is_no_file(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe", 0o600)
    (tmp_path / "loop").symlink_to("loop")
    for name, words in (("pipe", "is not a file"), (".", "is not a file"),
                        ("none", "no such file"), ("loop", "cannot read"), ("a\0b", "not a path")):
        with pytest.raises(KeyFileError, match=words):
            load_signing_key(tmp_path / name)
    with pytest.raises(KeyFileError, match="is not a file"):
        load_signing_key("/dev/zero")
    with pytest.raises(KeyFileError, match="empty"):
        load_signing_key("")


@pytest.mark.parametrize("line", [
    "", "asmevo-ed25519", "ssh-ed25519 " + "ab" * 32, "asmevo-ed25519 " + "AB" * 32,
    "asmevo-ed25519 " + "ab" * 31, "asmevo-ed25519 " + "ab" * 33, "asmevo-ed25519" + "ab" * 32,
    "asmevo-ed25519 " + "01" + "00" * 31,
])
def test_malformed_public_keys(line: str) -> None:
    with pytest.raises(KeyFileError):
        parse_line(line)


@needs_openssl
def test_openssl_reads_the_keys_and_verifies_the_signatures(key_file: Path, tmp_path: Path) -> None:
    key = load_signing_key(key_file)
    text = openssl("pkey", "-in", key_file, "-noout", "-text").stdout.decode()
    public = text.partition("pub:")[2].translate(str.maketrans("", "", ": \n"))
    assert public == key.public_key
    # RFC 8410: a public key in DER is these twelve bytes and the key itself.
    der = bytes.fromhex("302a300506032b6570032100") + bytes.fromhex(key.public_key)
    (tmp_path / "public.der").write_bytes(der)
    (tmp_path / "signature").write_bytes(bytes.fromhex(key.sign(Domain.STATEMENT, SHA)))
    (tmp_path / "message").write_bytes(f"asmevo-statement-v1\n{SHA}\n".encode())
    command = ("pkeyutl", "-verify", "-rawin", "-pubin", "-inkey", tmp_path / "public.der",
               "-keyform", "DER", "-in", tmp_path / "message", "-sigfile", tmp_path / "signature")
    done = openssl(*command)
    assert done.returncode == 0, done.stderr
    (tmp_path / "message").write_bytes(f"asmevo-statement-v2\n{SHA}\n".encode())
    assert openssl(*command).returncode == 1


@needs_openssl
def test_keys_and_signatures_of_openssl(tmp_path: Path) -> None:
    (tmp_path / "key").write_bytes(pem(tmp_path, "-algorithm", "ED25519"))
    (tmp_path / "key").chmod(0o600)
    key = load_signing_key(tmp_path / "key")
    (tmp_path / "message").write_bytes(message(Domain.STATEMENT, SHA))
    done = openssl("pkeyutl", "-sign", "-rawin", "-inkey", tmp_path / "key", "-in",
                   tmp_path / "message", "-out", tmp_path / "signature")
    assert done.returncode == 0, done.stderr
    signature = (tmp_path / "signature").read_bytes().hex()
    assert signature == key.sign(Domain.STATEMENT, SHA)
    assert verifies(key.public_key, signature, Domain.STATEMENT, SHA)
