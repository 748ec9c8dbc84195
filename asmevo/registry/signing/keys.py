"""Ed25519 signatures: keys in files, and what exactly is signed."""

from __future__ import annotations

import os
import re
import stat
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING

from asmevo.registry.errors import KeyFileError, os_reason

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

SCHEME = "asmevo-ed25519"
"""First word of a line that holds a public key."""

ENVIRONMENT = "ASMEVO_SIGNING_KEY"
"""The variable that names the key of conf/registry/local.yaml and of ``asmevo-registry sign``."""

_MOST_BYTES = 1 << 14
_HEX_KEY = re.compile(r"[0-9a-f]{64}", re.ASCII)
_HEX_SIGNATURE = re.compile(r"[0-9a-f]{128}", re.ASCII)
_HEX_HASH = re.compile(r"[0-9a-f]{64}", re.ASCII)

_P = 2**255 - 19
# The y coordinates of the eight points whose order divides 8, on which a "key" verifies signatures
# that nobody made: 0 and -1, 1, and the two of order 8 (Curve25519 in RFC 7748, section 4.1).
_ORDER_8 = int.from_bytes(bytes.fromhex(
    "26e8958fc2b227b045c3f489f2ef98f0d5dfac05d3c63339b13802886d53fc05"), "little")
_SMALL_ORDER = frozenset({0, 1, _P - 1, _ORDER_8, _P - _ORDER_8})


class Domain(StrEnum):
    """What a signature is of: one of a statement never passes for one of something else."""

    STATEMENT = "asmevo-statement-v1"
    BUNDLE = "asmevo-bundle-v1"


def message(domain: Domain, sha256: str) -> bytes:
    """The bytes that are signed: two lines of text, so that ``openssl pkeyutl`` can check them."""
    if _HEX_HASH.fullmatch(sha256) is None:
        raise KeyFileError(f"{sha256[:80]!r} is not a SHA-256")
    return f"{domain}\n{sha256}\n".encode()


@dataclass(frozen=True, slots=True, repr=False)
class SigningKey:
    """A private key; ``public_key`` is its other half in hexadecimal."""

    public_key: str
    _private: Ed25519PrivateKey

    def sign(self, domain: Domain, sha256: str) -> str:
        """The signature of a document by its SHA-256, in hexadecimal."""
        return self._private.sign(message(domain, sha256)).hex()

    def __repr__(self) -> str:
        return f"SigningKey({self.public_key})"


def verifies(public_key: str, signature: str, domain: Domain, sha256: str) -> bool:
    """Whether a signature is that key's of that document; False for anything malformed."""
    from cryptography.exceptions import InvalidSignature
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

    if not is_public_key(public_key) or _HEX_SIGNATURE.fullmatch(signature) is None:
        return False
    try:
        key = Ed25519PublicKey.from_public_bytes(bytes.fromhex(public_key))
        key.verify(bytes.fromhex(signature), message(domain, sha256))
    except (InvalidSignature, ValueError, KeyFileError):
        return False
    return True


def is_public_key(text: str) -> bool:
    """Whether ``text`` is 64 lower-case hexadecimal digits that can be somebody's key."""
    if _HEX_KEY.fullmatch(text) is None:
        return False
    y = int.from_bytes(bytes.fromhex(text), "little") & ((1 << 255) - 1)
    return y % _P not in _SMALL_ORDER


def public_line(public_key: str, comment: str = "") -> str:
    """The line of a ``.pub`` file or a trust list."""
    return " ".join(part for part in (SCHEME, public_key, comment) if part)


def parse_line(line: str) -> tuple[str, str]:
    """Key and comment of a `public_line`. Raises `KeyFileError`."""
    scheme, _, rest = line.strip().partition(" ")
    key, _, comment = rest.strip().partition(" ")
    if scheme != SCHEME:
        raise KeyFileError(f"it starts with {scheme[:40]!r}, not with {SCHEME}")
    if not is_public_key(key):
        raise KeyFileError(f"{key[:80]!r} is not an Ed25519 key in 64 lower-case hexadecimal "
                           "digits")
    return key, comment.strip()


def load_signing_key(path: str | Path) -> SigningKey:
    """The private key in a file. Raises `KeyFileError`, which never repeats what the file holds."""
    from cryptography.exceptions import UnsupportedAlgorithm
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
    from cryptography.hazmat.primitives.serialization import load_pem_private_key

    if not str(path):
        raise KeyFileError(f"the signing key's path is empty; unset {ENVIRONMENT} to sign nothing")
    path = Path(path)
    data = read_key_file(path, "signing key", private=True)
    try:
        key = load_pem_private_key(data, password=None)
    except TypeError:
        raise KeyFileError(f"signing key {path} is encrypted; one without a password is needed, "
                           "for nobody types it while a search runs") from None
    except (ValueError, UnsupportedAlgorithm):
        raise KeyFileError(f"signing key {path} is not a private key in PEM (PKCS#8)") from None
    if not isinstance(key, Ed25519PrivateKey):
        raise KeyFileError(f"signing key {path} is not an Ed25519 key")
    return SigningKey(key.public_key().public_bytes_raw().hex(), key)


def read_key_file(path: Path, what: str, *, private: bool = False,
                  most_bytes: int = _MOST_BYTES) -> bytes:
    """A small regular file that not everybody can write, looked at through the descriptor that it
    is read by.

    A ``private`` one must be accessible to its owner only. Raises `KeyFileError`.
    """
    try:
        # Without O_NONBLOCK a named pipe would keep the caller waiting for its writer.
        descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
        try:
            state = os.fstat(descriptor)
            if not stat.S_ISREG(state.st_mode):
                raise KeyFileError(f"{what} {path} is not a file")
            if private and state.st_mode & 0o077:
                raise KeyFileError(f"{what} {path} can be accessed by others than its owner; take "
                                   "their rights away (chmod 600) or make another")
            if state.st_mode & 0o002:
                raise KeyFileError(f"{what} {path} can be written by everybody")
            data = bytearray()
            while len(data) <= most_bytes and (read := os.read(descriptor, most_bytes + 1)):
                data += read
        finally:
            os.close(descriptor)
    except (OSError, ValueError) as error:
        reason = os_reason(error) if isinstance(error, OSError) else "it is not a path"
        raise KeyFileError(f"cannot read {what} {path}: {reason}") from None
    if len(data) > most_bytes:
        raise KeyFileError(f"{what} {path} is larger than {most_bytes} bytes")
    return bytes(data)


def generate(path: Path, comment: str = "") -> str:
    """Make a key: the private half in ``path``, the public one in ``path`` + ``.pub``.

    Returns the public key. Raises `KeyFileError`; neither file is ever overwritten.
    """
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
    from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat

    from asmevo.durable import write_atomically

    if any(not c.isprintable() for c in comment) or len(comment) > 200:
        raise KeyFileError("a key's comment is one line of at most 200 printable characters")
    public_path = path.with_name(path.name + ".pub")
    for file in (path, public_path):
        if os.path.lexists(file):
            raise KeyFileError(f"{file} exists; keys are never overwritten")
    key = Ed25519PrivateKey.generate()
    public = key.public_key().public_bytes_raw().hex()
    pem = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
    try:
        write_atomically(path, pem, overwrite=False, mode=0o600)
        try:
            write_atomically(public_path, f"{public_line(public, comment)}\n".encode(),
                             overwrite=False)
        except OSError:
            path.unlink()
            raise
    except OSError as error:
        raise KeyFileError(f"cannot write key {path}: {os_reason(error)}") from error
    return public
