"""The gradients of attention."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from asmevo.operation.bf16 import to_bf16
from asmevo.operation.operation import Array, Arrays, Names, Operation
from asmevo.operation.sequences import Rows, heads, pack

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class AttentionBackward(Operation):
    """Gradients ``dk`` and ``dv``, and ``dq`` without its last rounding, from ``do``.

    Sequences and heads are those of `heads`, rows have ``D`` elements: ``q``, ``do``, ``dk`` and
    ``dv`` are [batch, row, head of queries, column], ``k`` and ``v`` [batch, row, head of keys,
    column], ``dq`` is [batch, head, row, column], ``lse`` and ``d`` are [batch, head, row]. What
    the heads of a group add to ``dk`` and ``dv`` stays apart.

    ``lse`` is the forward pass's logarithm of the softmax's denominators, ``d`` the sum of
    ``o * do`` along each row; `prepare` makes both, and clears ``dq``, to which the workgroups add.
    ``mask``: ``full``, or ``top_left`` or ``bottom_right``, where the causal mask's diagonal starts
    or ends. ``rounding`` is that of the weights and of their gradients to bf16; ``dk`` and ``dv``
    are rounded to nearest even. A query that sees no key has no gradient. ``dq_by_row``: ``dq`` is
    [batch, row, head, column] as ``q`` is.
    """

    mask: str
    rounding: str
    dq_by_row: bool = False

    def prepare(self, arrays: Arrays, names: Names, rng: np.random.Generator) -> Arrays:
        made = {**pack(arrays, names, rng),
                **{name: np.zeros_like(arrays[name]) for name in ("dq", "lse", "d")}}
        arrays = {**arrays, **made}
        dense = _Dense.of(arrays, names, packed="q_starts" in arrays)
        for rows, key_rows in heads(arrays, names):
            # Boundary inputs hold infinities and NaNs; the logarithm of no weights is infinite.
            with np.errstate(all="ignore"):
                q, k, v, do = self._inputs(dense, names, rows, key_rows)
                scores = self._scores(q, k, names)
                maxima = _finite(scores.max(axis=1, keepdims=True))
                weights = np.exp(scores - maxima)
                total = weights.sum(axis=1, keepdims=True)
                dense.scalars("lse", rows)[:] = maxima + np.log(total)
                o = weights @ v / np.where(total > 0, total, 1)
                dense.scalars("d", rows)[:] = (o * do).sum(axis=1, keepdims=True)
        return made

    def reference(self, arrays: Arrays, names: Names) -> Arrays:
        scale, packed = float(names["scale"]), "q_starts" in arrays
        result = {name: np.full(len(arrays[name]), np.nan) for name in ("dq", "dk", "dv")}
        dense, found = (_Dense.of(a, names, packed=packed) for a in (arrays, result))
        for rows, key_rows in heads(arrays, names):
            q, k, v, do = self._inputs(dense, names, rows, key_rows)
            weights = np.exp(self._scores(q, k, names) - _finite(dense.scalars("lse", rows)))
            gradients = to_bf16(weights * (do @ v.T - dense.scalars("d", rows)), self.rounding)
            own = replace(key_rows, head=rows.head)
            found.by_row("dv", own)[:] = to_bf16(to_bf16(weights, self.rounding).T @ do, "rtne")
            found.by_row("dk", own)[:] = to_bf16(gradients.T @ q * scale, "rtne")
            before, dq = (part.by_row("dq", rows) if self.dq_by_row else part.by_head("dq", rows)
                          for part in (dense, found))
            dq[:] = before + gradients @ k * scale
        return result

    def _inputs(self, dense: _Dense, names: Names, rows: Rows, key_rows: Rows) -> tuple[
        Floats, Floats, Floats, Floats
    ]:
        sharing = int(names["R"])
        q, do = dense.by_row("q", rows), dense.by_row("do", rows)
        k, v = dense.by_row("k", key_rows, sharing), dense.by_row("v", key_rows, sharing)
        return (q.astype(np.float64), k.astype(np.float64), v.astype(np.float64),
                do.astype(np.float64))

    def _scores(self, q: Floats, k: Floats, names: Names) -> Floats:
        scores = q @ k.T * float(names["scale"])
        if self.mask != "full":
            rows, keys = scores.shape
            first = {"top_left": 0, "bottom_right": keys - rows}[self.mask]
            scores[~np.tri(rows, keys, first, dtype=np.bool_)] = -np.inf
        return scores


@dataclass(frozen=True)
class _Dense:
    """Rows of one head in buffers without gaps; views, which can be written."""

    arrays: Arrays
    batches: int
    heads: int
    columns: int

    @classmethod
    def of(cls, arrays: Arrays, names: Names, *, packed: bool) -> _Dense:
        return cls(arrays, 1 if packed else int(names["B"]), int(names["H"]), int(names["D"]))

    def by_row(self, name: str, rows: Rows, sharing: int = 1) -> Array:
        """From [batch, row, head, column], ``sharing`` heads of queries having one."""
        shape = self.batches, -1, self.heads // sharing, self.columns
        return self._part(self.arrays[name].reshape(shape).transpose(0, 2, 1, 3), rows)

    def by_head(self, name: str, rows: Rows) -> Array:
        """From [batch, head, row, column]."""
        shape = self.batches, self.heads, -1, self.columns
        return self._part(self.arrays[name].reshape(shape), rows)

    def scalars(self, name: str, rows: Rows) -> Array:
        """From [batch, head, row], as a column."""
        return self._part(self.arrays[name].reshape(self.batches, self.heads, -1, 1), rows)

    def _part(self, shaped: Array, rows: Rows) -> Array:
        return shaped[rows.batch, rows.head, rows.first:rows.first + rows.count]


def _finite(per_row: Array) -> Floats:
    """0 for a row whose scores are all minus infinity."""
    return np.where(np.isinf(per_row), 0, per_row.astype(np.float64))


@dataclass(frozen=True)
class RowDot(Operation):
    """``d``, [batch, head, row]: the sum of ``o * do``, [batch, row, head, column], along a row."""

    def reference(self, arrays: Arrays, names: Names) -> Arrays:
        shape = tuple(int(names[name]) for name in ("B", "S", "H", "D"))
        o, do = (arrays[name].astype(np.float64).reshape(shape) for name in ("o", "do"))
        return {"d": (o * do).sum(axis=3).transpose(0, 2, 1).reshape(-1)}


@dataclass(frozen=True)
class RoundedGradient(Operation):
    """``dq`` in bf16, [batch, row, head, column], from ``dq_sum`` in f32, [batch, head, row,
    column]."""

    rounding: str

    def reference(self, arrays: Arrays, names: Names) -> Arrays:
        shape = tuple(int(names[name]) for name in ("B", "H", "S", "D"))
        rounded = to_bf16(arrays["dq_sum"], self.rounding).reshape(shape)
        return {"dq": rounded.transpose(0, 2, 1, 3).reshape(-1)}
