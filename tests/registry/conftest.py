"""A registry, real code objects, and records to put into it."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from importlib.metadata import distribution
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from asmevo.codeobject.assembly import Edit
from asmevo.codeobject.container import CodeObject
from asmevo.device.device import Timing, TimingSource
from asmevo.dispatch.dispatch import Dispatch, ElementType, Pointer, Region, Role
from asmevo.gates.verdict import Gate, Outcome, Verdict
from asmevo.registry.judgement import Judgement
from asmevo.registry.records import CandidateRecord, CandidateStatus, ReplacementRecord
from asmevo.registry.registry import Registry

if TYPE_CHECKING:
    from tests.registry.populated import Populated
    from tests.registry.postgresql import Server

STRICT = Judgement(
    cosine=0.9999, max_abs=1e-3, repeats=3, precision_slack=0.05, sanitize=True, extra_ops=(),
    epsilon=0.002, k=0.85, s_floor=1.0, dispatch_floor=0.98, replaced=(), oracle="declared",
    dispatches=8, held_out=2, families=("normal", "wide"), operation=None)
ALL_PASS = (Gate.G0, Gate.G1, Gate.G2, Gate.G2, Gate.G2, Gate.G3, Gate.G4)


@pytest.fixture(autouse=True)
def no_trust_list(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Whom the user who runs the tests trusts is no business of theirs."""
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "no-configuration"))
    for name in ("ASMEVO_TRUSTED_KEYS", "ASMEVO_SIGNING_KEY"):
        monkeypatch.delenv(name, raising=False)


@pytest.fixture(scope="session")
def original() -> CodeObject:
    """AITER's layer norm, as its wheel ships it."""
    aiter = distribution("amd-aiter")
    path = aiter.locate_file("aiter_meta/hsa/gfx942/layer_norm.co")
    return CodeObject.parse(Path(str(path)).read_bytes())


def variant(data: bytes, number: int = 1) -> bytes:
    """Another valid object of the same interface: the nop behind the end of its code differs."""
    text = CodeObject.parse(data).section(".text")
    changed = bytearray(data)
    end = text.offset + text.size
    changed[end - 4:end] = (0xBF800000 | number).to_bytes(4, "little")  # s_nop encodings
    return bytes(changed)


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "sqlite: of a module with BACKENDS, but for SQLite alone")


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Tests of a module with ``BACKENDS`` that use the registry run with each of them."""
    backends = getattr(metafunc.module, "BACKENDS", None)
    if (backends is not None and "backend" in metafunc.fixturenames
            and metafunc.definition.get_closest_marker("sqlite") is None):
        metafunc.parametrize("backend", backends, indirect=True)


@pytest.fixture
def backend(request: pytest.FixtureRequest) -> str:
    """The kind of database that the test's registry uses."""
    return str(getattr(request, "param", "sqlite"))


@pytest.fixture(scope="session")
def postgresql() -> Iterator[Server]:
    """A PostgreSQL server; a test that needs one is skipped where there is none."""
    from tests.registry.postgresql import running_server

    with running_server() as server:
        yield server


@pytest.fixture
def registry(tmp_path: Path, backend: str, request: pytest.FixtureRequest) -> Iterator[Registry]:
    url = None
    if backend == "postgresql":
        server: Server = request.getfixturevalue("postgresql")
        url = server.url(server.clean_database())
    registry = Registry(tmp_path / "registry", url, busy_timeout_s=5)
    yield registry
    registry.close()


def make_dispatch(kernel: str, *, name: str = "m4", held_out: bool = False,
                  fill: int = 1) -> Dispatch:
    regions = (
        Region("x", 0x10000, bytes([fill]) * 4096, Role.INPUT, ElementType.BF16),
        Region("y", 0x20000, bytes(range(256)) * 4, Role.OUTPUT, ElementType.F32, guard=512),
    )
    kernarg = (0x10000).to_bytes(8, "little") + (0x20000).to_bytes(8, "little") + b"\xff" * 5
    return Dispatch(name, kernel, kernarg, (4, 1, 2), (256, 1, 1), regions,
                    (Pointer(0, 0), Pointer(8, 1), Pointer(64, 1, holder=0)), dynamic_lds=1024,
                    held_out=held_out)


