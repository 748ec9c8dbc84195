"""Triton kernels whose HSACO has what AITER's objects lack, and a command that compiles them.

``python triton_kernels.py FOLDER ISA...`` writes ``FOLDER/ISA/NAME.hsaco`` for every kernel of
`CASES`. It needs the ``triton`` wheel, but neither torch nor a GPU.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import triton
import triton.language as tl
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource, compile


@triton.jit
def add(x, y, out, n, BLOCK: tl.constexpr):
    """Elementwise: kernarg preload, masked memory."""
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = at < n
    tl.store(out + at, tl.load(x + at, mask) + tl.load(y + at, mask), mask)


@triton.jit
def transcendental(x, out, n, BLOCK: tl.constexpr):
    """exp, log, sin, cos, sqrt, rsqrt, division and erf: OCML code, v_div_*, constants."""
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = at < n
    v = tl.load(x + at, mask)
    r = tl.exp(v) + tl.log(v) * tl.sin(v) - tl.cos(v) / tl.sqrt(v) + tl.rsqrt(v) + tl.erf(v)
    tl.store(out + at, r, mask)


@triton.jit
def float64(x, y, out, n, BLOCK: tl.constexpr):
    """Double precision division and square root."""
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = at < n
    tl.store(out + at, tl.load(x + at, mask) / tl.sqrt(tl.load(y + at, mask)), mask)


@triton.jit
def softmax(x, out, stride, n, BLOCK: tl.constexpr):
    """Row reductions across lanes and waves: DPP, LDS, barriers."""
    row = tl.program_id(0)
    at = tl.arange(0, BLOCK)
    v = tl.load(x + row * stride + at, at < n, other=-float("inf"))
    e = tl.exp(v - tl.max(v, axis=0))
    tl.store(out + row * stride + at, e / tl.sum(e, axis=0), at < n)


@triton.jit
def layer_norm(x, w, b, out, stride, n, eps, BLOCK: tl.constexpr):
    """A loop over blocks with two accumulators."""
    row = tl.program_id(0)
    total = tl.zeros([BLOCK], tl.float32)
    square = tl.zeros([BLOCK], tl.float32)
    for start in range(0, n, BLOCK):
        at = start + tl.arange(0, BLOCK)
        v = tl.load(x + row * stride + at, at < n, other=0.0).to(tl.float32)
        total += v
        square += v * v
    mean = tl.sum(total) / n
    scale = tl.rsqrt(tl.sum(square) / n - mean * mean + eps)
    for start in range(0, n, BLOCK):
        at = start + tl.arange(0, BLOCK)
        v = tl.load(x + row * stride + at, at < n, other=0.0).to(tl.float32)
        r = (v - mean) * scale * tl.load(w + at, at < n) + tl.load(b + at, at < n)
        tl.store(out + row * stride + at, r, at < n)


@triton.jit
def gemm(a, b, c, m, n, k, sa, sb, sc, M: tl.constexpr, N: tl.constexpr, K: tl.constexpr):
    """MFMA, LDS staging, software pipelining."""
    rows = tl.program_id(0) * M + tl.arange(0, M)
    cols = tl.program_id(1) * N + tl.arange(0, N)
    inner = tl.arange(0, K)
    pa = a + rows[:, None] * sa + inner[None, :]
    pb = b + inner[:, None] * sb + cols[None, :]
    acc = tl.zeros([M, N], tl.int32 if a.dtype.element_ty == tl.int8 else tl.float32)
    for step in range(tl.cdiv(k, K)):
        left = k - step * K
        acc = tl.dot(tl.load(pa, inner[None, :] < left, other=0),
                     tl.load(pb, inner[:, None] < left, other=0), acc, out_dtype=acc.dtype)
        pa += K
        pb += K * sb
    mask = (rows[:, None] < m) & (cols[None, :] < n)
    tl.store(c + rows[:, None] * sc + cols[None, :], acc.to(c.dtype.element_ty), mask)


@triton.jit
def attention(q, k, v, out, n, scale, D: tl.constexpr, B: tl.constexpr):
    """Two dots with a running softmax between them."""
    at = tl.program_id(0) * B + tl.arange(0, B)
    d = tl.arange(0, D)
    query = tl.load(q + at[:, None] * D + d[None, :])
    acc = tl.zeros([B, D], tl.float32)
    top = tl.full([B], -float("inf"), tl.float32)
    total = tl.zeros([B], tl.float32)
    for start in range(0, n, B):
        j = start + tl.arange(0, B)
        s = tl.dot(query, tl.load(k + j[None, :] * D + d[:, None])) * scale
        new = tl.maximum(top, tl.max(s, 1))
        p = tl.exp2(s - new[:, None])
        alpha = tl.exp2(top - new)
        total = total * alpha + tl.sum(p, 1)
        value = tl.load(v + j[:, None] * D + d[None, :])
        acc = acc * alpha[:, None] + tl.dot(p.to(tl.float16), value)
        top = new
    tl.store(out + at[:, None] * D + d[None, :], (acc / total[:, None]).to(tl.float16))


@triton.jit
def atomics(x, out, count, n, BLOCK: tl.constexpr):
    """Floating point and integer atomics, compare and swap: cache writeback and invalidation."""
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = at < n
    tl.atomic_add(out + at % 16, tl.load(x + at, mask), mask)
    tl.atomic_max(count + 1 + at * 0, at, mask)
    while tl.atomic_cas(count, 0, 1) == 1:
        pass
    tl.atomic_xchg(count, 0)


@triton.jit
def histogram(x, out, n, BLOCK: tl.constexpr):
    """LDS atomics."""
    at = tl.arange(0, BLOCK)
    tl.store(out + tl.arange(0, 64), tl.histogram(tl.load(x + at), 64))


@triton.jit
def cumulative(x, out, BLOCK: tl.constexpr):
    """Scan and sort: many lane permutations."""
    at = tl.arange(0, BLOCK)
    tl.store(out + at, tl.sort(tl.cumsum(tl.load(x + at), 0)))


@triton.jit
def spilling(x, out, n, BLOCK: tl.constexpr, ROWS: tl.constexpr):
    """Needs more registers than `waves_per_eu` leaves it: scratch memory, code behind s_endpgm."""
    at = tl.arange(0, BLOCK)
    rows = tl.arange(0, ROWS)
    v = tl.load(x + rows[:, None] * BLOCK + at[None, :])
    if n < 1:
        return
    w = v
    for _ in range(n):
        w = tl.exp(w) + v * tl.sum(w, 1)[:, None]
    tl.store(out + rows[:, None] * BLOCK + at[None, :], w + v * tl.max(w, 0)[None, :])


@triton.jit(noinline=True)
def _polynomial(v, k):
    return (v * k + 1.0) * v + k


@triton.jit
def calls(x, out, n):
    """Device function calls: s_getpc_b64, s_swappc_b64, a stack."""
    at = tl.program_id(0)
    v = _polynomial(tl.load(x + at), 3.0)
    if n > 4096:
        v = _polynomial(v, 5.0)
    tl.store(out + at, v)


@triton.jit
def assertions(x, out, n, BLOCK: tl.constexpr):
    """Printing: format strings in read-only data, hostcalls out of OCKL."""
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    v = tl.load(x + at, at < n)
    tl.device_print("value", v)
    tl.store(out + at, v, at < n)


@triton.jit
def fp8(x, scale, out, n, BLOCK: tl.constexpr):
    """Conversion to and from narrow floats."""
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = at < n
    v = tl.load(x + at, mask).to(tl.float32) * tl.load(scale)
    tl.store(out + at, v.to(out.dtype.element_ty), mask)


@triton.jit
def random(out, seed, n, BLOCK: tl.constexpr):
    """Philox: wide integer multiplication."""
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out + at, tl.rand(seed, at), at < n)


@triton.jit
def awq_like(packed, zeros, scales, out, n, BLOCK: tl.constexpr):
    """Four-bit unpacking: bit operations of three operands, gather and where."""
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = at < n
    word = tl.load(packed + at // 8, mask, other=0)
    nibble = (word >> (at % 8 * 4)) & 0xF
    z = (tl.load(zeros + at // 64, mask, other=0) >> (at % 8 * 4)) & 0xF
    r = tl.where(nibble > z, nibble - z, 0 - z).to(tl.float16) * tl.load(scales + at // 64, mask)
    tl.store(out + at, r, mask)


@triton.jit
def empty(x):
    """Nothing but the end."""


@dataclass(frozen=True)
class Case:
    """One compilation: types of the run-time arguments in order, values of the others."""

    kernel: Any
    types: str
    constants: dict[str, int] = field(default_factory=dict)
    options: dict[str, int] = field(default_factory=dict)
    only: tuple[str, ...] = ()


CASES = {
    "add": Case(add, "*fp32 *fp32 *fp32 i32", {"BLOCK": 1024}),
    "add_f16_warps8": Case(add, "*fp16 *fp16 *fp16 i32", {"BLOCK": 4096}, {"num_warps": 8}),
    "transcendental": Case(transcendental, "*fp32 *fp32 i32", {"BLOCK": 512}),
    "float64": Case(float64, "*fp64 *fp64 *fp64 i32", {"BLOCK": 512}),
    "softmax": Case(softmax, "*fp32 *fp32 i32 i32", {"BLOCK": 2048}),
    "layer_norm": Case(layer_norm, "*fp16 *fp16 *fp16 *fp16 i32 i32 fp32", {"BLOCK": 1024}),
    "gemm_f16": Case(gemm, "*fp16 *fp16 *fp16 i32 i32 i32 i32 i32 i32",
                     {"M": 128, "N": 128, "K": 32}),
    "gemm_i8": Case(gemm, "*i8 *i8 *i32 i32 i32 i32 i32 i32 i32", {"M": 64, "N": 64, "K": 64}),
    "attention": Case(attention, "*fp16 *fp16 *fp16 *fp16 i32 fp32", {"D": 64, "B": 64}),
    "atomics": Case(atomics, "*fp32 *fp32 *i32 i32", {"BLOCK": 256}),
    "histogram": Case(histogram, "*i32 *i32 i32", {"BLOCK": 512}),
    "cumulative": Case(cumulative, "*fp32 *fp32", {"BLOCK": 256}),
    "spilling": Case(spilling, "*fp32 *fp32 i32", {"BLOCK": 64, "ROWS": 64},
                     {"num_warps": 1, "waves_per_eu": 8}),
    "calls": Case(calls, "*fp32 *fp32 i32"),
    "assertions": Case(assertions, "*fp32 *fp32 i32", {"BLOCK": 256}),
    "fp8": Case(fp8, "*fp16 *fp32 *fp8e4b8 i32", {"BLOCK": 1024}, only=("gfx942",)),
    "random": Case(random, "*fp32 i32 i32", {"BLOCK": 1024}),
    "awq_like": Case(awq_like, "*i32 *i32 *fp16 *fp16 i32", {"BLOCK": 1024}),
    "empty": Case(empty, "*fp32"),
}


def hsaco(case: Case, isa: str) -> bytes:
    """The HSACO of one case; pointers are declared 16-byte aligned, as Triton does by itself."""
    names = iter(case.types.split())
    signature = {name: "constexpr" if name in case.constants else next(names)
                 for name in case.kernel.arg_names}
    aligned: Any = {(i,): [["tt.divisibility", 16]]
                    for i, kind in enumerate(signature.values()) if kind.startswith("*")}
    constants: Any = {(case.kernel.arg_names.index(k),): v for k, v in case.constants.items()}
    source = ASTSource(case.kernel, signature, constants, aligned)
    data = compile(source, target=GPUTarget("hip", isa, 64), options=case.options).asm["hsaco"]
    assert isinstance(data, bytes)
    return data


def main() -> None:
    folder, *isas = sys.argv[1:]
    for isa in isas:
        (Path(folder) / isa).mkdir(parents=True, exist_ok=True)
        for name, case in CASES.items():
            if not case.only or isa in case.only:
                (Path(folder) / isa / f"{name}.hsaco").write_bytes(hsaco(case, isa))


if __name__ == "__main__":
    main()
