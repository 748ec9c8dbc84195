"""Overlays of AITER's tree, opened by AITER's own host code where that can run without a GPU."""

from __future__ import annotations

import ast
import os
import re
import shutil
import subprocess
import sys
from importlib.metadata import distribution
from pathlib import Path

import pytest

from asmevo.deploy.aiter import deploy_to_overlay, environment
from asmevo.deploy.errors import DeployError, DeployRefusal
from asmevo.deploy.lock import locked
from asmevo.deploy.manifest import load_manifest
from asmevo.deploy.rollback import Foreign, roll_back
from asmevo.deploy.status import State, tree_status
from asmevo.deploy.substitute import Substitute
from asmevo.deploy.tree import Tree
from tests.deploy.conftest import snapshot, substitute

ONE, TWO = "hsa/gfx942/layer_norm.co", "hsa/gfx942/fmoe/silu/fmoe_int8_g1u0_subGU_512.co"
LOADER = "csrc/include/aiter_hip_common.h"

# HIP as far as AITER's header uses it: loading a module copies the file that was opened.
HIP = """
#pragma once
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <string>
typedef void *hipModule_t, *hipFunction_t, *hipStream_t;
typedef int hipDevice_t;
enum hipError_t { hipSuccess, hipErrorFileNotFound };
struct hipDeviceProp_t { char gcnArchName[256] = "gfx942"; int multiProcessorCount = 304; };
#define HIP_LAUNCH_PARAM_BUFFER_POINTER ((void*)1)
#define HIP_LAUNCH_PARAM_BUFFER_SIZE ((void*)2)
#define HIP_LAUNCH_PARAM_END ((void*)3)
inline hipError_t hipModuleLoad(hipModule_t* module, const char* path) {
    std::ifstream from(path, std::ios::binary);
    if (!from) return hipErrorFileNotFound;
    std::ofstream(std::getenv("LOADED"), std::ios::binary) << from.rdbuf();
    *module = nullptr;
    return hipSuccess;
}
inline hipError_t hipModuleLoadData(hipModule_t*, const void*) { return hipSuccess; }
template <class... T> hipError_t hipModuleGetFunction(T...) { return hipSuccess; }
inline hipError_t hipModuleUnload(hipModule_t) { return hipSuccess; }
inline hipError_t hipGetDeviceCount(int* n) { *n = 1; return hipSuccess; }
inline hipError_t hipGetDevice(hipDevice_t* d) { *d = 0; return hipSuccess; }
inline hipError_t hipGetDeviceProperties(hipDeviceProp_t* p, int) { *p = {}; return hipSuccess; }
inline const char* hipGetErrorString(hipError_t) { return "no such file"; }
template <class... T> hipError_t hipModuleLaunchKernel(T...) { return hipSuccess; }
"""
PROGRAM = """
#include "aiter_hip_common.h"
int main(int, char** argv) { AiterAsmKernel kernel(argv[1], argv[2]); }
"""

# AITER's ``aiter/jit/core.py`` without torch and ROCm, which it would ask for the processor.
IMPORT = """
import os, runpy, sys, types
for name, functions in {
        "chip_info": ["get_gfx"], "cpp_extension": ["_jit_compile", "get_hip_version"],
        "file_baton": ["FileBaton"], "torch_guard": ["torch_compile_guard"]}.items():
    sys.modules[name] = types.ModuleType(name)
    for function in functions:
        setattr(sys.modules[name], function, lambda *a, **o: lambda f: f)
sys.modules["chip_info"].get_gfx = lambda: "gfx942"
runpy.run_path(sys.argv[1])
print(os.environ["AITER_ASM_DIR"])
"""


@pytest.fixture(scope="session")
def aiter() -> Path:
    """The tree that AITER's wheel ships."""
    return Path(str(distribution("amd-aiter").locate_file("aiter_meta"))).resolve()


