"""8- and 16-bit conversions against ml_dtypes and NumPy; SDWA against its definition."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import ml_dtypes
import numpy as np
import numpy.typing as npt
import pytest

if TYPE_CHECKING:
    from tests.device.emulator.conftest import Bench

U32 = npt.NDArray[np.uint32]
EXEC = 0xF0F1_8000_7FFF_1234
QUIET_NAN = 0x7FC00000
FORMATS: dict[str, Any] = {"fp8": ml_dtypes.float8_e4m3fnuz, "bf8": ml_dtypes.float8_e5m2fnuz}
SELECTS = {"BYTE_0": (0, 8), "BYTE_1": (8, 8), "BYTE_2": (16, 8), "BYTE_3": (24, 8),
           "WORD_0": (0, 16), "WORD_1": (16, 16), "DWORD": (0, 32)}


def f32_bits(x: npt.NDArray[Any]) -> U32:
    wide = x.astype(np.float32)
    return np.where(np.isnan(wide), np.uint32(QUIET_NAN), wide.view(np.uint32))


def encoded(x: U32, kind: str) -> U32:
    """FNUZ bytes of f32 bits."""
    with np.errstate(all="ignore"):
        return x.view(np.float32).astype(FORMATS[kind]).view(np.uint8).astype(np.uint32)


def near_the_format(kind: str) -> U32:
    """Every value of a format, every midpoint between two, and their f32 neighbours."""
    values = np.sort(np.arange(128, dtype=np.uint8).view(FORMATS[kind]).astype(np.float32))
    middles = (values[1:] + values[:-1]) / 2
    past = values[-1] + (values[-1] - values[-2]) * np.array([0.5, 1], np.float32)
    exact = np.concatenate([values, middles, past]).view(np.uint32)
    around = np.concatenate([exact, exact + np.uint32(1), np.maximum(exact, 1) - np.uint32(1)])
    both = np.concatenate([around, around | np.uint32(0x80000000)])
    return np.resize(both, -(-len(both) // 64) * 64)


@pytest.mark.parametrize("kind", FORMATS)
def test_to_float8(bench: Bench, kind: str) -> None:
    a = np.concatenate([near_the_format(kind), *bench.floats(1, 1)])
    b = np.roll(a, 17)
    old = np.arange(len(a), dtype=np.uint32) * np.uint32(2654435761)
    out = bench.run([f"v_cvt_pk_{kind}_f32 v4, v2, v3", f"v_cvt_pk_{kind}_f32 v5, v2, -|v3| "
                     "op_sel:[0,0,1]"], vector={2: a, 3: b, 4: old, 5: old}, exec_mask=EXEC,
                    vector_out=[4, 5]).vector
    active = np.resize([EXEC >> lane & 1 for lane in range(64)], len(a)).astype(bool)
    low = encoded(a, kind) | encoded(b, kind) << 8 | old & 0xFFFF0000
    negative = b | np.uint32(0x80000000)
    high = (encoded(a, kind) | encoded(negative, kind) << 8) << 16 | old & 0xFFFF
    np.testing.assert_array_equal(out[4], np.where(active, low, old))
    np.testing.assert_array_equal(out[5], np.where(active, high, old))


@pytest.mark.parametrize("kind", FORMATS)
def test_from_float8(bench: Bench, kind: str) -> None:
    words = (np.arange(256, dtype=np.uint32) * np.uint32(0x01010101)) ^ np.uint32(0x00FF5533)
    body = [f"v_cvt_f32_{kind}_e32 v20, v2"]
    body += [f"v_cvt_f32_{kind}_sdwa v{21 + k}, v2 src0_sel:BYTE_{k}" for k in range(1, 4)]
    body += [f"v_cvt_pk_f32_{kind}_e32 v[26:27], v2",
             f"v_cvt_pk_f32_{kind}_sdwa v[28:29], v2 src0_sel:WORD_1"]
    out = bench.run(body, vector={2: words}, vector_out=range(20, 30)).vector
    for byte, registers in enumerate([(20, 26), (22, 27), (23, 28), (24, 29)]):
        value = (words >> 8 * byte & 0xFF).astype(np.uint8).view(FORMATS[kind])
        for register in registers:
            np.testing.assert_array_equal(out[register], f32_bits(value))


def test_pair_to_f16_rounds_towards_zero(bench: Bench) -> None:
    half = np.arange(0x7C00, dtype=np.uint16).view(np.float16).astype(np.float32).view(np.uint32)
    a = np.concatenate([half, half + np.uint32(1), np.maximum(half, 1) - np.uint32(1),
                        half | np.uint32(0x80000FFF), *bench.floats(1, 2)])
    b = np.roll(a, 5)
    out = bench.run(["v_cvt_pkrtz_f16_f32 v20, v2, v3"], vector={2: a, 3: b}, vector_out=[20])

    def toward_zero(x: U32) -> U32:
        value = x.view(np.float32)
        with np.errstate(all="ignore"):
            near = value.astype(np.float16)
            too_far = np.abs(near.astype(np.float32)) > np.abs(value)
        bits = near.view(np.uint16).astype(np.uint32) - too_far
        return np.where(np.isnan(value), np.uint32(0x7E00), bits)

    np.testing.assert_array_equal(out.vector[20], toward_zero(a) | toward_zero(b) << 16)


def test_pack_takes_halves(bench: Bench) -> None:
    a, b = bench.integers(2, 3)
    out = bench.run(["v_pack_b32_f16 v20, v2, v3", "v_pack_b32_f16 v21, v2, v3 op_sel:[1,0,0]",
                     "v_pack_b32_f16 v22, v2, v3 op_sel:[0,1,0]"],
                    vector={2: a, 3: b}, vector_out=[20, 21, 22]).vector
    np.testing.assert_array_equal(out[20], a & 0xFFFF | b << 16)
    np.testing.assert_array_equal(out[21], a >> 16 | b << 16)
    np.testing.assert_array_equal(out[22], a & 0xFFFF | b & 0xFFFF0000)


def test_int4_in_sixteenths(bench: Bench) -> None:
    a, = bench.integers(1, 4)
    out = bench.run(["v_cvt_off_f32_i4_e32 v20, v2", "v_cvt_off_f32_i4_sdwa v21, v2 "
                     "dst_sel:DWORD dst_unused:UNUSED_PAD src0_sel:BYTE_2"],
                    vector={2: a}, vector_out=[20, 21]).vector
    for register, nibble in ((20, a & 15), (21, a >> 16 & 15)):
        signed = nibble.astype(np.int32) - (nibble >> 3 << 4).astype(np.int32)
        np.testing.assert_array_equal(out[register].view(np.float32), signed / np.float32(16))


def select(x: U32, name: str, extend: bool = False) -> U32:
    shift, bits = SELECTS[name]
    field = x >> np.uint32(shift) & np.uint32((1 << bits) - 1)
    if extend and bits < 32:
        field = np.where(field >> np.uint32(bits - 1), field | np.uint32(0xFFFFFFFF << bits
                                                                        & 0xFFFFFFFF), field)
    return field


@pytest.mark.parametrize("dst", SELECTS)
@pytest.mark.parametrize("unused", ["UNUSED_PAD", "UNUSED_SEXT", "UNUSED_PRESERVE"])
@pytest.mark.parametrize(("first", "second"), [("BYTE_1", "WORD_1"), ("DWORD", "BYTE_3"),
                                               ("WORD_0", "BYTE_0"), ("BYTE_2", "DWORD")])
def test_sdwa(bench: Bench, dst: str, unused: str, first: str, second: str) -> None:
    a, b, old = bench.integers(3, 5)
    out = bench.run([f"v_sub_u32_sdwa v4, sext(v2), v3 dst_sel:{dst} dst_unused:{unused} "
                     f"src0_sel:{first} src1_sel:{second}"],
                    vector={2: a, 3: b, 4: old}, exec_mask=EXEC, vector_out=[4]).vector[4]
    result = select(a, first, extend=True) - select(b, second)
    shift, bits = SELECTS[dst]
    field = (1 << bits) - 1 << shift
    placed = result << np.uint32(shift) & np.uint32(field)
    if unused == "UNUSED_PRESERVE":
        placed |= old & np.uint32(~field & 0xFFFFFFFF)
    elif unused == "UNUSED_SEXT":
        above = np.uint32(~((1 << shift + bits) - 1) & 0xFFFFFFFF)
        placed |= np.where(placed >> np.uint32(shift + bits - 1) & 1, above, np.uint32(0))
    active = np.resize([EXEC >> lane & 1 for lane in range(64)], len(a)).astype(bool)
    np.testing.assert_array_equal(out, np.where(active, placed, old))


def test_sdwa_of_half_precision_conversions(bench: Bench) -> None:
    a, old = bench.integers(2, 6)
    f, = bench.floats(1, 6)
    size = min(len(a), len(f))
    a, old, f = a[:size], old[:size], f[:size]
    out = bench.run(["v_cvt_f32_f16_sdwa v20, v2 dst_sel:DWORD dst_unused:UNUSED_PAD "
                     "src0_sel:WORD_1",
                     "v_cvt_f16_f32_sdwa v4, v3 dst_sel:WORD_1 dst_unused:UNUSED_PRESERVE "
                     "src0_sel:DWORD"], vector={2: a, 3: f, 4: old}, vector_out=[20, 4]).vector
    np.testing.assert_array_equal(
        out[20], f32_bits((a >> 16).astype(np.uint16).view(np.float16)))
    with np.errstate(all="ignore"):
        half = f.view(np.float32).astype(np.float16)
    bits = np.where(np.isnan(half), 0x7E00, half.view(np.uint16)).astype(np.uint32)
    np.testing.assert_array_equal(out[4], bits << 16 | old & 0xFFFF)
