"""``diff``: moves, changed operands, labels and descriptors told apart."""

from __future__ import annotations

import json
from contextlib import redirect_stderr, redirect_stdout
from io import StringIO
from typing import TYPE_CHECKING, Any

import pytest

from asmevo.codeobject.assembly import Edit
from asmevo.gates.verdict import Gate
from asmevo.registry.browse.assembly_text import comparable, functions
from asmevo.registry.command.line import main
from asmevo.registry.records import CandidateStatus
from tests.registry.documents import check_document

if TYPE_CHECKING:
    from tests.registry.conftest import Scene

DOCUMENT = """\
\t.amdgcn_target "amdgcn-amd-amdhsa--gfx942"
\t.type {kernel},@function
\t.text
\t.p2align 8
{kernel}:
{lines}
\t.section .rodata,"a",@progbits
\t.amdhsa_kernel {kernel}
\t.amdhsa_next_free_vgpr {vgprs}
\t.end_amdhsa_kernel
\t.section .text
"""
OLD = ["s_load_dword s0, s[4:5], 0x0", "v_mov_b32_e32 v1, v2", "v_add_u32_e32 v3, v1, v2", ".L1:",
       "s_nop 0", "v_mul_f32_e32 v4, v3, v3", "s_cbranch_scc0 .L1", "s_endpgm"]
NEW = ["v_mov_b32_e32 v1, v2", "v_add_u32_e32 v3, v1, v2", "s_load_dword s0, s[4:5], 0x0", ".L1:",
       "v_mul_f32_e32 v4, v3, v5", "s_waitcnt lgkmcnt(0)", "s_cbranch_scc0 .L1", "s_endpgm"]


def text(kernel: str, lines: list[str], vgprs: int = 8) -> str:
    return DOCUMENT.format(kernel=kernel, vgprs=vgprs, lines="\n".join(
        line if line.endswith(":") else f"\t{line}" for line in lines))


@pytest.fixture
def edited(scene: Scene) -> Scene:
    scene.registry.record_recovered(scene.original.sha256, text(scene.kernel, OLD), {}, {})
    scene.registry.record_candidate(scene.candidate("edited"), built=scene.variant(1),
                                    assembly=text(scene.kernel, NEW, vgprs=9))
    scene.registry.commit_replacement("edited", 1.25)
    return scene


def diff(scene: Scene, *words: str) -> tuple[int, str, str]:
    with redirect_stdout(StringIO()) as out, redirect_stderr(StringIO()) as err:
        status = main(["diff", *words, "--registry", str(scene.registry.path)])
    return status, out.getvalue(), err.getvalue()


def document(scene: Scene, *words: str) -> dict[str, Any]:
    status, out, err = diff(scene, *words, "--json")
    assert (status, err) == (0, "")
    found: dict[str, Any] = json.loads(out)
    check_document("diff", found)
    return found


def test_moved_lines_are_no_removed_and_added_ones(edited: Scene) -> None:
    status, out, err = diff(edited, "edited", "--context", "1")
    assert (status, err) == (0, "")
    lines = out.splitlines()
    assert lines[0] == f"--- object {edited.original.sha256}"
    assert lines[1] == "+++ candidate edited"
    assert ("7 instructions became 7: 1 moved, 1 with other operands, 1 removed, 1 added, "
            "4 unchanged") in lines
    assert "moved   s_load_dword 1" in lines
    assert "removed s_nop 1" in lines
    assert "added   s_waitcnt 1" in lines
    assert ".amdhsa_next_free_vgpr 8 -> 9" in lines
    hunk = lines[lines.index(next(line for line in lines if line.startswith("@@"))):]
    assert "<      0        s_load_dword s0, s[4:5], 0x0    ; to 2" in hunk
    assert ">            2  s_load_dword s0, s[4:5], 0x0    ; from 0" in hunk
    assert "-      4        v_mul_f32_e32 v4, v3, v3" in hunk
    assert "+            3  v_mul_f32_e32 v4, v3, v5" in hunk
    assert "               .L1:" in hunk
    assert "\x1b" not in out


def test_document(edited: Scene) -> None:
    record = edited.registry.replacements()[0]
    found = document(edited, record.object_sha256)
    [function] = found["functions"]
    assert function["counts"] == {"same": 4, "changed": 1, "moved": 1, "gone": 1, "new": 1}
    assert function["moved"] == {"s_load_dword": 1}
    assert {"name": "VGPRs", "old": "512", "new": "512"} in function["resources"]
    assert found["bytes"]["old"] == len(edited.original.data)
    moved = [row["new"] for row in function["lines"] if row["new"]
             and row["new"]["kind"] == "moved"]
    assert moved == [{"index": 2, "text": OLD[0], "kind": "moved", "other": 0}]
    same = document(edited, "edited", record.object_sha256)["functions"][0]
    assert same["lines"] == []


def test_a_rejected_candidate_is_edited_again(scene: Scene) -> None:
    """Its text is not stored: the original is recovered and its edits are applied."""
    scene.registry.record_candidate(
        scene.candidate("wrong", gates=(Gate.G0,), status=CandidateStatus.REJECTED))
    found = document(scene, "wrong")
    assert found["old"]["text"] == "recovered again"
    assert found["new"]["text"] == "edited again"
    [function] = found["functions"]
    [edit] = scene.registry.candidate("wrong").edits
    assert isinstance(edit, Edit)
    assert function["added"] == {"s_nop": 2}
    assert sum(function["removed"].values()) == edit.stop - edit.start
    assert {row[half]["index"] for row in function["lines"] for half in ("old", "new")
            if row[half]} <= {3, 4}


def test_what_cannot_be_compared(edited: Scene) -> None:
    assert diff(edited, edited.original.sha256)[0] == 2
    assert "is no replacement" in diff(edited, edited.original.sha256)[2]
    assert diff(edited, "edited", "--kernel", "other")[0] == 2
    assert diff(edited, "edited", "edited", "--parent")[0] == 2
    assert diff(edited, "f" * 12)[0] == 1
    assert diff(edited, edited.run_id)[0] == 1


def test_labels_of_their_own_are_compared_by_their_order() -> None:
    old = functions(text("k", ["s_nop 0", ".L10:", "s_branch .L10", "s_endpgm"]))["k"]
    new = functions(text("k", [".L0:", "s_branch .L0", "s_endpgm"]))["k"]
    assert comparable(old, new) == (["s_nop 0", "s_branch L0", "s_endpgm"],
                                    ["s_branch L0", "s_endpgm"])
    kept = functions(text("k", [".L5:", "s_nop 1", ".L10:", "s_branch .L10", "s_endpgm"]))["k"]
    assert comparable(old, kept)[1] == ["s_nop 1", "s_branch .L10", "s_endpgm"]


def test_functions_of_a_document_without_any() -> None:
    assert functions("") == {}
    assert functions("\t.type k,@function\nk:\n\ts_endpgm\n")["k"].lines == ["s_endpgm"]
