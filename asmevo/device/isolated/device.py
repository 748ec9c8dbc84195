"""A `Device` whose kernels run in a child process."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import count
from typing import Any

from asmevo.codeobject.container import CodeObject
from asmevo.device.device import (
    Device,
    DeviceFault,
    LaunchState,
    RunResult,
    Timing,
    TimingSource,
    UnsupportedError,
)
from asmevo.device.isolated import messages
from asmevo.device.isolated.child import Child, ChildDiedError, Limits
from asmevo.device.isolated.messages import Message, MessageError, field
from asmevo.dispatch.dispatch import Dispatch
from asmevo.profile.profile import Profile

_PLAIN = LaunchState()
_REMEMBERED = 256


@dataclass(frozen=True, slots=True)
class RemoteFindings:
    """What a sanitizer in the child reports."""

    errors_by_class: Mapping[str, str]
    lines: Sequence[str]
    everything: dict[str, Any]

    def summary(self) -> Sequence[str]:
        return self.lines

    def to_dict(self) -> dict[str, Any]:
        return self.everything


class IsolatedDevice:
    """Runs, times and checks kernels on a device that a child process makes from ``config``.

    ``inner`` is the same device in this process. A launch that crashes the child, takes longer
    than ``limits`` allow or runs out of memory is a `DeviceFault` of kind ``crash``, ``timeout`` or
    ``out-of-memory``, and the next one gets a new child. Results are those of ``inner``, which has
    to say the same of itself. Raises `IsolationError` when there can be no child.
    """

    def __init__(self, inner: Device, config: Mapping[str, Any], limits: Limits | None = None,
                 ) -> None:
        self._inner = inner
        self._child = Child(config, limits or Limits())
        self._numbers = count()
        self._known: OrderedDict[int, tuple[Dispatch, int, tuple[bytes, ...]]] = OrderedDict()

    @property
    def name(self) -> str:
        return self._inner.name

    @property
    def source(self) -> TimingSource:
        return self._inner.source

    @property
    def deterministic(self) -> bool:
        return self._inner.deterministic

    @property
    def child(self) -> Child:
        """The process in which kernels run."""
        return self._child

    def load(self, code_object: CodeObject, kernel: str) -> IsolatedKernel:
        """Load a kernel in the child. Raises `UnsupportedError`."""
        loaded = IsolatedKernel(self, code_object, kernel)
        loaded.request("load")
        return loaded

    def close(self) -> None:
        """End the child; the next request starts another."""
        self._child.close()

    def number(self, dispatch: Dispatch) -> tuple[int, tuple[bytes, ...]]:
        """How the child knows a dispatch, and what is mapped before a launch of it.

        Dispatches are told apart by identity: they do not change, and gates use them often.
        """
        known = self._known.get(id(dispatch))
        if known is None:
            known = dispatch, next(self._numbers), tuple(r.mapped for r in dispatch.regions)
            self._known[id(dispatch)] = known
            if len(self._known) > _REMEMBERED:
                self._known.popitem(last=False)
        return known[1], known[2]


class IsolatedKernel:
    """A `LoadedKernel` in the child; survives the child, since it can be loaded again."""

    def __init__(self, device: IsolatedDevice, code_object: CodeObject, symbol: str) -> None:
        self._device = device
        self._code_object = code_object
        self._symbol = symbol

    def run(self, dispatch: Dispatch, state: LaunchState = _PLAIN, *,
            limit: int | None = None) -> RunResult:
        reply = self.request("run", dispatch, state=messages.from_state(state), limit=limit)
        before = self._device.number(dispatch)[1]
        try:
            return _result(dispatch, before, reply)
        except MessageError as error:
            raise DeviceFault(str(error), kind="crash") from error

    def time(self, dispatch: Dispatch, state: LaunchState = _PLAIN, *, samples: int,
             warmup: int) -> Timing:
        reply = self.request("time", dispatch, state=messages.from_state(state), samples=samples,
                             warmup=warmup)
        try:
            return messages.to_timing(reply)
        except MessageError as error:
            raise DeviceFault(str(error), kind="crash") from error

    def sanitize(self, dispatch: Dispatch, state: LaunchState = _PLAIN, *,
                 limit: int | None = None) -> RemoteFindings:
        reply = self.request("sanitize", dispatch, state=messages.from_state(state), limit=limit)
        try:
            return RemoteFindings(field(reply, "classes", dict), field(reply, "summary", list),
                                  field(reply, "all", dict))
        except MessageError as error:
            raise DeviceFault(str(error), kind="crash") from error

    def profile(self, dispatch: Dispatch, state: LaunchState = _PLAIN, *,
                timeline: bool = False) -> Profile:
        """Refused: only verified kernels are profiled, and those need no child."""
        raise UnsupportedError("a kernel in a child process is not profiled")

    def request(self, do: str, dispatch: Dispatch | None = None, **values: Any) -> Message:
        """Ask the child, which may first ask for the kernel or the dispatch."""
        message: Message = {"do": do, "kernel": f"{self._code_object.sha256}:{self._symbol}",
                            **values}
        if dispatch is not None:
            message["dispatch"] = self._device.number(dispatch)[0]
        try:
            reply = self._device.child.ask(message)
            needed = reply.get("need", ())
            if needed:
                if "kernel" in needed:
                    message |= {"code": self._code_object.data, "symbol": self._symbol}
                if "dispatch" in needed and dispatch is not None:
                    message["launch"] = messages.from_dispatch(dispatch)
                reply = self._device.child.ask(message)
        except ChildDiedError as died:
            raise DeviceFault(str(died), kind=died.kind) from died
        except MessageError as error:
            raise DeviceFault(str(error), kind="crash") from error
        if "error" in reply:
            if reply.get("kind") == "out-of-memory":
                self._device.close()
            raise _error(reply)
        return reply


def _error(reply: Message) -> DeviceFault | UnsupportedError:
    text = str(reply.get("text"))
    if reply["error"] != "fault":
        return UnsupportedError(text)
    try:
        return DeviceFault(
            text, kind=field(reply, "kind", str), pc=field(reply, "pc", int),
            text=field(reply, "instruction", str), lane=field(reply, "lane", int),
            address=field(reply, "address", int))
    except MessageError as error:
        return DeviceFault(str(error), kind="crash")


def _result(dispatch: Dispatch, before: tuple[bytes, ...], reply: Message) -> RunResult:
    """Only what a kernel may write comes back; the rest cannot have changed."""
    written = field(reply, "written", dict)
    regions = []
    for number, (region, mapped) in enumerate(zip(dispatch.regions, before, strict=True)):
        data = field(written, str(number), bytes) if region.role.written else mapped
        if len(data) != len(mapped):
            raise MessageError(f"region '{region.name}' came back with {len(data)} bytes")
        regions.append(data)
    return RunResult(tuple(regions), field(reply, "instructions", int),
                     field(reply, "seconds", float))
