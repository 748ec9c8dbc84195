"""Whose signatures count: the list of trusted keys on the side of whoever pulls."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from asmevo.registry.errors import KeyFileError, TrustError
from asmevo.registry.signing.keys import parse_line, read_key_file

ENVIRONMENT = "ASMEVO_TRUSTED_KEYS"
_MOST_BYTES = 1 << 20


@dataclass(frozen=True, slots=True)
class TrustList:
    """The keys of a file, each with its comment; an empty one trusts nobody."""

    path: Path
    keys: Mapping[str, str]


def find_trust(given: str | Path | None, *registries: Path) -> TrustList | None:
    """The trust list that applies: ``given``, or the one that `ENVIRONMENT` names, or
    ``$XDG_CONFIG_HOME/asmevo/trusted_keys`` (``~/.config``) if there is one, or none.

    One inside of the folders ``registries`` is refused: whoever can write there would decide whom
    to trust. Raises `TrustError`, also where a named list is missing.
    """
    path = _path(given)
    if path is None:
        return None
    real = Path(os.path.realpath(path))
    for registry in registries:
        if real.is_relative_to(os.path.realpath(registry)):
            raise TrustError(f"trust list {path} lies inside of registry {registry}, so that "
                             "whoever writes there would decide whom to trust; keep it elsewhere")
    return load_trust(path)


def load_trust(path: Path) -> TrustList:
    """A file with a public key a line; empty lines and those that start with ``#`` do not count.

    Raises `TrustError` for anything else.
    """
    try:
        data = read_key_file(path, "trust list", most_bytes=_MOST_BYTES)
    except KeyFileError as error:
        raise TrustError(str(error)) from None
    try:
        lines = data.decode("utf-8").splitlines()
    except UnicodeDecodeError:
        raise TrustError(f"trust list {path} is not UTF-8 text") from None
    keys: dict[str, str] = {}
    for number, line in enumerate(lines, 1):
        if not line.strip() or line.lstrip().startswith("#"):
            continue
        try:
            key, comment = parse_line(line)
        except KeyFileError as error:
            raise TrustError(f"line {number} of trust list {path} is malformed: {error}") from None
        keys[key] = comment
    return TrustList(path, keys)


def _path(given: str | Path | None) -> Path | None:
    if given is not None:
        if not str(given):
            raise TrustError("the path of the trust list is empty")
        return Path(given)
    named = os.environ.get(ENVIRONMENT)
    if named is not None:
        # Taking an empty value for none would trust everybody because of a typo in a script.
        if not named:
            raise TrustError(f"{ENVIRONMENT} is empty; unset it, or name a trust list")
        return Path(named)
    home = os.environ.get("XDG_CONFIG_HOME") or os.path.expanduser("~/.config")
    usual = Path(home) / "asmevo" / "trusted_keys"
    return usual if os.path.lexists(usual) else None
