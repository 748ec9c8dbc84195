"""Taking a kernel out of a module that cannot be imported.

The modules of inference frameworks import torch and the framework itself; a Triton kernel needs
neither, only the functions that it calls.
"""

from __future__ import annotations

import ast
from collections.abc import Mapping

from asmevo.compiler.errors import CompileError

_HEADER = "import triton\nimport triton.language as tl\n"
_IMPORTED = ("tl", "triton")


def standalone(source: str, function: str, imported: Mapping[str, str] | None = None) -> str:
    """A module of one kernel, the functions and the literal constants that it uses.

    ``imported`` has the source of the modules from which its own takes functions, by function.
    Raises `CompileError` when a module does not define the function or is not Python.
    """
    parts = [part for name, text in (imported or {}).items() for part in _parts(text, name)]
    parts += _parts(source, function)
    return "\n\n".join([_HEADER, *parts]) + "\n"


def _parts(source: str, function: str) -> list[str]:
    try:
        module = ast.parse(source)
    except (SyntaxError, ValueError) as error:
        raise CompileError(f"the module of '{function}' cannot be parsed: {error}") from None
    functions = {node.name: node for node in module.body if isinstance(node, ast.FunctionDef)}
    constants = {
        node.targets[0].id: node for node in module.body
        if isinstance(node, ast.Assign) and len(node.targets) == 1
        and isinstance(node.targets[0], ast.Name) and _is_constant(node.value)
    }
    if function not in functions:
        raise CompileError(f"the module has no function '{function}'")
    wanted: list[str] = []
    pending = [function]
    while pending:
        name = pending.pop()
        if name in wanted:
            continue
        wanted.append(name)
        node: ast.stmt = functions.get(name) or constants[name]
        used = {n.id for n in ast.walk(node) if isinstance(n, ast.Name)}
        pending += sorted(used & (functions.keys() | constants.keys()))
    nodes = [node for node in module.body
             if node in (functions.get(_name(node)), constants.get(_name(node)))
             and _name(node) in wanted]
    return [_text(source, node) for node in nodes]


def _is_constant(value: ast.expr) -> bool:
    """A literal, or one wrapped as ``tl.constexpr(...)``."""
    if isinstance(value, ast.Call) and len(value.args) == 1 and not value.keywords:
        return ast.unparse(value.func) == "tl.constexpr" and _is_constant(value.args[0])
    return isinstance(value, ast.Constant)


def _name(node: ast.stmt) -> str:
    if isinstance(node, ast.FunctionDef):
        return node.name
    if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name):
        return node.targets[0].id
    return ""


def _text(source: str, node: ast.stmt) -> str:
    """The statement as written, for Triton reads the source of the functions it compiles, but
    without annotations that name what is not imported."""
    first = min([node.lineno, *(d.lineno for d in getattr(node, "decorator_list", ()))])
    lines = source.splitlines()
    arguments = [a for a in ast.walk(node) if isinstance(a, ast.arg) and _is_foreign(a.annotation)]
    for argument in arguments:
        annotation = argument.annotation
        assert annotation is not None
        line = lines[argument.lineno - 1].encode()  # offsets count bytes
        if annotation.end_lineno != argument.lineno or annotation.end_col_offset is None:
            raise CompileError(f"the annotation of '{argument.arg}' takes several lines")
        name_end = argument.col_offset + len(argument.arg.encode())
        # As many blanks as there were characters: the offsets behind it stay what they are.
        gone = b" " * (annotation.end_col_offset - name_end)
        lines[argument.lineno - 1] = (
            line[:name_end] + gone + line[annotation.end_col_offset:]).decode()
    return "\n".join(lines[first - 1:node.end_lineno])


def _is_foreign(annotation: ast.expr | None) -> bool:
    return annotation is not None and any(
        isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name)
        and node.value.id not in _IMPORTED for node in ast.walk(annotation))
