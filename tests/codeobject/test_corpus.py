"""Every code object of AITER, byte for byte, with two processes."""

from __future__ import annotations

import functools
import importlib.metadata
import multiprocessing
import re
from collections import Counter
from concurrent.futures import ProcessPoolExecutor
from pathlib import PurePosixPath

import pytest

from asmevo.codeobject.container import CodeObject
from asmevo.codeobject.roundtrip import round_trip
from asmevo.codeobject.source import LocalFile
from asmevo.codeobject.toolchain import ZigToolchain
from asmevo.errors import AsmEvoError

WHEEL = importlib.metadata.distribution("amd-aiter")
PATHS = sorted(
    str(file) for file in WHEEL.files or ()
    if PurePosixPath(file).is_relative_to("aiter_meta/hsa") and file.suffix == ".co"
)
# Sorted by name, neighbours are alike; every 100th covers all folders.
SAMPLE = PATHS[::100]


@functools.cache
def toolchain() -> ZigToolchain:
    """One for a process: finding the tools and asking their versions takes longer than a file."""
    return ZigToolchain()


def outcome(path: str) -> tuple[str, str, int, int]:
    """Path, what is wrong (empty for nothing), instructions kept as data and annotated ones."""
    try:
        code_object = CodeObject.parse(LocalFile(str(WHEEL.locate_file(path))).read())
        report = round_trip(code_object, toolchain())
    except AsmEvoError as error:
        return path, str(error), 0, 0
    wrong = "" if report.identical else f"differs in {report.section}"
    return path, wrong, report.fallback_count, report.annotation_count


def test_a_sample_is_identical() -> None:
    for path in SAMPLE:
        _, wrong, fallbacks, _ = outcome(path)
        assert (wrong, fallbacks) == ("", 0), path


def test_text_of_annotated_instructions_stays() -> None:
    path = next(p for p in PATHS if "gfx950/f4gemm/" in p)
    report = round_trip(CodeObject.parse(LocalFile(str(WHEEL.locate_file(path))).read()),
                        toolchain())
    assert report.identical
    assert report.annotation_count > 0
    lines = [line for line in report.assembly.text().splitlines() if "// enc:" in line]
    assert len(lines) == report.annotation_count
    # Don't-care bits 13 and 14 of the first word.
    shape = re.compile(r"\tv_mfma_scale_f32_16x16x128_f8f6f4 a\[.*\S // enc: \|0x[246]000")
    assert all(shape.fullmatch(line) for line in lines)


@pytest.mark.corpus
def test_whole_corpus_is_identical() -> None:
    assert len(PATHS) == 2501
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(2, mp_context=context) as pool:
        results = list(pool.map(outcome, PATHS, chunksize=8))
    assert {path: wrong for path, wrong, _, _ in results if wrong} == {}
    assert sum(fallbacks for _, _, fallbacks, _ in results) == 0
    annotated = Counter(path.split("/")[2] for path, _, _, count in results if count)
    # v_mfma_scale_f32_16x16x128_f8f6f4 with don't-care bits.
    assert annotated == {"gfx950": 101}
    assert sum(count for _, _, _, count in results) == 31302
