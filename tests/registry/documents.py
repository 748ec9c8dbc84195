"""The JSON schemas of the command line's documents."""

from __future__ import annotations

import json
from importlib.resources import files
from typing import Any

from jsonschema import Draft202012Validator
from referencing import Registry, Resource

_SCHEMAS: dict[str, Any] = {
    entry.name: json.loads(entry.read_text())
    for entry in (files("asmevo.registry") / "schemas").iterdir()
    if entry.name.endswith(".schema.json")}
_REGISTRY: Registry[Any] = Registry().with_resources(
    [(name, Resource.from_contents(schema)) for name, schema in _SCHEMAS.items()])


def check_document(command: str, document: dict[str, Any]) -> None:
    """Validate what a command printed with ``--json``."""
    schema = _SCHEMAS[f"{command}.schema.json"]
    Draft202012Validator.check_schema(schema)
    Draft202012Validator(schema, registry=_REGISTRY).validate(document)
