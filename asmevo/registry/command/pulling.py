"""What decides which replacement is handed out: for ``pull`` and for ``deploy``."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

from asmevo.registry.delivery.pull import Policy
from asmevo.registry.errors import PullError, PullRefusal

if TYPE_CHECKING:
    from asmevo.deploy.substitute import Substitute
    from asmevo.registry.delivery.pull import Replacement
    from asmevo.registry.registry import Registry

NOT_ACCEPTED, DAMAGED = 3, 4
"""Exit statuses: nothing is acceptable, and the registry was changed by somebody."""


def add_options(parser: argparse.ArgumentParser) -> None:
    """Describe the options to the parser of a command."""
    parser.add_argument("--kernel", metavar="SYMBOL", help="the kernel, if several were improved")
    parser.add_argument("--device", "--isa", metavar="TARGET",
                        help="refuse what need not run on this target ID, e.g. "
                             "gfx942:sramecc+:xnack- as rocminfo prints it")
    parser.add_argument("--policy", choices=[p.value for p in Policy], default=Policy.BEST.value,
                        help="of several the one with the highest speedup, the best that a second "
                             "timing confirmed, or the newest (default: best)")
    parser.add_argument("--trust", metavar="FILE",
                        help="demand a signature by one of these keys (default: "
                             "$ASMEVO_TRUSTED_KEYS, else ~/.config/asmevo/trusted_keys if it "
                             "exists)")
    parser.add_argument("--allow-modelled", action="store_true",
                        help="accept a speedup that was modelled, not measured on hardware")
    parser.add_argument("--allow-weaker", action="store_true",
                        help="accept what was judged by less than the default gates and inputs")


def pull_options(arguments: argparse.Namespace) -> dict[str, Any]:
    """The options as keywords of `asmevo.registry.pull`."""
    return {name: getattr(arguments, name) for name in (
        "kernel", "device", "policy", "trust", "allow_modelled", "allow_weaker")}


def pulled(registry: Registry, original: str, arguments: argparse.Namespace,
           note: Callable[[str], None]) -> Substitute | None:
    """The best replacement of an original's SHA-256, None where the registry has none at all.

    ``note`` is told what there is to say of one that is handed out. Raises `PullError` for every
    other refusal.
    """
    from asmevo.deploy.substitute import Substitute
    from asmevo.registry.delivery.pull import pull

    try:
        found = pull(registry, original=original, **pull_options(arguments))
    except PullError as error:
        if error.code is PullRefusal.NONE:
            return None
        raise
    for said in notes(found):
        note(said)
    record = found.record
    return Substitute(original, found.data, record.kernel, record.speedup, record.timing_source,
                      record.device, found.statement_sha256 or None)


def notes(found: Replacement) -> Iterator[str]:
    """What whoever gets a replacement should know: better ones that were refused, weaker gates."""
    for skipped in found.skipped:
        yield f"passed over {skipped.speedup:.4f}x: {skipped.reason}"
    if found.record.weaknesses:
        yield ("judged by less than the default gates: "
               f"{'; '.join(found.record.weaknesses)}")
