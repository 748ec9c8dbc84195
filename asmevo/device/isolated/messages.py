"""What parent and child say to one another: msgpack maps behind their length, never pickles.

Everything that arrives is checked: the child has run a hostile kernel.
"""

from __future__ import annotations

import struct
from collections.abc import Mapping
from typing import Any, BinaryIO

import msgpack

from asmevo.device.device import LaunchState, NanBits, Timing, TimingSource, WorkgroupOrder
from asmevo.dispatch.dispatch import Dispatch, ElementType, Pointer, Region, Role
from asmevo.errors import AsmEvoError

LENGTH = struct.Struct("<Q")
Message = dict[str, Any]


class MessageError(AsmEvoError):
    """A message is not what the other side should have sent."""


def packed(message: Mapping[str, Any]) -> bytes:
    """A message with its length in front."""
    body: bytes = msgpack.packb(message, use_bin_type=True)
    return LENGTH.pack(len(body)) + body


def unpacked(body: bytes) -> Message:
    """Raises `MessageError` for anything but a map with text keys."""
    try:
        message = msgpack.unpackb(body, raw=False, strict_map_key=True,
                                  max_bin_len=len(body), max_str_len=len(body))
    except (ValueError, msgpack.exceptions.UnpackException) as error:
        raise MessageError(f"a message cannot be read: {error}") from error
    if not isinstance(message, dict):
        raise MessageError("a message is no map")
    return message


def received(source: BinaryIO) -> Message | None:
    """The next message, for the child; ``None`` at the end."""
    head = source.read(LENGTH.size)
    if len(head) < LENGTH.size:
        return None
    return unpacked(source.read(LENGTH.unpack(head)[0]))


def field(message: Mapping[str, Any], name: str, kind: type[Any]) -> Any:
    """A value of a message; raises `MessageError` when it is of another type."""
    value = message.get(name)
    if not isinstance(value, kind) or (isinstance(value, bool) and kind is not bool):
        raise MessageError(f"'{name}' of a message is no {kind.__name__}")
    return value


def from_dispatch(dispatch: Dispatch) -> Message:
    return {
        "name": dispatch.name, "kernel": dispatch.kernel, "kernarg": dispatch.kernarg,
        "grid": dispatch.grid, "workgroup": dispatch.workgroup, "lds": dispatch.dynamic_lds,
        "relies_on_time": dispatch.relies_on_time,
        "regions": [
            {"name": r.name, "address": r.address, "data": r.data, "role": r.role.value,
             "element": r.element.value, "guard": r.guard, "seed": r.guard_seed,
             "order_dependent": r.order_dependent}
            for r in dispatch.regions],
        "pointers": [(p.offset, p.region, p.holder) for p in dispatch.pointers],
    }


def to_dispatch(message: Mapping[str, Any]) -> Dispatch:
    """What a launch needs of a dispatch: neither what it was made from nor who may see it."""
    x, y, z = message["grid"]
    width, height, depth = message["workgroup"]
    return Dispatch(
        name=message["name"], kernel=message["kernel"], kernarg=message["kernarg"],
        grid=(x, y, z), workgroup=(width, height, depth), dynamic_lds=message["lds"],
        relies_on_time=message["relies_on_time"],
        regions=tuple(
            Region(r["name"], r["address"], r["data"], Role(r["role"]), ElementType(r["element"]),
                   r["guard"], r["seed"], r["order_dependent"])
            for r in message["regions"]),
        pointers=tuple(Pointer(*p) for p in message["pointers"]),
    )


def from_state(state: LaunchState) -> list[Any]:
    return [state.poison, state.order.value, state.resident, state.nan.value]


def to_state(values: list[Any]) -> LaunchState:
    poison, order, resident, nan = values
    return LaunchState(poison, WorkgroupOrder(order), resident, NanBits(nan))


def from_timing(timing: Timing) -> Message:
    return {"dispatch": timing.dispatch, "samples": list(timing.samples_us),
            "source": timing.source.value, "device": timing.device, "warmup": timing.warmup}


def to_timing(message: Mapping[str, Any]) -> Timing:
    """Raises `MessageError`."""
    samples = field(message, "samples", list)
    if not samples or not all(isinstance(sample, float) for sample in samples):
        raise MessageError("a timing has no samples")
    try:
        source = TimingSource(field(message, "source", str))
    except ValueError as error:
        raise MessageError(str(error)) from error
    return Timing(field(message, "dispatch", str), tuple(samples), source,
                  field(message, "device", str), field(message, "warmup", int))
