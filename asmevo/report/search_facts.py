"""What the search page says of a run, section by section, as strings for its template."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator, Mapping
from dataclasses import asdict, replace
from typing import Any

from asmevo.gates.verdict import Gate, Outcome
from asmevo.isa.program import Program
from asmevo.report.acceptance import several_as_one
from asmevo.report.causes import CAUSES
from asmevo.report.live_view import clock
from asmevo.report.search_result import GATES
from asmevo.report.search_state import Record, SearchState, counted
from asmevo.report.stored_run import StoredRun
from asmevo.report.version_profile import ORIGINAL, WINNER, StoredWindow, VersionProfile

_ENDS: Mapping[str, str] = {
    "attempts": "The search ended because its budget of attempts was used up.",
    "seconds": "The search ended because its budget of time was used up.",
    "tokens": "The search ended because its budget of tokens was used up.",
    "cost": "The search ended because its budget of money was used up.",
    "exhausted": "The search ended because its proposers had nothing new left.",
    "faults": "The search ended because too many workers were lost.",
    "interrupted": "The search was interrupted; search.resume=true goes on with it.",
}
_MOST_REASONS = 30
_MOST_RECORDS = 60
_MOST_EVENTS = 500
_MOST_NODES = 1000

Rows = list[tuple[str, ...]]


def headline(run: StoredRun) -> Iterator[dict[str, Any]]:
    """The figures that count, the confirmed speedup first."""
    result, state = run.result, run.state
    again, speedup = result.get("speedup_again"), result.get("speedup")
    won = result.get("status") == "committed"
    if again is not None:
        yield {"name": "timed again in a fresh process", "value": f"{again:.4f}x", "won": won}
    if speedup is not None:
        yield {"name": "best in the search", "value": f"{speedup:.4f}x", "won": False}
    judged = result.get("attempts") or 0
    commits = result.get("commits") or 0
    yield {"name": f"commits of {judged:,} attempts", "value": f"{commits:,}", "won": False}
    if judged:
        yield {"name": "accepted", "value": f"{100 * commits / judged:.1f} %", "won": False}
    yield {"name": "of search", "value": clock(state.seconds or result.get("wall_seconds") or 0),
           "won": False}
    if state.tokens or state.cost:
        yield {"name": f"{state.tokens:,} tokens", "value": f"${state.cost:,.2f}", "won": False}


def sentences(run: StoredRun) -> Iterator[str]:
    """What came out, and what ended the search."""
    result, state = run.result, run.state
    if result.get("error"):
        yield f"The run failed: {result['error']}"
    if not result.get("replacement_sha256"):
        yield "No candidate was good enough: there is no replacement."
    elif result.get("status") == "none":
        yield ("The best candidate was not faster when it was timed again in a fresh process: it "
               "is not a replacement.")
    if result.get("timing_source") == "modelled":
        yield "Every timing comes from a cycle model; no GPU measured any of this."
    why = result.get("stopped") or (state.ended.why if state.ended is not None else None)
    if why:
        yield _ENDS.get(str(why), f"The search ended: {why}.")
    spent = [f"{state.used:,} attempts" if state.used else "", clock(state.seconds)]
    if state.bounds.attempts:
        spent[0] += f" of {state.bounds.attempts:,}"
        spent[1] += f" of {clock(state.bounds.seconds)}"
    overhead = result.get("overhead")
    if isinstance(overhead, Mapping) and isinstance(overhead.get("share"), float):
        spent.append(f"{100 * overhead['share']:.1f} % of the workers' time outside the gates")
    extra = [counted(count, what) + rest for count, what, rest in (
        (state.duplicates, "candidate", " that another worker had judged before"),
        (state.not_proposed, "repeated or blocked proposal", ""),
        (state.faults, "lost worker", ""), (state.sittings - 1, "resumption", "")) if count]
    yield f"Spent: {', '.join(filter(None, spent))}" + (
        f"; {', '.join(extra)}." if extra else ".")


def node_rows(state: SearchState) -> Rows:
    return [(
        str(n.number), "" if n.parent is None else str(n.parent), f"{n.speedup:.4f}x", n.rule,
        n.direction, n.proposer, "" if n.worker is None else str(n.worker), str(n.attempt),
        f"{n.seconds:.1f}", str(n.resources.vgprs or ""), str(n.resources.sgprs or ""),
        str(n.resources.lds_bytes or ""),
        n.rationale + (f" (assuming {n.assumption})" if n.assumption else ""))
        for n in state.nodes[1:_MOST_NODES + 1]]


def moment_rows(state: SearchState) -> Rows:
    return [(f"{m.seconds:.1f}", str(m.attempt), m.kind, m.text)
            for m in state.moments[:_MOST_EVENTS]]


def gate_rows(state: SearchState) -> list[dict[str, Any]]:
    """Each gate's counts, drawn as shares of all candidates."""
    total = max((counts.total() for counts in state.verdicts.values()), default=0)
    rows = []
    for gate in Gate:
        counts = state.verdicts[gate.value]
        passed, failed, missing = (counts[o] for o in (Outcome.PASS, Outcome.FAIL, Outcome.MISSING))
        bars, x = [], 0.0
        for kind, count in (("pass", passed), ("fail", failed), ("missing-part", missing)):
            if count:
                bars.append((kind, f"{x:.1f}", f"{1000 * count / total:.1f}"))
                x += 1000 * count / total
        rows.append({
            "name": gate.value, "title": GATES[gate], "reached": f"{counts.total():,}",
            "passed": f"{passed:,}", "failed": f"{failed:,}", "missing": f"{missing:,}",
            "bars": bars, "told": f"{gate.value}: {passed} passed, {failed} failed, {missing} "
                                  f"missing, of {total} candidates"})
    return rows if total else []


