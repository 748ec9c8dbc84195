"""``verify``: whether a registry is what it was."""

from __future__ import annotations

import argparse
import sys
from typing import TYPE_CHECKING

from asmevo.registry.command.output import FOUND, NOTHING, Subparsers, opened, print_json
from asmevo.registry.names import counted

if TYPE_CHECKING:
    from asmevo.registry.audit.verify import Audit

_STATUSES = """\
exit status:
  0  nothing is wrong
  1  something is: each finding is printed with its code and what it is about
  2  there is no registry, or it cannot be opened
"""


def add(commands: Subparsers, common: argparse.ArgumentParser) -> None:
    """Describe the command to the parser of command lines."""
    verify = commands.add_parser(
        "verify", parents=[common], help="check everything in the registry",
        description="Checks all blobs, rows, references, statements, signatures and the evidence "
                    "of replacements. It changes nothing.",
        epilog=_STATUSES, formatter_class=argparse.RawDescriptionHelpFormatter)
    verify.add_argument("--quick", action="store_true",
                        help="leave out blobs, other than statements")
    verify.add_argument("--trust", metavar="FILE",
                        help="also tell of replacements that none of these keys has signed "
                             "(default: as with pull)")
    verify.add_argument("--threads", type=int, metavar="N",
                        help="blobs that are read at a time (default: one for each core)")
    verify.set_defaults(command=run)


def run(arguments: argparse.Namespace) -> int:
    """Run the command; returns its exit status."""
    from asmevo.registry.audit.verify import verify
    from asmevo.registry.errors import RegistryError
    from asmevo.registry.signing.trust import find_trust

    if arguments.threads is not None and not 1 <= arguments.threads <= 1024:
        raise RegistryError("--threads is a number from 1 to 1024")
    registry = opened(arguments)
    audit = verify(registry, trust=find_trust(arguments.trust, *registry.folders),
                   quick=arguments.quick, threads=arguments.threads)
    if arguments.json:
        print_json({
            "schema_version": 1, "clean": audit.clean, "rows": audit.rows, "blobs": audit.blobs,
            "bytes": audit.size, "seconds": round(audit.seconds, 3), "garbage": audit.garbage,
            "findings": [{"code": f.code.value, "subject": f.subject, "reason": f.reason}
                         for f in audit.findings]})
    else:
        for finding in audit.findings:
            print(f"{finding.code}: {finding.subject}: {finding.reason}")
        print(_summary(audit, quick=arguments.quick))
        if audit.garbage:
            print(f"asmevo-registry: {counted(len(audit.garbage), 'blob')} that nothing names: gc "
                  "removes what is older than a day", file=sys.stderr)
    return FOUND if audit.clean else NOTHING


def _summary(audit: Audit, *, quick: bool) -> str:
    from rich.filesize import decimal

    of = counted(audit.rows, "row")
    if not quick:
        of += f" and {counted(audit.blobs, 'blob')} of {decimal(audit.size)}"
    found = "nothing is wrong" if audit.clean else counted(len(audit.findings), "finding")
    return f"verified {of} in {audit.seconds:.1f} s: {found}"
