"""A profile's timeline cut to what a viewer can hold, and packed for the page."""

from __future__ import annotations

import base64
import zlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any

import numpy as np
import numpy.typing as npt

from asmevo.profile.profile import Event, Profile, StallCause, WaveProfile

TURN = 4  # clk in which a wave issues, see `Event`
CODES = {cause: code for code, cause in enumerate(StallCause, start=1)}
_COLUMNS = 6


@dataclass(frozen=True, slots=True)
class Span:
    """Clk ``start`` to ``end`` of a wave's time: it stalled for ``cause``, or else it issued."""

    start: int
    end: int
    cause: StallCause | None


def spans(event: Event) -> Iterator[Span]:
    """The parts of an event, in order, without empty ones."""
    if event.held > event.ready:
        yield Span(event.ready, event.held, event.cause)
    if event.issue > event.held:
        yield Span(event.held, event.issue, StallCause.UNIT_BUSY)
    turn = event.resume if event.after is None else min(event.issue + TURN, event.resume)
    if turn > event.issue:
        yield Span(event.issue, turn, None)
    if event.resume > turn:
        yield Span(turn, event.resume, event.after)


_LONGEST = (1 << 31) - 1  # clk


@dataclass(frozen=True, slots=True)
class Timeline:
    """Waves with their events; ``truncation`` says in words what was left, or nothing."""

    waves: tuple[WaveProfile, ...]
    events: tuple[tuple[Event, ...], ...]
    truncation: str = ""

    @staticmethod
    def of(profile: Profile, *, limit: int | None = None) -> Timeline:
        """The timeline of ``profile``, cut at a clk so that at most ``limit`` events are left.

        It is cut at 2^31 clk as well, of which the page's columns hold no more.
        """
        total = sum(map(len, profile.timeline))
        end, left = None, ""
        if total > (total if limit is None else limit) or profile.cycles > _LONGEST:
            issues = np.fromiter(
                (event.resume for events in profile.timeline for event in events), np.int64, total)
            end = _LONGEST
            if limit is not None and total > limit:
                end = min(end, int(np.partition(issues, limit)[limit]))
            left = (f"the first {end:,} of {profile.cycles:,} clk, {int((issues < end).sum()):,} "
                    f"of {total:,} events")
        waves: list[WaveProfile] = []
        kept: list[tuple[Event, ...]] = []
        for wave, events in zip(profile.waves, profile.timeline, strict=False):
            if end is not None:
                events = tuple(event for event in events if event.resume < end)
            if events:
                waves.append(wave)
                kept.append(events)
        return Timeline(tuple(waves), tuple(kept), left)


def packed(timeline: Timeline) -> dict[str, Any]:
    """For the page: ``waves`` as rows of numbers, and ``events`` in base64 of a zlib stream of six
    little-endian i32 columns, each of all events in the order of waves: instruction minus that of
    the wave's event before; ready minus the resume before (of the first: minus the wave's start);
    clk to held, issue and resume, each from the one before; and the code of ``cause`` plus 16 times
    that of ``after`` (0: none, or else the place in ``causes`` from 1)."""
    columns = [_column(timeline, part) for part in range(_COLUMNS)]
    return {
        "causes": [cause.value for cause in StallCause],
        "turn": TURN,
        "waves": [[w.unit, w.simd, w.slot, w.workgroup, w.wave, w.start, w.end, len(events)]
                  for w, events in zip(timeline.waves, timeline.events, strict=True)],
        "events": base64.b64encode(
            zlib.compress(b"".join(column.tobytes() for column in columns), 6)).decode(),
    }


def _column(timeline: Timeline, part: int) -> npt.NDArray[np.int32]:
    values = chain.from_iterable(
        _values(wave, events, part)
        for wave, events in zip(timeline.waves, timeline.events, strict=True))
    return np.fromiter(values, dtype="<i4")


def _values(wave: WaveProfile, events: Sequence[Event], part: int) -> list[int]:
    match part:
        case 0:
            before = [0, *(event.instruction for event in events)]
            return [event.instruction - last for event, last in zip(events, before, strict=False)]
        case 1:
            before = [wave.start, *(event.resume for event in events)]
            return [event.ready - last for event, last in zip(events, before, strict=False)]
        case 2:
            return [event.held - event.ready for event in events]
        case 3:
            return [event.issue - event.held for event in events]
        case 4:
            return [event.resume - event.issue for event in events]
        case _:
            return [_code(event.cause) + 16 * _code(event.after) for event in events]


def _code(cause: StallCause | None) -> int:
    return 0 if cause is None else CODES[cause]
