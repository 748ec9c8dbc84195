"""Taking a kernel out of a module that cannot be imported.

The modules of inference frameworks import torch and the framework itself; a Triton kernel needs
neither, only the functions that it calls.
"""

from __future__ import annotations

import ast

from asmevo.compiler.errors import CompileError

_HEADER = "import triton\nimport triton.language as tl\n"


def standalone(source: str, function: str) -> str:
    """A module of one kernel, the functions and the literal constants that it uses.

    Raises `CompileError` when the module does not define ``function`` or is not Python.
    """
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
    return "\n\n".join([_HEADER, *(_text(source, node) for node in nodes)]) + "\n"


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
    """The statement as written: Triton reads the source of the functions it compiles."""
    first = min([node.lineno, *(d.lineno for d in getattr(node, "decorator_list", ()))])
    return "\n".join(source.splitlines()[first - 1:node.end_lineno])
