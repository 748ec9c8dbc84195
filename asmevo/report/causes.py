"""How reports show stall causes: what each means, and its colour on a terminal and on a page."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from asmevo.profile.profile import MemoryLevel, StallCause


@dataclass(frozen=True, slots=True)
class Appearance:
    """``terminal`` is a rich style, ``light`` and ``dark`` the colours of the page's two themes.

    The page's are of the Okabe-Ito palette, which people with colour-blindness can tell apart,
    shifted where a background needs it. Nothing is told by colour alone: names stand beside it.
    """

    meaning: str
    terminal: str
    light: str
    dark: str


CAUSES: Mapping[StallCause, Appearance] = {
    StallCause.VMCNT: Appearance(
        "a wait for vector memory (vmcnt)", "yellow", "#e08a00", "#f0a830"),
    StallCause.LGKMCNT: Appearance(
        "a wait for LDS, scalar memory or a message (lgkmcnt)", "magenta", "#b2579b", "#d887c2"),
    StallCause.DEPENDENCY: Appearance(
        "a register that an earlier instruction has yet to write", "blue", "#2f6fc4", "#6aa5f2"),
    StallCause.UNIT_BUSY: Appearance(
        "a unit or queue that other instructions occupy", "red", "#c9461e", "#f07850"),
    StallCause.BARRIER: Appearance(
        "other waves of the workgroup at a barrier", "bright_cyan", "#3a9fc0", "#7fd4ee"),
    StallCause.FETCH: Appearance(
        "instruction fetch, branches included", "green", "#12805f", "#3cc79c"),
    StallCause.NOP: Appearance(
        "s_nop and s_sleep", "bright_black", "#8a8f98", "#8d939c"),
    StallCause.OCCUPANCY: Appearance(
        "no slot yet: registers, LDS or wave slots were taken", "white", "#8a5a44", "#c29179"),
    StallCause.OTHER: Appearance(
        "something the profiler does not tell", "bright_magenta", "#6b6fd0", "#a5a8f5"),
}
ISSUE = Appearance("issued and executing", "default", "#b7c4d4", "#48566a")

LEVELS: Mapping[MemoryLevel, str] = {
    MemoryLevel.L1: "L1", MemoryLevel.L2: "L2", MemoryLevel.MALL: "MALL", MemoryLevel.HBM: "HBM",
}
