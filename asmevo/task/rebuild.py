"""A new code object from an edited text."""

from __future__ import annotations

import time
from dataclasses import dataclass
from pathlib import Path

from asmevo.bundle.member import Member
from asmevo.codeobject.assembly import Assembly, KernelBody
from asmevo.codeobject.container import CodeObject
from asmevo.codeobject.edited import Edited, read_edited
from asmevo.codeobject.errors import AssemblerError, RebuildError, SourceError
from asmevo.codeobject.patch import edits_between, patch
from asmevo.codeobject.rebuild import rebuild
from asmevo.codeobject.roundtrip import round_trip
from asmevo.codeobject.source import LocalFile
from asmevo.codeobject.toolchain import Toolchain
from asmevo.durable import write_atomically
from asmevo.report.result import Result, Status
from asmevo.task.inspect import occupancy_facts, resource_facts
from asmevo.task.output import check_output, write_output
from asmevo.task.session import ConfigError, RoundTripError, Session
from asmevo.task.source import original, stem


@dataclass(frozen=True)
class Rebuild:
    """Makes ``<name>.co`` of ``source``, the edited text of ``original``; ``output`` gets a copy.

    The interface is the original's or there is no new object. With ``allow_lower`` the register
    allocation may shrink. ``method`` ``patch`` writes the changed instructions into the original's
    bytes instead of assembling everything anew. ``container`` gets a copy of the fat binary that
    ``original`` is a member of, with the new object in its place.
    """

    allow_lower: bool = False
    method: str = "rebuild"
    container: str | None = None

    def __post_init__(self) -> None:
        if self.method not in ("rebuild", "patch"):
            raise ConfigError(f"task.method must be 'rebuild' or 'patch', not '{self.method}'")

    def run(self, session: Session) -> Result:
        started = time.monotonic()
        if not isinstance(session.config.source, str):
            raise ConfigError("task=rebuild needs source=<edited .s file>")
        edited = LocalFile(session.config.source)
        text = _decoded(edited)
        source = original(session)
        inputs = (session.config.source, session.config.original)
        if self.container is not None:
            if not isinstance(source, Member):
                raise ConfigError(
                    f"task.container needs an original inside a file, which "
                    f"'{source.describe()}' is not")
            check_output(self.container, inputs, key="task.container")
        before = CodeObject.parse(source.read())
        report = round_trip(before, session.toolchain)
        if not report.identical:
            raise RoundTripError(
                f"'{source.describe()}' does not survive its round trip (first difference at byte "
                f"{report.first_difference}), so it may not be edited")
        read = read_edited(text, report.assembly)
        if self.method == "patch":
            after = _patched(before, report.assembly, read, session.toolchain)
        else:
            after = _rebuilt(before, read, session.toolchain, allow_lower=self.allow_lower)
        name = stem(edited).removesuffix(".s")
        written = session.folder / f"{name}.co"
        write_atomically(written, after.data)
        output = session.config.output
        if output is not None:
            write_output(output, after.data, inputs)
        if isinstance(source, Member) and self.container is not None:
            source.replace(after.data, Path(self.container).expanduser())
        return Result(
            task="rebuild",
            status=Status.REBUILT,
            symbol=before.kernels[0].symbol if len(before.kernels) == 1 else None,
            original_sha256=before.sha256,
            replacement_sha256=after.sha256,
            folder=str(session.folder),
            wall_seconds=time.monotonic() - started,
            details={
                "source": edited.describe(),
                "original": source.describe(),
                "object": str(written),
                "output": output,
                "container": self.container,
                "changed": after.data != before.data,
                "kernels": [
                    {"symbol": old.symbol,
                     "before": _facts(before, old.symbol), "after": _facts(after, old.symbol)}
                    for old in before.kernels
                ],
            },
        )


def _decoded(source: LocalFile) -> str:
    try:
        return source.read().decode("utf-8")
    except UnicodeDecodeError as error:
        raise SourceError(f"'{source.describe()}' is not text: byte {error.start} is not UTF-8"
                          ) from None


def _rebuilt(before: CodeObject, edited: Edited, toolchain: Toolchain, *,
             allow_lower: bool) -> CodeObject:
    resized = sorted({*edited.lds_bytes, *edited.scratch_bytes})
    if len(resized) > 1:
        raise RebuildError(f"the sizes of '{resized[0]}' and '{resized[1]}' were changed, but one "
                           "rebuild edits one kernel")
    kernel = resized[0] if resized else None
    try:
        return rebuild(before, edited.assembly, toolchain, kernel=kernel, allow_lower=allow_lower,
                       lds_bytes=edited.lds_bytes.get(kernel or ""),
                       scratch_bytes=edited.scratch_bytes.get(kernel or ""))
    except AssemblerError as error:
        # The assembler counts the lines of the text that it got.
        number = edited.numbers[error.line - 1] if 0 < error.line <= len(edited.numbers) else 0
        where = f"line {number}: " if number else ""
        raise RebuildError(f"{where}{error.detail} in '{error.source.strip()}'") from error


def _patched(before: CodeObject, baseline: Assembly, edited: Edited,
             toolchain: Toolchain) -> CodeObject:
    if edited.lds_bytes or edited.scratch_bytes:
        raise RebuildError("a patch keeps the original's LDS and scratch sizes")
    changed = [
        (old, new)
        for old, new in zip(baseline.blocks, edited.assembly.blocks, strict=True)
        if isinstance(old, KernelBody) and isinstance(new, KernelBody) and old != new
    ]
    if not changed:
        return before
    old, new = changed[0]
    if len(changed) > 1:
        raise RebuildError(f"the edits touch '{old.symbol}' and '{changed[1][0].symbol}', but one "
                           "patch edits one kernel")
    if old.symbol not in {kernel.symbol for kernel in before.kernels}:
        raise RebuildError(f"the edits touch '{old.symbol}', which is not a kernel")
    return patch(before, old.symbol, edits_between(old, new), toolchain)


def _facts(code_object: CodeObject, symbol: str) -> dict[str, object]:
    kernel = code_object.kernel(symbol)
    occupancy = occupancy_facts(code_object, kernel)
    return {**resource_facts(kernel), "code_bytes": kernel.size,
            **{name: occupancy[name] for name in (
                "waves_per_simd", "workgroups_per_cu", "limited_by")}}
