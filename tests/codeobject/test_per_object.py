"""What is remembered about an object goes with it, and equal texts are held once."""

from __future__ import annotations

import gc
import weakref

from asmevo.codeobject.assembly import KernelBody
from asmevo.codeobject.container import CodeObject
from asmevo.codeobject.functions import functions, listing
from asmevo.codeobject.per_object import per_object
from asmevo.codeobject.recover import Fallbacks, recover
from asmevo.codeobject.roundtrip import round_trip
from asmevo.codeobject.toolchain import Toolchain


def other(data: bytes, name: bytes) -> CodeObject:
    """The object with the linker's name changed."""
    assert len(name) == 7
    return CodeObject.parse(data.replace(b"Linker:", name))


def test_result_is_computed_once_for_equal_objects(layer_norm_bytes: bytes) -> None:
    calls: list[str] = []

    @per_object
    def computed(code_object: CodeObject) -> int:
        calls.append(code_object.sha256)
        return len(calls)

    first, same = (CodeObject.parse(layer_norm_bytes) for _ in range(2))
    assert computed(first) == computed(first) == computed(same) == 1
    assert computed(other(layer_norm_bytes, b"Another")) == 2


def test_few_objects_are_remembered(layer_norm_bytes: bytes) -> None:
    calls: list[str] = []

    @per_object
    def computed(code_object: CodeObject) -> None:
        calls.append(code_object.sha256)

    objects = [other(layer_norm_bytes, b"Linker%d" % i) for i in range(8)]
    for code_object in objects:
        computed(code_object)
    computed(objects[-1])
    assert len(calls) == 8
    computed(objects[0])
    assert len(calls) == 9


def test_round_trip_leaves_nothing_behind(layer_norm_bytes: bytes, toolchain: Toolchain) -> None:
    """A corpus has objects whose listings take hundreds of megabytes."""
    code_object = other(layer_norm_bytes, b"Linker!")
    round_trip(code_object, toolchain)
    gone = weakref.ref(code_object)
    del code_object
    gc.collect()
    assert gone() is None


def test_recovered_text_is_remembered_by_fallbacks(layer_norm: CodeObject) -> None:
    plain, kept = recover(layer_norm), recover(layer_norm, Fallbacks(frozenset({0})))
    assert plain != kept
    assert recover(layer_norm) is plain
    assert recover(layer_norm, Fallbacks(frozenset({0}))) is kept
    recover(layer_norm, Fallbacks(frozenset({0, 4})))
    assert recover(layer_norm) is plain


def test_equal_texts_are_one(layer_norm: CodeObject) -> None:
    texts = [text for f in functions(layer_norm) for _, _, text in listing(layer_norm, f)]
    assert len({id(text) for text in texts}) == len(set(texts)) < len(texts)
    lines = [line for block in recover(layer_norm).blocks if isinstance(block, KernelBody)
             for line in block.lines if not line.labels]
    assert len({id(line) for line in lines}) == len(set(lines)) < len(lines)
