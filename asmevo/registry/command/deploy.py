"""``deploy``: put replacements where a host program loads them, and take them out again."""

from __future__ import annotations

import argparse
import os
from pathlib import Path
from typing import TYPE_CHECKING

from asmevo.registry.command import deploy_output as output
from asmevo.registry.command.output import FOUND, NOTHING, REFUSED, Subparsers, opened, print_json
from asmevo.registry.command.pulling import DAMAGED, NOT_ACCEPTED, add_options, pulled
from asmevo.registry.errors import PullError
from asmevo.registry.names import without_secrets

if TYPE_CHECKING:
    from asmevo.deploy.deployment import Outcome
    from asmevo.deploy.substitute import Substitute

ATTENTION = 3

_STATUSES = """\
exit status of triton, aiter and file:
  0  all that the registry has a replacement for is deployed (with --dry-run: would be)
  1  there is no replacement for anything here
  2  bad input, or something cannot be read or written
  3  something was refused and is as it was; code and reason are on standard error
  4  the registry is damaged or was tampered with; nothing was changed
exit status of status:
  0  every replacement stands, and every original can be put back
  1  nothing is deployed
  2  bad input, or something cannot be read
  3  something else: changed or removed by others, interrupted, or without its backup
exit status of rollback:
  0  the tree is as it was before the first deployment
  2  bad input, or something cannot be read or written
  3  something was refused and is as it was; code and reason are on standard error
"""


def add(commands: Subparsers, common: argparse.ArgumentParser) -> None:
    """Describe the command to the parser of command lines."""
    deploy = commands.add_parser(
        "deploy", help="put replacements where a host program loads them, and take them out",
        epilog=_STATUSES, formatter_class=argparse.RawDescriptionHelpFormatter)
    routes = deploy.add_subparsers(required=True, metavar="ROUTE")

    triton = _route(routes, common, "triton", "a Triton cache", run_triton)
    triton.add_argument("tree", nargs="?", type=Path, metavar="CACHE",
                        help="default: where Triton has it, by $TRITON_CACHE_DIR and $TRITON_HOME")
    triton.add_argument("--copy-to", type=Path, metavar="FOLDER",
                        help="leave the cache as it is and deploy to a copy of it")

    aiter = _route(routes, common, "aiter", "an overlay of AITER's tree", run_aiter)
    aiter.add_argument("tree", type=Path, metavar="AITER_META",
                       help="the folder with csrc and hsa, e.g. site-packages/aiter_meta")
    aiter.add_argument("--overlay", required=True, type=Path, metavar="FOLDER",
                       help="where the overlay is, or is to be made")

    file = _route(routes, common, "file", "a file, or all files below a folder", run_file)
    file.add_argument("tree", type=Path, metavar="PATH",
                      help="a code object, something that carries some, or a folder of such")

    status = routes.add_parser("status", parents=[common], help="how a tree stands")
    status.add_argument("tree", type=Path, metavar="TREE")
    status.set_defaults(command=_guarded(run_status))

    back = routes.add_parser("rollback", parents=[common], help="put every original back")
    back.add_argument("tree", type=Path, metavar="TREE")
    back.add_argument("--dry-run", action="store_true", help="say what would be done, do nothing")
    foreign = back.add_mutually_exclusive_group()
    foreign.add_argument("--force", action="store_true",
                         help="overwrite what others changed after the deployment, too")
    foreign.add_argument("--forget", action="store_true",
                         help="leave what others changed as it is, and forget about it")
    back.set_defaults(command=_guarded(run_rollback))


def _route(routes: Subparsers, common: argparse.ArgumentParser, name: str, what: str,
           run: output.Run) -> argparse.ArgumentParser:
    route = routes.add_parser(name, parents=[common], help=f"deploy to {what}")
    route.add_argument("--original", action="append", metavar="SHA256|PATH",
                       help="deploy for this original only; may be given several times (default: "
                            "for everything that has a replacement)")
    add_options(route)
    route.add_argument("--dry-run", action="store_true", help="say what would be done, do nothing")
    route.set_defaults(command=_guarded(run))
    return route


def _guarded(run: output.Run) -> output.Run:
    def command(arguments: argparse.Namespace) -> int:
        from asmevo.deploy.errors import DeployError
        from asmevo.registry.browse.documents import refusal_document

        try:
            return run(arguments)
        except (DeployError, PullError) as error:
            if arguments.json:
                print_json(refusal_document(error.code, without_secrets(str(error))))
            output.complain(error.code, str(error))
            if isinstance(error, PullError):
                return DAMAGED
            return REFUSED if error.code.is_failure else NOT_ACCEPTED

    return command