@dataclass
class Scene:
    """A registry with an original, a dispatch and a run in it."""

    registry: Registry
    original: CodeObject
    kernel: str
    dispatch: Dispatch
    run_id: str

    def variant(self, number: int) -> CodeObject:
        """An object that differs from the original in the last instruction's bytes only."""
        return CodeObject.parse(variant(self.original.data, number))

    def other_dispatch(self, **labels: Any) -> Dispatch:
        """A dispatch of the same kernel; equal to the stored one without ``labels``."""
        return make_dispatch(self.kernel, **labels)

    def candidate(self, name: str, *, gates: tuple[Gate, ...] = ALL_PASS,
                  outcome: Outcome = Outcome.PASS, parent: str | None = None,
                  source: TimingSource = TimingSource.MEASURED,
                  status: CandidateStatus = CandidateStatus.VERIFIED) -> CandidateRecord:
        """A candidate whose last verdict has ``outcome`` and whose others are passes."""
        verdicts = [Verdict(g, Outcome.PASS, "ok", "fine", {"cosine": 1.0}) for g in gates]
        if outcome is not Outcome.PASS:
            verdicts[-1] = Verdict(gates[-1], outcome, "mismatch", "output y differs", {"at": [3]})
        timing = Timing(self.dispatch.sha256, (10.5, 10.25), source, f"device-{source}", 3)
        return CandidateRecord(
            id=name, run_id=self.run_id, original_sha256=self.original.sha256, kernel=self.kernel,
            edits=(Edit(self.kernel, 3, 5, ("s_nop 0", "s_nop 1"), "shorter wait"),),
            rule="nop-trim", direction="latency-hiding", rationale="fewer wait states",
            status=status, parent_id=parent, worker=2, verdicts=tuple(verdicts),
            timings=(timing,))

    def commit(self, name: str, *, number: int, speedup: float = 1.25,
               source: TimingSource = TimingSource.MEASURED,
               judged: Judgement | None = STRICT) -> ReplacementRecord:
        """Record a fully verified candidate and commit it."""
        self.registry.record_candidate(self.candidate(name, source=source),
                                       assembly=f"; {name}\n", built=self.variant(number))
        return self.registry.commit_replacement(name, speedup, judged)


@pytest.fixture(scope="session")
def pristine(tmp_path_factory: pytest.TempPathFactory, original: CodeObject) -> Populated:
    """A registry with something of everything in it, to be copied."""
    from tests.registry.populated import populate

    folder = tmp_path_factory.mktemp("pristine")
    made = populate(folder / "registry", original, folder / "key")
    made.registry.close()
    return made


@pytest.fixture
def scene(registry: Registry, original: CodeObject) -> Scene:
    kernel = original.kernels[0].symbol
    dispatch = make_dispatch(kernel)
    registry.record_original(original, "amd-aiter")
    registry.record_dispatches([dispatch])
    run_id = registry.start_run(task="optimize", config="search: {seed: 1}\n", seed=1,
                                toolchain={"assembler": "22.1"}, device="device-measured",
                                device_source="measured")
    return Scene(registry, original, kernel, dispatch, run_id)


@contextmanager
def unprivileged() -> Iterator[None]:
    """Drop root's right to ignore file permissions, which would hide every failure."""
    if os.geteuid() != 0:
        yield
        return
    os.seteuid(65534)
    try:
        yield
    finally:
        os.seteuid(0)


@pytest.fixture
def as_user() -> Callable[[], AbstractContextManager[None]]:
    return unprivileged


@pytest.fixture
def open_path() -> Iterator[Path]:
    """A folder that an unprivileged user can reach, unlike pytest's own."""
    with tempfile.TemporaryDirectory(prefix="asmevo-test-") as folder:
        Path(folder).chmod(0o777)
        yield Path(folder)
