"""What reports say of a hot window: for machines, and in words."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from asmevo.isa.program import Program
from asmevo.isa.registers import ALL_AGPR_MASK, ALL_VGPR_MASK
from asmevo.profile.hotwindow import HotWindow, total_share
from asmevo.report.annotated import Listing, by_cause, register_list

_VECTOR = ALL_VGPR_MASK | ALL_AGPR_MASK


def to_dict(window: HotWindow, program: Program, listing: Listing) -> dict[str, Any]:
    """What ``result.json`` says of it."""
    return {
        "start": window.start, "stop": window.stop, "share": window.share,
        "cause": window.cause.value, "stalled": window.stalled,
        "stalls": by_cause(window.causes), "recoverable": window.recoverable,
        "recoverable_share": window.recoverable_share, "executions": window.executions,
        "loop_depth": window.loop_depth, "trip_count": window.trip_count,
        "live_in": register_list(window.live_in), "live_out": register_list(window.live_out),
        "pressure": window.pressure,
        "edges": [{"producer": e.producer, "consumer": e.consumer, "kind": e.kind.value,
                   "registers": register_list(e.registers) if e.registers else ""}
                  for e in window.edges],
        "waits": [{"index": w.index, "operations": list(w.operations)} for w in window.waits],
        "hazards": [{"kind": h.kind, "producer": h.producer, "consumer": h.consumer,
                     "needed": h.needed, "found": h.found} for h in window.hazards],
        "notes": list(notes(window, program)),
        "lines": [line.to_dict() for line in listing.lines[window.start:window.stop]],
    }


def headline(window: HotWindow) -> str:
    """Its share and what could be gained."""
    gain = ("nothing of it recoverable by a better schedule of the block" if not window.recoverable
            else f"{window.recoverable:,} clk ({percent(window.recoverable_share)} of all) "
                 "recoverable")
    return f"{percent(window.share)} of all stalls, {gain}, mostly {window.cause.value}"


def place(window: HotWindow) -> str:
    """How often it runs, and in which loops."""
    depth, rounds = window.loop_depth, window.trip_count
    loops = "" if not depth else ", in a loop" if depth == 1 else f", in {depth} nested loops"
    if depth and rounds is not None:
        loops += f" of {rounds:,.1f} rounds".replace(".0 rounds", " rounds")
    return f"executed {window.executions:,} times{loops}"


def notes(window: HotWindow, program: Program) -> Iterator[str]:
    """What constrains an edit, in a few short lines."""
    yield place(window)
    yield (f"live in {_count(window.live_in)}; live out {_count(window.live_out)}; "
           f"at most {window.pressure} VGPRs and AGPRs live at once")
    waits = [f"{program.offsets[w.index]:#x} for {len(w.operations)}" for w in window.waits]
    tight = sum(h.found <= h.needed for h in window.hazards)
    yield (_counted(len(window.edges), "dependence") + "; "
           + _counted(len(waits), "wait")
           + (f" (at {', '.join(waits[:4])}{' ...' if len(waits) > 4 else ''} memory operations)"
              if waits else "")
           + "; " + _counted(len(window.hazards), "hazard pair")
           + (f", {tight} with no wait state to spare" if tight else ""))


def _counted(count: int, what: str) -> str:
    return f"{count} {what}{'' if count == 1 else 's'}" if count else f"no {what}s"


def sentence(windows: Sequence[HotWindow]) -> str:
    """All windows together."""
    if not windows:
        return "No hot windows: nothing stalls."
    some = "1 window holds" if len(windows) == 1 else f"{len(windows)} windows hold"
    gain = sum(window.recoverable for window in windows)
    share = sum(window.recoverable_share for window in windows)
    return (f"{some} {percent(total_share(windows))} of all stalled clk; {gain:,} clk "
            f"({percent(share)}) look recoverable")


def percent(part: float) -> str:
    return f"{100 * part:.1f} %"


def _count(mask: int) -> str:
    vector = (mask & _VECTOR).bit_count()
    return f"{vector} vector and {(mask & ~_VECTOR).bit_count()} scalar registers"
