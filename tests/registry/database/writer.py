"""A process that records candidates and prints the id of each once it is stored.

Usage: writer.py REGISTRY RUN ORIGINAL KERNEL DISPATCH WORKER COUNT [URL]. The first one is
committed.
"""

from __future__ import annotations

import sys

from asmevo.codeobject.assembly import Edit
from asmevo.codeobject.container import CodeObject
from asmevo.device.device import Timing, TimingSource
from asmevo.gates.verdict import Gate, Outcome, Verdict
from asmevo.registry.records import CandidateRecord, CandidateStatus
from asmevo.registry.registry import Registry


def main() -> None:
    path, run_id, original, kernel, dispatch, worker, count, *url = sys.argv[1:]
    registry = Registry(path, *url, busy_timeout_s=60)
    data = bytearray(registry.load_object(original))
    text = CodeObject.parse(bytes(data)).section(".text")
    end = text.offset + text.size
    gates = (Gate.G0, Gate.G1, Gate.G2, Gate.G2, Gate.G2, Gate.G3, Gate.G4)
    for number in range(int(count)):
        data[end - 4:end] = (1000 * int(worker) + number).to_bytes(4, "little")
        built = CodeObject.parse(bytes(data))
        record = CandidateRecord(
            id=f"w{worker}-{number}", run_id=run_id, original_sha256=original, kernel=kernel,
            edits=(Edit(kernel, number, number + 1, (), "test"),), rule="rule",
            direction="simplification", rationale="", status=CandidateStatus.VERIFIED,
            parent_id=f"w{worker}-{number - 1}" if number else None, worker=int(worker),
            verdicts=tuple(Verdict(g, Outcome.PASS, "ok", "") for g in gates),
            timings=(Timing(dispatch, (1.0,), TimingSource.MODELLED, "device"),))
        registry.record_candidate(record, assembly=f"; {record.id}\n" * 50, built=built)
        if number == 0:
            registry.commit_replacement(record.id, 1.5)
        sys.stdout.write(f"{record.id}\n")
        sys.stdout.flush()


main()
