"""Kernels go by their symbol in a code object, and by a demangled name in kernel traces."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable

from asmevo.profile.errors import ProfileError

_LENGTH = re.compile(r"[1-9][0-9]{0,3}")
_SHOWN = 60


def qualified_name(symbol: str) -> str | None:
    """The name of a mangled function without its parameters, such as ``aiter::mha_fwd``.

    Itanium C++ ABI, "Mangling", as far as plain and nested names go; `None` for templates, for
    other special names and for what is not mangled.
    """
    nested = symbol.startswith("_ZN")
    if not nested and not symbol.startswith("_Z"):
        return None
    at = 3 if nested else 2
    parts = []
    while length := _LENGTH.match(symbol, at):
        end = length.end() + int(length[0])
        if end > len(symbol):
            return None
        parts.append(symbol[length.end():end])
        at = end
        if not nested:
            break
    rest = symbol[at:]
    if not parts or rest.startswith("I") or (nested and not rest.startswith("E")):
        return None
    return "::".join(parts)


def recorded_names(kernel: str, given: Collection[str], recorded: Iterable[str]) -> frozenset[str]:
    """The names of ``kernel`` among those of a recording: its symbol, ``given`` ones, and a
    demangled one that is unmistakable. Raises ProfileError when several could be meant."""
    seen = set(recorded)
    known = seen & {kernel, *given}
    plain = qualified_name(kernel)
    if known or plain is None:
        return frozenset(known)
    alike = {name for name in seen
             if name.removeprefix("void ").partition("(")[0] == plain}
    if len(alike) > 1:
        raise ProfileError(f"'{kernel[:_SHOWN]}' may be any of "
                           f"{', '.join(sorted(n[:_SHOWN] for n in alike))}: give its name")
    return frozenset(alike)
