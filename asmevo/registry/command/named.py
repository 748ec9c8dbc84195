"""What a user means by an identity or its first characters."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from asmevo.registry.errors import RegistryError

if TYPE_CHECKING:
    from asmevo.registry.catalog.identities import Identity, Kind
    from asmevo.registry.registry import Registry

_MOST_TOLD = 10


def named(registry: Registry, text: str, *kinds: Kind) -> Identity | None:
    """The only thing of these kinds, or of any, that ``text`` identifies or abbreviates.

    None when there is none; raises `RegistryError` when it is too short or there are several.
    """
    from asmevo.registry.catalog.identities import MIN_PREFIX

    found = registry.catalog.identities(text, limit=_MOST_TOLD)
    found = tuple(identity for identity in found if not kinds or identity.kind in kinds)
    if not found:
        if len(text) < MIN_PREFIX or not text.isprintable():
            raise RegistryError(
                f"{text[:80]!r} is not the identity of anything: give one, or its first "
                f"{MIN_PREFIX} or more characters")
        return None
    if len(found) > 1:
        counts = Counter(identity.kind.value for identity in found)
        of = " and ".join(
            f"{number if number < _MOST_TOLD else f'{number} or more'} {kind}"
            f"{'s' if number > 1 else ''}" for kind, number in counts.items())
        told = ", ".join(identity.id for identity in found[:3])
        raise RegistryError(f"{text[:80]!r} abbreviates {of} ({told}"
                            f"{', ...' if len(found) > 3 else ''}): give more of it")
    return found[0]
