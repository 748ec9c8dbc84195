"""What a static check found."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache

_ENCODING = re.compile(r"(?<=\w)_e(?:32|64)(?= |$)")
_BRANCHES = ("s_branch", "s_cbranch")

_REGISTER = re.compile(r"\b([sva])(?:(\d+)\b|\[(\d+):(\d+)\])")


@dataclass(frozen=True, slots=True)
class Violation:
    """A missing wait or hazard distance between a producer and a consumer instruction.

    ``kind`` is a short stable name (``missing-vmcnt``, ``valu-sgpr-vmem``...). ``producer`` and
    ``consumer`` are instruction indices; their texts identify the pair across edits, which is how a
    candidate's *new* violations are told from those the original already has.
    """

    kind: str
    producer: int
    consumer: int
    producer_text: str
    consumer_text: str
    registers: int
    needed: int
    found: int

    @property
    def signature(self) -> tuple[str, str, str, int]:
        """Identity that survives edits elsewhere in the kernel, and another encoding."""
        return (self.kind, _plain(self.producer_text), _plain(self.consumer_text), self.registers)

    @property
    def shape(self) -> tuple[str, str, str]:
        """What stays when registers are renamed: the texts with registers in order of appearance.
        """
        webs: list[tuple[str, int, int]] = []

        def named(match: re.Match[str]) -> str:
            bank, low = match[1], int(match[2] or match[3])
            high = int(match[4] or low)
            for number, (other, first, last) in enumerate(webs):
                if other == bank and first <= low and high <= last:
                    return f"{bank}{{{number}+{low - first}:{high - low}}}"
            webs.append((bank, low, high))
            return f"{bank}{{{len(webs) - 1}+0:{high - low}}}"

        producer = _REGISTER.sub(named, _plain(self.producer_text))
        return (self.kind, producer, _REGISTER.sub(named, _plain(self.consumer_text)))


@lru_cache(maxsize=1 << 14)
def _plain(text: str) -> str:
    """Without the size of the encoding, a branch's distance, and the cache hint of a load."""
    text = _ENCODING.sub("", text, count=1)
    if "_load_" in text:
        text = text.removesuffix(" nt")
    return text.partition(" ")[0] if text.startswith(_BRANCHES) else text
