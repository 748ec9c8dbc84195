"""The published figures of gfx942 that a small kernel can reproduce.

Sources: PYHIP tingqli/pyhip (MI308X): docs/mem_latency.md, docs/vm_cnt.md, and
tests/flydsl/attn_4wave/tools/mfma-valu-coissue.md; MIC AMD's matrix instruction calculator and LLVM
SISchedule.td; MT4G caps-tum/mt4g sample results for MI300X; WP AMD CDNA3 white paper; AZ public
Azure MI300X results.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

from asmevo.profile.profile import StallCause
from asmevo.validation.microbenchmark import Chase, Microbenchmark, Quantity, Stream
from asmevo.validation.row import Basis, Confidence

_MI300X, _MI308X = 304, 80  # compute units

_VALU = "v_add_f32_e32 v8, v9, v10"
_VALU_8 = "v_add_f32_e64 v8, v9, v10"
_PACKED = "v_pk_mul_f32 v[12:13], v[14:15], v[16:17]"
_EXP = "v_exp_f32_e32 v18, v19"
_MFMA = "v_mfma_f32_16x16x16_bf16 a[0:3], v[20:21], v[22:23], a[0:3]"

_TURNS = 4

# Registers of D, those of A and of B, clk.
_MATRIX = (
    ("v_mfma_f32_4x4x4_16b_f16", 4, 2, 8),
    ("v_mfma_f32_4x4x4_16b_bf16", 4, 2, 8),
    ("v_mfma_f32_16x16x16_f16", 4, 2, 16),
    ("v_mfma_f32_16x16x16_bf16", 4, 2, 16),
    ("v_mfma_f32_16x16x8_xf32", 4, 2, 16),
    ("v_mfma_i32_16x16x32_i8", 4, 2, 16),
    ("v_mfma_f32_16x16x32_fp8_fp8", 4, 2, 16),
    ("v_mfma_f32_16x16x32_bf8_bf8", 4, 2, 16),
    ("v_mfma_f32_32x32x8_f16", 16, 2, 32),
    ("v_mfma_f32_32x32x8_bf16", 16, 2, 32),
    ("v_mfma_f32_32x32x4_xf32", 16, 2, 32),
    ("v_mfma_i32_32x32x16_i8", 16, 2, 32),
    ("v_mfma_f32_32x32x16_fp8_fp8", 16, 2, 32),
    ("v_mfma_f32_32x32x16_bf8_bf8", 16, 2, 32),
    ("v_mfma_f32_16x16x4_4b_f16", 16, 2, 32),
    ("v_mfma_f32_32x32x4_2b_f16", 32, 2, 64),
    ("v_smfmac_f32_16x16x32_f16", 4, 2, 16),
    ("v_smfmac_f32_32x32x16_f16", 16, 2, 32),
    ("v_mfma_f32_4x4x1_16b_f32", 4, 1, 8),
    ("v_mfma_f32_16x16x1_4b_f32", 16, 1, 32),
    ("v_mfma_f32_16x16x4_f32", 4, 1, 32),
    ("v_mfma_f32_32x32x1_2b_f32", 32, 1, 64),
    ("v_mfma_f32_32x32x2_f32", 16, 1, 64),
    ("v_mfma_f64_4x4x4_4b_f64", 2, 2, 16),
    ("v_mfma_f64_16x16x4_f64", 8, 2, 32),
)

# 4 * lane is in v1: byte addresses of lanes side by side at 16 bytes, and `stride` dwords apart.
_LDS_16 = ("v_lshlrev_b32_e32 v8, 2, v1",)


def _lds_stride(dwords: int) -> tuple[str, ...]:
    return (f"v_mul_u32_u24_e32 v8, {dwords}, v1",)


_measured = partial(Microbenchmark, source="PYHIP", confidence=Confidence.MEDIUM)
_given = partial(_measured, basis=Basis.PARAMETER)
_follows = partial(_measured, basis=Basis.EMERGENT)
_latency = partial(Microbenchmark, source="MT4G", confidence=Confidence.MEDIUM,
                   basis=Basis.PARAMETER, setup=("v_mov_b32_e32 v8, 0", "s_mov_b32 s20, 0",
                                                 "s_mov_b64 exec, 1"))


def microbenchmarks() -> tuple[Microbenchmark, ...]:
    """All of them, in the order in which they are shown."""
    return (*_valu(), *_matrix(), *_beside_matrix(), *_lds(), *_vector_memory(), *_chases(),
            *_bandwidth())


def _valu() -> Iterator[Microbenchmark]:
    yield _given("v_add_f32", 4.01, body=(_VALU,))
    yield _given("v_add_u32", 4.01, body=("v_add_u32_e32 v8, v9, v10",))
    yield _given("v_pk_mul_f32", 4.01, body=(_PACKED,))
    yield _given("v_pk_add_f32", 4.01, body=("v_pk_add_f32 v[12:13], v[14:15], v[16:17]",))
    yield _given("v_exp_f32", 16.0, body=(_EXP,))
    yield _given("v_rcp_f32", 16.0, body=("v_rcp_f32_e32 v18, v19",))
    yield _given("8-byte VALU at PC % 8 = 0", 4.016, body=(_VALU_8,))
    yield _given("8-byte VALU at PC % 8 = 4", 5.012, body=(_VALU_8,), head=("s_nop 0",))
    yield _follows("v_exp_f32 + v_add_f32", 20.036, body=(_EXP, _VALU))
    yield _follows("v_exp_f32 + v_add_f32 of another wave", 20.008, body=(_EXP,), other=(_VALU,))
    yield _follows("v_exp_f32 + v_pk_mul_f32", 20.052, body=(_EXP, _PACKED))
    yield _follows("v_exp_f32 + v_exp_f32 of another wave", 32.008, body=(_EXP,), other=(_EXP,))


def _matrix() -> Iterator[Microbenchmark]:
    """Four independent accumulators in turn."""
    for name, registers, inputs, clk in _MATRIX:
        sparse = name.startswith("v_smfmac")
        body = []
        for number in range(4):
            d = f"a[{number * registers}:{(number + 1) * registers - 1}]"
            a, b = ((f"v[{first}:{first + inputs - 1}]" if inputs > 1 else f"v{first}")
                    for first in (20, 24))
            body.append(f"{name} {d}, {a}, v[24:27], v28" if sparse else
                        f"{name} {d}, {a}, {b}, {d}")
        yield Microbenchmark(name, clk, "MIC, LLVM", Confidence.HIGH, Basis.PARAMETER,
                             tuple(body), operations=4)


def _in_turn(*group: str) -> tuple[str, ...]:
    """Four times a group; its matrix operations take four accumulators in turn, as PYHIP's do."""
    body = group * _TURNS
    matrix = [index for index, text in enumerate(body) if text == _MFMA]
    accumulators = {index: f"a[{4 * (turn % 4)}:{4 * (turn % 4) + 3}]"
                    for turn, index in enumerate(matrix)}
    return tuple(text.replace("a[0:3]", accumulators.get(index, ""))
                 for index, text in enumerate(body))


