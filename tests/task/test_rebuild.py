"""``task=rebuild``: what a person's editor did, as a code object with the same interface."""

from __future__ import annotations

import importlib.metadata
import re
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from asmevo.bundle.offload_bundle import build
from asmevo.codeobject.container import CodeObject
from asmevo.codeobject.disassemble import rows
from asmevo.codeobject.errors import RebuildError, SourceError
from asmevo.codeobject.interface import Interface, differences
from asmevo.codeobject.target import Target
from asmevo.codeobject.toolchain import ZigToolchain
from asmevo.report.result import Result, Status
from asmevo.task.session import ConfigError
from asmevo.task.source import everything, one

FOLDER = "amd-aiter:aiter_meta/hsa/gfx942"
LAYER_NORM = f"{FOLDER}/layer_norm.co"
SMALL = f"{FOLDER}/topksoftmax/topksoftmax_12x128x8.co"  # 48 VGPRs


@pytest.fixture
def text(run: Callable[..., Result], tmp_path: Path) -> Callable[[str], str]:
    """The recovered text of an object."""

    def recovered(source: str) -> str:
        run("task=recover", f"source={source}", f"output={tmp_path}/recovered.s")
        return (tmp_path / "recovered.s").read_text()

    return recovered


@pytest.fixture
def rebuild(run: Callable[..., Result], tmp_path: Path) -> Callable[..., tuple[Result, CodeObject]]:
    """Rebuilds an edited text; gives the result and the new object."""

    def rebuilt(edited: str, source: str, *more: str) -> tuple[Result, CodeObject]:
        (tmp_path / "edited.s").write_text(edited)
        result = run("task=rebuild", f"source={tmp_path}/edited.s", f"original={source}",
                     f"output={tmp_path}/new.co", *more)
        assert result.details is not None
        data = (tmp_path / "new.co").read_bytes()
        assert Path(result.details["object"]).read_bytes() == data
        return result, CodeObject.parse(data)

    return rebuilt


def _bundle(folder: Path, content: bytes) -> Path:
    path = folder / "fat.hipfb"
    path.write_bytes(build([("host-x86_64-unknown-linux-gnu-", b""),
                            ("hipv4-amdgcn-amd-amdhsa--gfx942", content)]))
    return path


def compiled(source: Path, folder: Path) -> bytes:
    """A shared object of a HIP file for gfx942, made without ROCm."""
    files = importlib.metadata.distribution("ziglang").files
    assert files is not None
    zig = str(next(f for f in files if str(f) == "ziglang/zig").locate())
    subprocess.run(
        [zig, "clang", "-x", "hip", "--offload-arch=gfx942", "--offload-device-only", "-nogpuinc",
         "-nogpulib", "-O3", "-S", str(source), "-o", "k.s"],
        cwd=folder, env={"HOME": str(folder)}, check=True, timeout=120)
    toolchain = ZigToolchain()
    relocatable = toolchain.assemble((folder / "k.s").read_text(), Target("gfx942"))
    return toolchain.link(relocatable)


def listing(code_object: CodeObject) -> list[str]:
    return [text for _, _, text in rows(code_object.code(code_object.kernel()),
                                        code_object.target)]


def test_unedited_text_gives_the_original(
    text: Callable[[str], str], rebuild: Callable[..., tuple[Result, CodeObject]],
    layer_norm_bytes: bytes,
) -> None:
    result, new = rebuild(text(LAYER_NORM), LAYER_NORM)
    assert result.status is Status.REBUILT
    assert result.exit_status == 0
    assert new.data == layer_norm_bytes
    assert result.details is not None
    assert result.details["changed"] is False


def test_a_persons_edits(
    text: Callable[[str], str], rebuild: Callable[..., tuple[Result, CodeObject]],
    layer_norm_bytes: bytes,
) -> None:
    """A comment, an inserted line, a renamed label (a symbol of the object) and a new one."""
    edited = re.sub(r"\blabel_01B3\b", "main_loop", text(LAYER_NORM))
    edited = edited.replace("main_loop:\n", "main_loop:   // once per row\n\ts_nop 3 ; breathe\n")
    edited = edited.replace("\ts_endpgm\n", "\ts_cbranch_scc0 out\n\ts_nop 0\nout:\n\ts_endpgm\n")
    result, new = rebuild(edited, LAYER_NORM)
    old = CodeObject.parse(layer_norm_bytes)
    assert differences(Interface.of(old, old.kernel()), Interface.of(new, new.kernel())) == ()
    assert len(listing(new)) == len(listing(old)) + 3
    assert "s_nop 3" in listing(new)
    moved = {s.name: s.value for s in new.symbols}["label_01B3"]
    assert moved == {s.name: s.value for s in old.symbols}["label_01B3"]
    assert b"main_loop" not in new.data
    assert result.details is not None
    (kernel,) = result.details["kernels"]
    assert kernel["after"]["code_bytes"] == kernel["before"]["code_bytes"] + 12
    assert result.replacement_sha256 == new.sha256


