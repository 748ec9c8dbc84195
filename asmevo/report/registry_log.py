"""What the registry's command line shows of a search: its lineage, and what became of the rest."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from rich.text import Text

from asmevo.registry.records import CandidateRecord, RunRecord
from asmevo.registry.registry import Registry
from asmevo.report.lineage_lines import lineage_text
from asmevo.report.search_state import SearchState, counted
from asmevo.report.stored_events import stored_events

_MOST_REASONS = 5


def run_shown(registry: Registry, run: RunRecord,
              candidates: Sequence[CandidateRecord]) -> Iterator[Text]:
    """The tree of commits, and the candidates that are none in one line."""
    state = SearchState.of(stored_events(registry, run, candidates))
    if not state.nodes:
        yield Text("no candidates")
        return
    yield lineage_text(state.nodes)
    rejected = state.judged - state.commits
    if rejected:
        reasons = [f"{gate} {code} {count:,}"
                   for (gate, code), count in state.reasons.most_common(_MOST_REASONS)]
        more = len(state.reasons) - _MOST_REASONS
        yield Text(f"{counted(rejected, 'candidate')} rejected: {', '.join(reasons)}"
                   + (f" and {counted(more, 'more reason')}" if more > 0 else "")
                   + "; --all lists them", "dim")
