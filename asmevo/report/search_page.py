"""A search as one HTML file: what it found, how, and what everything rests on.

The file needs nothing beside it, no network, and no script to be read. Everything in it that comes
out of a code object or a proposer is escaped, and its Content-Security-Policy lets only the style
and the script run that are in the file.
"""

from __future__ import annotations

from markupsafe import Markup

from asmevo.failure import printable
from asmevo.profile.profile import StallCause
from asmevo.report import directions, search_facts
from asmevo.report.diff_view import DiffView
from asmevo.report.lineage_svg import lineage_svg
from asmevo.report.page_style import FOLDER, environment, fills, policy, variables
from asmevo.report.progress_plot import progress_plot
from asmevo.report.stored_run import StoredRun
from asmevo.report.version_profile import ORIGINAL, WINNER

FILE = "report.html"

_HASHES = ("original", "replacement", "configuration", "device", "run", "candidate")


def search_page(run: StoredRun) -> str:
    """The page of a stored run."""
    templates = environment()
    templates.finalize = _finalized
    style = templates.get_template("search.css").render(
        variables=variables, fills=fills, colours=_colours, marks=_marks)
    script = (FOLDER / "search.js").read_text(encoding="utf-8")
    result, state = run.result, run.state
    diff = _diff(run)
    stacks = search_facts.stacks(run.profiles)
    priced = bool(state.tokens or state.cost)
    plots = [progress_plot(state, over) for over in ("attempts", "seconds")] if state.points else []
    scope = next((p.scope for p in run.profiles.values()), "")
    dispatch = next((p.dispatch for p in run.profiles.values()), "")
    return templates.get_template("search.html.j2").render(
        policy=policy(style, script), style=Markup(style), script=Markup(script),  # noqa: S704
        kernel=result.get("kernel") or "a kernel", source=_source(result.get("timing_source")),
        subtitle=f"{result.get('symbol') or ''} on {result.get('device') or 'no device'}, "
                 f"{result.get('status')}",
        headline=list(search_facts.headline(run)), sentences=list(search_facts.sentences(run)),
        missing=run.missing, plots=plots,
        directions=[(name, directions.css_class(name)) for name in state.directions],
        lineage=lineage_svg(state.nodes) if state.nodes else "",
        nodes=search_facts.node_rows(state), moments=search_facts.moment_rows(state),
        gates=search_facts.gate_rows(state), reasons=search_facts.reason_rows(state),
        records=list(search_facts.record_tables(run, priced)), priced=priced,
        timings=search_facts.timing_rows(run), timing_notes=list(search_facts.timing_notes(run)),
        stacks=stacks, causes=[cause.value for cause in StallCause if any(
            profile.by_cause[cause] for profile in run.profiles.values())],
        stacks_caption=f"Stalled clk by cause, both to one scale ({dispatch}; {scope})",
        windows=list(search_facts.window_tables(run, diff.shown if diff else ())),
        parts=diff.parts if diff else [], diff_sentence=diff.sentence() if diff else
        "There is no winner to compare the original with." if run.winner is None else
        "The original is not stored.",
        provenance=list(search_facts.provenance(run)), hashes=_HASHES,
        counterexamples=list(search_facts.counterexamples(run)), config=_lines(run.config),
    )


def _finalized(value: object) -> object:
    """Text out of files may hold control characters; lines of this page's own are `Markup`."""
    return printable(value) if isinstance(value, str) and not isinstance(value, Markup) else value


def _lines(text: str) -> Markup:
    return Markup("\n").join(printable(line) for line in text.splitlines())


def _source(source: object) -> str:
    return source if isinstance(source, str) and source in ("measured", "modelled") else ""


def _diff(run: StoredRun) -> DiffView | None:
    if run.original is None or run.winner is None:
        return None
    return DiffView(run.original, run.winner, run.profiles.get(ORIGINAL), run.profiles.get(WINNER))


def _colours(theme: str) -> Markup:
    which = 0 if theme == "light" else 1
    pairs = [*((directions.css_class(name), pair) for name, pair in directions.COLOURS.items()),
             ("d-other", directions.OTHER)]
    return Markup(" ".join(  # noqa: S704 - from the tables of this package
        f"--{name}: {pair[which]};" for name, pair in pairs))


def _marks() -> Markup:
    names = [*map(directions.css_class, directions.COLOURS), "d-other"]
    return Markup("\n".join(f"svg .{name} {{ fill: var(--{name}); }}" for name in names))  # noqa: S704
