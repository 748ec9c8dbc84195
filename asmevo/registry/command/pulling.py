"""Options that decide what ``pull`` hands out, and their use by ``deploy``."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

from asmevo.registry.errors import PullError, PullRefusal

if TYPE_CHECKING:
    from asmevo.deploy.substitute import Substitute
    from asmevo.registry.registry import Registry


def add_options(parser: argparse.ArgumentParser) -> None:
    """The options of `pulled`."""
    parser.add_argument("--kernel", metavar="SYMBOL", help="the kernel, if several were improved")
    parser.add_argument("--allow-modelled", action="store_true",
                        help="accept a speedup that was modelled, not measured on hardware")
    parser.add_argument("--allow-weaker", action="store_true",
                        help="accept what was judged by less than the default gates and inputs")


def pulled(registry: Registry, original: str, arguments: argparse.Namespace) -> Substitute | None:
    """The best replacement of an original's SHA-256, None where the registry has none at all.

    Raises `PullError` for every other refusal.
    """
    from asmevo.deploy.substitute import Substitute
    from asmevo.registry.pull import pull

    try:
        found = pull(registry, original=original, kernel=arguments.kernel,
                     allow_modelled=arguments.allow_modelled,
                     allow_weaker=arguments.allow_weaker)
    except PullError as error:
        if error.code is PullRefusal.NONE:
            return None
        raise
    record = found.record
    return Substitute(original, found.data, record.kernel, record.speedup, record.timing_source,
                      record.device, getattr(found, "statement_sha256", "") or None)


def sha256_of(original: str | Path) -> str:
    """The SHA-256 that was given, or that of the file that was named."""
    from asmevo.registry.pull import original_sha256

    return original_sha256(original)
