"""What a code object contains, without changing anything."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from asmevo.bundle.container import SEPARATOR
from asmevo.bundle.listing import list_objects
from asmevo.bundle.open import is_code_object, may_contain
from asmevo.codeobject.container import CodeObject, Kernel
from asmevo.codeobject.disassemble import program, rows
from asmevo.codeobject.errors import CodeObjectError
from asmevo.codeobject.resource_change import Resources
from asmevo.codeobject.resources import Allocation
from asmevo.codeobject.source import LocalFile
from asmevo.errors import AsmEvoError
from asmevo.isa.cfg import Cfg
from asmevo.isa.parse import parse
from asmevo.report.result import Result, Status
from asmevo.task.output import write_output
from asmevo.task.session import Session
from asmevo.task.source import named

_UNKNOWN = "unknown"


@dataclass(frozen=True)
class Inspect:
    """Kernels with their arguments, resources, occupancy, instruction mix and loops.

    ``output`` gets a copy of the object, which takes a member out of its container.
    """

    def run(self, session: Session) -> Result:
        started = time.monotonic()
        source = named(session)
        content = source.read()
        if isinstance(source, LocalFile) and not is_code_object(content) and may_contain(content):
            return self._container(session, source, started)
        code_object = CodeObject.parse(content)
        if session.config.output is not None:
            write_output(session.config.output, content, [session.config.source])
        kernels = code_object.kernels
        return Result(
            task="inspect",
            status=Status.INSPECTED,
            symbol=kernels[0].symbol if len(kernels) == 1 else None,
            original_sha256=code_object.sha256,
            folder=str(session.folder),
            details={
                "source": source.describe(),
                "target": code_object.target.processor,
                "version": code_object.version,
                "kernels": [kernel_facts(code_object, kernel) for kernel in kernels],
                "members": [],
            },
            wall_seconds=time.monotonic() - started,
        )

    def _container(self, session: Session, source: LocalFile, started: float) -> Result:
        """The code objects in a fat binary, library, archive or wheel."""
        members = [
            {"name": _member_name(source.path, listed.name), "target": listed.target,
             "bytes": listed.size, "kernels": list(listed.kernels), "refused": listed.refused}
            for listed in list_objects(Path(source.path).expanduser())
        ]
        if not members:
            raise CodeObjectError(
                f"'{source.describe()}' is neither a code object nor contains one")
        return Result(
            task="inspect",
            status=Status.INSPECTED,
            folder=str(session.folder),
            details={"source": source.describe(), "target": None, "version": None, "kernels": [],
                     "members": members},
            wall_seconds=time.monotonic() - started,
        )


def _member_name(path: str, found: str) -> str:
    """The name by which ``source=`` takes a member; files in a wheel are named without it."""
    own = Path(path).name
    inside = found[len(own):] if found.startswith(own + SEPARATOR) else SEPARATOR + found
    return path + inside


def resource_facts(kernel: Kernel) -> dict[str, object]:
    """Allocated registers of a wave, LDS of a workgroup and scratch of a work-item in bytes."""
    allocation, descriptor = Allocation.of(kernel.descriptor), kernel.descriptor
    return {
        "vgprs": allocation.vgprs,
        "accum_offset": allocation.accum_offset,
        "sgprs": allocation.sgprs,
        "lds_bytes": descriptor.group_segment_fixed_size,
        "scratch_bytes": descriptor.private_segment_fixed_size,
    }


def occupancy_facts(code_object: CodeObject, kernel: Kernel) -> dict[str, Any]:
    """Occupancy with workgroups of the size that the metadata requires, or else the largest that it
    allows, and no LDS beyond what the descriptor declares. Where it cannot be told, ``unknown``
    says why.
    """
    try:
        resources = Resources.of(kernel, code_object.target)
    except CodeObjectError as error:
        return {"workgroup_size": None, "waves_per_simd": None, "workgroups_per_cu": None,
                "limited_by": None, "unknown": str(error)}
    found = resources.occupancy
    return {"workgroup_size": resources.workgroup_size, "waves_per_simd": found.waves_per_simd,
            "workgroups_per_cu": found.workgroups_per_cu,
            "limited_by": ", ".join(found.limited_by), "unknown": None}


def kernel_facts(code_object: CodeObject, kernel: Kernel) -> dict[str, Any]:
    """Everything that is shown of one kernel."""
    listing = rows(code_object.code(kernel), code_object.target)
    mnemonics = Counter(text.partition(" ")[0] for _, _, text in listing)
    loops, unknown = _loops(code_object, kernel)
    return {
        "symbol": kernel.symbol,
        "code_bytes": kernel.size,
        "instructions": len(listing),
        "arguments": [asdict(argument) for argument in kernel.arguments],
        "resources": resource_facts(kernel),
        "launch": _launch(kernel),
        "occupancy": occupancy_facts(code_object, kernel),
        "units": _by_unit(text for _, _, text in listing),
        "mnemonics": dict(mnemonics.most_common()),
        "loops": loops,
        "loops_unknown": unknown,
    }


def _launch(kernel: Kernel) -> dict[str, object]:
    metadata = kernel.metadata
    return {
        "kernarg_bytes": kernel.kernarg_segment_size,
        "kernarg_preload_dwords": kernel.descriptor.kernarg_preload_length,
        "wavefront_size": metadata.get(".wavefront_size"),
        "max_workgroup_size": metadata.get(".max_flat_workgroup_size"),
        "required_workgroup_size": metadata.get(".reqd_workgroup_size"),
    }


def _by_unit(texts: Iterable[str]) -> dict[str, int]:
    counts: Counter[str] = Counter()
    for text, count in Counter(texts).items():
        try:
            counts[parse(text).unit.value] += count
        except AsmEvoError:
            counts[_UNKNOWN] += count
    return dict(counts.most_common())


def _loops(code_object: CodeObject,
           kernel: Kernel) -> tuple[list[dict[str, Any]] | None, str | None]:
    """Loops, outermost first, or why they are not known."""
    try:
        decoded = program(code_object, kernel.symbol)
        graph = Cfg.of(decoded)
    except AsmEvoError as error:
        return None, str(error)
    loops = graph.loops()
    found = []
    for loop in loops:
        start = graph.blocks[loop.header].start
        inside = [index for number in loop.blocks
                  for index in range(graph.blocks[number].start, graph.blocks[number].end)]
        units = Counter(decoded.instructions[index].unit.value for index in inside)
        found.append({
            "label": decoded.labels.get(start),
            "offset": decoded.offsets[start],
            "depth": sum(loop.header in other.blocks for other in loops),
            "blocks": len(loop.blocks),
            "instructions": len(inside),
            "units": dict(units.most_common()),
        })
    return found, None
