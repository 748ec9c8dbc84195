"""The typed schema of the configuration, for Hydra's ConfigStore.

A YAML of a group that begins with ``defaults: [schema, _self_]`` is checked against the dataclass
here: an unknown key or a value of the wrong type is an error. A component of your own may leave the
schema out. Imports nothing of AsmEvo, so that ``--help`` stays fast.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from hydra.core.config_store import ConfigStore
from omegaconf import MISSING

# OmegaConf reads these annotations at run time: builtin types only, Any where classes differ.


@dataclass
class KernelConfig:
    _target_: str = "asmevo.dispatch.kernel.declare"
    _convert_: str = "all"
    name: str = MISSING
    source: Any = MISSING
    symbol: str | None = None
    choices: dict[str, Any] = field(default_factory=dict)
    launch: Any = None
    buffers: list[Any] = field(default_factory=list)
    scalars: list[Any] = field(default_factory=list)
    constants: dict[str, int] = field(default_factory=dict)
    shapes: list[dict[str, int]] = field(default_factory=list)
    held_out_shapes: list[dict[str, int]] = field(default_factory=list)
    operation: Any = None
    accuracy: Any = None


@dataclass
class OracleConfig:
    _target_: str = "asmevo.dispatch.declared.DeclaredOracle"
    _convert_: str = "all"
    families: list[str] = MISSING
    held_out_families: list[str] = MISSING
    extreme_families: list[str] = MISSING
    seed: int = MISSING
    guard: int = MISSING


@dataclass
class CapturedOracleConfig:
    _target_: str = "asmevo.dispatch.captured.oracle.CapturedOracle"
    _convert_: str = "all"
    path: Any = MISSING
    held_out: Any = field(default_factory=list)
    max_bytes: int = MISSING


@dataclass
class GatesConfig:
    _target_: str = "asmevo.gates.harness.from_settings"
    _convert_: str = "all"
    epsilon: float = MISSING
    k: float = MISSING
    s_floor: float = MISSING
    dispatch_floor: float = MISSING
    repeats: int = MISSING
    samples: int = MISSING
    warmup: int = MISSING
    cosine: float = MISSING
    max_abs: float = MISSING
    warmup_seconds: float = 0.5
    precision_slack: float = 0.05
    sanitize: bool = True
    isolate: bool = True
    candidate_seconds: float = 60.0
    candidate_memory_mib: int = 8192
    rebuild: str = "auto"
    extra_ops: list[str] = field(default_factory=list)
    assemble: Any = None
    static: Any = None
    equality: Any = None
    latency: Any = None
    commit: Any = None


@dataclass
class BudgetConfig:
    _target_: str = "asmevo.search.budget.Budget"
    attempts: int = MISSING
    seconds: float = MISSING
    tokens: int | None = None
    cost: float | None = None


@dataclass
class ComposingConfig:
    _target_: str = "asmevo.search.controller.Composing"
    parts: int = 16
    attempts: int = 24


@dataclass
class SupervisionConfig:
    _target_: str = "asmevo.search.supervision.Thresholds"
    no_progress: int = 60
    repeats: float = 0.8
    window: int = 40
    faults: int = 3
    hypothesis: int = 10
    redirects: int = 2
    levels: int = 2
    starts: int = 8
    most_faults: int = 20


@dataclass
class MemoryConfig:
    failures: int = 64
    insights: int = 24
    signature: int = 6


@dataclass
class RayConfig:
    address: str | None = None
    cpus: int | None = None


@dataclass
class SearchConfig:
    _target_: str = "asmevo.search.settings.Search"
    _convert_: str = "all"
    planner: Any = MISSING
    budget: BudgetConfig = field(default_factory=BudgetConfig)
    executor: str = MISSING
    workers: int = MISSING
    seed: int = MISSING
    resume: Any = False
    composing: ComposingConfig = field(default_factory=ComposingConfig)
    supervision: SupervisionConfig = field(default_factory=SupervisionConfig)
    memory: MemoryConfig = field(default_factory=MemoryConfig)
    patience: float = 600.0
    order: str = "counted"
    ray: RayConfig = field(default_factory=RayConfig)


@dataclass
class RegistryConfig:
    _target_: str = "asmevo.registry.registry.Registry"
    path: str = MISSING
    url: str | None = None
    busy_timeout_s: float = MISSING
    signing_key: str | None = None


@dataclass
class TaskConfig:
    _target_: str = MISSING


@dataclass
class RunConfig(TaskConfig):
    _convert_: str = "all"
    repeats: int = MISSING
    families: list[str] = MISSING
    sanitize: bool = MISSING


@dataclass
class CaptureConfig(TaskConfig):
    _convert_: str = "all"
    dispatches: Any = MISSING
    granularity: int = MISSING
    registered: bool = MISSING


@dataclass
class ProfileConfig(TaskConfig):
    _convert_: str = "all"
    shapes: Any = MISSING
    family: str = MISSING
    static: bool = MISSING
    samples: Any = None
    recorded_as: str | None = None
    skip_ambiguous: bool = MISSING
    events: int = MISSING
    trace: str | None = MISSING
    shown: int = MISSING


@dataclass
class RebuildConfig(TaskConfig):
    allow_lower: bool = MISSING
    method: str = MISSING
    container: str | None = None


@dataclass
class ValidateTimingConfig(TaskConfig):
    _convert_: str = "all"
    sections: list[str] = MISSING
    targets: dict[str, float] = MISSING
    parts: dict[str, Any] = field(default_factory=dict)


@dataclass
class ThreatsConfig(TaskConfig):
    _convert_: str = "all"
    rows: list[str] = MISSING
    kernels: list[str] = MISSING
    subjects: dict[str, Any] = field(default_factory=dict)


@dataclass
class CompareConfig(TaskConfig):
    _convert_: str = "all"
    groups: Any = None


@dataclass
class ExperimentConfig(TaskConfig):
    _convert_: str = "all"
    suites: dict[str, Any] = field(default_factory=dict)
    only: list[str] = field(default_factory=list)
    marker: str = MISSING
    slack_seconds: float = MISSING


@dataclass
class Config:
    """The whole configuration, one field for each group, plus what single tasks take."""

    task: Any = MISSING
    kernel: Any = MISSING
    device: Any = MISSING
    oracle: Any = MISSING
    gates: Any = MISSING
    profile: Any = MISSING
    proposer: Any = MISSING
    search: Any = MISSING
    registry: Any = MISSING
    toolchain: Any = MISSING
    counterexamples: bool = True
    candidate: str | None = None
    source: Any = None
    original: str | None = None
    output: str | None = None
    readme: str | None = None
    jobs: int | None = None
    run: str | None = None
    runs: Any = None


def register() -> None:
    """Put the schemas into Hydra's ConfigStore."""
    store = ConfigStore.instance()
    store.store(name="config_schema", node=Config)
    for group, schema in (
        ("kernel", KernelConfig),
        ("oracle", OracleConfig),
        ("gates", GatesConfig),
        ("search", SearchConfig),
        ("registry", RegistryConfig),
        ("task", TaskConfig),
    ):
        store.store(group=group, name="schema", node=schema)
    store.store(group="oracle", name="captured_schema", node=CapturedOracleConfig)
    store.store(group="task", name="capture_schema", node=CaptureConfig)
    store.store(group="task", name="compare_schema", node=CompareConfig)
    store.store(group="task", name="profile_schema", node=ProfileConfig)
    store.store(group="task", name="rebuild_schema", node=RebuildConfig)
    store.store(group="task", name="experiment_schema", node=ExperimentConfig)
    store.store(group="task", name="run_schema", node=RunConfig)
    store.store(group="task", name="threats_schema", node=ThreatsConfig)
    store.store(group="task", name="validate_timing_schema", node=ValidateTimingConfig)
