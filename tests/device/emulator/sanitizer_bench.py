"""Small kernels under the sanitizer."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import asmevo_core as core
import numpy as np

from asmevo.device.device import DeviceFault
from asmevo.device.emulator.checked import check_records, hazard_pairs
from asmevo.device.emulator.lower import lower
from asmevo.device.emulator.sanitizer import Kind, Report, SanitizerResult, result_of
from asmevo.dispatch.dispatch import Dispatch, ElementType, Region, Role
from tests.device.emulator.conftest import assemble

VGPRS, AGPRS = 256, 256
WORDS = 1024
_KEEP_DENORMALS = 0xF0


@dataclass(slots=True)
class Kernel:
    """A kernel of which the launch defines s[0:1] (input), s[2:3] (output), s[4:5] (an inout
    region), s6 (workgroup id) and v0 (work item). v1 is set to 4 * v0 first."""

    waves: int = 1
    groups: int = 1
    lds: int = 512
    guard: int = 256
    resident: int = 1

    def check(self, body: Sequence[str]) -> SanitizerResult:
        """Run ``body`` and the end of the program."""
        program = assemble(["v_lshlrev_b32_e32 v1, 2, v0", *body, "s_endpgm"])
        rng = np.random.default_rng(3)
        regions = tuple(
            Region(name, 0x7E00_0000_0000 + (i << 32), rng.bytes(4 * WORDS), role, ElementType.U32,
                   self.guard)
            for i, (name, role) in enumerate(
                (("in", Role.INPUT), ("out", Role.OUTPUT), ("inout", Role.INOUT))))
        buffers = [np.frombuffer(bytearray(r.mapped), np.uint8) for r in regions]
        memory = core.Memory([(r.name, r.base, b, r.role.written)
                              for r, b in zip(regions, buffers, strict=True)])
        sgprs = [part for r in regions for part in (r.address & 0xFFFFFFFF, r.address >> 32)]
        lowered = core.Program(lower(program), vgprs=VGPRS, agprs=AGPRS, mode=_KEEP_DENORMALS)
        pairs = hazard_pairs(program)
        sanitizer = core.Sanitizer(
            lowered, check_records(program),
            hazards=[(v.producer, v.consumer, v.needed) for v in pairs],
            regions=[(r.base, len(r.data) + 2 * r.guard, r.address, len(r.data), r.role.written,
                      r.role is Role.OUTPUT, True) for r in regions], lds_bytes=self.lds)
        dispatch = Dispatch("test", "test", b"", (self.groups, 1, 1), (64 * self.waves, 1, 1),
                            regions, ())
        fault = None
        try:
            core.launch(
                lowered, memory, np.arange(self.groups, dtype=np.uint32), grid=dispatch.grid,
                workgroup=dispatch.workgroup, user_sgprs=sgprs, group_id_sgprs=(6, -1, -1),
                work_item_dimensions=1, lds_bytes=self.lds, poison=1, instruction_budget=100_000,
                sanitizer=sanitizer, resident=self.resident)
        except core.FaultError as error:
            fault = DeviceFault(str(error.args[1]), kind=error.args[0])
        return result_of(program, dispatch, sanitizer, pairs, fault, (), 0)

    def reports(self, body: Sequence[str], *kinds: Kind) -> list[Report]:
        """The reports, all of which must be of ``kinds``."""
        found = list(self.check(body).reports)
        assert {r.kind for r in found} <= set(kinds), found
        return found

    def only(self, body: Sequence[str], kind: Kind) -> Report:
        (report,) = self.reports(body, kind)
        return report

    def clean(self, body: Sequence[str]) -> None:
        found = self.check(body)
        assert not found.reports, found
        assert found.fault is None, found