def _beside_matrix() -> Iterator[Microbenchmark]:
    group = partial(_follows, operations=_TURNS)
    for count, clk in ((1, 16.05), (2, 16.05), (3, 16.05), (4, 20.05)):
        yield group(f"MFMA + {count} v_add_f32", clk, body=_in_turn(_MFMA, *[_VALU] * count))
    for count, clk in ((1, 16.01), (2, 16.01), (3, 16.02), (4, 19.99)):
        yield group(f"MFMA + {count} v_add_f32 of another wave", clk, body=_in_turn(_MFMA),
                    other=(_VALU,) * count * _TURNS)
    for count, clk in ((1, 20.06), (2, 36.06), (3, 52.06)):
        yield group(f"MFMA + {count} v_exp_f32", clk, body=_in_turn(_MFMA, *[_EXP] * count))
    for count, clk in ((1, 20.02), (2, 35.99), (3, 51.99)):
        yield group(f"MFMA + {count} v_exp_f32 of another wave", clk, body=_in_turn(_MFMA),
                    other=(_EXP,) * count * _TURNS)
    for count, clk in ((1, 28.04), (2, 32.04), (3, 36.04), (4, 40.04)):
        yield _measured(f"MFMA + {count} v_pk_mul_f32", clk,
                        basis=Basis.PARAMETER if count == 1 else Basis.EMERGENT,
                        body=_in_turn(_MFMA, *[_PACKED] * count), operations=_TURNS)
    for count, clk in ((1, 20.99), (2, 25.99), (3, 30.99), (4, 35.99)):
        yield _measured(f"MFMA + {count} v_pk_mul_f32 of another wave", clk,
                        basis=Basis.PARAMETER if count == 1 else Basis.EMERGENT,
                        body=_in_turn(_MFMA), other=(_PACKED,) * count * _TURNS,
                        operations=_TURNS)
    yield group("MFMA, 3 v_add_f32, MFMA, v_exp_f32", 36.05,
                body=_in_turn(_MFMA, _VALU, _VALU, _VALU, _MFMA, _EXP))
    yield group("MFMA, MFMA, 3 v_add_f32, v_exp_f32", 48.05,
                body=_in_turn(_MFMA, _MFMA, _VALU, _VALU, _VALU, _EXP))
    f32 = "v_mfma_f32_16x16x4_f32 a[0:3], v20, v21, 0"
    f64 = "v_mfma_f64_16x16x4_f64 a[0:7], v[20:21], v[22:23], 0"
    for name, body in (("f32 MFMA + v_add_f32", f32), ("f64 MFMA + v_add_f32", f64)):
        yield Microbenchmark(name, 36, "MIC", Confidence.HIGH, Basis.EMERGENT, (body, _VALU),
                             note="no VALU operation runs beside these")


