"""The stored replacement that ``candidate=`` names."""

from __future__ import annotations

import re

from asmevo.codeobject.container import CodeObject
from asmevo.registry.errors import RegistryError
from asmevo.task.session import ConfigError, Session

_SHA256 = re.compile(r"[0-9a-f]{64}")


def stored_replacement(session: Session) -> CodeObject:
    """The replacement of the configured kernel's object with the hash ``candidate``.

    Raises `ConfigError` when that is no hash or the replacement is of another object, and
    `RegistryError` when there is none or its bytes do not have that hash.
    """
    sha256 = str(session.config.candidate).lower()
    if not _SHA256.fullmatch(sha256):
        raise ConfigError(
            f"candidate={session.config.candidate} is not a SHA-256 (64 hexadecimal digits)"
        )
    original = session.code_object
    known = session.registry.replacements(object_sha256=sha256)
    if not known:
        raise RegistryError(
            f"the registry at {session.registry.path} has no replacement {sha256}"
        )
    if original.sha256 not in {record.original_sha256 for record in known}:
        raise ConfigError(
            f"{sha256} replaces {known[0].original_sha256}, not kernel "
            f"'{session.kernel.name}' ({original.sha256})"
        )
    # load_object checks the bytes against the hash.
    return CodeObject.parse(session.registry.load_object(sha256))
