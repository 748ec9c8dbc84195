"""The CSV files of ``rocprofv3``.

Columns are those of rocprofiler-sdk 1.0 (ROCm 7): documentation, "Using PC sampling" and "Using
rocprofv3", and ``generateCSV.cpp``. Columns that are not needed may be missing or have other names.
"""

from __future__ import annotations

import csv
from collections.abc import Iterator
from pathlib import Path

from asmevo.profile.errors import ProfileError
from asmevo.profile.rocprof.fields import Fields, check_file
from asmevo.profile.rocprof.recording import (
    DESCRIPTOR_SUFFIX,
    Agent,
    Launch,
    Method,
    Recording,
    Sample,
)
from asmevo.profile.rocprof.stall_reasons import short_reason

_LONGEST_FILE = 1 << 30
_LONGEST_FIELD = 1 << 16

_SAMPLES = ("Dispatch_Id", "Instruction")
_STOCHASTIC = ("Wave_Issued_Instruction", "Stall_Reason")
_COUNTERS = ("Dispatch_Id", "Kernel_Name", "Counter_Name", "Counter_Value")
_TRACE = ("Dispatch_Id", "Kernel_Name", "Start_Timestamp", "End_Timestamp")
_AGENTS = ("Agent_Type", "Num_Xcc", "Max_Engine_Clk_Fcompute", "Name")


def read_csv(path: Path, recording: Recording) -> None:
    """Add a file to a recording; the header says which kind it is. Raises ProfileError."""
    rows = _rows(path)
    header = next(rows, None)
    if header is None:
        raise ProfileError(f"{path.name} is empty")
    names = set(header)
    if "Sample_Timestamp" in names:
        _require(path, names, _SAMPLES)
        _samples(path, header, rows, recording)
    elif "Counter_Name" in names:
        _require(path, names, _COUNTERS)
        _counters(path, header, rows, recording)
    elif "Agent_Type" in names:
        _require(path, names, _AGENTS)
        _agents(path, header, rows, recording)
    elif "Start_Timestamp" in names and "Kernel_Name" in names:
        _require(path, names, _TRACE)
        _trace(path, header, rows, recording)
    else:
        raise ProfileError(
            f"{path.name} is no PC sampling, counter collection, kernel trace or agent info file "
            "of rocprofv3: its columns say nothing known")


def add_launch(recording: Recording, path: Path, launch: Launch) -> None:
    """Raises ProfileError when another file says otherwise."""
    known = recording.launches.setdefault(launch.dispatch, launch)
    if not known.kernels & launch.kernels:
        shown, other = min(launch.kernels, default="?"), min(known.kernels, default="?")
        raise ProfileError(f"{path.name}: dispatch {launch.dispatch} is of kernel '{shown[:80]}', "
                           f"another file says '{other[:80]}'")


def add_counter(recording: Recording, dispatch: int, name: str, value: float) -> None:
    """Instances of a counter (a shader engine's, an XCD's) add up."""
    values = recording.counters.setdefault(dispatch, {})
    values[name] = values.get(name, 0.0) + value


def set_method(recording: Recording, path: Path, method: Method) -> None:
    """Raises ProfileError when samples were read already: they would count twice."""
    if recording.method is not None:
        raise ProfileError(f"{path.name} has PC samples, and another file has some, too: give one")
    recording.method = method


def _rows(path: Path) -> Iterator[list[str]]:
    check_file(path, _LONGEST_FILE)
    try:
        with path.open(encoding="utf-8", newline="") as file:
            before = csv.field_size_limit(_LONGEST_FIELD)
            try:
                yield from csv.reader(file, strict=True)
            finally:
                csv.field_size_limit(before)
    except (OSError, UnicodeDecodeError) as error:
        raise ProfileError(f"{path.name} cannot be read as text: {error}") from None
    except csv.Error as error:
        raise ProfileError(f"{path.name} is not a CSV file: {error}") from None


def _require(path: Path, names: set[str], columns: tuple[str, ...]) -> None:
    missing = [name for name in columns if name not in names]
    if missing:
        raise ProfileError(f"{path.name} has no column {', '.join(missing)}")


def _fields(path: Path, header: list[str], rows: Iterator[list[str]]) -> Iterator[Fields]:
    for line, row in enumerate(rows, 2):
        if len(row) != len(header):
            raise ProfileError(f"{path.name}: row {line} has {len(row)} fields, the header has "
                               f"{len(header)}")
        yield Fields(dict(zip(header, row, strict=True)), path, f"row {line}")


def _samples(path: Path, header: list[str], rows: Iterator[list[str]],
             recording: Recording) -> None:
    stochastic = "Wave_Issued_Instruction" in header
    if stochastic:
        _require(path, set(header), _STOCHASTIC)
    set_method(recording, path, Method.STOCHASTIC if stochastic else Method.HOST_TRAP)
    for row in _fields(path, header, rows):
        issued = row.flag("Wave_Issued_Instruction") if stochastic else None
        recording.samples[Sample(
            row.integer("Dispatch_Id"), row.text("Instruction"), issued=issued,
            reason=short_reason(row.text("Stall_Reason")) if issued is False else "")] += 1


def _counters(path: Path, header: list[str], rows: Iterator[list[str]],
              recording: Recording) -> None:
    for row in _fields(path, header, rows):
        dispatch = row.integer("Dispatch_Id")
        add_counter(recording, dispatch, row.text("Counter_Name"), row.number("Counter_Value"))
        if "Start_Timestamp" in header and "End_Timestamp" in header:
            add_launch(recording, path, _launch(path, row))


def _trace(path: Path, header: list[str], rows: Iterator[list[str]],
           recording: Recording) -> None:
    for row in _fields(path, header, rows):
        add_launch(recording, path, _launch(path, row))


def _launch(path: Path, row: Fields) -> Launch:
    start, end = row.integer("Start_Timestamp"), row.integer("End_Timestamp")
    if end < start:
        raise ProfileError(f"{path.name}: a dispatch ends before it starts")
    name = row.text("Kernel_Name").removesuffix(DESCRIPTOR_SUFFIX)
    return Launch(row.integer("Dispatch_Id"), frozenset({name}), end - start)


def _agents(path: Path, header: list[str], rows: Iterator[list[str]],
            recording: Recording) -> None:
    for row in _fields(path, header, rows):
        if row.text("Agent_Type") == "GPU":
            product = row.text("Product_Name") if "Product_Name" in header else ""
            recording.agents.append(Agent(
                product or row.text("Name"), row.integer("Num_Xcc", 0, 1 << 10),
                row.integer("Max_Engine_Clk_Fcompute", 0, 1 << 20)))