def _lds() -> Iterator[Microbenchmark]:
    latency = partial(Microbenchmark, source="PYHIP, MT4G", confidence=Confidence.HIGH, overhead=4)
    # A word of LDS that points to itself.
    itself = ("v_mov_b32_e32 v8, 0", "v_mov_b32_e32 v9, 0", "ds_write_b32 v8, v9",
              "s_waitcnt lgkmcnt(0)")
    yield latency("ds_read_b32 latency", 52, basis=Basis.PARAMETER, setup=itself,
                  body=("ds_read_b32 v8, v8", "s_waitcnt lgkmcnt(0)"))
    yield latency("ds_read_b128 latency", 64, basis=Basis.EMERGENT, setup=_LDS_16,
                  body=("ds_read_b128 v[12:15], v8", "s_waitcnt lgkmcnt(0)"))
    b32, b128 = "ds_read_b32 v12, v1", "ds_read_b128 v[12:15], v8"
    yield _given("ds_read_b32", 4, body=(b32,))
    yield _given("ds_read_b128 of one SIMD", 16, setup=_LDS_16, body=(b128,))
    yield _follows("ds_read_b128 of two SIMDs", 8, setup=_LDS_16, body=(b128,), waves=(0, 2),
                   operations=2, note="SIMDs of different pairs")
    yield _follows("ds_read_b128 of four SIMDs", 8, setup=_LDS_16, body=(b128,),
                   waves=(0, 1, 2, 3), operations=4)
    strided = "ds_read_b32 v12, v8"
    yield _follows("ds_read_b32 of four banks", 16, setup=_lds_stride(8), body=(strided,),
                   note="8 dwords from lane to lane")
    yield _follows("ds_read_b32 of one bank", 64, setup=_lds_stride(32), body=(strided,))
    yield _given("ds_write_b32", 8, body=("ds_write_b32 v1, v12",))
    yield _follows("ds_write_b128", 20, setup=_LDS_16, body=("ds_write_b128 v8, v[12:15]",))


