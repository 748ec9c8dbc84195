"""What ``show`` prints for people."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, TypeAlias

from rich.table import Table
from rich.text import Text

from asmevo.registry.browse.shown import (
    Shown,
    ShownCandidate,
    ShownCapture,
    ShownDispatch,
    ShownObject,
    ShownRun,
)
from asmevo.registry.display.columns import Column, fitted
from asmevo.registry.display.run_config import group_facts
from asmevo.registry.display.tables import SHORT, STATUS_STYLES, evidence_table, replacement_table
from asmevo.registry.errors import RegistryError
from asmevo.registry.names import counted, printable
from asmevo.registry.records import CandidateStatus

if TYPE_CHECKING:
    from asmevo.registry.records import ReplacementRecord, RunRecord

Part: TypeAlias = Table | Text | str

_MOST_FACTS = 12
"""Values of one group of a configuration that are told; ``--config`` prints all."""
_MOST_EDITS = 8
_MOST_REPLACEMENTS = 20
_NAME_WIDTH = 11


_TITLE = partial(Text, style="bold")


def details(found: Shown, width: int | None) -> Iterator[Part]:
    """Tables and lines, in order; None for ``width`` cuts and folds nothing."""
    if isinstance(found, ShownObject):
        yield from _object(found, width)
    elif isinstance(found, ShownCandidate):
        yield from _candidate(found, width)
    elif isinstance(found, ShownRun):
        yield from _run(found, width)
    elif isinstance(found, ShownDispatch):
        yield from _dispatch(found, width)
    else:
        yield _capture(found)


def _object(found: ShownObject, width: int | None) -> Iterator[Part]:
    record = found.record
    yield _facts([
        ("object", record.sha256), ("content", found.content), ("isa", record.isa),
        ("size", f"{record.size:,} bytes"), ("kernels", ", ".join(record.kernels) or "none"),
        ("source", record.source), ("stored", f"{record.created:%Y-%m-%d %H:%M:%S} UTC"),
        *(("recovered", f"assembly {r.assembly_sha256} by {_listed(r.toolchain)}")
          for r in found.recovered),
        *([("captures", f"{found.captures:,}")] if found.captures else [])])
    if found.replacements:
        yield from _replacements("replacements of this object", found.replacements,
                                 found.signers, width)
    for made in found.replaces:
        yield from ("", _TITLE("this object is a replacement"), "")
        yield from _candidate(made, width)


def _replacements(title: str, records: Sequence[ReplacementRecord],
                  signers: Mapping[str, Sequence[str]], width: int | None) -> Iterator[Part]:
    some = records if width is None else records[:_MOST_REPLACEMENTS]
    yield from ("", _TITLE(title), "")
    yield replacement_table(some, width=width, signers=signers).table
    if len(some) < len(records):
        yield Text(f"{len(records) - len(some):,} more: asmevo-registry list", "dim")


def _candidate(found: ShownCandidate, width: int | None) -> Iterator[Part]:
    record, event = found.record, found.event or {}
    proposer = str(event.get("proposer") or "")
    yield _facts([
        ("candidate", record.id), ("status", _styled(record.status.value)),
        ("rule", f"{record.rule} ({record.direction})"
         + (f", proposed by {proposer}" if proposer else "")),
        ("rationale", record.rationale or "none"),
        ("parent", record.parent_id or "the original"), ("original", record.original_sha256),
        ("kernel", record.kernel), ("object", record.object_sha256 or "not kept"),
        ("assembly", record.assembly_sha256 or "not kept"),
        *_edits(found)])
    if found.replacement is not None:
        yield ""
        yield _facts(_replacement(found))
    if record.verdicts:
        yield ""
        yield evidence_table(record, width=width).table
    if record.timings:
        yield ""
        yield _timings(found, width)
    yield from ("", _TITLE("provenance"), "")
    yield _facts(_provenance(found.run))


def _edits(found: ShownCandidate) -> Iterator[tuple[str, str]]:
    edits = found.record.edits
    yield "edits", (
        f"{len(edits)} ({counted(sum(e.stop - e.start for e in edits), 'instruction')} of the "
        f"parent, {counted(sum(len(e.lines) for e in edits), 'line')} in their place)")
    for edit in edits[:_MOST_EDITS]:
        yield "", (f"{edit.start}:{edit.stop} -> {counted(len(edit.lines), 'line')}"
                   + (f", {edit.reason}" if edit.reason != found.record.rule else ""))
    if len(edits) > _MOST_EDITS:
        yield "", f"and {len(edits) - _MOST_EDITS} more; --json has all with their lines"


def _replacement(found: ShownCandidate) -> Iterator[tuple[str, str | Text]]:
    record = found.replacement
    assert record is not None
    yield "replacement", f"{record.speedup:.4f}x {record.timing_source} on {record.device}"
    again = ("not timed again" if record.speedup_again is None and not record.withdrawn else
             "withdrawn" if record.speedup_again is None else
             f"{record.speedup_again:.4f}x in a fresh process")
    yield "again", again
    yield "status", _styled(record.status.value)
    for weakness in record.weaknesses:
        yield "weaker", Text(printable(weakness), "yellow")
    if record.judgement is not None:
        judged = record.judgement.to_json()
        yield "judged by", _listed({
            name: (", ".join(map(str, value)) or "none") if isinstance(value, list) else value
            for name, value in judged.items()})
    for signature in found.signatures:
        yield "signed by", (f"{signature.public_key} on {signature.created:%Y-%m-%d}"
                            + ("" if signature.current else ", of an earlier statement"))


def _timings(found: ShownCandidate, width: int | None) -> Table:
    before = {timing.dispatch: timing for timing in found.baseline}
    rows = []
    for timing in found.record.timings:
        old = before.get(timing.dispatch)
        rows.append((
            timing.dispatch[:SHORT], found.names.get(timing.dispatch, ""),
            "" if old is None else f"{old.median_us:.3f}", f"{timing.median_us:.3f}",
            "" if old is None else f"{old.median_us / timing.median_us:.4f}x",
            str(len(timing.samples_us)), timing.source, timing.device))
    return fitted(
        (Column("dispatch"), Column("name", 12), Column("original us", right=True),
         Column("median us", right=True), Column("speedup", right=True),
         Column("samples", right=True, dropped=2), Column("source"),
         Column("device", 12, dropped=1)), rows, width).table


def _run(found: ShownRun, width: int | None) -> Iterator[Part]:
    yield _facts(_provenance(found))
    total = sum(found.statuses.values())
    if total:
        yield _facts([("candidates", f"{total:,}: " + ", ".join(
            f"{found.statuses[status]:,} {status.value}" for status in CandidateStatus
            if found.statuses.get(status)))])
    if found.replacements:
        yield from _replacements("replacements of this run", found.replacements, {}, width)


def _provenance(found: ShownRun) -> Iterator[tuple[str, str]]:
    run: RunRecord = found.record
    ended = "" if run.finished is None else f" to {run.finished:%Y-%m-%d %H:%M:%S}"
    yield "run", run.id
    yield "task", (f"{run.task}, {run.status}, {run.started:%Y-%m-%d %H:%M:%S}{ended} UTC")
    yield "package", f"asmevo {run.package_version}"
    yield "seed", str(run.seed)
    yield "device", f"{run.device} ({run.device_source})"
    yield "toolchain", _listed(run.toolchain)
    yield "config", run.config_sha256 + (" (missing or corrupt)" if found.config is None else
                                         "; --config prints it")
    if found.config is None:
        return
    try:
        groups = group_facts(found.config)
    except RegistryError as error:
        yield "", str(error)
        return
    for group, facts in groups.items():
        told = [f"{name} {value}".strip() for name, value in facts[:_MOST_FACTS]]
        more = len(facts) - len(told)
        yield f"  {group}", ", ".join(told) + (f" and {more} more" if more > 0 else "")


def _dispatch(found: ShownDispatch, width: int | None) -> Iterator[Part]:
    record, launch = found.record, found.launch
    facts = [("dispatch", record.sha256), ("name", record.name), ("kernel", record.kernel),
             ("held out", "yes" if record.held_out else "no"),
             ("stored", f"{record.created:%Y-%m-%d %H:%M:%S} UTC")]
    if launch is None:
        yield _facts([*facts, ("content", "missing or corrupt")])
        return
    yield _facts([
        *facts, ("content", "verified"), ("grid", " x ".join(map(str, launch["grid"]))),
        ("workgroup", " x ".join(map(str, launch["workgroup"]))),
        ("dynamic LDS", f"{launch['dynamic_lds']:,} bytes"),
        ("kernarg", f"{launch['kernarg_bytes']:,} bytes")])
    yield ""
    yield fitted(
        (Column("region", 12), Column("role"), Column("element"), Column("bytes", right=True)),
        [(r["name"], r["role"], r["element"], f"{r['bytes']:,}") for r in launch["regions"]],
        width).table


def _capture(found: ShownCapture) -> Table:
    record = found.record
    return _facts([
        ("capture", record.sha256), ("content", found.content), ("name", record.name),
        ("kernel", record.kernel), ("original", record.original_sha256),
        ("reason", record.reason.value), ("held out", "yes" if record.held_out else "no"),
        ("size", f"{record.size:,} bytes of memory"),
        ("dispatch", record.dispatch_sha256 or "none"),
        ("stored", f"{record.created:%Y-%m-%d %H:%M:%S} UTC")])


def _facts(facts: Iterator[tuple[str, str | Text]] | Sequence[tuple[str, str | Text]]
           | Iterator[tuple[str, str]] | Sequence[tuple[str, str]]) -> Table:
    """One fact a line; what is long goes on below itself."""
    table = Table(box=None, show_header=False, pad_edge=False, padding=(0, 2, 0, 0))
    table.add_column(no_wrap=True, min_width=_NAME_WIDTH, style="dim")
    table.add_column(overflow="fold")
    for name, value in facts:
        table.add_row(Text(name), value if isinstance(value, Text) else Text(printable(value)))
    return table


def _listed(values: Mapping[str, object]) -> str:
    return ", ".join(f"{name} {value}" for name, value in values.items())


def _styled(status: str) -> Text:
    return Text(status, STATUS_STYLES.get(status, ""))
