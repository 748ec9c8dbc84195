"""The JSON results of ``rocprofv3`` (documentation, "JSON output schema"; ``generateJSON.cpp``)."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, NoReturn

from asmevo.profile.errors import ProfileError
from asmevo.profile.rocprof.csv_files import add_counter, add_launch, set_method
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

# Python's objects of a document take some ten times its length.
_LONGEST_FILE = 256 << 20
_ROOT = "rocprofiler-sdk-tool"
_GPU = 2
# As the code object has it, and as CSV files show it, depending on options.
_NAMES = ("kernel_name", "formatted_kernel_name", "demangled_kernel_name", "truncated_kernel_name")
_SAMPLES = {"pc_sample_host_trap": Method.HOST_TRAP, "pc_sample_stochastic": Method.STOCHASTIC}


def read_json(path: Path, recording: Recording) -> None:
    """Add a file to a recording. Raises ProfileError."""
    tool = _tool(path)
    kernels = _kernels(tool, recording)
    _agents(tool, recording)
    if tool.has("buffer_records"):
        records = tool.inner("buffer_records")
        for launch in records.entries("kernel_dispatch"):
            start, end = launch.integer("start_timestamp"), launch.integer("end_timestamp")
            if end < start:
                raise ProfileError(f"{path.name}: a dispatch ends before it starts")
            info = launch.inner("dispatch_info")
            names = kernels.get(info.integer("kernel_id"), frozenset())
            add_launch(recording, path, Launch(info.integer("dispatch_id"), names, end - start))
        for name, method in _SAMPLES.items():
            _samples(path, tool, records, name, method, recording)
    if tool.has("callback_records"):
        _counters(path, tool, recording)


def _tool(path: Path) -> Fields:
    check_file(path, _LONGEST_FILE)
    try:
        document = json.loads(path.read_bytes(), parse_constant=_no_constant)
    except OSError as error:
        raise ProfileError(f"{path.name} cannot be read: {error}") from None
    except (ValueError, RecursionError) as error:
        raise ProfileError(f"{path.name} is not JSON: {str(error)[:200]}") from None
    processes: Any = Fields(document, path, "the document").items(_ROOT) if not isinstance(
        document, dict) or isinstance(document.get(_ROOT), list) else [document.get(_ROOT)]
    if len(processes) != 1 or processes[0] is None:
        raise ProfileError(f"{path.name} must hold '{_ROOT}' of one process, not "
                           f"{len([p for p in processes if p is not None])}")
    return Fields(processes[0], path, _ROOT)


def _no_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is not a number")


def _kernels(tool: Fields, recording: Recording) -> dict[int, frozenset[str]]:
    """The names of each kernel, by id."""
    found = {}
    for symbol in tool.entries("kernel_symbols"):
        names = frozenset(symbol.text(key).removesuffix(DESCRIPTOR_SUFFIX)
                          for key in _NAMES if symbol.has(key))
        found[symbol.integer("kernel_id")] = names
        recording.kernels.setdefault(symbol.integer("code_object_id"), set()).update(names)
    return found


def _agents(tool: Fields, recording: Recording) -> None:
    for agent in tool.entries("agents"):
        if agent.integer("type") == _GPU:
            name = next((agent.text(key) for key in ("product_name", "name") if agent.has(key)), "")
            recording.agents.append(Agent(
                name, agent.integer("num_xcc", 0, 1 << 10) if agent.has("num_xcc") else 0,
                agent.integer("max_engine_clk_fcompute", 0, 1 << 20)
                if agent.has("max_engine_clk_fcompute") else 0))


def _samples(path: Path, tool: Fields, records: Fields, name: str, method: Method,
             recording: Recording) -> None:
    samples = records.entries(name)
    if not samples:
        return
    set_method(recording, path, method)
    texts = tool.inner("strings").items("pc_sample_instructions")
    for sample in samples:
        record = sample.inner("record")
        pc = record.inner("pc")
        number = sample.integer("inst_index", -1, len(texts) - 1)
        text = texts[number] if number >= 0 else ""
        if not isinstance(text, str):
            raise ProfileError(f"{path.name}: pc_sample_instructions[{number}] is not a text")
        issued, reason = None, ""
        if method is Method.STOCHASTIC:
            issued = record.flag("wave_issued")
            if not issued:
                reason = short_reason(record.inner("snapshot").text("stall_reason"))
        recording.samples[Sample(
            record.integer("dispatch_id"), text, pc.integer("code_object_offset"),
            pc.integer("code_object_id"), issued, reason)] += 1


def _counters(path: Path, tool: Fields, recording: Recording) -> None:
    names = {counter.inner("id").integer("handle"): counter.text("name")
             for counter in tool.entries("counters")}
    for collection in tool.inner("callback_records").entries("counter_collection"):
        dispatch = collection.inner("dispatch_data").inner("dispatch_info").integer("dispatch_id")
        for record in collection.entries("records"):
            handle = record.inner("counter_id").integer("handle")
            if handle not in names:
                raise ProfileError(f"{path.name}: counter {handle} has no name")
            add_counter(recording, dispatch, names[handle], record.number("value"))
