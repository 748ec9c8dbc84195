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


def test_a_kernel_with_functions_of_other_modules() -> None:
    other = ("import numpy\n\n\ndef helper(x):\n    return deeper(x)\n\n\n"
             "def deeper(x):\n    return x\n")
    text = standalone("from other import helper\n\n\ndef f(x):\n    return helper(x)\n", "f",
                      {"helper": other})
    names = [n.name for n in ast.parse(text).body if isinstance(n, ast.FunctionDef)]
    assert names == ["helper", "deeper", "f"]
    assert "numpy" not in text
    with pytest.raises(CompileError, match="'absent'"):
        standalone("def f(x):\n    return x\n", "f", {"absent": other})


def test_annotations_that_need_an_import_are_left_out() -> None:
    """Triton looks every name up, and nothing else of the text may move."""
    text = standalone(
        "def f(\n    \u00e4: torch.Tensor,  # kept\n    b: int, c: torch.Tensor = None, "
        "d: tl.constexpr = 1\n):\n    return b\n", "f")
    assert "torch" not in text
    (function,) = (n for n in ast.parse(text).body if isinstance(n, ast.FunctionDef))
    assert [(a.arg, a.annotation and ast.unparse(a.annotation)) for a in function.args.args] == [
        ("\u00e4", None), ("b", "int"), ("c", None), ("d", "tl.constexpr")]
    assert len(function.args.defaults) == 2
    assert "# kept" in text
    with pytest.raises(CompileError, match="several lines"):
        standalone("def f(x: torch[\n    torch.a]):\n    return x\n", "f")


def test_recursion_ends() -> None:
    assert standalone("def f(x):\n    return f(x)\n", "f").count("def f") == 1


def test_what_is_not_there_is_named() -> None:
    with pytest.raises(CompileError, match="'missing'"):
        standalone(MODULE, "missing")
    with pytest.raises(CompileError, match="cannot be parsed"):
        standalone("def f(:\n", "f")