def reason_rows(state: SearchState) -> Rows:
    return [(gate, code, f"{count:,}", state.examples[gate, code])
            for (gate, code), count in state.reasons.most_common(_MOST_REASONS)]


def record_tables(
    run: StoredRun, priced: bool
) -> Iterator[tuple[str, tuple[str, ...], Rows]]:
    """Title, columns and rows: by proposer where it is known, by rule, by direction."""
    state, result = run.state, run.result
    groups = [("rule", _several_as_one(_gains(state.rules, result.get("rules")))),
              ("direction", state.directions)]
    if set(state.proposers) - {"unknown"}:
        groups.insert(0, ("proposer", _gains(state.proposers, result.get("proposers"))))
    for title, records in groups:
        ranked = sorted(records.items(), key=lambda item: (-item[1].gain, -item[1].proposed,
                                                           item[0]))
        if ranked:
            timed = any(record.seconds for _, record in ranked)
            columns = (title, "proposed>", "passed G0 to G3>", "committed>", "accepted>", "gain>",
                       *(("s each>",) if timed else ()),
                       *(("tokens>", "cost>") if priced else ()))
            yield title, columns, [_record(name, record, timed, priced)
                                   for name, record in ranked[:_MOST_RECORDS]]


def _gains(records: Mapping[str, Record], told: Any) -> dict[str, Record]:
    """With the gains of the result: there a composition's is shared out to what it is made of."""
    known = told if isinstance(told, Mapping) else {}
    return {name: replace(record, gain=known[name]["gain"])
            if isinstance(known.get(name), Mapping) and "gain" in known[name] else record
            for name, record in records.items()}


def _several_as_one(records: Mapping[str, Record]) -> dict[str, Record]:
    found = several_as_one({name: asdict(record) for name, record in records.items()})
    return {name: Record(**record) for name, record in found.items()}


def _record(name: str, record: Record, timed: bool, priced: bool) -> tuple[str, ...]:
    proposed = record.proposed
    return (
        name, f"{proposed:,}", f"{record.passed:,}", f"{record.accepted:,}",
        f"{100 * record.accepted / proposed:.1f} %" if proposed else "-",
        f"+{100 * math.expm1(record.gain):.2f} %" if record.gain > 0 else "",
        *((f"{record.seconds / max(proposed, 1):.2f}",) if timed else ()),
        *((f"{record.tokens:,}", f"${record.cost:,.2f}") if priced else ()))


def timing_rows(run: StoredRun) -> Rows:
    return [(
        str(t.get("dispatch")), _micro(t.get("original_us")), _micro(t.get("replacement_us")),
        _ratio(t.get("speedup")), _micro(t.get("again_original_us")), _micro(t.get("again_us")),
        _ratio(t.get("again_speedup"))) for t in run.result.get("timings") or ()]


def timing_notes(run: StoredRun) -> Iterator[str]:
    if run.again is None:
        return
    yield f"Timed again: {run.again.get('outcome')}, {run.again.get('reason')}."
    evidence = run.again.get("evidence")
    if not isinstance(evidence, dict):
        return
    interval, variation = evidence.get("interval"), evidence.get("variation")
    parts = []
    if isinstance(interval, list) and len(interval) == 2:
        parts.append(f"interval {_ratio(interval[0])} to {_ratio(interval[1])}")
    if isinstance(variation, int | float):
        parts.append(f"coefficient of variation {100 * variation:.2f} %")
    if evidence.get("caches"):
        parts.append(f"caches {evidence['caches']}")
    if evidence.get("device"):
        parts.append(f"on {evidence['device']}")
    if parts:
        yield f"{', '.join(parts)}.".capitalize()


def _micro(value: Any) -> str:
    return f"{value:,.3f}" if isinstance(value, int | float) else "-"


def _ratio(value: Any) -> str:
    return f"{value:.4f}x" if isinstance(value, int | float) else "-"


