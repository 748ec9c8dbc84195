"""What one or several files of ``rocprofv3`` say, before it is put on a program."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from enum import StrEnum

# Of a kernel descriptor's symbol, behind the kernel's own name.
DESCRIPTOR_SUFFIX = ".kd"


class Method(StrEnum):
    """How program counters were sampled (rocprofiler-sdk documentation, "Using PC sampling")."""

    HOST_TRAP = "host-trap"
    STOCHASTIC = "stochastic"


@dataclass(frozen=True, slots=True)
class Sample:
    """Where a wave stood. Equal samples are counted, not kept.

    ``offset`` is the distance from where the code object ``code_object`` was loaded, ``None`` in
    CSV files, which have the instruction's ``text`` only; it is empty where the profiler could not
    decode the place. ``issued`` and ``reason`` (the profiler's name, without its prefix) are those
    of stochastic sampling.
    """

    dispatch: int
    text: str
    offset: int | None = None
    code_object: int | None = None
    issued: bool | None = None
    reason: str = ""


@dataclass(frozen=True, slots=True)
class Launch:
    """One dispatch, the names its kernel goes by, and how long it took."""

    dispatch: int
    kernels: frozenset[str]
    nanoseconds: int


@dataclass(frozen=True, slots=True)
class Agent:
    """A GPU; ``clock_mhz`` is its highest engine clock."""

    name: str
    xcds: int
    clock_mhz: int


@dataclass
class Recording:
    """The sum of the files. ``kernels`` are the names of kernels by code object."""

    method: Method | None = None
    samples: Counter[Sample] = field(default_factory=Counter)
    launches: dict[int, Launch] = field(default_factory=dict)
    counters: dict[int, dict[str, float]] = field(default_factory=dict)
    agents: list[Agent] = field(default_factory=list)
    kernels: dict[int, set[str]] = field(default_factory=dict)
