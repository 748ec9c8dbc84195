"""What ``deploy`` prints, for people and for machines."""

from __future__ import annotations

import argparse
import shlex
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

from asmevo.registry.browse.documents import SCHEMA_VERSION
from asmevo.registry.names import printable, without_secrets

if TYPE_CHECKING:
    from asmevo.deploy.deployment import Outcome
    from asmevo.deploy.manifest import Manifest, Swap
    from asmevo.deploy.rollback import Rollback
    from asmevo.deploy.status import FileStatus
    from asmevo.registry.errors import PullError

Run: TypeAlias = Callable[[argparse.Namespace], int]


def print_outcome(outcome: Outcome, declined: Mapping[str, PullError],
                  hints: Sequence[str]) -> None:
    """One line a code object, then what the host needs; refusals on standard error."""
    from asmevo.deploy.errors import shown

    for change in outcome.changes:
        verb = ("already holds" if not change.needed else
                "would get" if outcome.dry_run else "now holds")
        for swap in change.entry.swaps:
            print(f"{_place(change.entry.path, swap)} {verb} {swap.replacement_sha256} for "
                  f"{swap.original_sha256}: kernel {shown(swap.kernel)}, {swap.speedup:.4f}x "
                  f"{swap.timing_source} on {shown(swap.device)}")
    if not outcome.changes:
        print(f"nothing to deploy in {shown(outcome.root)}")
    elif not outcome.dry_run:
        print(f"rollback: asmevo-registry deploy rollback {quoted(outcome.root)}")
    if outcome.changes:
        for hint in hints:
            print(hint)
    for refused in outcome.refused:
        complain(refused.error.code, str(refused.error))
    for pull in declined.values():
        complain(pull.code, str(pull))


def print_status(root: Path, found: Sequence[FileStatus]) -> None:
    """One line a code object."""
    from asmevo.deploy.errors import shown

    if not found:
        print(f"nothing is deployed in {shown(root)}")
    for status in found:
        backup = "" if status.backup else ", backup missing or damaged"
        for swap in status.entry.swaps:
            print(f"{status.state}{backup}: {_place(status.entry.path, swap)} "
                  f"{swap.replacement_sha256} for {swap.original_sha256}, {swap.speedup:.4f}x "
                  f"{swap.timing_source}, {swap.time[:19]}Z")


def print_rollback(root: Path, done: Rollback, dry_run: bool) -> None:
    """One line a file; refusals on standard error."""
    from asmevo.deploy.errors import shown

    would = "would be" if dry_run else "is"
    for path in done.restored:
        print(f"{shown(path)} {would} the original again")
    for path in done.untouched:
        print(f"{shown(path)} {would} left as it is")
    if not (done.restored or done.untouched or done.refused):
        print(f"nothing is deployed in {shown(root)}")
    for _, error in done.refused:
        complain(error.code, str(error))


def deploy_document(outcome: Outcome, declined: Mapping[str, PullError],
                    hints: Sequence[str]) -> dict[str, Any]:
    """``deploy triton|aiter|file --json``."""
    return {
        "schema_version": SCHEMA_VERSION, "tree": str(outcome.root), "dry_run": outcome.dry_run,
        "changes": [{"path": c.entry.path, "changed": c.needed, "before_sha256": c.before_sha256,
                     "after_sha256": c.entry.deployed_sha256,
                     "original_sha256": c.entry.original_sha256,
                     "swaps": [swap_entry(s) for s in c.entry.swaps]} for c in outcome.changes],
        "refused": [
            *({"path": r.place.path, "member": r.place.member,
               "original_sha256": r.place.original_sha256, "code": r.error.code,
               "reason": without_secrets(str(r.error))} for r in outcome.refused),
            *({"path": None, "member": None, "original_sha256": sha256, "code": e.code,
               "reason": without_secrets(str(e))} for sha256, e in declined.items())],
        "host": list(hints),
    }


def status_document(root: Path, manifest: Manifest, found: Sequence[FileStatus]) -> dict[str, Any]:
    """``deploy status --json``."""
    return {
        "schema_version": SCHEMA_VERSION, "tree": str(root), "kind": manifest.kind,
        "base": manifest.base,
        "files": [{"path": s.entry.path, "state": s.state, "backup": s.backup,
                   "original_sha256": s.entry.original_sha256,
                   "deployed_sha256": s.entry.deployed_sha256,
                   "swaps": [swap_entry(swap) for swap in s.entry.swaps]} for s in found],
    }


def rollback_document(root: Path, done: Rollback, dry_run: bool) -> dict[str, Any]:
    """``deploy rollback --json``."""
    return {
        "schema_version": SCHEMA_VERSION, "tree": str(root), "dry_run": dry_run,
        "restored": list(done.restored), "untouched": list(done.untouched),
        "refused": [{"path": path, "code": error.code, "reason": without_secrets(str(error))}
                    for path, error in done.refused],
    }


def swap_entry(swap: Swap) -> dict[str, Any]:
    """One exchanged code object."""
    return {name: getattr(swap, name) for name in type(swap).__slots__}


def triton_hints(copy: Path) -> tuple[str, ...]:
    """What makes Triton use a copied cache."""
    return (f"export TRITON_CACHE_DIR={quoted(copy)}",)


def quoted(path: Path) -> str:
    """A path for a shell; one that no terminal should get is left to the reader."""
    text = str(path)
    return shlex.quote(text) if text.isprintable() else "..."


def _place(path: str, swap: Swap) -> str:
    from asmevo.deploy.errors import shown

    return shown(path if swap.member is None else f"{path}!{swap.member}")


def complain(code: str, reason: str) -> None:
    """A refusal, on standard error: its code and a sentence."""
    note(f"{code}: {reason}")


def note(text: str) -> None:
    """A line on standard error; names from a tree or a registry may be part of it."""
    print(f"asmevo-registry: {printable(without_secrets(text))}", file=sys.stderr)
