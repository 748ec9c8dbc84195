"""Timelines that are too long to draw."""

from __future__ import annotations

from asmevo.profile.profile import Event, Profile, WaveProfile
from asmevo.report.timeline import Timeline, packed


def test_a_timeline_ends_where_the_page_can_count_no_further() -> None:
    end = 3 << 30
    events = (Event(0, 0, 0, 0, 4, None, None), Event(1, 4, 4, 4, end, None, None))
    wave = WaveProfile(0, 0, 0, 0, 0, 0, end, 2)
    profile = Profile("d", "modelled", "device", end, (), waves=(wave,), timeline=(events,))
    timeline = Timeline.of(profile, limit=10)
    assert timeline.events == (events[:1],)
    assert timeline.truncation.startswith("the first 2,147,483,647 of 3,221,225,472 clk, 1 of 2")
    assert packed(timeline)["events"]
