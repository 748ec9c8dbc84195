"""``oracle=inferred`` as a person uses it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import asmevo
from asmevo.codeobject.container import CodeObject


def run(folder: Path, code_object: CodeObject, symbol: str, *arguments: str
        ) -> subprocess.CompletedProcess[str]:
    (folder / "kernels.co").write_bytes(code_object.data)
    source = str(Path(asmevo.__file__).parent.parent)
    path = os.pathsep.join(filter(None, (os.environ.get("PYTHONPATH"), source)))
    return subprocess.run(
        [sys.executable, "-m", "asmevo", "kernel=file", "kernel.source.path=kernels.co",
         f"kernel.symbol={symbol}", "oracle=inferred", *arguments], cwd=folder,
        env={**os.environ, "PYTHONPATH": path, "COLUMNS": "200"}, capture_output=True, text=True,
        timeout=300, check=False)


def test_an_undeclared_kernel_is_optimised(tmp_path: Path, hip: CodeObject) -> None:
    done = run(tmp_path, hip, "saxpy", "search.budget.attempts=3")
    assert done.returncode in (0, 1), done.stderr
    (result,) = (json.loads(p.read_text()) for p in tmp_path.glob("runs/**/result.json"))
    assert result["status"] in ("committed", "none")
    assert result["error"] is None
    assert result["attempts"] == 3
    assert result["verdicts"]["G2"]["pass"] > 0
    (written,) = tmp_path.glob("runs/**/inferred.yaml")
    assert "buffers.arg_00.role = inout (confirmed" in written.read_text()


def test_what_cannot_be_inferred_is_one_sentence(tmp_path: Path, hip: CodeObject) -> None:
    done = run(tmp_path, hip, "nested")
    assert done.returncode == 2
    assert "declare in the kernel's YAML: buffers[].addresses" in done.stderr
    assert "Traceback" not in done.stderr
    (draft,) = tmp_path.glob("runs/**/inferred.yaml")
    assert "name: arg_00" in draft.read_text()
