"""llvm-mca, LLVM's static estimate of a straight-line loop.

It knows one wave, no caches and no bank conflicts; its cycle is an issue turn of 4 clk (LLVM
SISchedule.td).
"""

from __future__ import annotations

import json
import re
import subprocess
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from asmevo.errors import AsmEvoError

_TURN = 4
_PROCESSOR = "gfx942"
# clk of an iteration is a difference, so that filling the pipeline drops out.
_FEW, _MANY = 100, 200
_VERSION = re.compile(r"LLVM version (\S+)")
_SHOWN = 200


class McaError(AsmEvoError):
    """llvm-mca is not there, does not know gfx942, or does not understand a body."""


class Mca:
    """An llvm-mca that can be run as a command. Raises `McaError` when it cannot be used.

    A call has an empty environment and a private working directory.
    """

    def __init__(self, path: str, timeout_seconds: float = 120.0) -> None:
        self._path = str(Path(path).expanduser())
        self._timeout = timeout_seconds
        found = _VERSION.search(self._run(["--version"]))
        if found is None:
            raise McaError(f"'{self._path}' does not say which LLVM it is of")
        self.version = found[1]
        # An unknown processor is a warning to llvm-mca, and it goes on with some other.
        self.clk({"probe": ["s_nop 0"]})

    def clk(self, bodies: Mapping[str, Sequence[str]]) -> dict[str, float]:
        """clk of one iteration of each body, in steady state."""
        names = list(bodies)
        lines: list[str] = []
        for number, name in enumerate(names):
            lines += [f"# LLVM-MCA-BEGIN b{number}", *bodies[name], f"# LLVM-MCA-END b{number}"]
        few, many = (self._cycles("\n".join(lines) + "\n", count) for count in (_FEW, _MANY))
        if len(few) != len(names) or len(many) != len(names):
            raise McaError(f"'{self._path}' reports {len(few)} bodies of {len(names)}")
        return {name: (many[f"b{number}"] - few[f"b{number}"]) / (_MANY - _FEW) * _TURN
                for number, name in enumerate(names)}

    def _cycles(self, text: str, iterations: int) -> dict[str, int]:
        """Cycles of each region."""
        output = self._run(["-mtriple=amdgcn-amd-amdhsa", f"-mcpu={_PROCESSOR}", "-json",
                            f"-iterations={iterations}", "body.s"], text)
        try:
            report: Any = json.loads(output[output.index("{"):])
            return {str(region["Name"]): int(region["SummaryView"]["TotalCycles"])
                    for region in report["CodeRegions"]}
        except (ValueError, KeyError, TypeError) as error:
            raise McaError(f"the report of '{self._path}' is not the JSON of llvm-mca: {error}"
                           ) from None

    def _run(self, arguments: Sequence[str], text: str = "") -> str:
        with tempfile.TemporaryDirectory(prefix="asmevo-") as name:
            (Path(name) / "body.s").write_text(text, encoding="ascii", errors="replace")
            try:
                done = subprocess.run(
                    [self._path, *arguments], cwd=name, env={}, stdin=subprocess.DEVNULL,
                    capture_output=True, check=False, timeout=self._timeout)
            except OSError as error:
                raise McaError(f"cannot run '{self._path}': {error.strerror or error}; llvm-mca is "
                               "part of LLVM") from None
            except subprocess.TimeoutExpired:
                raise McaError(f"'{self._path}' did not finish within {self._timeout:g} s"
                               ) from None
        messages = done.stderr.decode("utf-8", "replace")
        if "is not a recognized processor" in messages or "unable to get target" in messages:
            raise McaError(f"'{self._path}' does not know {_PROCESSOR}; LLVM 17 and later do")
        if done.returncode != 0:
            first = next((line for line in messages.splitlines() if "error" in line), messages)
            raise McaError(f"'{self._path}' failed: {first.strip()[:_SHOWN]}")
        return done.stdout.decode("utf-8", "replace")
