"""Stalled clk by cause as a bar."""

from __future__ import annotations

from collections.abc import Mapping

from markupsafe import Markup

from asmevo.profile.profile import StallCause

BAR = 1000  # of a bar's own units across


def stall_bar(stalls: Mapping[StallCause, int], most: int) -> Markup:
    """A bar that is full at ``most`` clk; nothing where nothing stalls."""
    parts = [(cause, clk) for cause, clk in stalls.items() if clk]
    if not parts:
        return Markup("")
    parts.sort(key=lambda part: -part[1])
    spoken = ", ".join(f"{cause.value} {clk}" for cause, clk in parts)
    x, drawn = 0.0, ""
    for cause, clk in parts:
        width = max(BAR * clk / most, 4)
        drawn += f'<rect class="{cause.value}" x="{x:.0f}" width="{width:.0f}" height="10"/>'
        x += width
    return Markup(  # noqa: S704 - numbers and names of causes
        f'<svg class="bar" viewBox="0 0 {BAR} 10" preserveAspectRatio="none" role="img" '
        f'aria-label="{spoken}"><title>{spoken}</title>{drawn}</svg>')