def stacks(profiles: Mapping[str, VersionProfile]) -> list[dict[str, Any]]:
    """Stalled clk by cause, both versions to the same scale."""
    most = max((p.by_cause.total() for p in profiles.values()), default=0)
    drawn = []
    for name in (ORIGINAL, WINNER):
        if name not in profiles or not most:
            continue
        bars, x = [], 0.0
        by_cause = profiles[name].by_cause
        for cause in CAUSES:
            if by_cause[cause]:
                width = 10000 * by_cause[cause] / most
                bars.append((cause.value, f"{x:.1f}", f"{width:.1f}"))
                x += width
        told = ", ".join(f"{cause.value} {clk:,}" for cause, clk in by_cause.most_common())
        drawn.append({"name": name, "bars": bars,
                      "told": f"{name}: {by_cause.total():,} clk stalled: {told}"})
    return drawn


def window_tables(run: StoredRun, shown: Collection[str]) -> Iterator[dict[str, Any]]:
    """Windows of both versions; ``shown`` are the anchors of lines that the page has."""
    for name, side, code in ((ORIGINAL, "o", run.original), (WINNER, "n", run.winner)):
        profile = run.profiles.get(name)
        if profile is None or code is None:
            continue
        micro = profile.microseconds
        yield {
            "name": name,
            "facts": f"{profile.cycles:,} clk" + (f", {micro:,.2f} µs" if micro else "")
                     + f"; {profile.by_cause.total():,} clk stalled over all simulated waves",
            "windows": [_window(w, code, side, shown) for w in profile.windows],
        }


def _window(window: StoredWindow, code: Program, side: str,
            shown: Collection[str]) -> dict[str, str]:
    anchor = f"{side}{window.start}"
    part = window.share * window.recoverable / window.stalled if window.stalled else 0.0
    loop = "" if not window.loop_depth else ", loop" if window.loop_depth == 1 else (
        f", {window.loop_depth} loops")
    rounds = f" of {window.trip_count:,.1f}".removesuffix(".0") if window.trip_count else ""
    return {
        "href": anchor if anchor in shown else "",
        "range": f"{code.offsets[window.start]:#06x} to {code.offsets[window.stop - 1]:#06x}",
        "share": f"{100 * window.share:.1f} %", "stalled": f"{window.stalled:,}",
        "cause": window.cause.value, "recoverable": f"{100 * part:.1f} %",
        "place": f"{window.executions:,} times{loop}{rounds if loop else ''}",
    }


def provenance(run: StoredRun) -> Iterator[tuple[str, list[tuple[str, str]]]]:
    result, record, state = run.result, run.record, run.state
    kernel = [("kernel", result.get("kernel")), ("symbol", result.get("symbol")),
              ("original", result.get("original_sha256")),
              ("replacement", result.get("replacement_sha256") or "none")]
    best = state.best
    if best is not None and best.number:
        kernel += [("candidate", best.candidate)]
        before = state.nodes[0].resources
        if best.resources.vgprs:
            kernel += [(name, f"{a} to {b}" if a != b else f"{a}, unchanged") for name, a, b in (
                ("VGPRs", before.vgprs, best.resources.vgprs),
                ("SGPRs", before.sgprs, best.resources.sgprs),
                ("LDS bytes", before.lds_bytes, best.resources.lds_bytes))]
    yield "What", _told(kernel)
    yield "Where and how", _told([
        ("device", result.get("device")), ("timings are", result.get("timing_source")),
        ("seed", None if record is None else record.seed),
        ("workers", state.started.workers if state.started else None),
        ("executor", state.started.executor if state.started else None),
        *(() if record is None else sorted(record.toolchain.items())),
        ("emulator speed", None if not result.get("wave_instructions_per_second") else
         f"{result['wave_instructions_per_second'] / 1e6:.1f} M wave-instructions/s"),
    ])
    yield "Run", _told([
        ("run", result.get("run_id")), ("version", None if record is None else
                                        f"asmevo {record.package_version}"),
        ("started", None if record is None else f"{record.started:%Y-%m-%d %H:%M:%S} UTC"),
        ("finished", None if record is None or record.finished is None else
         f"{record.finished:%Y-%m-%d %H:%M:%S} UTC"),
        ("command", " ".join(("python -m asmevo", *run.overrides)) if run.overrides else None),
        ("folder", None if run.folder is None else run.folder),
        ("registry", result.get("registry")),
        ("configuration", None if record is None else record.config_sha256),
        ("verify again", None if not result.get("replacement_sha256") else
         f"python -m asmevo task=verify candidate={result['replacement_sha256']}"),
    ])


def _told(facts: list[tuple[str, Any]]) -> list[tuple[str, str]]:
    return [(name, str(value)) for name, value in facts if value not in (None, "")]


def counterexamples(run: StoredRun) -> Iterator[str]:
    words = {"used": "judged on, from earlier runs", "kept": "found now and kept",
             "refused": "found now, no room to keep"}
    for kind, names in (run.result.get("counterexamples") or {}).items():
        if names:
            yield f"{words.get(kind, kind)}: {', '.join(map(str, names))}"