def test_more_registers_are_counted_and_cost_occupancy(
    text: Callable[[str], str], rebuild: Callable[..., tuple[Result, CodeObject]],
) -> None:
    edited = text(SMALL).replace("\ts_endpgm", "\tv_mov_b32_e32 v255, v0\n\ts_endpgm", 1)
    result, new = rebuild(edited, SMALL)
    assert result.details is not None
    (kernel,) = result.details["kernels"]
    assert kernel["before"]["vgprs"] < 256
    assert kernel["after"]["vgprs"] >= 256
    assert new.kernel().descriptor.next_free_vgpr == kernel["after"]["vgprs"]
    assert kernel["after"]["waves_per_simd"] < kernel["before"]["waves_per_simd"]
    assert kernel["after"]["limited_by"] == "VGPRs"


def test_a_larger_lds_is_declared_in_the_text(
    text: Callable[[str], str], rebuild: Callable[..., tuple[Result, CodeObject]],
) -> None:
    recovered = text(SMALL)
    size = re.search(r"\.amdhsa_group_segment_fixed_size (\d+)", recovered)
    assert size
    edited = recovered.replace(size[0], ".amdhsa_group_segment_fixed_size 40000")
    _, new = rebuild(edited, SMALL)
    assert new.kernel().descriptor.group_segment_fixed_size == 40000
    assert new.kernel().metadata[".group_segment_fixed_size"] == 40000
    key = "'.group_segment_fixed_size': "
    both = edited.replace(key + size[1], key + "40000")
    assert both != edited
    assert rebuild(both, SMALL)[1] == new
    with pytest.raises(RebuildError, match="group_segment_fixed_size': 39999"):
        rebuild(edited.replace(key + size[1], key + "39999"), SMALL)


def test_less_lds_needs_leave(
    text: Callable[[str], str], rebuild: Callable[..., tuple[Result, CodeObject]],
) -> None:
    edited = text(LAYER_NORM).replace("_segment_fixed_size 65536", "_segment_fixed_size 65024")
    with pytest.raises(RebuildError, match="lower"):
        rebuild(edited, LAYER_NORM)
    _, new = rebuild(edited, LAYER_NORM, "task.allow_lower=true")
    assert new.kernel().descriptor.group_segment_fixed_size == 65024


def test_one_kernel_of_several(
    text: Callable[[str], str], rebuild: Callable[..., tuple[Result, CodeObject]], tmp_path: Path,
) -> None:
    """Device functions, data and relocations around it stay; an edit of two kernels is refused."""
    path = tmp_path / "multi.co"
    path.write_bytes(compiled(Path(__file__).parents[1] / "kernels" / "multi.hip", tmp_path))
    recovered = text(str(path))
    _, same = rebuild(recovered, str(path))
    assert same.data == path.read_bytes()
    bodies = [recovered.index(f"\n{name}:\n") for name in ("first", "second")]
    ends = [recovered.index("\ts_endpgm\n", start) for start in bodies]
    edited = recovered[:ends[1]] + "\ts_nop 5\n" + recovered[ends[1]:]
    _, new = rebuild(edited, str(path))
    old = CodeObject.parse(path.read_bytes())
    assert [k.symbol for k in new.kernels] == [k.symbol for k in old.kernels]
    for kernel in old.kernels:
        assert differences(Interface.of(old, kernel),
                           Interface.of(new, new.kernel(kernel.symbol))) == ()
    both = edited[:ends[0]] + "\ts_nop 5\n" + edited[ends[0]:]
    with pytest.raises(RebuildError, match=r"first.*second|second.*first"):
        rebuild(both, str(path))


