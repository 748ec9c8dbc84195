"""Hostile code objects: whatever is damaged, `inspect` and `recover` end in one typed error."""

from __future__ import annotations

import importlib.metadata
import struct
import subprocess
from collections.abc import Callable, Mapping
from pathlib import Path

import msgpack
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from asmevo.codeobject.container import CodeObject
from asmevo.codeobject.recover import recover
from asmevo.errors import AsmEvoError
from asmevo.failure import explain
from asmevo.report.result import Result
from asmevo.task.inspect import kernel_facts

_SECTION = struct.Struct("<IIQQQQIIQQ")
_INTERESTING = (0, 1, 2, 3, 4, 7, 0x3F, 0x40, 0xFF, 0x7FFF, 0xFFFF, 0x7FFFFFFF, 0x80000000,
                0xFFFFFFFF, 1 << 40, (1 << 63) - 1, 1 << 63, (1 << 64) - 1, (1 << 64) - 64)

fuzzed = settings(max_examples=150, deadline=None)


def installed(name: str) -> bytes:
    files = importlib.metadata.distribution("amd-aiter").files
    assert files is not None
    return Path(str(next(f for f in sorted(files, key=str) if str(f).endswith(name)).locate())
                ).read_bytes()


# Hand-written with labels in .symtab; MFMA with AGPRs on gfx950; Triton with kernarg preload.
SAMPLES: Mapping[str, bytes] = {
    "aiter": installed("gfx942/topksoftmax/topksoftmax_4x128x8.co"),
    "sized": installed("gfx942/all_reduce.co"),
    "triton": installed("M=1-N=8192-K=7168/_gemm_afp4_wfp4_kernel_preshuffled_weight_scales.hsaco"),
}
sample = st.sampled_from(sorted(SAMPLES))


def read_everything(data: bytes) -> str | None:
    """What `inspect` and `recover` read; only the package's own errors may come out."""
    try:
        code_object = CodeObject.parse(data)
        for kernel in code_object.kernels:
            kernel_facts(code_object, kernel)
        recover(code_object).text()
    except AsmEvoError as error:
        sentence = explain(error)
        assert sentence
        assert sentence.isprintable()
        return sentence
    return None


def section_header(data: bytes, name: str) -> int:
    """The file offset of a section's header."""
    (table,) = struct.unpack_from("<Q", data, 40)
    names = [s.name for s in CodeObject.parse(data).sections]
    return int(table) + names.index(name) * _SECTION.size


def with_note(data: bytes, description: bytes, *, name_size: int = 7,
              size: int | None = None) -> bytes:
    """The object with another metadata note, at the end of the file."""
    size = len(description) if size is None else size
    note = struct.pack("<III", name_size, size, 32) + b"AMDGPU\0\0" + description
    note += bytes(-len(note) % 4)
    at = section_header(data, ".note")
    changed = bytearray(data + bytes(-len(data) % 16) + note)
    struct.pack_into("<QQ", changed, at + 24, len(changed) - len(note), len(note))
    return bytes(changed)


def metadata_of(data: bytes) -> dict[str, object]:
    return dict(CodeObject.parse(data).metadata)


@pytest.mark.parametrize("name", SAMPLES)
def test_the_samples_themselves_are_read(name: str) -> None:
    assert read_everything(SAMPLES[name]) is None
    packed = msgpack.packb(metadata_of(SAMPLES[name]))
    assert read_everything(with_note(SAMPLES[name], packed)) is None


@fuzzed
@given(sample, st.floats(0, 1))
def test_truncated(name: str, part: float) -> None:
    data = SAMPLES[name]
    length = int(part * (len(data) - 1))
    assert read_everything(data[:length])


@fuzzed
@given(sample, st.lists(st.tuples(st.floats(0, 1), st.integers(0, 255)), min_size=1, max_size=8))
def test_flipped_bytes(name: str, changes: list[tuple[float, int]]) -> None:
    data = bytearray(SAMPLES[name])
    for place, value in changes:
        data[int(place * (len(data) - 1))] = value
    read_everything(bytes(data))


@fuzzed
@given(sample, st.sampled_from(("header", "sections", ".symtab", ".dynsym", ".note", ".rodata",
                                ".dynamic", ".text")),
       st.integers(0, 400), st.sampled_from((1, 2, 4, 8)), st.sampled_from(_INTERESTING))
def test_overwritten_fields(name: str, table: str, index: int, size: int, value: int) -> None:
    """Counts, offsets and sizes at their limits: overlapping, circular, overflowing."""
    data = bytearray(SAMPLES[name])
    if table == "header":
        start, length = 0, 64
    elif table == "sections":
        start, length = struct.unpack_from("<Q", data, 40)[0], 64 * data[60]
    else:
        start, length = struct.unpack_from("<QQ", data, section_header(SAMPLES[name], table) + 24)
    at = start + index * size % max(length - size + 1, 1)
    data[at:at + size] = (value & (1 << 8 * size) - 1).to_bytes(size, "little")
    read_everything(bytes(data))


scalars = st.one_of(
    st.none(), st.booleans(), st.integers(-(1 << 63), (1 << 64) - 1), st.floats(), st.text(),
    st.binary(max_size=40), st.just(msgpack.ExtType(5, b"x")), st.just(".kd"), st.just("a\nb.kd"))
