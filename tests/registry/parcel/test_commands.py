"""``export``, ``import``, ``push`` and ``verify`` as they are typed."""

from __future__ import annotations

import json
import os
import stat
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import asmevo
from asmevo.registry.command.line import main
from asmevo.registry.registry import Registry

if TYPE_CHECKING:
    from tests.registry.populated import Populated

ENVIRONMENT = {**os.environ, "PYTHONPATH": str(Path(asmevo.__file__).parents[1])}


def test_there_and_back(populated: Populated, tmp_path: Path,
                        capsys: pytest.CaptureFixture[str]) -> None:
    source, there, file = (str(tmp_path / name) for name in ("source", "there", "file"))
    trust = ["--trust", f"{populated.key}.pub"]
    assert main(["export", "-o", file, "--registry", source, "--key", str(populated.key)]) == 0
    assert "3 replacements" in capsys.readouterr().out
    assert main(["import", file, "--registry", there, *trust]) == 0
    captured = capsys.readouterr()
    assert "3 replacements came, 3 new" in captured.out
    assert captured.err == ""
    assert main(["import", file, "--registry", there, "--json"]) == 0
    captured = capsys.readouterr()
    assert json.loads(captured.out)["added"] == {}
    assert "there is no trust list" in captured.err
    assert main(["verify", "--registry", there, *trust, "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert (document["clean"], document["findings"]) == (True, [])
    assert main(["push", source, "--registry", there]) == 0
    assert "all of it was there already" in capsys.readouterr().out


def test_only_what_is_meant(populated: Populated, tmp_path: Path,
                            capsys: pytest.CaptureFixture[str]) -> None:
    source = ["--registry", str(tmp_path / "source"), "--json"]
    for number, (choice, count) in enumerate({
            ("--candidate", "lone"): 1, ("--run", populated.run_id): 2,
            ("--kernel", populated.kernel): 3, ("--original", populated.original.sha256): 3,
            ("--run", populated.run_id, "--candidate", "parent"): 1}.items()):
        assert main(["export", "-o", str(tmp_path / str(number)), *choice, *source]) == 0
        assert json.loads(capsys.readouterr().out)["replacements"] == count
    assert main(["export", "-o", str(tmp_path / "none"), "--run", "other", *source]) == 2
    assert "no replacement is meant" in capsys.readouterr().err
    assert not (tmp_path / "none").exists()


def test_mistakes(populated: Populated, tmp_path: Path,
                  capsys: pytest.CaptureFixture[str]) -> None:
    """One sentence, status 2, and nothing that was not there before."""
    source = ["--registry", str(tmp_path / "source")]
    (tmp_path / "file").write_bytes(b"old")
    for line in (["export", "-o", str(tmp_path / "file"), *source],
                 ["export", "-o", str(tmp_path), *source],
                 ["export", "-o", "-", "--json", *source],
                 ["export", "-o", str(tmp_path / "new"), "--key", str(tmp_path / "k"), *source],
                 ["export", "-o", str(tmp_path / "no" / "new"), *source],
                 ["export", "-o", str(tmp_path / "new"), "--registry", str(tmp_path / "empty")],
                 ["import", str(tmp_path / "file"), *source],
                 ["import", str(tmp_path / "absent"), *source],
                 ["import", str(tmp_path), *source],
                 ["import", str(tmp_path / "file"), "--trust", str(tmp_path / "k"), *source],
                 ["push", str(tmp_path / "there"), "--registry", str(tmp_path / "empty")],
                 ["verify", "--registry", str(tmp_path / "empty")],
                 ["verify", "--threads", "0", *source]):
        assert main(line) == 2, line
        captured = capsys.readouterr()
        assert captured.out == ""
        assert captured.err.count("\n") == 1
        assert "Traceback" not in captured.err
    assert sorted(p.name for p in tmp_path.iterdir()) == ["file", "source"]
    assert (tmp_path / "file").read_bytes() == b"old"


def test_through_a_pipe(populated: Populated, tmp_path: Path) -> None:
    """Nothing is read twice or looked at from its end."""
    command = [sys.executable, "-m", "asmevo.registry"]
    with subprocess.Popen([*command, "export", "-o", "-", "--registry", tmp_path / "source"],
                          stdout=subprocess.PIPE, env=ENVIRONMENT) as export:
        done = subprocess.run([*command, "import", "-", "--registry", tmp_path / "there"],
                              stdin=export.stdout, env=ENVIRONMENT, capture_output=True, text=True)
    assert (export.returncode, done.returncode) == (0, 0), done.stderr
    registry = Registry(tmp_path / "there")
    assert len(registry.replacements()) == 3
    registry.close()


def test_findings(populated: Populated, tmp_path: Path,
                  capsys: pytest.CaptureFixture[str]) -> None:
    [superseded] = [p for p in (tmp_path / "source" / "blobs").rglob("*.zst")
                    if not stat.S_ISDIR(p.stat().st_mode)][:1]
    superseded.write_bytes(b"")
    assert main(["verify", "--registry", str(tmp_path / "source")]) == 1
    assert f"blob-corrupt: blob {superseded.stem}: " in capsys.readouterr().out


def test_refusals_for_machines(populated: Populated, tmp_path: Path,
                               capsys: pytest.CaptureFixture[str]) -> None:
    source = ["--registry", str(tmp_path / "source"), "--json"]
    (tmp_path / "file").write_bytes(b"old")
    for line, code in ((["import", str(tmp_path / "file")], "not-a-bundle"),
                       (["export", "-o", str(tmp_path / "new"), "--run", "x"], "nothing-selected"),
                       (["push", str(tmp_path / "new"), "--run", "x"], "nothing-selected")):
        assert main([*line, *source]) == 2
        assert json.loads(capsys.readouterr().out)["code"] == code


@pytest.mark.parametrize("size", ["nan", "-1", "inf"])
def test_a_limit_is_a_number(tmp_path: Path, capsys: pytest.CaptureFixture[str],
                             size: str) -> None:
    assert main(["import", "x", "--registry", str(tmp_path / "r"), f"--max-gib={size}"]) == 2
    assert "--max-gib is a number from 0 to" in capsys.readouterr().err
