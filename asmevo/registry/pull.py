"""Hand out a validated replacement, or say why not."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from asmevo.registry.errors import (
    BlobError,
    PullError,
    PullRefusal,
    RegistryError,
    cannot,
)
from asmevo.registry.records import ReplacementRecord

if TYPE_CHECKING:
    from asmevo.registry.records import CandidateRecord
    from asmevo.registry.registry import Registry


@dataclass(frozen=True, slots=True)
class Replacement:
    """The bytes of a drop-in code object, and what is known of it."""

    data: bytes
    record: ReplacementRecord


def pull(registry: Registry, *, original: str | Path, kernel: str | None = None,
         isa: str | None = None, allow_modelled: bool = False,
         allow_weaker: bool = False) -> Replacement:
    """The best validated replacement of an original.

    ``original`` is a SHA-256 or the path of the file itself. ``kernel`` is needed only if kernels
    of one object were improved separately; ``isa`` (``gfx942``) states where the result will run.
    A modelled speedup is handed out only with ``allow_modelled``, and only where nothing was
    measured; one that was judged by less than the default gates only with ``allow_weaker``. One
    that a second timing in a fresh process did not confirm is withdrawn and never handed out.
    Raises `PullError`; `RegistryError` when registry or file cannot be read.
    """
    sha256 = original_sha256(original)
    found = _allowed(registry.replacements(original_sha256=sha256, kernel=kernel),
                     sha256, kernel, allow_modelled, allow_weaker)
    best = found[0]
    _check_isa(registry, best, isa)
    _check_evidence(registry, best)
    data = _bytes(registry, best.object_sha256)
    if _elf_identity(data) != _elf_identity(_bytes(registry, sha256)):
        raise PullError(PullRefusal.ISA_MISMATCH,
                        f"replacement {best.object_sha256} differs from the original in the "
                        "machine, ABI or architecture flags of its ELF header")
    return Replacement(data, best)


def original_sha256(original: str | Path) -> str:
    """The SHA-256 that ``original`` is, or that the file of that path has."""
    text = str(original)
    if isinstance(original, str) and len(text) == 64 and not set(text.lower()) - _HEX:
        return text.lower()
    try:
        with Path(original).open("rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()
    except OSError as error:
        raise cannot("read original", Path(original), error) from error
    except ValueError as error:  # a NUL in the path
        raise RegistryError("the original is neither a SHA-256 nor a path") from error


_HEX = frozenset("0123456789abcdef")


def _allowed(found: tuple[ReplacementRecord, ...], sha256: str, kernel: str | None,
             allow_modelled: bool, allow_weaker: bool) -> list[ReplacementRecord]:
    if not found:
        of = f"kernel '{kernel}' of " if kernel is not None else ""
        raise PullError(PullRefusal.NONE, f"there is no replacement for {of}original {sha256}")
    kernels = sorted({r.kernel for r in found})
    if len(kernels) > 1:
        raise PullError(PullRefusal.AMBIGUOUS_KERNEL,
                        f"original {sha256} has replacements for several kernels, name one: "
                        f"{', '.join(kernels)}")
    withdrawn = [r for r in found if r.withdrawn]
    found = tuple(r for r in found if not r.withdrawn)
    if not found:
        again = withdrawn[0].speedup_again
        raise PullError(PullRefusal.WITHDRAWN,
                        f"every replacement of original {sha256} is withdrawn: timed again in a "
                        f"fresh process, {withdrawn[0].object_sha256} was not confirmed"
                        + ("" if again is None else f" ({again:.4f}x)"))
    weaker = found[0]
    found = tuple(r for r in found if allow_weaker or not r.weaknesses)
    if not found:
        raise PullError(PullRefusal.WEAKER_GATES,
                        f"every replacement of original {sha256} was judged by less than the "
                        f"default gates: of {weaker.object_sha256} "
                        f"{'; '.join(weaker.weaknesses)}; --allow-weaker (allow_weaker=True) "
                        "accepts that")
    measured = [r for r in found if r.timing_source == "measured"]
    if not measured and not allow_modelled:
        raise PullError(PullRefusal.MODELLED_ONLY,
                        f"the speedup of every replacement of original {sha256} is modelled, not "
                        "measured on hardware; --allow-modelled (allow_modelled=True) accepts that")
    return measured or list(found)


def _check_isa(registry: Registry, record: ReplacementRecord, isa: str | None) -> None:
    original = registry.code_object(record.original_sha256)
    built_for = record.isa if original is None else original.isa
    for wanted in (isa, built_for):
        if wanted is not None and wanted != record.isa:
            raise PullError(PullRefusal.ISA_MISMATCH,
                            f"replacement {record.object_sha256} is for {record.isa}, not "
                            f"{wanted}")


def _check_evidence(registry: Registry, record: ReplacementRecord) -> None:
    from asmevo.registry.evidence import missing_evidence, timing_source

    candidate = registry.candidate(record.candidate_id)
    missing = missing_evidence(candidate)
    if missing is None and not record.evidence_complete:
        missing = "it is marked incomplete"
    elif missing is None and record.timing_source == "measured" and (
            modelled := _modelled_by(registry, record, candidate)):
        missing = f"it is called measured, but {modelled}"
    elif missing is None and timing_source(candidate) != record.timing_source:
        missing = f"it is called {record.timing_source}, its timings are not"
    elif missing is None and (
            (candidate.original_sha256, candidate.kernel, candidate.object_sha256)
            != (record.original_sha256, record.kernel, record.object_sha256)):
        missing = "its candidate is of another object or kernel"
    if missing is not None:
        raise PullError(PullRefusal.EVIDENCE_INCOMPLETE,
                        f"the evidence for replacement {record.object_sha256} is incomplete: "
                        f"{missing}")


def _modelled_by(registry: Registry, record: ReplacementRecord,
                 candidate: CandidateRecord) -> str | None:
    """What shows that a speedup was not measured, as the rest of a sentence."""
    devices = {record.device, *(timing.device for timing in candidate.timings)}
    run = registry.run(candidate.run_id)
    for device in sorted({*devices, run.device}):
        if device.partition(":")[0] == "emulator":
            return f"its device '{device}' is an emulator"
    if run.device_source != "measured":
        return f"its run {run.id} was on '{run.device}', whose timings are modelled"
    if devices != {run.device}:
        return f"it names the device {', '.join(sorted(devices))}, its run '{run.device}'"
    return None


def _bytes(registry: Registry, sha256: str) -> bytes:
    try:
        return registry.load_object(sha256)
    except BlobError as error:
        raise PullError(PullRefusal.BLOB_CORRUPT, str(error)) from error


def _elf_identity(data: bytes) -> tuple[bytes, ...]:
    """e_ident up to the ABI version, e_type with e_machine, and e_flags of an ELF64 file.

    In ``e_flags`` AMDGPU states processor, xnack and sramecc (LLVM "User Guide for AMDGPU Backend",
    "Header"); offsets of Elf64_Ehdr are those of the System V gABI.
    """
    return data[:9], data[16:20], data[48:52]
