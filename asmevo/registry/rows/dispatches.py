"""Dispatches, to rows and blobs and back.

A JSON description is one blob, and so are the bytes of each region.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Sequence
from typing import Any

from sqlmodel import Session, col, select

from asmevo.dispatch.dispatch import Dispatch, ElementType, Pointer, Region, Role
from asmevo.registry.blobs.store import Blobs, StagedBlobs
from asmevo.registry.database.models import DispatchRow
from asmevo.registry.errors import RegistryError
from asmevo.registry.records import DispatchRecord

FORMAT = 1


def dispatch_rows(dispatches: Sequence[Dispatch], blobs: StagedBlobs) -> list[DispatchRow]:
    """The rows of dispatches, whose blobs are stored."""
    return [DispatchRow(sha256=d.sha256, kernel=d.kernel, name=d.name, held_out=d.held_out,
                        content_sha256=store_dispatch(d, blobs)) for d in dispatches]


def add_dispatches(session: Session, rows: Sequence[DispatchRow]) -> None:
    """Add dispatches; of one that is known already the labels are updated."""
    for row in rows:
        known = session.get(DispatchRow, row.sha256)
        if known is None:
            session.add(row)
        else:
            known.name, known.held_out = row.name, row.held_out
            known.content_sha256 = row.content_sha256


def dispatch_records(session: Session,
                     sha256s: Collection[str]) -> dict[str, DispatchRecord]:
    """The records of dispatches by SHA-256, as far as they are stored."""
    rows = session.exec(select(DispatchRow).where(col(DispatchRow.sha256).in_(sha256s)))
    return {row.sha256: DispatchRecord(row.sha256, row.kernel, row.name, row.held_out,
                                       row.content_sha256, row.created) for row in rows}


def stored_dispatch(session: Session, sha256: str, blobs: Blobs) -> Dispatch:
    """A stored dispatch, verified. Raises `RegistryError`."""
    row = session.get(DispatchRow, sha256)
    if row is None:
        raise RegistryError(f"the registry has no dispatch {sha256}")
    dispatch = load_dispatch(row.content_sha256, blobs)
    stored = (row.sha256, row.kernel, row.name, row.held_out)
    if stored != (dispatch.sha256, dispatch.kernel, dispatch.name, dispatch.held_out):
        raise RegistryError(f"the record of dispatch {row.sha256} does not match its content")
    return dispatch


def store_dispatch(dispatch: Dispatch, blobs: Blobs | StagedBlobs) -> str:
    """Store a dispatch; returns the SHA-256 of the blob that describes it."""
    description = {
        "format": FORMAT,
        "name": dispatch.name,
        "kernel": dispatch.kernel,
        "kernarg": dispatch.kernarg.hex(),
        "grid": dispatch.grid,
        "workgroup": dispatch.workgroup,
        "dynamic_lds": dispatch.dynamic_lds,
        "held_out": dispatch.held_out,
        "regions": [
            {"name": r.name, "address": r.address, "role": r.role, "element": r.element,
             "guard": r.guard, "data": blobs.put(r.data),
             **({"order_dependent": True} if r.order_dependent else {})}
            for r in dispatch.regions
        ],
        "pointers": [
            [p.offset, p.region] if p.holder is None else [p.offset, p.region, p.holder]
            for p in dispatch.pointers
        ],
        # Absent where it is false, so that the blobs of older dispatches keep their hashes.
        **({"relies_on_time": True} if dispatch.relies_on_time else {}),
    }
    return blobs.put(json.dumps(description, sort_keys=True).encode())


def load_dispatch(content_sha256: str, blobs: Blobs) -> Dispatch:
    """Rebuild the dispatch that a blob describes; raises `RegistryError` if it describes none."""
    try:
        description = json.loads(blobs.get(content_sha256))
        if description["format"] != FORMAT:
            raise ValueError("unknown format")
        return Dispatch(
            name=_text(description["name"]),
            kernel=_text(description["kernel"]),
            kernarg=bytes.fromhex(description["kernarg"]),
            grid=_dimensions(description["grid"]),
            workgroup=_dimensions(description["workgroup"]),
            regions=tuple(_region(r, blobs) for r in description["regions"]),
            pointers=tuple(Pointer(*(_integer(part) for part in entry))
                           for entry in description["pointers"]),
            dynamic_lds=_integer(description["dynamic_lds"]),
            held_out=description["held_out"] is True,
            relies_on_time=description.get("relies_on_time") is True,
        )
    except (ValueError, TypeError, KeyError, RecursionError) as error:
        raise RegistryError(f"blob {content_sha256} does not describe a dispatch") from error


def _region(entry: Any, blobs: Blobs) -> Region:
    return Region(
        name=_text(entry["name"]),
        address=_integer(entry["address"]),
        data=blobs.get(_text(entry["data"])),
        role=Role(entry["role"]),
        element=ElementType(entry["element"]),
        guard=_integer(entry["guard"]),
        order_dependent=entry.get("order_dependent") is True,
    )


def _dimensions(value: Any) -> tuple[int, int, int]:
    x, y, z = value
    return _integer(x), _integer(y), _integer(z)


def _integer(value: Any) -> int:
    if type(value) is not int or value < 0:
        raise ValueError("not a natural number")
    return value


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise ValueError("not a string")
    return value
