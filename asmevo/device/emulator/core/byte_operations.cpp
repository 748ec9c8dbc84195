// Sums of absolute differences of bytes, byte averages and cube-map coordinates.
#include "typed_lanes.hpp"

namespace asmevo {

namespace {

u32 byte(u64 x, u32 k) { return static_cast<u32>(x >> (8 * k)) & 0xffu; }
u32 difference(u32 a, u32 b) { return a > b ? a - b : b - a; }

// `Masked` leaves out the bytes where the reference, b, is 0.
template <bool Masked>
u64 sad(u32 a, u32 b, u32 c) {
  u64 sum = c;
  for (u32 k = 0; k < 4; ++k) {
    if (!Masked || byte(b, k) != 0) sum += difference(byte(a, k), byte(b, k));
  }
  return sum;
}
u64 sad_u16(u32 a, u32 b, u32 c) {
  return u64{c} + difference(a & 0xffffu, b & 0xffffu) + difference(a >> 16, b >> 16);
}

// Four windows of a, one byte apart, each into 16 bits of the accumulator.
template <bool Masked>
void quad_sad(Wave& w, const Step& s) {
  const Source<U64> a(w, s, 0), c(w, s, 2);
  const Source<U32> b(w, s, 1);
  const bool clamp = (s.flags & kFlagClamp) != 0;
  u32* lo = w.begin_write(s.dst);
  for (std::size_t i = 0; i < kLanes; ++i) {
    u64 result = 0;
    for (u32 k = 0; k < 4; ++k) {
      u64 sum = sad<Masked>(static_cast<u32>(a[i] >> (8 * k)), b[i],
                            static_cast<u32>(c[i] >> (16 * k)) & 0xffffu);
      if (clamp && sum > 0xffff) sum = 0xffff;
      result |= (sum & 0xffffu) << (16 * k);
    }
    lo[i] = static_cast<u32>(result);
    lo[i + kLanes] = static_cast<u32>(result >> 32);
  }
  w.end_write(s.dst, 2);
}

// The same into four dwords; the accumulator is a vector register of four.
void quad_sad_u32(Wave& w, const Step& s) {
  const Source<U64> a(w, s, 0);
  const Source<U32> b(w, s, 1);
  const u32* c = w.v + s.src[2].index * kLanes;
  const bool clamp = (s.flags & kFlagClamp) != 0;
  u32 result[4][kLanes];
  for (std::size_t i = 0; i < kLanes; ++i) {
    for (u32 k = 0; k < 4; ++k) {
      const u64 sum = sad<true>(static_cast<u32>(a[i] >> (8 * k)), b[i], c[k * kLanes + i]);
      result[k][i] = clamp && sum > 0xffffffffu ? ~0u : static_cast<u32>(sum);
    }
  }
  w.merge(s.dst, 4, &result[0][0], w.active());
}

// The average of bytes, rounded up where the byte of c is odd.
u32 lerp(u32 a, u32 b, u32 c) {
  u32 r = 0;
  for (u32 k = 0; k < 4; ++k) {
    r |= (((byte(a, k) + byte(b, k) + (byte(c, k) & 1)) >> 1) & 0xffu) << (8 * k);
  }
  return r;
}

enum class Axis { kX, kY, kZ };
float magnitude(u32 x) { return as_float(x & ~kSignBit); }
Axis major_axis(u32 x, u32 y, u32 z) {
  if (magnitude(z) >= magnitude(x) && magnitude(z) >= magnitude(y)) return Axis::kZ;
  return magnitude(y) >= magnitude(x) ? Axis::kY : Axis::kX;
}
u32 choose(Axis axis, u32 x, u32 y, u32 z) {
  return axis == Axis::kX ? x : axis == Axis::kY ? y : z;
}
bool negative(u32 x) { return as_float(x) < 0.0f; }

struct Point {
  u32 x, y, z;
  Axis axis;
  u32 major;
  bool negative_major;
  Point(const FpMode& fp, u32 a, u32 b, u32 c)
      : x(flush(a, fp.keep_in)), y(flush(b, fp.keep_in)), z(flush(c, fp.keep_in)),
        axis(major_axis(x, y, z)), major(choose(axis, x, y, z)), negative_major(negative(major)) {}
};
u32 cube_face(const FpMode& fp, u32 a, u32 b, u32 c) {
  const Point p(fp, a, b, c);
  return as_bits(static_cast<float>(2 * static_cast<int>(p.axis) + (p.negative_major ? 1 : 0)));
}
u32 cube_s(const FpMode& fp, u32 a, u32 b, u32 c) {
  const Point p(fp, a, b, c);
  switch (p.axis) {
    case Axis::kX: return p.z ^ (p.negative_major ? 0 : kSignBit);
    case Axis::kY: return p.x;
    case Axis::kZ: break;
  }
  return p.x ^ (p.negative_major ? kSignBit : 0);
}
u32 cube_t(const FpMode& fp, u32 a, u32 b, u32 c) {
  const Point p(fp, a, b, c);
  if (p.axis != Axis::kY) return p.y ^ kSignBit;
  return p.z ^ (p.negative_major ? kSignBit : 0);
}
u64 cube_major(const FpMode& fp, u32 a, u32 b, u32 c) {
  return soft::scale<soft::Single>(Point(fp, a, b, c).major, 1, fp.single);
}

using Words = U32(U32, U32, U32);
using Cube = F32(F32, F32, F32);
constexpr Type kU64 = Type::kUnsigned64;

constexpr Operation kTable[] = {
    lane_operation<Words, sad<false>>("v_sad_u8", kClamp),
    lane_operation<Words, [](u32 a, u32 b, u32 c) -> u64 {
      return (sad<false>(a, b, 0) << 16) + c;
    }>("v_sad_hi_u8", kClamp),
    lane_operation<Words, sad_u16>("v_sad_u16", kClamp),
    lane_operation<Words, [](u32 a, u32 b, u32 c) -> u64 {
      return u64{c} + difference(a, b);
    }>("v_sad_u32", kClamp),
    lane_operation<Words, sad<true>>("v_msad_u8", kClamp),
    lane_operation<Words, lerp>("v_lerp_u8"),
    {"v_qsad_pk_u16_u8", Shape::kVector, 2, {2, 1, 2}, kClamp, quad_sad<false>,
     {kU64, Type::kWord, kU64}},
    {"v_mqsad_pk_u16_u8", Shape::kVector, 2, {2, 1, 2}, kClamp, quad_sad<true>,
     {kU64, Type::kWord, kU64}},
    {"v_mqsad_u32_u8", Shape::kVector, 4, {2, 1, 4}, kClamp, quad_sad_u32,
     {kU64, Type::kWord, Type::kWord}},
    lane_operation<Cube, cube_face>("v_cubeid_f32"),
    lane_operation<Cube, cube_s>("v_cubesc_f32"),
    lane_operation<Cube, cube_t>("v_cubetc_f32"),
    lane_operation<Cube, cube_major>("v_cubema_f32"),
};

}  // namespace

std::span<const Operation> byte_operations() { return kTable; }

}  // namespace asmevo