def _vector_memory() -> Iterator[Microbenchmark]:
    yield _given("buffer_load_dword to LDS", 11,
                 body=("buffer_load_dword v1, s[12:15], 0 offen lds",))
    yield _given("global_atomic_pk_add_bf16 against a store", 4, quantity=Quantity.RATIO,
                 waves=(0, 1, 2, 3), copies=(256, 512),
                 body=("global_atomic_pk_add_bf16 v1, v12, s[6:7]",),
                 reference=("global_store_dword v1, v12, s[6:7]",))
    yield Microbenchmark(
        "loads in flight, one line each", 64, "ISA", Confidence.HIGH, Basis.PARAMETER,
        ("global_load_dword v12, v8, s[4:5]", "v_add_u32_e32 v8, 0x80, v8"),
        quantity=Quantity.OUTSTANDING, stall=StallCause.VMCNT, head=("s_waitcnt vmcnt(0)",),
        setup=("v_mov_b32_e32 v8, 0", "s_mov_b64 exec, 1"), note="vmcnt has 6 bits")
    yield Microbenchmark(
        "loads in flight, 64 lines each", 24, "PYHIP", Confidence.LOW, Basis.PARAMETER,
        ("global_load_dword v12, v8, s[4:5]", "v_add_u32_e32 v8, 64, v8"),
        quantity=Quantity.OUTSTANDING, stall=StallCause.UNIT_BUSY, head=("s_waitcnt vmcnt(0)",),
        setup=("v_lshlrev_b32_e32 v8, 8, v1",))


def _chases() -> Iterator[Microbenchmark]:
    vector = partial(_latency, body=("global_load_dword v8, v8, s[4:5]", "s_waitcnt vmcnt(0)"),
                     overhead=4)
    scalar = partial(_latency, body=("s_load_dword s20, s[4:5], s20", "s_waitcnt lgkmcnt(0)"),
                     overhead=4)
    yield scalar("sL1D latency", 48, chase=Chase(8 << 10))
    yield scalar("scalar load found in L2", 172, chase=Chase(128 << 10))
    yield vector("vL1D latency", 116, chase=Chase(16 << 10))
    yield vector("L2 latency", 288, chase=Chase(256 << 10))
    yield vector("MALL latency", 477, chase=Chase(8 << 20), confidence=Confidence.LOW,
                 source="second-hand", note="458 to 496")
    yield vector("HBM latency", 876, chase=Chase(1 << 20, warm=False), compute_units=_MI300X,
                 note="median; every line for the first time")
    yield vector("HBM latency", 650, chase=Chase(1 << 20, warm=False), compute_units=_MI308X,
                 source="PYHIP", note="500 to 800; every line for the first time")
    yield _latency("atomic in L2", 382, overhead=4,
                   body=("global_atomic_add v9, v8, v10, s[6:7] sc0", "s_waitcnt vmcnt(0)"),
                   confidence=Confidence.LOW, source="second-hand")


def _bandwidth() -> Iterator[Microbenchmark]:
    loads = tuple(f"global_load_dwordx4 v[{16 + 4 * k}:{19 + 4 * k}], v{8 + k}, s[4:5]"
                  for k in range(4))
    stores = tuple(f"global_store_dwordx4 v{8 + k}, v[{16 + 4 * k}:{19 + 4 * k}], s[6:7]"
                   for k in range(4))
    advance = tuple(f"v_add_u32_e32 v{8 + k}, s20, v{8 + k}" for k in range(4))
    setup = ("s_lshl_b32 s20, s16, 2", "v_mov_b32_e32 v8, v1",
             *(f"v_add_u32_e32 v{9 + k}, s16, v{8 + k}" for k in range(3)))
    # PYHIP's 32 clk a buffer_load_dwordx4, of a wave on each compute unit, are the same limit: 2.56
    # TB/s a GHz, at the 1592 MHz to which that load slows an MI308X.
    yield _given("reads from HBM", 4.0, body=(*loads, *advance), setup=setup,
                 quantity=Quantity.BANDWIDTH, stream=Stream(64, 64), waves=(0, 1, 2, 3),
                 compute_units=_MI308X)
    yield Microbenchmark("copy through HBM", 4.1, "AZ", Confidence.MEDIUM, Basis.PARAMETER,
                         (*loads, "s_waitcnt vmcnt(0)", *stores, *advance), setup=setup,
                         quantity=Quantity.BANDWIDTH, stream=Stream(128, 64),
                         waves=(0, 1, 2, 3),
                         compute_units=_MI300X)

