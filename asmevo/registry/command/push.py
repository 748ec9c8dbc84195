"""``push``: take replacements with all their evidence to another registry."""

from __future__ import annotations

import argparse

from asmevo.registry.command.exporting import add_selection, refusals, selection
from asmevo.registry.command.importing import report
from asmevo.registry.command.output import FOUND, Subparsers, opened
from asmevo.registry.errors import RegistryError


def add(commands: Subparsers, common: argparse.ArgumentParser) -> None:
    """Describe the command to the parser of command lines."""
    push = commands.add_parser(
        "push", parents=[common], help="take replacements to another registry",
        description="Takes replacements and everything that their evidence rests on to another "
                    "registry, as export and import do, but only what that one lacks.")
    push.add_argument("to", metavar="REGISTRY",
                      help="folder of the other registry, or the URL of its database")
    push.add_argument("--to-blobs", metavar="PLACE",
                      help="folder or URL of the other registry's blobs")
    add_selection(push)
    push.set_defaults(command=run)


def run(arguments: argparse.Namespace) -> int:
    """Run the command; returns its exit status."""
    from asmevo.registry.parcel.load import push

    if "://" in arguments.to and arguments.to_blobs is None:
        raise RegistryError("the other registry is the URL of a database: --to-blobs has to say "
                            "where its blobs are, as a folder or a URL")
    there = opened(argparse.Namespace(registry=arguments.to, blobs=arguments.to_blobs))
    with refusals(json=arguments.json):
        received = push(opened(arguments), there, selection(arguments))
    report(received, json=arguments.json)
    return FOUND
