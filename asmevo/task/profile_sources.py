"""Where profiles come from: the device, the code alone, or files of rocprofv3."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from asmevo.codeobject.container import CodeObject
from asmevo.codeobject.disassemble import program, whole_program
from asmevo.codeobject.errors import CodeObjectError
from asmevo.codeobject.resource_change import Resources
from asmevo.device.device import DescribedDevice
from asmevo.dispatch.declared import DeclaredOracle
from asmevo.isa.program import Program
from asmevo.profile.errors import ProfileError
from asmevo.profile.machine import Machine
from asmevo.profile.occupancy_room import OccupancyRoom, occupancy_room
from asmevo.profile.profile import Profile
from asmevo.profile.rocprof.counter_roofline import counter_roofline, kernel_counters
from asmevo.profile.rocprof.measured import entry_address, measured_profile, read_recording
from asmevo.profile.rocprof.recording import Recording
from asmevo.profile.roofline import Roofline, roofline
from asmevo.profile.static_estimate import static_estimate
from asmevo.report.terminal import waiting
from asmevo.task.session import ConfigError, Session
from asmevo.task.shapes import selected


@dataclass(frozen=True)
class Version:
    """One code object to profile: the original, or what shall replace it."""

    name: str
    code_object: CodeObject


@dataclass(frozen=True)
class Profiled:
    """The profile of one dispatch of a version, with the program whose instructions it counts.

    ``roofline`` and ``room`` are ``None`` where nothing is known of them.
    """

    version: Version
    program: Program
    profile: Profile
    roofline: Roofline | None
    room: OccupancyRoom | None


def from_device(session: Session, versions: Sequence[Version], *, shapes: object, family: str,
                timeline: bool) -> Iterator[Profiled]:
    """One dispatch after the other, each of all versions."""
    kernel, oracle = session.kernel, session.oracle
    if isinstance(oracle, DeclaredOracle):
        kernel = replace(kernel, shapes=selected(kernel, shapes), held_out_shapes=())
        oracle = replace(oracle, families=(family,), extreme_families=())
    metadata = session.code_object.kernel(session.symbol).metadata
    machine = _machine(session)
    loaded = [session.device.load(version.code_object, session.symbol) for version in versions]
    for dispatch in oracle.dispatches(kernel, session.symbol, metadata):
        for version, each in zip(versions, loaded, strict=True):
            with waiting(f"{dispatch.name} of the {version.name}"):
                profile = each.profile(dispatch, timeline=timeline)
            code = _program(version.code_object, session.symbol, profile)
            placed = None
            if machine is not None and profile.source == "modelled":
                placed = roofline(profile, code, machine, workgroups=math.prod(dispatch.grid))
            room = _room(session, version, math.prod(dispatch.workgroup), dispatch.dynamic_lds)
            yield Profiled(version, code, profile, placed, room)


def from_code(session: Session, versions: Sequence[Version]) -> Iterator[Profiled]:
    """An estimate for each version. Raises `ConfigError` for a device of unknown speed."""
    machine = _machine(session)
    if machine is None:
        raise ConfigError(f"the device {session.device.name} does not say how fast it is, which a "
                          "static estimate needs")
    for version in versions:
        code = program(version.code_object, session.symbol)
        profile = static_estimate(code, machine)
        isa = version.code_object.target.isa
        if isa not in machine.name:
            profile = replace(profile, scope=f"{profile.scope}; the object is for {isa}, latencies "
                                             f"are those of {machine.name}")
        yield Profiled(version, code, profile, None, _room(session, version))


def from_files(session: Session, version: Version, files: Iterable[str], *,
               recorded_as: str | None, skip_ambiguous: bool) -> Profiled:
    """What rocprofv3 recorded. The ceilings are those of the configured device."""
    names = [recorded_as] if recorded_as else []
    recording = read_recording(Path(file).expanduser() for file in files)
    code = program(version.code_object, session.symbol)
    profile = measured_profile(
        recording, code, session.symbol, names=names, skip_ambiguous=skip_ambiguous,
        address=entry_address(version.code_object, session.symbol))
    return Profiled(version, code, profile, _by_counters(session, recording, names, profile),
                    _room(session, version))


def _by_counters(session: Session, recording: Recording, names: Collection[str],
                 profile: Profile) -> Roofline | None:
    """Where the counters put the kernel, if they say anything of it."""
    machine = _machine(session)
    if machine is None:
        return None
    try:
        counters, nanoseconds = kernel_counters(recording, session.symbol, names)
        return counter_roofline(counters, nanoseconds, machine, dispatch=profile.dispatch,
                                clock_mhz=profile.clock_mhz)
    except ProfileError:
        return None  # samples without counters are a profile all the same


def _room(session: Session, version: Version, workgroup_size: int | None = None,
          launch_lds_bytes: int = 0) -> OccupancyRoom | None:
    """With workgroups of the launch, or of what the metadata requires or allows."""
    code_object = version.code_object
    try:
        found = Resources.of(
            code_object.kernel(session.symbol), code_object.target, workgroup_size=workgroup_size,
            launch_lds_bytes=launch_lds_bytes)
        return occupancy_room(
            code_object.target.isa, vgprs=found.vgprs, sgprs=found.sgprs,
            lds_bytes=found.lds_bytes + found.launch_lds_bytes,
            workgroup_size=found.workgroup_size)
    except CodeObjectError:
        return None  # a processor or a workgroup size that is not known


def _machine(session: Session) -> Machine | None:
    device = session.device
    return device.machine if isinstance(device, DescribedDevice) else None


def _program(code_object: CodeObject, symbol: str, profile: Profile) -> Program:
    """With the functions the kernel calls, if any."""
    alone = program(code_object, symbol)
    if len(alone) == len(profile.instructions):
        return alone
    return whole_program(code_object, symbol)
