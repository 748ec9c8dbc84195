"""What all pages share: templates that escape, colours, and a policy that lets nothing else in."""

from __future__ import annotations

import base64
import hashlib
from pathlib import Path

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup

from asmevo.report.causes import CAUSES, ISSUE

FOLDER = Path(__file__).parent / "page"


def environment() -> Environment:
    """Templates of the page folder; everything put into them is escaped."""
    return Environment(loader=FileSystemLoader(FOLDER), autoescape=True,
                       undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True)


def variables(theme: str) -> Markup:
    """The colours of stall causes in the ``light`` or ``dark`` theme, as CSS variables."""
    return Markup(" ".join(  # noqa: S704 - from the tables of this package
        f"--{name}: {look.light if theme == 'light' else look.dark};"
        for name, look in (*((c.value, a) for c, a in CAUSES.items()), ("issue", ISSUE))))


def fills() -> Markup:
    """The classes that use them."""
    names = [*(cause.value for cause in CAUSES), "issue"]
    return Markup("\n".join(  # noqa: S704
        f"svg .{name} {{ fill: var(--{name}); }}" for name in names))


def policy(style: str, script: str) -> str:
    """The Content-Security-Policy of a page with just this style and script."""
    return (f"default-src 'none'; style-src {_hash(style)}; script-src {_hash(script)}; "
            "base-uri 'none'; form-action 'none'")


def _hash(text: str) -> str:
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"
