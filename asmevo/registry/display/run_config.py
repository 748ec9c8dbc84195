"""The composed configuration of a run, as facts for people; the text itself is the record."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import yaml  # type: ignore[import-untyped]

from asmevo.registry.errors import RegistryError

GROUPS = ("kernel", "oracle", "device", "gates", "profile", "proposer", "search", "toolchain")
"""What a result depends on, in the order in which a run uses it."""

_MOST_BYTES = 1 << 20


class _Loader(yaml.SafeLoader):  # type: ignore[misc]
    """Plain data without aliases: a few lines of them can stand for gigabytes."""

    def compose_node(self, parent: Any, index: Any) -> Any:
        if self.check_event(yaml.AliasEvent):
            raise yaml.YAMLError("aliases are not allowed")
        return super().compose_node(parent, index)


def group_facts(text: str) -> Mapping[str, tuple[tuple[str, str], ...]]:
    """Of each of `GROUPS` that the configuration has its values by dotted name.

    A component has the name of its class for a value; that of the group itself has no name.

    Raises `RegistryError` when the text is no configuration.
    """
    if len(text) > _MOST_BYTES:
        raise RegistryError("the configuration of the run is too long to be one")
    try:
        loaded = yaml.load(text, _Loader)  # noqa: S506 - a SafeLoader
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        raise RegistryError("the configuration of the run is not YAML") from error
    if not isinstance(loaded, Mapping):
        raise RegistryError("the configuration of the run is not a mapping")
    return {name: tuple(_flat(loaded[name])) for name in GROUPS if loaded.get(name) is not None}


def _flat(value: object, name: str = "") -> Iterator[tuple[str, str]]:
    if isinstance(value, Mapping):
        if "_target_" in value:  # a component by its class; how it is made is of no interest
            yield name, str(value["_target_"]).rpartition(".")[2]
        for key, item in value.items():
            if key in ("_target_", "_convert_", "_recursive_"):
                continue
            yield from _flat(item, f"{name}.{key}" if name else str(key))
    elif isinstance(value, list) and any(isinstance(item, Mapping | list) for item in value):
        for number, item in enumerate(value):
            yield from _flat(item, f"{name}[{number}]")
    else:
        yield name, _plain(value)


def _plain(value: object) -> str:
    if isinstance(value, list):
        return "[" + ", ".join(map(_plain, value)) + "]"
    if value is None or isinstance(value, bool):
        return {None: "null", True: "true", False: "false"}[value]
    return str(value)