@pytest.fixture
def base(aiter: Path, tmp_path: Path) -> Path:
    """A small tree of that shape."""
    base = tmp_path / "aiter_meta"
    for name in (ONE, TWO, LOADER):
        (base / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(aiter / name, base / name)
    return base


def supply(base: Path, *names: str, number: int = 1) -> dict[str, Substitute]:
    found = [substitute((base / name).read_bytes(), number) for name in names]
    return {s.original_sha256: s for s in found}


def overlaid(base: Path, overlay: Path, *names: str, number: int = 1, dry_run: bool = False,
             ) -> tuple[str, ...]:
    wanted = supply(base, *names, number=number)
    outcome = deploy_to_overlay(Tree.at(base), overlay, wanted.get,
                                dry_run=dry_run)
    assert not outcome.refused
    return tuple(change.entry.path for change in outcome.changes)


def variable(lines: tuple[str, ...]) -> str:
    """The value that the lines tell Python to set."""
    value = re.search(r'os\.environ\["AITER_ASM_DIR"\] = (.*)', lines[-1])
    assert value is not None
    parts = value[1].replace("aiter.jit.core.get_gfx()", "'gfx942'").split(" + ")
    return "".join(ast.literal_eval(part) for part in parts)


def test_aiters_loader_opens_the_replacement(base: Path, aiter: Path, tmp_path: Path) -> None:
    """The class that AITER loads objects with, compiled against a HIP that copies what it opens."""
    compiler = shutil.which("g++") or shutil.which("clang++")
    if compiler is None:
        pytest.skip("there is no C++ compiler")
    for name, text in (("hip/hip_runtime.h", HIP), ("ck_tile/core.hpp", ""), ("main.cpp", PROGRAM)):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text)
    subprocess.run([compiler, "-std=c++17", "-w", f"-I{tmp_path}", f"-I{aiter / 'csrc/include'}",
                    "main.cpp", "-o", "main"], cwd=tmp_path, check=True)
    overlay = tmp_path / "overlay"
    assert overlaid(base, overlay, TWO) == (TWO,)
    said = {}
    for name in (ONE, TWO):
        file = name.removeprefix("hsa/gfx942/")
        done = subprocess.run(
            ["./main", "kernel", file], cwd=tmp_path, capture_output=True, text=True, check=True,
            env={"AITER_ASM_DIR": variable(environment(Tree.at(base), overlay)),
                 "LOADED": str(tmp_path / "loaded")})
        said[name] = done.stdout
        (new,) = supply(base, TWO).values()
        assert (tmp_path / "loaded").read_bytes() == (
            new.data if name == TWO else (base / name).read_bytes())
    assert f"[aiter] hipModuleLoad: {overlay}/{TWO} GetFunction: kernel Success" in said[TWO]


@pytest.mark.corpus
def test_every_file_is_found_where_it_was(aiter: Path, tmp_path: Path) -> None:
    """The whole wheel: each file resolves to what it was, but for the replaced one."""
    before = sorted(str(path.relative_to(aiter)) for path in aiter.rglob("*"))
    overlay = tmp_path / "overlay"
    assert overlaid(aiter, overlay, ONE) == (ONE,)
    after = sorted(str(path.relative_to(overlay)) for path in overlay.rglob("*")
                   if ".asmevo-deploy" not in path.parts)
    assert after == before
    files = [name for name in before if (aiter / name).is_file()]
    assert sum(name.endswith(".co") for name in files) > 1000
    for name in files:
        assert os.path.samefile(aiter / name, overlay / name) is (name != ONE)
    assert (overlay / ONE).read_bytes() != (aiter / ONE).read_bytes()
    named = {name for source in (aiter / "csrc").rglob("*.cu")
             for name in re.findall(r'"/?([\w/]+\.co)"', source.read_text())}
    shipped = {name for name in named if (aiter / "hsa/gfx942" / name).exists()}
    assert len(shipped) >= 50
    root = variable(environment(Tree.at(aiter), overlay))
    assert all(Path(root + name).is_file() for name in shipped)


def test_the_base_stays_and_rollback_gives_the_links_back(base: Path, tmp_path: Path) -> None:
    before = snapshot(base)
    overlay = tmp_path / "overlay"
    overlaid(base, overlay, ONE)
    linked = snapshot(overlay)
    overlaid(base, overlay, TWO)  # a second deployment
    overlaid(base, overlay, ONE, number=2)  # a better one
    tree = Tree.at(overlay)
    assert [s.state for s in tree_status(tree, load_manifest(tree))] == [State.DEPLOYED] * 2
    with locked(tree):
        assert len(roll_back(tree).restored) == 2
    assert snapshot(base) == before
    files = [path for path in overlay.rglob("*") if not path.is_dir()]
    assert len(files) == 3
    assert all(os.readlink(path) == str(base / path.relative_to(overlay)) for path in files)
    overlaid(base, overlay, ONE)  # and again
    assert snapshot(overlay)[ONE] == linked[ONE]


def test_an_upgrade_below_an_overlay_is_seen(base: Path, tmp_path: Path) -> None:
    """The host code may be another then, and the replacement is not one for its object."""
    overlay = tmp_path / "overlay"
    overlaid(base, overlay, ONE)
    (base / ONE).write_bytes((base / TWO).read_bytes())
    tree = Tree.at(overlay)
    (status,) = tree_status(tree, load_manifest(tree))
    assert status.state is State.BASE_CHANGED
    with locked(tree):
        assert roll_back(tree, Foreign.REFUSE).restored == (ONE,)
    assert (overlay / ONE).read_bytes() == (base / TWO).read_bytes()