def run_triton(arguments: argparse.Namespace) -> int:
    """Deploy to a Triton cache; returns the exit status."""
    from asmevo.deploy.deployment import deploy
    from asmevo.deploy.tree import Tree
    from asmevo.deploy.triton import TritonCache, default_cache
    from asmevo.deploy.triton_copy import deploy_to_copy

    tree, supply = Tree.at(arguments.tree or default_cache(os.environ)), _Supply(arguments)
    if arguments.copy_to is None:
        return _report(arguments, supply, deploy(
            tree, TritonCache(), supply, originals=_originals(arguments),
            dry_run=arguments.dry_run))
    outcome = deploy_to_copy(tree, arguments.copy_to, supply, originals=_originals(arguments),
                             dry_run=arguments.dry_run)
    return _report(arguments, supply, outcome, output.triton_hints(outcome.root))


def run_aiter(arguments: argparse.Namespace) -> int:
    """Deploy to an overlay of AITER's tree; returns the exit status."""
    from asmevo.deploy.aiter import deploy_to_overlay, environment
    from asmevo.deploy.tree import Tree

    tree, supply = Tree.at(arguments.tree), _Supply(arguments)
    outcome = deploy_to_overlay(tree, arguments.overlay, supply,
                                originals=_originals(arguments), dry_run=arguments.dry_run)
    return _report(arguments, supply, outcome, environment(tree, outcome.root))


def run_file(arguments: argparse.Namespace) -> int:
    """Deploy to a file or folder; returns the exit status."""
    from asmevo.deploy.deployment import deploy
    from asmevo.deploy.plain_file import PlainFile, named_file
    from asmevo.deploy.tree import Tree

    tree, supply = Tree.at(arguments.tree), _Supply(arguments)
    return _report(arguments, supply, deploy(
        tree, PlainFile(named_file(tree, arguments.tree)), supply,
        originals=_originals(arguments), dry_run=arguments.dry_run))


def run_status(arguments: argparse.Namespace) -> int:
    """Say how a tree stands; returns the exit status."""
    from asmevo.deploy.manifest import load_manifest
    from asmevo.deploy.status import State, tree_status
    from asmevo.deploy.tree import Tree

    tree = Tree.at(arguments.tree)
    manifest = load_manifest(tree)
    found = tree_status(tree, manifest)
    if arguments.json:
        print_json(output.status_document(tree.root, manifest, found))
    else:
        output.print_status(tree.root, found)
    if all(status.state is State.ORIGINAL for status in found):
        return NOTHING
    fine = all(status.state is State.DEPLOYED and status.backup for status in found)
    return FOUND if fine else ATTENTION


def run_rollback(arguments: argparse.Namespace) -> int:
    """Put the originals back; returns the exit status."""
    from contextlib import nullcontext

    from asmevo.deploy.lock import locked
    from asmevo.deploy.rollback import Foreign, roll_back
    from asmevo.deploy.tree import Tree

    tree = Tree.at(arguments.tree)
    foreign = (Foreign.OVERWRITE if arguments.force else
               Foreign.FORGET if arguments.forget else Foreign.REFUSE)
    with nullcontext() if arguments.dry_run else locked(tree):
        done = roll_back(tree, foreign, dry_run=arguments.dry_run)
    if arguments.json:
        print_json(output.rollback_document(tree.root, done, arguments.dry_run))
    else:
        output.print_rollback(tree.root, done, arguments.dry_run)
    return NOT_ACCEPTED if done.refused else FOUND


class _Supply:
    """Pulls what is asked for; refusals are kept, so that one does not stop the others.

    Signs of tampering do: `PullError` then ends the deployment before it has changed anything.
    """

    def __init__(self, arguments: argparse.Namespace) -> None:
        self._arguments = arguments
        self._registry = opened(arguments)
        self.refused: dict[str, PullError] = {}

    def __call__(self, original: str) -> Substitute | None:
        try:
            return pulled(self._registry, original, self._arguments, output.note)
        except PullError as error:
            if error.code.is_damage:
                raise
            self.refused[original] = error
            return None


def _originals(arguments: argparse.Namespace) -> frozenset[str] | None:
    if arguments.original is None:
        return None
    from asmevo.registry.delivery.pull import original_sha256

    return frozenset(original_sha256(original) for original in arguments.original)


def _report(arguments: argparse.Namespace, supply: _Supply, outcome: Outcome,
            hints: tuple[str, ...] = ()) -> int:
    if arguments.json:
        print_json(output.deploy_document(outcome, supply.refused, hints))
    else:
        output.print_outcome(outcome, supply.refused, hints)
    if outcome.refused or supply.refused:
        return NOT_ACCEPTED
    return FOUND if outcome.changes else NOTHING

