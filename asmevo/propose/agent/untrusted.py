"""Text that comes out of an object, on its way to a model.

Symbol names and labels of a hostile object may say anything, and a gate's reason may quote them.
They reach a model only between these marks, in the result of a tool, and without characters that a
person reading the transcript would not see. That is hygiene, not the defence: nothing that a model
says decides what is correct or fast.
"""

from __future__ import annotations

_SHOWN = "\n\t"
_REPLACEMENT = "\N{REPLACEMENT CHARACTER}"
_OPEN, _CLOSE = "<object-data>", "</object-data>"


def plain(text: str, longest: int | None = None) -> str:
    """Text with every control, invisible or unassigned character replaced, cut to ``longest``."""
    out = "".join(c if c in _SHOWN or c.isprintable() else _REPLACEMENT for c in text)
    return out if longest is None or len(out) <= longest else out[:longest] + "..."


def line(text: str, longest: int = 400) -> str:
    """`plain` text in one line."""
    return plain(" ".join(text.split()), longest)


def marked(text: str, longest: int) -> str:
    """Text between marks that it cannot close itself."""
    body = plain(text, longest).replace("</object-data", "<\\/object-data")
    return f"{_OPEN}\n{body}\n{_CLOSE}"