def test_a_triton_kernel_keeps_its_second_entry_at_256_bytes(
    text: Callable[[str], str], rebuild: Callable[..., tuple[Result, CodeObject]],
) -> None:
    """The kernarg preload trampoline is padded: an insertion in front must not move its end."""
    (name,) = [found.name for found in everything("amd-aiter")
               if found.name.endswith(".hsaco") and "M=1-N=8192-K=7168" in found.name]
    source = f"amd-aiter:{name}"
    recovered = text(source)
    at = recovered.index("\t.p2align 8\n", recovered.index("s_load_dword"))
    result, new = rebuild(recovered[:at] + "\ts_nop 1\n" + recovered[at:], source)
    old = CodeObject.parse(one(source).read())
    assert new.code(new.kernel())[256:] == old.code(old.kernel())[256:]
    assert new.code(new.kernel())[:256] != old.code(old.kernel())[:256]
    assert result.details is not None
    assert result.details["changed"] is True


def test_a_member_of_a_fat_binary(
    text: Callable[[str], str], rebuild: Callable[..., tuple[Result, CodeObject]], tmp_path: Path,
    layer_norm_bytes: bytes,
) -> None:
    source = f"{_bundle(tmp_path, layer_norm_bytes)}!gfx942"
    edited = text(f"'{source}'").replace("\ts_endpgm\n", "\ts_nop 0\n\ts_endpgm\n")
    result, _ = rebuild(edited, f"'{source}'")
    assert result.details is not None
    assert result.details["original"] == source


def test_the_command_line_reports(
    text: Callable[[str], str], tmp_path: Path, read_result: Callable[[], dict[str, Any]],
    command_line: Callable[..., subprocess.CompletedProcess[str]],
) -> None:
    (tmp_path / "e.s").write_text(text(LAYER_NORM))
    # Without original= the configured kernel's object, which is layer_norm.co.
    done = command_line("task=rebuild", "source=e.s", "output=new.co")
    assert done.returncode == 0, done.stderr
    assert "identical to the original" in done.stdout
    assert "new.co" in done.stdout
    assert read_result()["status"] == "rebuilt"


@pytest.mark.parametrize(("old", "new", "words"), [
    ("\ts_endpgm\n", "\ts_endpgn\n", ["s_endpgn"]),
    ("\ts_endpgm\n", "\tv_add_f32_e32 v1, v2\n\ts_endpgm\n", ["v_add_f32_e32 v1, v2"]),
    ("\ts_endpgm\n", "\t.incbin \"/etc/passwd\"\n\ts_endpgm\n", [".incbin", "instruction"]),
    ("\t\t.amdhsa_next_free_vgpr 512\n", "\t\t.amdhsa_next_free_vgpr 8\n", ["counted"]),
    ("\t\t.amdhsa_kernarg_size 0\n", "\t\t.amdhsa_kernarg_size 4\n", ["kernarg_size 4"]),
])
def test_bad_edits_are_named_with_the_line_of_the_file(
    text: Callable[[str], str], rebuild: Callable[..., tuple[Result, CodeObject]],
    old: str, new: str, words: list[str],
) -> None:
    recovered = text(LAYER_NORM)
    assert recovered.count(old) == 1
    number = recovered[:recovered.index(old)].count("\n") + 1
    with pytest.raises(RebuildError) as caught:
        rebuild(recovered.replace(old, new), LAYER_NORM)
    assert str(caught.value).startswith(f"line {number}: ")
    for word in words:
        assert word in str(caught.value)


def test_bad_input_is_one_sentence(
    run: Callable[..., Result], tmp_path: Path, text: Callable[[str], str],
) -> None:
    with pytest.raises(ConfigError, match="source="):
        run("task=rebuild")
    (tmp_path / "latin.s").write_bytes(b"// caf\xe9\n")
    with pytest.raises(SourceError, match="UTF-8"):
        run("task=rebuild", f"source={tmp_path}/latin.s")
    (tmp_path / "e.s").write_text(text(LAYER_NORM))
    with pytest.raises(RebuildError, match="recovered from the object"):
        run("task=rebuild", f"source={tmp_path}/e.s", f"original={SMALL}")


@pytest.mark.parametrize(("line", "name"), [
    ("v_mov_b32 v0, vO", "vO"), ("s_add_u32 s4, s4, s_5", "s_5"), ("v_mov_b32 v0, vO+4", "vO"),
    ("s_mov_b32 s4, oops-0x10", "oops"),
    ("v_add_u32 v1, lds_size, v1", "lds_size"),
])
def test_an_undefined_name_is_refused_with_its_line(
    text: Callable[[str], str], rebuild: Callable[..., tuple[Result, CodeObject]],
    line: str, name: str,
) -> None:
    lines = text(LAYER_NORM).split("\n")
    at = lines.index("\ts_endpgm")
    with pytest.raises(RebuildError, match=rf"^line {at + 4}: '{name}' .*defines") as caught:
        rebuild("\n".join([*lines[:at], "// more", "here:", "", "\t" + line, *lines[at:]]),
                LAYER_NORM)
    assert line in str(caught.value)