documents = st.recursive(
    scalars, lambda inner: st.lists(inner, max_size=4) | st.dictionaries(
        st.text(max_size=8) | st.sampled_from((".symbol", ".args", ".offset", ".size")), inner,
        max_size=4), max_leaves=12)


@fuzzed
@given(sample, st.lists(st.integers(0, 40), min_size=1, max_size=5), documents)
def test_metadata_with_one_wrong_value(name: str, path: list[int], value: object) -> None:
    metadata: object = msgpack.unpackb(msgpack.packb(metadata_of(SAMPLES[name])))
    node = metadata
    for step in path:
        keys = list(node) if isinstance(node, dict) else (
            list(range(len(node))) if isinstance(node, list) else [])
        if not keys:
            break
        key = keys[step % len(keys)]
        parent, node = node, node[key]  # type: ignore[index]
    parent[key] = value  # type: ignore[index]
    read_everything(with_note(SAMPLES[name], msgpack.packb(metadata)))


@fuzzed
@given(sample, st.binary(max_size=200))
@example("aiter", b"\x91" * 100_000)                              # deeper than any stack
@example("aiter", b"\x81\xa1a" * 50_000)
@example("aiter", b"\xdd\xff\xff\xff\xff")                        # a list of 2^32 elements
@example("aiter", b"\xdf\xff\xff\xff\xff")                        # a map of as many
@example("aiter", b"\xdb\xff\xff\xff\xffabc")                     # text of 4 GiB
@example("aiter", b"\xc9\xff\xff\xff\xff\x01")                    # an extension of 4 GiB
@example("aiter", b"\x81\xaeamdhsa.kernels\xa2\xff\xfe")          # text that is not UTF-8
@example("aiter", b"\x82\xa1a\x01\xa1a\x02")                      # one key twice
@example("aiter", b"\x81\x01\x02")                                # a key that is a number
@example("aiter", b"")
def test_metadata_of_any_bytes(name: str, note: bytes) -> None:
    assert read_everything(with_note(SAMPLES[name], note))


@pytest.mark.parametrize(("name_size", "size"), [
    (0xFFFFFFFF, None), (0x7FFFFFFC, None), (7, 0xFFFFFFFF), (0, None), (1 << 31, 1 << 31),
])
def test_notes_with_overflowing_sizes(name_size: int, size: int | None) -> None:
    data = with_note(SAMPLES["aiter"], msgpack.packb({}), name_size=name_size, size=size)
    assert read_everything(data)


def test_symbol_names_with_line_breaks_and_escapes_are_shown_on_one_line() -> None:
    data = SAMPLES["aiter"]
    symbol = CodeObject.parse(data).kernels[0].symbol.encode()
    hostile = b"\n\x1b[2J" + symbol[5:]
    assert len(hostile) == len(symbol)
    sentence = read_everything(data.replace(symbol, hostile))
    assert sentence
    assert sentence.isprintable()


def test_a_section_of_the_whole_address_space() -> None:
    data = bytearray(SAMPLES["aiter"])
    at = section_header(SAMPLES["aiter"], ".text")
    struct.pack_into("<Q", data, at + 16, (1 << 64) - 8)  # its address
    assert read_everything(bytes(data))


@pytest.mark.parametrize("task", ["recover", "inspect"])
@pytest.mark.parametrize("damage", ["empty", "truncated", "overlap", "deep", "not_utf8", "huge"])
def test_the_tasks_end_in_one_sentence(
    run: Callable[..., Result], tmp_path: Path, task: str, damage: str
) -> None:
    data = bytearray(SAMPLES["aiter"])
    if damage == "overlap":
        at = section_header(SAMPLES["aiter"], ".text")
        struct.pack_into("<Q", data, at + 24, 64)
    damaged = {
        "empty": b"", "truncated": bytes(data[:2000]), "overlap": bytes(data),
        "deep": with_note(SAMPLES["aiter"], b"\x91" * 100_000),
        "not_utf8": with_note(SAMPLES["aiter"], b"\x81\xa1\xff\x01"),
        "huge": with_note(SAMPLES["aiter"], b"\xdd\xff\xff\xff\xff"),
    }[damage]
    (tmp_path / "hostile.co").write_bytes(damaged)
    with pytest.raises(AsmEvoError) as caught:
        run(f"task={task}", f"source={tmp_path}/hostile.co")
    sentence = explain(caught.value)
    assert sentence
    assert sentence.isprintable()


def test_status_2_on_the_command_line(
    command_line: Callable[..., subprocess.CompletedProcess[str]], tmp_path: Path
) -> None:
    (tmp_path / "deep.co").write_bytes(with_note(SAMPLES["aiter"], b"\x91" * 100_000))
    for task in ("recover", "inspect", "roundtrip"):
        done = command_line(f"task={task}", "source=deep.co")
        if task == "roundtrip":
            assert done.returncode == 1
            assert "msgpack" in done.stdout
            continue
        assert done.returncode == 2
        (line,) = done.stderr.splitlines()
        assert line.startswith("asmevo: ")
        assert "msgpack" in line