def test_a_dry_run(base: Path, tmp_path: Path) -> None:
    before = snapshot(tmp_path)
    assert overlaid(base, tmp_path / "overlay", ONE, dry_run=True) == (ONE,)
    assert snapshot(tmp_path) == before
    overlaid(base, tmp_path / "overlay", ONE)
    before = snapshot(tmp_path)
    assert overlaid(base, tmp_path / "overlay", TWO, dry_run=True) == (TWO,)
    assert snapshot(tmp_path) == before


def test_without_a_replacement_there_is_no_overlay(base: Path, tmp_path: Path) -> None:
    before = snapshot(tmp_path)
    assert overlaid(base, tmp_path / "overlay") == ()
    assert snapshot(tmp_path) == before


@pytest.mark.parametrize("case", ["no tree", "other folder", "file", "other base", "inside"])
def test_what_is_refused(base: Path, tmp_path: Path, case: str) -> None:
    overlay, source = tmp_path / "overlay", base
    if case == "no tree":
        source = base / "hsa"
    elif case == "other folder":
        overlay.mkdir()
        (overlay / "file").write_bytes(b"")
    elif case == "file":
        overlay.write_bytes(b"")
    elif case == "other base":
        overlaid(base, overlay, ONE)
        source = tmp_path / "other"
        shutil.copytree(base, source)
    else:
        overlay = base / "overlay"
    before = snapshot(tmp_path)
    with pytest.raises(DeployError) as caught:
        deploy_to_overlay(Tree.at(source), overlay, lambda sha256: None)
    assert caught.value.code in (DeployRefusal.DESTINATION, DeployRefusal.NOT_FOUND)
    assert snapshot(tmp_path) == before


def test_a_link_of_the_overlay_that_somebody_bent(base: Path, tmp_path: Path) -> None:
    overlay, outside = tmp_path / "overlay", tmp_path / "outside.co"
    overlaid(base, overlay, ONE)
    shutil.copy(base / TWO, outside)
    (overlay / TWO).unlink()
    (overlay / TWO).symlink_to(outside)
    wanted = supply(base, TWO)
    outcome = deploy_to_overlay(Tree.at(base), overlay, wanted.get)
    assert [r.error.code for r in outcome.refused] == [DeployRefusal.OUTSIDE]


@pytest.mark.parametrize(("core", "loader", "meta", "value"), [
    ("", "", True, "/o/hsa/gfx942/"),
    ("AITER_META_DIR = 1", "std::getenv", False, "/o/hsa/gfx942/"),
    ('os.environ.get("AITER_META_DIR")', "std::getenv", True, "/o/hsa/gfx942/"),
    ('os.environ.get("AITER_META_DIR")', 'AITER_ASM_DIR) + "/" + arch_name', True, "/o/hsa/")])
def test_the_variables_are_those_of_the_version(base: Path, core: str, loader: str, meta: bool,
                                                value: str) -> None:
    if core:
        (base.parent / "aiter/jit").mkdir(parents=True)
        (base.parent / "aiter/jit/core.py").write_text(core)
    (base / LOADER).write_text(loader)
    lines = environment(Tree.at(base), Path("/o"))
    assert ("export AITER_META_DIR=/o" in lines) is meta
    assert variable(lines) == value


def test_aiters_own_import_overwrites_the_variable(aiter: Path, tmp_path: Path) -> None:
    """So it has to be set afterwards; and this version does not read AITER_META_DIR."""
    core = aiter.parent / "aiter/jit/core.py"
    if not core.exists():
        pytest.skip("of AITER only the objects are installed")
    overlay = tmp_path / "overlay"
    configurations = dict.fromkeys(re.findall(r"AITER_CONFIG_\w+", core.read_text()), os.devnull)
    done = subprocess.run(
        [sys.executable, "-c", IMPORT, str(core)], capture_output=True, text=True, check=True,
        env={**configurations, "AITER_ASM_DIR": f"{overlay}/hsa/gfx942/",
             "AITER_META_DIR": str(overlay)})
    assert done.stdout.strip() == f"{aiter}/hsa/gfx942/"
    lines = environment(Tree.at(aiter), overlay)
    assert not any("AITER_META_DIR" in line for line in lines)
    assert variable(lines) == f"{overlay}/hsa/gfx942/"


def test_several_processors_are_told_apart_when_it_runs(base: Path) -> None:
    (base / "hsa/gfx950").mkdir()
    assert "'/o/hsa/' + aiter.jit.core.get_gfx() + '/'" in environment(Tree.at(base),
                                                                       Path("/o"))[-1]