def test_a_patch_keeps_every_other_byte(
    text: Callable[[str], str], rebuild: Callable[..., tuple[Result, CodeObject]],
) -> None:
    recovered = text(LAYER_NORM)
    edited = recovered.replace("\ts_mov_b32 s2, s2\n", "\ts_nop 3\n", 1)
    _, new = rebuild(edited, LAYER_NORM, "task.method=patch")
    old = one(LAYER_NORM).read()
    assert [i for i in range(len(old)) if old[i] != new.data[i]] != []
    assert sum(a != b for a, b in zip(old, new.data, strict=True)) <= 4
    with pytest.raises(RebuildError, match="grow"):
        rebuild(recovered.replace("\ts_endpgm\n", "\ts_nop 3\n\ts_endpgm\n", 1), LAYER_NORM,
                "task.method=patch")


def test_a_patch_of_a_device_function_is_refused(
    text: Callable[[str], str], rebuild: Callable[..., tuple[Result, CodeObject]], tmp_path: Path,
) -> None:
    """Only kernels are compared for a patch; an edit elsewhere must not vanish in silence."""
    path = tmp_path / "multi.co"
    path.write_bytes(compiled(Path(__file__).parents[1] / "kernels" / "multi.hip", tmp_path))
    recovered = text(str(path))
    kernels = {k.symbol for k in CodeObject.parse(path.read_bytes()).kernels}
    functions = re.findall(r"\t\.type (\S+),@function", recovered)
    function = next(name for name in functions if name not in kernels)
    start = recovered.index("\n", recovered.index(f"\n{function}:\n") + 1) + 1
    stop = recovered.index("\n", start)
    edited = recovered[:start] + "\ts_nop 3" + recovered[stop:]
    with pytest.raises(RebuildError, match="not a kernel"):
        rebuild(edited, str(path), "task.method=patch")


def test_a_fat_binary_with_the_new_object_in_it(
    text: Callable[[str], str], rebuild: Callable[..., tuple[Result, CodeObject]], tmp_path: Path,
) -> None:
    bundle = _bundle(tmp_path, one(LAYER_NORM).read())
    source = f"{bundle}!gfx942"
    edited = text(source).replace("\ts_mov_b32 s2, s2\n", "", 1)
    target = tmp_path / "new.hipfb"
    result, new = rebuild(edited, source, f"task.container={target}")
    assert one(f"{target}!gfx942").read() == new.data
    assert result.details is not None
    assert result.details["container"] == str(target)
    assert one(source).read() == one(LAYER_NORM).read()
    with pytest.raises(ConfigError, match="inside a file"):
        rebuild(edited, LAYER_NORM, f"task.container={target}")


def test_output_never_destroys_what_it_is_made_from(
    text: Callable[[str], str], run: Callable[..., Result], tmp_path: Path,
) -> None:
    original = tmp_path / "mine.co"
    original.write_bytes(one(LAYER_NORM).read())
    edited = tmp_path / "mine.s"
    edited.write_text(text(str(original)))
    link = tmp_path / "link.co"
    link.symlink_to(original)
    locked = tmp_path / "locked.co"
    locked.write_text("mine")
    locked.chmod(0o444)
    for output, words in (
        (original, "made from"), (edited, "made from"), (link, "made from"), (tmp_path, "folder"),
        (tmp_path / "none" / "x.co", "does not exist"), (locked, "read-only"), ("", "no file"),
    ):
        with pytest.raises(ConfigError, match=words):
            run("task=rebuild", f"source={edited}", f"original={original}", f"output='{output}'")
    with pytest.raises(ConfigError, match="made from"):
        run("task=recover", f"source={original}", f"output={original}")
    bundle = _bundle(tmp_path, original.read_bytes())
    with pytest.raises(ConfigError, match="made from"):
        run("task=rebuild", f"source={edited}", f"original='{bundle}!gfx942'",
            f"task.container={bundle}")
    assert original.read_bytes() == one(LAYER_NORM).read()
    assert locked.read_text() == "mine"


def test_an_unknown_method_is_one_sentence(run: Callable[..., Result]) -> None:
    with pytest.raises(ConfigError, match="patch"):
        run("task=rebuild", "source=x.s", "task.method=foo")
