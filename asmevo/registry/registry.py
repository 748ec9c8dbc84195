"""The artifact registry: every write is one transaction, every blob is verified when read."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Unpack

from sqlmodel import Session, col

from asmevo.registry.blobs.fsspec_store import blobs_at
from asmevo.registry.blobs.store import Blobs, BlobStore, StagedBlobs
from asmevo.registry.database.backend import backend
from asmevo.registry.database.database import Database
from asmevo.registry.database.models import (
    CandidateRow,
    CodeObjectRow,
    TimingRow,
    now,
)
from asmevo.registry.errors import RegistryError
from asmevo.registry.records import (
    CandidateRecord,
    CaptureReason,
    CaptureRecord,
    ObjectRecord,
    RecoveredRecord,
    ReplacementRecord,
    RunRecord,
    RunStatus,
    Source,
)
from asmevo.registry.rows.objects import (
    add_object,
    add_recovered,
    object_record,
    object_records,
    recovered_records,
)
from asmevo.registry.rows.runs import (
    new_run,
    refuse_if_committed,
    run_record,
    run_records,
    run_row,
)
from asmevo.registry.signing.issuer import Issuer

if TYPE_CHECKING:
    from asmevo.codeobject.container import CodeObject
    from asmevo.device.device import Timing, TimingSource
    from asmevo.dispatch.captured.capture import Capture
    from asmevo.dispatch.dispatch import Dispatch
    from asmevo.gates.verdict import JsonValue, Verdict
    from asmevo.registry.catalog.catalog import Catalog
    from asmevo.registry.catalog.statistics import Statistics
    from asmevo.registry.judgement import Judgement
    from asmevo.registry.replacement.listing import Identities
    from asmevo.registry.retention.retention import Collected, Retention
    from asmevo.registry.signing.keys import SigningKey


class Registry:
    """Originals, recovered text, dispatches, runs, candidates with their evidence, replacements.

    ``path`` is the registry's folder: blobs under ``blobs/`` and, unless ``url`` names another
    database (``sqlite:///file``, ``postgresql+psycopg://user@host/database``), the SQLite file
    ``asmevo.db``. ``blobs_url`` puts the blobs elsewhere: a folder, or any URL that `fsspec` knows
    (``s3://bucket/prefix``). Nothing is opened before the first call; reading never creates
    anything, writing creates what is missing. A writer waits at most ``busy_timeout_s`` seconds for
    another process's transaction. ``signing_key`` is the file of an Ed25519 key that signs what is
    committed, ``max_capture_bytes`` bounds the memory of all captures together; counterexamples are
    kept in any case. Instances can be pickled, and used from several threads and processes.

    Every method raises `RegistryError` when the registry cannot be used, and leaves the database
    as it was. Blobs are written before the transaction that refers to them, so one that fails may
    leave unreferenced blobs behind, never a reference without its blob.
    """

    def __init__(self, path: str | Path, url: str | None = None, blobs_url: str | None = None, *,
                 busy_timeout_s: float = 10.0, signing_key: str | Path | None = None,
                 max_capture_bytes: int | None = None) -> None:
        self.path = Path(path).absolute()
        if signing_key is not None:
            signing_key = str(signing_key)
        self._arguments = (str(self.path), url, blobs_url, busy_timeout_s, signing_key,
                           max_capture_bytes)
        self._database = Database(backend(self.path, url, busy_timeout_s=busy_timeout_s))
        self._blobs: Blobs = (
            BlobStore(self.path) if blobs_url is None else blobs_at(blobs_url))
        self._max_capture_bytes = max_capture_bytes
        self._issuer = Issuer(self._blobs, signing_key)

    def __reduce__(self) -> tuple[object, ...]:
        return _unpickled, self._arguments

    def check_writable(self) -> None:
        """Create the registry if it is missing and prove that it takes writes.

        To be called before any work starts: it tells of a read-only or full disk, a locked or
        corrupt database, a folder that is none and a signing key that is not to be had.
        """
        self._issuer.key()
        self._blobs.check_writable()
        self._database.check_writable()

    def close(self) -> None:
        """Release the database; the next call opens it again."""
        self._database.close()

    # -- for what looks at a registry as a whole -------------------------------------------------

    @property
    def blobs(self) -> Blobs:
        """The contents that the rows name."""
        return self._blobs

    @property
    def database(self) -> Database:
        """The rows."""
        return self._database

    @property
    def folders(self) -> tuple[Path, ...]:
        """The folders on this machine's disk that whoever writes to the registry can change."""
        local = Path(self._blobs.place) if isinstance(self._blobs, BlobStore) else None
        return tuple(folder for folder in (self._database.folder, local) if folder is not None)

    @property
    def catalog(self) -> Catalog:
        """What can be looked up in the database beside what a search needs."""
        from asmevo.registry.catalog.catalog import Catalog

        return Catalog(self._database)

    @contextmanager
    def _writing(self, staged: StagedBlobs, *, relaxed: bool = False) -> Iterator[Session]:
        """A transaction that may refer to the blobs that were put."""
        with self._database.write(relaxed=relaxed) as session:
            staged.confirm()
            yield session

    def statistics(self) -> Statistics:
        """The registry in numbers."""
        from asmevo.registry.catalog.statistics import statistics
        from asmevo.registry.catalog.storage import kinds, stored

        with self._database.read() as session:
            return statistics(session, stored(self._blobs, kinds(session, self._blobs)))

    # -- writing ---------------------------------------------------------------------------------

    def record_original(self, code_object: CodeObject, source: str) -> str:
        """Store a code object found at ``source``; returns its SHA-256. Idempotent."""
        blobs = StagedBlobs(self._blobs)
        blobs.put(code_object.data)
        with self._writing(blobs) as session:
            add_object(session, code_object, source)
        return code_object.sha256

    def record_recovered(self, code_object_sha256: str, assembly: str,
                         report: Mapping[str, JsonValue],
                         toolchain: Mapping[str, JsonValue]) -> str:
        """Store recovered text and its round-trip report; returns the text's SHA-256.

        The same text by the same toolchain is stored once.
        """
        blobs = StagedBlobs(self._blobs)
        assembly_sha256 = blobs.put(assembly.encode())
        with self._writing(blobs) as session:
            add_recovered(session, code_object_sha256, assembly_sha256, report, toolchain)
        return assembly_sha256

    def record_dispatches(self, dispatches: Sequence[Dispatch]) -> tuple[str, ...]:
        """Store dispatches; returns their SHA-256.

        The labels (name, held out) of a dispatch that is known already are updated.
        """
        from asmevo.registry.rows.dispatches import add_dispatches, dispatch_rows

        blobs = StagedBlobs(self._blobs)
        rows = dispatch_rows(dispatches, blobs)
        hashes = tuple(row.sha256 for row in rows)
        with self._writing(blobs) as session:
            add_dispatches(session, rows)
        return hashes

    def record_capture(self, capture: Capture, *, held_out: bool = False) -> str:
        """Store a capture of a recorded original; returns its identity. Idempotent.

        Raises `QuotaError` for one more than ``max_capture_bytes`` has room for.
        """
        from asmevo.registry.rows.captures import add_capture, capture_row, check_quota

        quota = self._max_capture_bytes
        if quota is not None and self._database.exists():
            with self._database.read() as session:  # before its memory takes any room
                check_quota(session, capture, quota)
        blobs = StagedBlobs(self._blobs)
        row = capture_row(capture, blobs, reason=CaptureReason.CAPTURED, held_out=held_out)
        with self._writing(blobs) as session:
            sha256 = row.sha256
            if quota is not None:
                check_quota(session, capture, quota)
            add_capture(session, row)
        return sha256

    def record_counterexample(self, capture: Capture, dispatch_sha256: str) -> str | None:
        """Keep the capture of a dispatch that exposed a wrong candidate; returns its identity.

        It is held out from then on. ``None`` when the kernel has as many as are kept, or as large.
        """
        from asmevo.registry.rows.captures import add_capture, capture_row, has_room, is_known

        blobs = StagedBlobs(self._blobs)
        row = capture_row(capture, blobs, reason=CaptureReason.COUNTEREXAMPLE, held_out=True,
                          dispatch_sha256=dispatch_sha256)
        sha256 = row.sha256
        with self._writing(blobs) as session:
            if not is_known(session, row) and not has_room(session, row):
                return None
            add_capture(session, row)
        return sha256

    def start_run(self, *, task: str, config: str, seed: int, toolchain: Mapping[str, JsonValue],
                  device: str, device_source: TimingSource | Source) -> str:
        """Record that a task starts; returns the id of the run.

        ``config`` is stored as a blob, which whoever gets an export of the registry can read:
        the passwords of URLs in it, such as the registry's own, are left out.
        """
        from asmevo.registry.names import without_secrets

        blobs = StagedBlobs(self._blobs)
        row = new_run(
            task=task, config_sha256=blobs.put(without_secrets(config).encode()), seed=seed,
            toolchain=toolchain, device=device, device_source=str(device_source))
        run_id = row.id
        with self._writing(blobs) as session:
            session.add(row)
        return run_id

    def finish_run(self, run_id: str, status: RunStatus) -> None:
        """Record how a run ended."""
        with self._database.write() as session:
            row = run_row(session, run_id)
            row.status, row.finished = status.value, now()

    def continue_run(self, run_id: str) -> None:
        """Record that a run which had ended, or was killed, goes on."""
        with self._database.write() as session:
            row = run_row(session, run_id)
            row.status, row.finished = RunStatus.RUNNING.value, None

    def record_baseline(self, run_id: str, original_sha256: str,
                        timings: Sequence[Timing]) -> None:
        """Record timings of the original, taken in a run.

        Here and in `record_candidate` a timing names its dispatch, which must be stored, by its
        SHA-256. Raises `RegistryError` once the run has committed something: the baseline is part
        of what was stated of it.
        """
        from asmevo.registry.rows.candidates import timing_row

        with self._database.write() as session:
            refuse_if_committed(session, run_id)
            session.add_all(timing_row(t, run_id, original_sha256=original_sha256)
                            for t in timings)

    def record_candidate(self, record: CandidateRecord, *, assembly: str | None = None,
                         built: CodeObject | None = None) -> CandidateRecord:
        """Record one attempt with all its verdicts and timings, in one transaction.

        ``assembly`` is the edited text and ``built`` the object made of it, as far as the attempt
        got. Run, original, parent and timed dispatches must be stored. Returns the record as
        stored, with hashes and time.
        """
        from asmevo.registry.rows.candidates import add_candidate, stored_candidate

        blobs = StagedBlobs(self._blobs)
        record = stored_candidate(record, blobs, assembly, built)
        with self._writing(blobs) as session:
            add_candidate(session, record, built)
        return record

    def record_search(self, run_id: str, events: Sequence[Mapping[str, JsonValue]], *,
                      candidate: CandidateRecord | None = None, assembly: str | None = None,
                      built: CodeObject | None = None, speedup: float | None = None,
                      judged: Judgement | None = None) -> None:
        """Record events of a search, and the candidate that they are about, in one transaction.

        Each event has at least ``number`` and ``kind``. ``speedup`` makes the candidate a
        replacement as well, ``judged`` so, as `commit_replacement` does. All of it is
        recorded, or nothing; it survives a killed process, and with a replacement a power failure.
        """
        from asmevo.registry.replacement.commit import commit
        from asmevo.registry.rows.candidates import add_candidate, stored_candidate
        from asmevo.registry.rows.searches import add_events

        blobs = StagedBlobs(self._blobs)
        if candidate is not None:
            candidate = stored_candidate(candidate, blobs, assembly, built)
        with self._writing(blobs, relaxed=speedup is None) as session:
            if candidate is not None:
                add_candidate(session, candidate, built)
                if speedup is not None:
                    session.flush()
                    commit(session, self._issuer, candidate.id, speedup, judged)
            add_events(session, run_id, events)

    def commit_replacement(self, candidate_id: str, speedup: float,
                           judged: Judgement | None = None) -> ReplacementRecord:
        """Make a recorded, verified candidate a replacement of its original; idempotent.

        Timing source and device are those of its recorded timings; ``judged`` are the thresholds
        and inputs that its verdicts come from, without which `pull` takes it for weak. Raises
        `RegistryError` when evidence is missing or ``speedup`` is not a positive number.
        """
        from asmevo.registry.replacement.commit import commit

        with self._database.write() as session:
            return commit(session, self._issuer, candidate_id, speedup, judged)

    def record_second_timing(self, candidate_id: str, speedup: float | None, verdict: Verdict, *,
                             confirmed: bool) -> None:
        """Record what a fresh process found of a committed candidate; a later one counts.

        It is withdrawn unless ``confirmed``. The replacement is stated and signed anew. Raises
        `RegistryError` for one that is not committed, or that its statement does not agree with.
        """
        from asmevo.registry.replacement.second_timings import time_again

        with self._database.write() as session:
            time_again(session, self._issuer, candidate_id, speedup, verdict, confirmed=confirmed)

    def sign(self, candidate_ids: Collection[str], key: SigningKey | None, *,
             state: bool = False) -> int:
        """Sign the statements of replacements, all or none; returns how many signatures are new.

        ``state`` also states those that have none, and does so without a key too. Raises
        `StatementError` where rows are not what a statement says.
        """
        with self._database.write() as session:
            return self._issuer.sign(session, candidate_ids, key, state=state)

    def collect(self, retention: Retention, *, apply: bool = False) -> Collected:
        """Find what need not be kept, and with ``apply`` remove it; see `retention`."""
        from asmevo.registry.retention.retention import collect

        return collect(self._database, self._blobs, self.path, retention, apply=apply)

    # -- reading ---------------------------------------------------------------------------------

    def code_object(self, sha256: str) -> ObjectRecord | None:
        """What is known of a code object."""
        with self._database.read() as session:
            row = session.get(CodeObjectRow, sha256)
            return None if row is None else object_record(row)

    def find_objects(self, prefix: str) -> tuple[ObjectRecord, ...]:
        """The code objects whose SHA-256 starts with ``prefix``."""
        with self._database.read() as session:
            return object_records(session, prefix)

    def load_object(self, sha256: str) -> bytes:
        """The bytes of a code object, verified against its hash."""
        return self._blobs.get(sha256)

    def load_text(self, sha256: str) -> str:
        """A stored assembly or configuration, verified against its hash."""
        try:
            return self._blobs.get(sha256).decode()
        except UnicodeDecodeError as error:
            raise RegistryError(f"blob {sha256} is not text") from error

    def recovered(self, code_object_sha256: str) -> tuple[RecoveredRecord, ...]:
        """The recovered versions of a code object, oldest first."""
        with self._database.read() as session:
            return recovered_records(session, code_object_sha256)

    def load_dispatch(self, sha256: str) -> Dispatch:
        """Rebuild a dispatch from its blobs; it has the hash it was stored under."""
        from asmevo.registry.rows.dispatches import stored_dispatch

        with self._database.read() as session:
            return stored_dispatch(session, sha256, self._blobs)

    def captures(self, original_sha256: str | None = None,
                 kernel: str | None = None) -> tuple[CaptureRecord, ...]:
        """Captures by original and kernel, oldest first; none where there is no registry yet."""
        from asmevo.registry.rows.captures import capture_records

        if not self._database.exists():
            return ()
        with self._database.read() as session:
            return capture_records(session, original_sha256, kernel)

    def load_capture(self, sha256: str) -> Capture:
        """A stored capture with its memory, verified."""
        from asmevo.registry.rows.captures import load_capture

        with self._database.read() as session:
            return load_capture(session, sha256, self._blobs)

    def run(self, run_id: str) -> RunRecord:
        """One run by its id."""
        with self._database.read() as session:
            return run_record(run_row(session, run_id))

    def runs(self, *, original_sha256: str | None = None) -> tuple[RunRecord, ...]:
        """All runs, or those with candidates of an original, newest first."""
        with self._database.read() as session:
            return run_records(session, original_sha256)

    def search_events(self, run_id: str) -> tuple[Mapping[str, JsonValue], ...]:
        """The events of a search, in order."""
        from asmevo.registry.rows.searches import event_records

        with self._database.read() as session:
            return event_records(session, run_id)

    def searches(self) -> tuple[tuple[RunRecord, Mapping[str, JsonValue]], ...]:
        """All runs that searched, newest first, each with its first event."""
        from asmevo.registry.rows.searches import first_events

        with self._database.read() as session:
            return tuple((run_record(row), data) for row, data in first_events(session))

    def baseline(self, run_id: str) -> tuple[Timing, ...]:
        """The timings of the original that a run took."""
        from asmevo.registry.rows.candidates import timing_records

        with self._database.read() as session:
            return timing_records(session, (col(TimingRow.run_id) == run_id)
                                  & col(TimingRow.original_sha256).is_not(None))

    def lineage(self, run_id: str) -> tuple[CandidateRecord, ...]:
        """The candidates of a run, oldest first, with their evidence."""
        from asmevo.registry.rows.candidates import candidate_records

        with self._database.read() as session:
            run_row(session, run_id)
            return candidate_records(session, col(CandidateRow.run_id) == run_id)

    def candidate(self, candidate_id: str) -> CandidateRecord:
        """One candidate with its evidence."""
        from asmevo.registry.rows.candidates import candidate_records

        with self._database.read() as session:
            found = candidate_records(session, col(CandidateRow.id) == candidate_id)
        if not found:
            raise RegistryError(f"the registry has no candidate '{candidate_id}'")
        return found[0]

    def replacements(self, **of: Unpack[Identities]) -> tuple[ReplacementRecord, ...]:
        """Replacements by original and kernel; of each pair the best first, measured ones ahead.

        Other filters and orders, a page at a time, are those of `Catalog.select`.
        """
        from asmevo.registry.replacement.listing import replacement_records

        with self._database.read() as session:
            return replacement_records(session, of)


def _unpickled(path: str, url: str | None, blobs_url: str | None, busy_timeout_s: float,
               signing_key: str | None, max_capture_bytes: int | None) -> Registry:
    return Registry(path, url, blobs_url, busy_timeout_s=busy_timeout_s, signing_key=signing_key,
                    max_capture_bytes=max_capture_bytes)
