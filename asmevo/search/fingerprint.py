"""What makes a candidate new: a hash of its kernel in a normal form.

Neither the names of labels nor spaces nor the notation of integers count, and registers only by
their order: a kernel in which ``v7`` to ``v20`` became ``v9`` to ``v22`` throughout runs just like
the one before. How many registers have to be allocated does count.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable
from functools import lru_cache

from asmevo.codeobject.assembly import Assembly

# v5, s[4:7], acc3 and acc[0:3]; a name is no part of a longer one (v_add_f32, .Lv5).
_REGISTER = re.compile(r"(?<![\w.$@])(v|s|a|acc)(?:(\d+)|\[(\d+)(?::(\d+))?\])(?![\w.$@])")
_HEXADECIMAL = re.compile(r"(?<![\w.$@])0[xX][0-9a-fA-F]+(?![\w.$@])")
_WORD = re.compile(r"[\w.$@]+")
# VGPRs and AGPRs are allocated in eights on all of gfx90a to gfx950, SGPRs always as many as there
# are ("AMD Instinct MI300" ISA, section 3.6.1).
_GRANULE = 8
_FILES = ("v", "s", "a")
_MOST = 1 << 16

Masks = tuple[int, int, int]


@lru_cache(maxsize=1 << 16)
def _words(text: str) -> frozenset[str]:
    return frozenset(_WORD.findall(text))


@lru_cache(maxsize=1 << 16)
def _masks(text: str) -> Masks:
    """The registers that an instruction names, a mask for each register file."""
    used = dict.fromkeys(_FILES, 0)
    for match in _REGISTER.finditer(text):
        first, last = _bounds(match)
        used[match[1][0]] |= ((1 << (last - first + 1)) - 1) << first
    return used["v"], used["s"], used["a"]


def _bounds(match: re.Match[str]) -> tuple[int, int]:
    first = int(match[2] or match[3])
    return first, max(first, int(match[4] or first))


@lru_cache(maxsize=16)
def _known(used: Masks) -> dict[str, str]:
    """Normal forms by text. Candidates of one base use the same registers, nearly always."""
    return {}


def _normal(text: str, used: Masks) -> str:
    """An instruction with ranks for registers, decimal integers and single spaces."""
    ranks = dict(zip(_FILES, used, strict=True))

    def ranked(match: re.Match[str]) -> str:
        first, last = _bounds(match)
        below = ranks[match[1][0]] & ((1 << first) - 1)
        return f"{match[1][0]}[{below.bit_count()}+{last - first}]"

    text = _REGISTER.sub(ranked, text)
    text = _HEXADECIMAL.sub(lambda match: str(int(match[0], 16)), text)
    return " ".join(text.replace(",", " , ").split())


def fingerprint(assembly: Assembly, kernel: str) -> str:
    """The hash of a kernel's normal form, 32 hexadecimal digits."""
    lines = assembly.body(kernel).lines
    order: dict[str, str] = {}
    v = s = a = 0
    for line in lines:
        for label in line.labels:
            order[label] = f"@{len(order)}"
        masks = _masks(line.text)
        v |= masks[0]
        s |= masks[1]
        a |= masks[2]
    used = (v, s, a)
    rename: Callable[[re.Match[str]], str] = lambda match: order.get(match[0], match[0])  # noqa: E731
    labels = order.keys()
    known = _known(used)
    if len(known) > _MOST:
        known.clear()
    out = [" ".join(str(-(-mask.bit_length() // _GRANULE)) for mask in (v, a))]
    for line in lines:
        text = line.text
        for label in line.labels:
            out.append(order[label] + ":")
        if order and not labels.isdisjoint(_words(text)):
            text = _WORD.sub(rename, text)
        normal = known.get(text)
        if normal is None:
            normal = known[text] = _normal(text, used)
        out.append(normal)
    return hashlib.blake2b("\n".join(out).encode(), digest_size=16).hexdigest()
