"""Names as people read them: without control characters, no longer than there is room, no secrets.

No heavy import: pulling a replacement uses this.
"""

from __future__ import annotations

import re

ELLIPSIS = "…"

# All up to the last @, and a slash in the password too: whoever forgot to quote one would show it.
_USER = re.compile(r"(?P<user>\b[A-Za-z][\w.+-]*://[^\s/:@?#'\"]*):[^\s'\"]*@")
_PARAMETER = re.compile(
    r"(?P<name>[?&;](?:[\w.-]*(?:pass|pwd|secret|token|key|sig|credential)[\w.-]*)=)[^&;\s'\"]*",
    re.IGNORECASE)


def printable(text: str) -> str:
    """``text`` with control characters escaped: names come from untrusted files."""
    if text.isascii() and text.isprintable():
        return text
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)


def counted(number: int, noun: str) -> str:
    """``number`` and the noun in its number: ``1 blob``, ``2,000 blobs``."""
    return f"{number:,} {noun}" if number == 1 else f"{number:,} {noun}s"


def shortened(text: str, width: int) -> str:
    """``text`` in at most ``width`` characters, cut in the middle.

    Mangled symbols begin alike and end alike in their parameters, so that more is kept of the
    start.
    """
    if len(text) <= width:
        return text
    if width < 2:
        return text[:max(width, 0)]
    head = (width - 1) * 3 // 5
    return f"{text[:head]}{ELLIPSIS}{text[len(text) - (width - 1 - head):]}"


def without_secrets(text: str) -> str:
    """``text`` with the passwords of all URLs in it left out."""
    return _PARAMETER.sub(r"\g<name>***", _USER.sub(r"\g<user>:***@", text))
