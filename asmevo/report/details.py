"""What a person sees of a result's ``details``."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from rich.console import RenderableType
from rich.table import Table
from rich.text import Text

from asmevo.failure import printable
from asmevo.report import comparison, threats, timing
from asmevo.report.profile_listing import profile_shown
from asmevo.report.result import Result
from asmevo.report.roundtrip import folder_table, reasons

_SHOWN_REASONS = 20
_SHOWN_MNEMONICS = 12
_SHOWN_KERNELS = 8


def details_shown(result: Result) -> Iterator[RenderableType]:
    """The parts to print, from top to bottom."""
    details = result.details or {}
    parts = {"roundtrip": _roundtrip, "recover": _recover, "rebuild": _rebuild,
             "inspect": _inspect, "run": _run, "capture": _capture, "compile": _compile,
             "validate_timing": _validate_timing, "profile": _profile,
             "threats": _threats, "compare": _compare, "experiment": _compare,
             "report": _report}[result.task]
    yield from parts(result, details)


def _facts(*rows: tuple[str, object]) -> Table:
    table = Table(box=None, show_header=False, pad_edge=False, padding=(0, 2, 0, 0))
    table.add_column(style="bold")
    table.add_column(overflow="fold")
    for name, value in rows:
        table.add_row(name, _cell(value))
    return table


def _cell(value: object) -> Text:
    return Text("" if value is None else printable(str(value)))


def _columns(headings: str, rows: list[tuple[object, ...]]) -> Table:
    """A table; a heading that ends in ``>`` is of a right-aligned column."""
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0))
    for heading in headings.split(","):
        right = heading.endswith(">")
        table.add_column(heading.rstrip(">"), justify="right" if right else "left",
                         overflow="fold")
    for row in rows:
        table.add_row(*(_cell(cell) for cell in row))
    return table


def _roundtrip(result: Result, details: Mapping[str, Any]) -> Iterator[RenderableType]:
    yield folder_table(details["folders"])
    groups = reasons(details["exceptions"])
    if groups:
        yield _columns("exceptions>,architecture,reason,for example", [
            (count, architecture, reason, name)
            for reason, architecture, count, name in groups[:_SHOWN_REASONS]
        ])
        if len(groups) > _SHOWN_REASONS:
            yield Text(f"... and {len(groups) - _SHOWN_REASONS} more reasons in table.md", "dim")
    yield _facts(
        ("status", f"{details['identical']} of {details['total']} objects identical"),
        ("files", result.folder),
        ("time", f"{result.wall_seconds:.1f} s, {details['jobs']} processes, peak "
                 f"{details['peak_memory_bytes'] >> 20} MiB each"),
    )


def _recover(result: Result, details: Mapping[str, Any]) -> Iterator[RenderableType]:
    trip = details["round_trip"]
    verdict = "identical, byte for byte" if trip["identical"] else (
        f"first difference at byte {trip['first_difference']} ({trip['section']}); the text is not "
        "proven and cannot be rebuilt")
    special = [f", {count} {how}" for count, how in (
        (trip["fallback_count"], "kept as data"),
        (trip["annotation_count"], "with bits in a comment")) if count]
    symbols = details["kernels"]
    more = f" and {len(symbols) - _SHOWN_KERNELS} more" if len(symbols) > _SHOWN_KERNELS else ""
    yield _facts(
        ("source", details["source"]),
        ("SHA-256", result.original_sha256),
        ("kernels", ", ".join(symbols[:_SHOWN_KERNELS]) + more),
        ("instructions", f"{trip['instruction_count']}{''.join(special)}"),
        ("round trip", verdict),
        ("text", details["output"] or details["assembly"]),
        ("report", details["report"]),
        ("time", f"{result.wall_seconds:.1f} s"),
    )


def _rebuild(result: Result, details: Mapping[str, Any]) -> Iterator[RenderableType]:
    for kernel in details["kernels"]:
        yield _facts(("kernel", kernel["symbol"]))
        yield _columns("resource,before>,after>", [
            (name.replace("_", " "), kernel["before"][name], after)
            for name, after in kernel["after"].items()
        ])
    yield _facts(
        ("original", result.original_sha256),
        ("new object", result.replacement_sha256 if details["changed"] else
         "identical to the original"),
        ("interface", "unchanged"),
        ("object", details["output"] or details["object"]),
        ("time", f"{result.wall_seconds:.1f} s"),
    )


def _inspect(result: Result, details: Mapping[str, Any]) -> Iterator[RenderableType]:
    if details["members"]:
        yield _columns("member,target,bytes>,kernels>,first kernel", [
            (m["name"], m["target"], m["bytes"], len(m["kernels"]),
             m["refused"] or (m["kernels"][0] if m["kernels"] else ""))
            for m in details["members"]
        ])
        yield _facts(("one of them", "source=<member>"), ("files", result.folder))
        return
    yield _facts(
        ("source", details["source"]),
        ("SHA-256", result.original_sha256),
        ("target", f"{details['target']}, code object version {details['version']}"),
        ("kernels", len(details["kernels"])),
    )
    for kernel in details["kernels"]:
        yield from _kernel(kernel)
    yield _facts(("files", result.folder))


def _kernel(kernel: Mapping[str, Any]) -> Iterator[RenderableType]:
    resources, occupancy = kernel["resources"], kernel["occupancy"]
    launch = kernel["launch"]
    yield _facts(
        ("kernel", kernel["symbol"]),
        ("code", f"{kernel['code_bytes']} bytes, {kernel['instructions']} instructions"),
        *((name.replace("_", " "), value) for name, value in resources.items()),
        *((name.replace("_", " "), value) for name, value in launch.items() if value is not None),
        ("occupancy", f"unknown: {occupancy['unknown']}" if occupancy["unknown"] else
         f"{occupancy['waves_per_simd']} waves per SIMD, {occupancy['workgroups_per_cu']} "
         f"workgroups of {occupancy['workgroup_size']} per CU, limited by "
         f"{occupancy['limited_by']} (without LDS that a launch adds)"),
    )
    if kernel["arguments"]:
        yield _columns("argument,offset>,size>,kind,type,address space,access", [
            (a["name"] or f"#{number}", a["offset"], a["size"], a["value_kind"], a["value_type"],
             a["address_space"], a["access"])
            for number, a in enumerate(kernel["arguments"])
        ])
    total = max(kernel["instructions"], 1)
    yield _columns("unit,instructions>,share>", [
        (unit, count, f"{100 * count / total:.1f} %") for unit, count in kernel["units"].items()
    ])
    frequent = list(kernel["mnemonics"].items())[:_SHOWN_MNEMONICS]
    yield _columns("most frequent,instructions>", frequent)
    if kernel["loops"] is None:
        yield _facts(("loops", f"unknown: {kernel['loops_unknown']}"))
    elif kernel["loops"]:
        yield _columns("loop,offset>,depth>,blocks>,instructions>,mostly", [
            (loop["label"], f"{loop['offset']:#x}", loop["depth"], loop["blocks"],
             loop["instructions"],
             ", ".join(f"{unit} {n}" for unit, n in list(loop["units"].items())[:3]))
            for loop in kernel["loops"]
        ])


def _run(result: Result, details: Mapping[str, Any]) -> Iterator[RenderableType]:
    summary: list[tuple[object, ...]] = []
    accuracy: list[tuple[object, ...]] = []
    for launch in details["launches"]:
        name = launch["dispatch"]
        for buffer in launch["buffers"]:
            if buffer["role"] == "input" and buffer["damage"] is None:
                continue
            summary.append((
                name, buffer["name"], f"{buffer['count']} {buffer['element']}",
                *(_number(buffer[key]) for key in ("minimum", "maximum", "mean")),
                buffer["nan"] + buffer["infinite"] or ""))
            accuracy.append((name, buffer["name"], *_accuracy_cells(buffer)))
            name = ""
    yield _columns("dispatch,buffer,elements>,min>,max>,mean>,nan/inf>", summary)
    yield _columns("dispatch,buffer,max abs>,max rel>,cosine>,unequal>,verdict", accuracy)
    checked = [(launch["dispatch"], launch["sanitizer"]) for launch in details["launches"]
               if launch["sanitizer"] is not None]
    lines = [Text.assemble((f"{name}: ", "bold"), printable(line))
             for name, findings in checked for line in findings["summary"]]
    if lines:
        yield Text("\n").join(lines)
    reports = sum(len(f["reports"]) + f["dropped"] for _, f in checked)
    rate = result.wave_instructions_per_second
    yield _facts(
        ("kernel", f"{result.kernel} ({result.symbol})"),
        ("reference", details["operation"] or "none: the kernel's YAML names no operation"),
        ("status", result.status.value),
        *((("reason", result.error),) if result.error else ()),
        *((("sanitizer", "1 report" if reports == 1 else f"{reports} reports"),)
          if checked else ()),
        ("device", result.device),
        ("throughput", f"{(rate or 0) / 1e6:.1f} M wave-instructions/s"),
        ("files", result.folder),
        ("time", f"{result.wall_seconds:.1f} s"),
    )


def _capture(result: Result, details: Mapping[str, Any]) -> Iterator[RenderableType]:
    yield _facts(("kernel", f"{result.kernel} ({result.symbol})"))
    yield _columns("dispatch,of bytes>,kept>,segments>,written only>,movable,folder", [
        (c["dispatch"], c["memory"], c["kept"], c["segments"], c["outputs"],
         "yes" if c["movable"] else "no", c["folder"]) for c in details["captures"]])
    if result.error is not None:
        yield _facts(("error", result.error))
    yield _facts(("status", result.status.value), ("original", result.original_sha256),
                 ("device", result.device),
                 ("time", f"{result.wall_seconds:.1f} s"))


def _compile(result: Result, details: Mapping[str, Any]) -> Iterator[RenderableType]:
    yield _facts(
        ("kernel", f"{result.kernel} ({result.symbol})"),
        ("source", details["source"]),
        ("compiler", details["compiler"]),
        ("object", f"{details['path']} ({details['bytes']} bytes)"),
        ("SHA-256", result.original_sha256),
        ("launch", f"workgroups of {details['launch']['workgroup']} work-items with "
                   f"{details['launch']['dynamic_lds']} bytes of LDS added"),
        ("resources", ", ".join(f"{key} {value}" for key, value in details["resources"].items())),
        ("time", f"{result.wall_seconds:.1f} s"),
    )


def _validate_timing(result: Result, details: Mapping[str, Any]) -> Iterator[RenderableType]:
    for heading, headings, rows in timing.tables(details, brief=True):
        yield Text(heading, "bold")
        yield _columns(headings, list(rows))
    for sentence in timing.unanswered(details):
        yield Text(printable(sentence), "dim")
    yield _facts(
        ("status", result.status.value), ("device", result.device), ("files", result.folder),
        ("time", f"{result.wall_seconds:.1f} s"))


def _profile(result: Result, details: Mapping[str, Any]) -> Iterator[RenderableType]:
    yield _facts(("kernel", f"{result.kernel} ({result.symbol})"))
    yield from profile_shown(details)
    yield _facts(
        ("files", result.folder),
        ("time", f"{result.wall_seconds:.1f} s"),
    )


def _number(value: float | None) -> str:
    return "-" if value is None else f"{value:.3g}"


def _accuracy_cells(buffer: Mapping[str, Any]) -> tuple[object, ...]:
    found = buffer["accuracy"]
    if found is None:
        return ("-", "-", "-", "-", buffer["damage"] or "")
    verdict = buffer["damage"] or {None: "no bound", True: "ok", False: "too far"}[buffer["within"]]
    return (_number(found["max_abs"]), _number(found["max_rel"]), f"{found['cosine']:.7f}",
            found["unequal"], verdict)


def _threats(result: Result, details: Mapping[str, Any]) -> Iterator[RenderableType]:
    yield _columns("row,cheat,tried>,verdicts,caught by", list(threats.summary(details)))
    wrong = list(threats.lines(details, only=frozenset({"CHEAT SUCCEEDED", "FALSE REJECTION"})))
    if wrong:
        yield _columns(threats.HEADINGS, wrong)
    yield _facts(
        ("status", f"{result.status.value}: {threats.verdict(details)}"),
        ("table", details["table"]),
        ("time", f"{result.wall_seconds:.1f} s"),
    )


def _compare(result: Result, details: Mapping[str, Any]) -> Iterator[RenderableType]:
    yield comparison.ComparisonTable(comparison.from_dict(details["comparison"]))
    yield _facts(("table", details["table"]), ("JSON", details["json"]))


def _report(result: Result, details: Mapping[str, Any]) -> Iterator[RenderableType]:
    yield _facts(("kernel", f"{result.kernel} ({result.symbol})"), ("run", result.run_id),
                 ("page", details["page"]),
                 *(("missing", sentence) for sentence in details["missing"]))
