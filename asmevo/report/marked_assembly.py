"""A line of assembly as HTML, its parts marked by what they are."""

from __future__ import annotations

import re
from collections.abc import Sequence
from difflib import SequenceMatcher

from markupsafe import Markup, escape

from asmevo.failure import printable

# Classes of the style sheet: mnemonic, register, number, label, comment; the rest is plain.
_TOKEN = re.compile(r"""
    (?P<k>;.*|//.*)
  | (?P<r>\b(?:[vsa](?:\[\d+(?::\d+)?\]|\d+)|ttmp\d+|ttmp\[\d+:\d+\]
        |(?:vcc|exec|flat_scratch|xnack_mask|tba|tma)(?:_lo|_hi)?|m0|scc|vccz|execz|off)(?![\w.]))
  | (?P<l>\bL\d+\b)
  | (?P<n>-?\b0x[0-9a-fA-F]+\b|-?\b\d+(?:\.\d+)?(?:e[+-]?\d+)?\b)
  | (?P<w>[A-Za-z_][\w.]*)
  | (?P<o>\s+|.)
""", re.VERBOSE)


def tokens(line: str) -> list[tuple[str, str]]:
    """Class and text of each part, together the whole line."""
    found = [(match.lastgroup or "o", match.group()) for match in _TOKEN.finditer(line)]
    if found and found[0][0] == "w":
        found[0] = ("m", found[0][1])
    return found


def marked(line: str, changed: Sequence[bool] = ()) -> Markup:
    """The line as HTML; parts whose ``changed`` is set are emphasised."""
    out = []
    for number, (kind, text) in enumerate(tokens(printable(line))):
        inner = escape(text)
        if kind not in "ow":
            inner = Markup('<i class="{}">{}</i>').format(kind, inner)
        if number < len(changed) and changed[number]:
            inner = Markup("<b>{}</b>").format(inner)
        out.append(inner)
    return Markup().join(out)


def differing(old: str, new: str) -> tuple[list[bool], list[bool]]:
    """For each part of two lines whether the other one has none like it at that place."""
    left = [text for _, text in tokens(printable(old))]
    right = [text for _, text in tokens(printable(new))]
    in_old, in_new = [True] * len(left), [True] * len(right)
    for match in SequenceMatcher(None, left, right, autojunk=False).get_matching_blocks():
        in_old[match.a:match.a + match.size] = [False] * match.size
        in_new[match.b:match.b + match.size] = [False] * match.size
    return in_old, in_new
