"""The child: makes a device and launches kernels on it, as the parent asks.

Run as ``python -m asmevo.device.isolated.worker``. The first message on standard input has the
device's configuration and the limits; then every message is answered by one.
"""

from __future__ import annotations

import os
import resource
import sys
from collections import OrderedDict
from pathlib import Path
from typing import Any, BinaryIO

from hydra.utils import instantiate
from omegaconf import OmegaConf

from asmevo.codeobject.container import CodeObject
from asmevo.device.device import (
    CheckedKernel,
    Device,
    DeviceFault,
    LoadedKernel,
    UnsupportedError,
    WritingKernel,
)
from asmevo.device.isolated import messages
from asmevo.device.isolated.messages import Message, packed, received
from asmevo.dispatch.dispatch import Dispatch
from asmevo.errors import AsmEvoError

_KERNELS = 4
# Dispatches are kept until their memory takes this much.
_DISPATCH_BYTES = 1 << 30


class Worker:
    """Answers requests; what it was sent once need not be sent again while it is kept."""

    def __init__(self, device: Device) -> None:
        self._device = device
        self._kernels: OrderedDict[str, LoadedKernel] = OrderedDict()
        self._dispatches: OrderedDict[int, Dispatch] = OrderedDict()

    def answer(self, request: Message) -> Message:
        try:
            lacking = self._take(request)
            if lacking:
                return {"need": lacking}
            return self._launch(request)
        except DeviceFault as fault:
            return {"error": "fault", "text": str(fault), "kind": fault.kind, "pc": fault.pc,
                    "instruction": fault.text, "lane": fault.lane,
                    "address": fault.address & (1 << 64) - 1}
        except UnsupportedError as error:
            return {"error": "unsupported", "text": str(error)}
        except AsmEvoError as error:
            return {"error": "refused", "text": str(error)}
        except MemoryError:
            self._dispatches.clear()
            return {"error": "fault", "text": "the launch needs more memory than it may have",
                    "kind": "out-of-memory", "pc": -1, "instruction": "", "lane": -1, "address": 0}

    def _take(self, request: Message) -> list[str]:
        """Keep what the request brings; gives what is still lacking."""
        if "code" in request:
            code_object = CodeObject.parse(request["code"])
            self._kernels[request["kernel"]] = self._device.load(code_object, request["symbol"])
            while len(self._kernels) > _KERNELS:
                self._kernels.popitem(last=False)
        if "launch" in request:
            self._dispatches[request["dispatch"]] = messages.to_dispatch(request["launch"])
            while len(self._dispatches) > 1 and self._bytes() > _DISPATCH_BYTES:
                self._dispatches.popitem(last=False)
        lacking = [] if request["kernel"] in self._kernels else ["kernel"]
        if request["do"] != "load" and request["dispatch"] not in self._dispatches:
            lacking.append("dispatch")
        return lacking

    def _bytes(self) -> int:
        return sum(len(r.data) for d in self._dispatches.values() for r in d.regions)

    def _launch(self, request: Message) -> Message:
        kernel = self._kernels[request["kernel"]]
        if request["do"] == "load":
            return {}
        dispatch = self._dispatches[request["dispatch"]]
        self._dispatches.move_to_end(request["dispatch"])
        state = messages.to_state(request["state"])
        match request["do"]:
            case "run":
                launch = kernel.written if isinstance(kernel, WritingKernel) else kernel.run
                result = launch(dispatch, state, limit=request["limit"])
                written = {str(number): data for number, (region, data) in enumerate(
                    zip(dispatch.regions, result.regions, strict=True)) if region.role.written}
                return {"written": written, "instructions": result.instructions,
                        "seconds": result.seconds}
            case "time":
                timing = kernel.time(dispatch, state, samples=request["samples"],
                                     warmup=request["warmup"])
                return messages.from_timing(timing)
            case "sanitize" if isinstance(kernel, CheckedKernel):
                found = kernel.sanitize(dispatch, state, limit=request["limit"])
                return {"classes": dict(found.errors_by_class), "summary": list(found.summary()),
                        "all": found.to_dict()}
        raise UnsupportedError(f"the device cannot '{request['do']}'")


def serve(source: BinaryIO, sink: BinaryIO) -> None:
    """Answer until the input ends."""
    start = received(source)
    if start is None:
        return
    _limit(start["memory"])
    try:
        device: Any = instantiate(OmegaConf.create(start["device"]))
    except Exception as error:
        # Whatever a device's constructor raises, the parent has to hear of it.
        sink.write(packed({"error": "refused", "text": " ".join(str(error).split())}))
        sink.flush()
        return
    sink.write(packed({}))
    sink.flush()
    worker = Worker(device)
    while (request := received(source)) is not None:
        sink.write(packed(worker.answer(request)))
        sink.flush()


def _limit(memory: int) -> None:
    """Bound the address space to what it has now and ``memory`` bytes; no core files."""
    pages = int(Path("/proc/self/statm").read_text().split()[0])
    bound = pages * resource.getpagesize() + memory
    resource.setrlimit(resource.RLIMIT_AS, (bound, bound))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


def main() -> None:
    """Messages have standard output for themselves: what else is printed there is dropped."""
    sink = os.fdopen(os.dup(1), "wb")
    with open(os.devnull, "wb") as nowhere:
        os.dup2(nowhere.fileno(), 1)
    serve(sys.stdin.buffer, sink)


if __name__ == "__main__":
    main()
