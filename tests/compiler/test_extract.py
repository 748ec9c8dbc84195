"""A kernel leaves its module with what it needs, and nothing else."""

from __future__ import annotations

import ast

import pytest

from asmevo.compiler.errors import CompileError
from asmevo.compiler.extract import standalone

MODULE = '''
import torch
import triton
import triton.language as tl
from framework import everything

LIMIT = 3
WIDE = tl.constexpr(16)
COMPUTED = everything.of(LIMIT)


@triton.jit
def callee(x):
    return x + WIDE


@triton.jit(do_not_specialize=["n"])
def kernel(
    x,
    n,  # a comment
    B: tl.constexpr,
):
    return callee(callee(x)) * LIMIT


def launcher(x):
    kernel[(1,)](torch.zeros(1), 1)
'''


def test_a_kernel_with_its_callees_and_constants() -> None:
    text = standalone(MODULE, "kernel")
    module = ast.parse(text)
    assert [node.name for node in module.body if isinstance(node, ast.FunctionDef)] == [
        "callee", "kernel"]
    assert "LIMIT = 3" in text
    assert "WIDE = tl.constexpr(16)" in text
    assert '@triton.jit(do_not_specialize=["n"])' in text
    assert "# a comment" in text
    for absent in ("torch", "framework", "COMPUTED", "launcher"):
        assert absent not in text


def test_recursion_ends() -> None:
    assert standalone("def f(x):\n    return f(x)\n", "f").count("def f") == 1


def test_what_is_not_there_is_named() -> None:
    with pytest.raises(CompileError, match="'missing'"):
        standalone(MODULE, "missing")
    with pytest.raises(CompileError, match="cannot be parsed"):
        standalone("def f(:\n", "f")
