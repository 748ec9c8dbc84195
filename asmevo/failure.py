"""One clear sentence for whatever went wrong because of the user's input."""

from __future__ import annotations

import difflib
import re

from hydra.errors import ConfigCompositionException, HydraException, MissingConfigException
from omegaconf import DictConfig, OmegaConf
from omegaconf.errors import InterpolationKeyError, OmegaConfBaseException

from asmevo.errors import AsmEvoError

_LONGEST = 1000


def explain(error: BaseException, *, composing: bool = False) -> str | None:
    """The sentence, or ``None`` for what is a defect of AsmEvo and deserves its traceback.

    While the configuration is being composed (``composing``), every error comes from it.
    """
    sentence = _sentence(error, composing=composing)
    return None if sentence is None else printable(sentence)


def printable(text: str) -> str:
    """Text for one line of a terminal: names out of hostile files may contain anything."""
    escaped = "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)
    return escaped if len(escaped) <= _LONGEST else escaped[:_LONGEST] + "..."


def _sentence(error: BaseException, *, composing: bool) -> str | None:
    if isinstance(error, AsmEvoError):
        return str(error)
    if isinstance(error, MissingConfigException):
        return _missing_option(error)
    if isinstance(error, HydraException | OmegaConfBaseException):
        return _composition(error)
    if isinstance(error, OSError) and error.filename is not None:
        return f"{error.strerror}: '{error.filename}'"
    return _first_line(error) if composing else None


def _missing_option(error: MissingConfigException) -> str:
    wanted = error.missing_cfg_file or ""
    group, _, option = str(wanted).rpartition("/")
    options = [o for o in error.options or () if not o.endswith("schema")]
    if not group:
        return _first_line(error)
    near = _nearest(option, options)
    return f"there is no {group}={option}{near} ({group}: {', '.join(options)})"


def _composition(error: BaseException) -> str:
    """Hydra wraps OmegaConf's complaint; the innermost one knows the key."""
    cause: BaseException = error
    while (inner := _inner(cause)) is not None:
        cause = inner
    text = str(cause)
    full_key = getattr(cause, "full_key", None)
    unknown = "is not in struct" in text or "not in '" in text
    if isinstance(error, ConfigCompositionException) and unknown:
        outer = re.search(r"Could not override '([^']+)'", str(error))
        # Of a longer override the cause knows how far it can be followed.
        key = outer[1] if outer else ""
        if full_key and (not key or key.startswith(f"{full_key}.")):
            key = str(full_key)
        if key:
            source = re.match(r"In '([^']+)'", str(error))
            where = f"{source[1]}.yaml: " if source else ""
            return f"{where}unknown configuration key '{key}'{_nearest_key(key, cause)}"
    if isinstance(cause, OmegaConfBaseException) and full_key:
        return f"configuration key '{full_key}': {_first_line(cause)}"
    return _first_line(cause)


def _inner(error: BaseException) -> BaseException | None:
    """What Hydra raised an error for. It does not always say so: then it is the context."""
    for found in (error.__cause__, error.__context__ if isinstance(error, HydraException)
                  else None):
        if isinstance(found, HydraException | OmegaConfBaseException):
            return found
    return None


class UnresolvedError(AsmEvoError):
    """A configuration refers to a key that it does not have."""


def resolve(config: DictConfig) -> None:
    """Resolve every reference. Raises `UnresolvedError` that says what there would have been."""
    try:
        OmegaConf.resolve(config)
    except InterpolationKeyError as error:
        sentence = _unresolved(str(error), config)
        if sentence is None:
            raise
        raise UnresolvedError(sentence) from error


def _unresolved(text: str, config: DictConfig) -> str | None:
    """``kernel.choices.mask=foo`` when something depends on it: ``${..choices.infix.foo}``."""
    match = re.search(r"Interpolation key '([^']+)' not found", text)
    if match is None:
        return None
    table, _, missing = match[1].rpartition(".")
    # OmegaConf does not say in which group a relative reference began.
    for group in ("", *map(str, config)):
        place = ".".join(filter(None, (group, table)))
        found = _selected(config, place)
        if table and isinstance(found, DictConfig):
            parent = place.rpartition(".")[0]
            siblings = _selected(config, parent) if parent else config
            names = siblings if isinstance(siblings, DictConfig) else {}
            given = next((f"{parent}.{name} is '{missing}', and " for name in names
                          if _selected(config, f"{parent}.{name}") == missing), "")
            return f"{given}{place} has no '{missing}' ({', '.join(map(str, found))})"
    return None


def _selected(config: DictConfig, key: str) -> object:
    try:
        return OmegaConf.select(config, key)
    except OmegaConfBaseException:
        return None


def _nearest_key(key: str, cause: BaseException) -> str:
    parent = getattr(cause, "parent_node", None)
    try:
        known = [str(k) for k in parent] if parent is not None else []
    except TypeError:
        known = []
    prefix, _, last = key.rpartition(".")
    near = difflib.get_close_matches(last, known, n=1)
    if last in known:  # of a parent further up: `device.name.name`
        return ""
    return f", did you mean '{prefix + '.' if prefix else ''}{near[0]}'?" if near else ""


def _nearest(word: str, known: list[str]) -> str:
    near = difflib.get_close_matches(word, known, n=1)
    return f", did you mean '{near[0]}'?" if near else ""


def _first_line(error: BaseException) -> str:
    # Hydra appends advice that does not hold here: the traceback is not what a user needs.
    return str(error).strip().splitlines()[0].split(", set env var")[0].rstrip(".")
