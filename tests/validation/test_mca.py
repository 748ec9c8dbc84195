"""llvm-mca: what is asked, what is understood, and what is refused."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from asmevo.validation.mca import Mca, McaError


def script(path: Path, body: str) -> str:
    version = "--version) echo '  Debian LLVM version 22.1.8';;"
    path.write_text(f"#!/bin/sh\ncase \"$1\" in {version} *)\n{body}\n;; esac\n")
    path.chmod(0o700)
    return str(path)


# Takes 40 cycles to fill, then 7 an iteration for the first region and 1 for every other.
ANSWERS = r"""
count=${4#-iterations=}
regions=$(/bin/grep -c BEGIN body.s)
echo "comment"; printf '{"CodeRegions": ['
i=0
while [ $i -lt $regions ]; do
  [ $i = 0 ] && cost=7 || { cost=1; printf ,; }
  printf '{"Name": "b%d", "SummaryView": {"TotalCycles": %d}}' $i $((40 + cost * count))
  i=$((i + 1))
done
echo ']}'
"""


def test_clk_of_an_iteration_leaves_out_filling_the_pipeline(tmp_path: Path) -> None:
    mca = Mca(script(tmp_path / "mca", ANSWERS))
    assert mca.version == "22.1.8"
    assert mca.clk({"a": ["s_nop 0"], "b": ["s_nop 1", "s_nop 2"]}) == {"a": 28, "b": 4}


@pytest.mark.parametrize(("body", "message"), [
    ("echo \"'gfx942' is not a recognized processor for this target\" >&2; echo '{}'",
     "does not know gfx942"),
    ("echo 'error: unable to get target for amdgcn' >&2; exit 1", "does not know gfx942"),
    ("echo 'body.s:2:1: error: invalid instruction' >&2; exit 1", "invalid instruction"),
    ("echo '{\"CodeRegions\": 3}'", "not the JSON"),
    ("echo '{\"CodeRegions\": []}'", "0 bodies of 1"),
    ("echo nonsense", "not the JSON"),
    ("exec /bin/sleep 60", "did not finish"),
])
def test_what_is_no_answer_is_refused(tmp_path: Path, body: str, message: str) -> None:
    with pytest.raises(McaError, match=message):
        Mca(script(tmp_path / "mca", body), timeout_seconds=2)


def test_a_program_that_is_not_there_or_is_another_is_named(tmp_path: Path) -> None:
    with pytest.raises(McaError, match=r"cannot run .*absent"):
        Mca(str(tmp_path / "absent"))
    true = shutil.which("true")
    assert true is not None
    with pytest.raises(McaError, match="which LLVM"):
        Mca(true)
