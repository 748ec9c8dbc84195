"""Whether descriptor and metadata declare what the code takes."""

from __future__ import annotations

from collections.abc import Iterator

from asmevo.codeobject.container import CodeObject
from asmevo.codeobject.disassemble import program
from asmevo.codeobject.errors import RebuildError
from asmevo.codeobject.requirements import check_segments, code_use
from asmevo.codeobject.resources import counts
from asmevo.isa.program import Program
from asmevo.isa.resources import register_use


def resource_findings(
    original: CodeObject, candidate: CodeObject, symbol: str, code: Program
) -> Iterator[tuple[str, str]]:
    """A code and a sentence for each register count or segment size that is too small.

    ``resources`` for the descriptor, ``metadata`` for the note, ``segments`` for LDS and scratch.
    Whatever the original understates as well is its own business.
    """
    kernel, before = candidate.kernel(symbol), original.kernel(symbol)
    descriptor = kernel.descriptor
    vgprs, agprs, sgprs = register_use(code)
    accum_offset = descriptor.accum_offset
    needed = max(vgprs, accum_offset + agprs if agprs else 0)
    if needed > descriptor.next_free_vgpr:
        yield "resources", (
            f"the code uses {needed} vector registers, the descriptor allocates "
            f"{descriptor.next_free_vgpr}"
        )
    own_sgprs = register_use(program(original, symbol))[2]
    if sgprs > descriptor.next_free_sgpr and not (
            sgprs <= own_sgprs and descriptor.next_free_sgpr >= before.descriptor.next_free_sgpr):
        yield "resources", (
            f"the code uses {sgprs} scalar registers, the descriptor allocates "
            f"{descriptor.next_free_sgpr}"
        )
    use, used_before = code_use(candidate, kernel), code_use(original, before)
    stated = counts(use.registers, candidate.target, accum_offset)
    for key, count in ((".vgpr_count", stated.vgprs), (".agpr_count", stated.agprs),
                       (".sgpr_count", stated.sgprs)):
        value, own = kernel.metadata.get(key), before.metadata.get(key)
        if value != own and not (isinstance(value, int) and value >= count):
            yield "metadata", f"the code uses {count} registers, {key} is {value}"
        elif value == own and isinstance(value, int) and count > value and (
                not use.registers.within(used_before.registers)):
            yield "metadata", f"the code uses {count} registers, {key} is still {value}"
    try:
        check_segments(descriptor, used_before.segments, use.segments)
    except RebuildError as error:
        yield "segments", str(error)
