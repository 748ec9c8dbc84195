// SALU operations (CDNA3 ISA, "SOP2", "SOPK", "SOP1" and "SOPC" instructions).
#include <bit>
#include <limits>

#include "operation.hpp"

namespace asmevo {

namespace {

// F: u32(Wave&, u32...) or u64(Wave&, u64...); Word of the result and of the sources.
template <class D, class A, auto F>
void unary(Wave& w, const Step& s) {
  A a;
  if constexpr (sizeof(A) == 8) a = w.read64(s.src[0]); else a = w.read32(s.src[0]);
  const D d = F(w, a);
  if constexpr (sizeof(D) == 8) w.set_scalar64(s.dst, d); else w.s[s.dst] = d;
}

template <class D, class A, class B, auto F>
void binary(Wave& w, const Step& s) {
  A a;
  B b;
  if constexpr (sizeof(A) == 8) a = w.read64(s.src[0]); else a = w.read32(s.src[0]);
  if constexpr (sizeof(B) == 8) b = w.read64(s.src[1]); else b = w.read32(s.src[1]);
  const D d = F(w, a, b);
  if constexpr (sizeof(D) == 8) w.set_scalar64(s.dst, d); else w.s[s.dst] = d;
}

template <class A, auto F>
void compare(Wave& w, const Step& s) {
  if constexpr (sizeof(A) == 8) {
    w.scc = F(w.read64(s.src[0]), w.read64(s.src[1]));
  } else {
    w.scc = F(std::bit_cast<A>(w.read32(s.src[0])), std::bit_cast<A>(w.read32(s.src[1])));
  }
}

// The destination keeps its value when SCC is 0.
template <class D>
void conditional_move(Wave& w, const Step& s) {
  if (w.scc == 0) return;
  if constexpr (sizeof(D) == 8) {
    w.set_scalar64(s.dst, w.read64(s.src[0]));
  } else {
    w.s[s.dst] = w.read32(s.src[0]);
  }
}

template <class D, bool Set>
void bit_set(Wave& w, const Step& s) {
  const u32 bit = w.read32(s.src[0]) % (8 * sizeof(D));
  u32& word = w.s[s.dst + bit / 32];
  const u32 mask = 1u << (bit % 32);
  word = Set ? word | mask : word & ~mask;
}

template <bool Set>
void bit_compare64(Wave& w, const Step& s) {
  w.scc = ((w.read64(s.src[0]) >> (w.read32(s.src[1]) & 63)) & 1) == (Set ? 1u : 0u);
}

// Bit src1 of src0 becomes MODE.VSKIP (CDNA3 ISA, S_SETVSKIP).
void set_vskip(Wave& w, const Step& s) {
  w.vskip = (w.read32(s.src[0]) >> (w.read32(s.src[1]) & 31)) & 1;
}

template <auto F>
void save_exec(Wave& w, const Step& s) {
  const u64 source = w.read64(s.src[0]);
  const u64 saved = w.exec();
  const u64 result = F(source, saved);
  w.set_scalar64(s.dst, saved);
  w.set_scalar64(kExec, result);
  w.scc = result != 0;
}

u32 add(Wave& w, u32 a, u32 b, u32 carry) {
  const u64 sum = u64{a} + b + carry;
  w.scc = static_cast<u32>(sum >> 32);
  return static_cast<u32>(sum);
}
u32 subtract(Wave& w, u32 a, u32 b, u32 borrow) {
  w.scc = u64{b} + borrow > a;
  return a - b - borrow;
}
u32 add_signed(Wave& w, u32 a, u32 b) {
  const u32 sum = a + b;
  w.scc = ((a ^ sum) & (b ^ sum)) >> 31;
  return sum;
}
u32 subtract_signed(Wave& w, u32 a, u32 b) {
  const u32 difference = a - b;
  w.scc = ((a ^ b) & (a ^ difference)) >> 31;
  return difference;
}
u32 multiply(Wave&, u32 a, u32 b) { return a * b; }

template <class T>
T with_scc(Wave& w, T value) {
  w.scc = value != 0;
  return value;
}

template <class T, bool Signed>
T bitfield_extract(Wave& w, T a, u32 b) {
  constexpr u32 bits = 8 * sizeof(T);
  const u32 offset = b & (bits - 1);
  const u32 width = (b >> 16) & 0x7f;
  T value = a >> offset;
  if (width == 0) return with_scc<T>(w, 0);
  if constexpr (Signed) {
    using S = std::conditional_t<sizeof(T) == 8, i64, i32>;
    value = static_cast<T>(static_cast<S>(a) >> offset);
    if (width < bits) {
      value = static_cast<T>(static_cast<S>(value << (bits - width)) >> (bits - width));
    }
  } else if (width < bits) {
    value &= (T{1} << width) - 1;
  }
  return with_scc(w, value);
}

template <class T>
T reverse_bits(T a) {
  T r = 0;
  for (std::size_t i = 0; i < 8 * sizeof(T); ++i) r |= ((a >> i) & 1) << (8 * sizeof(T) - 1 - i);
  return r;
}

template <class T>
u32 first_one(T a) { return a == 0 ? ~0u : static_cast<u32>(std::countr_zero(a)); }
template <class T>
u32 leading_zeros(T a) { return a == 0 ? ~0u : static_cast<u32>(std::countl_zero(a)); }
// Leading bits equal to the sign, -1 when all are.
template <class T>
u32 leading_sign(T a) {
  using S = std::conditional_t<sizeof(T) == 8, i64, i32>;
  return leading_zeros<T>(static_cast<S>(a) < 0 ? ~a : a);
}

// EXEC itself becomes the result, which the destination receives as well.
template <auto F>
void write_exec(Wave& w, const Step& s) {
  const u64 result = F(w.read64(s.src[0]), w.exec());
  w.set_scalar64(kExec, result);
  w.set_scalar64(s.dst, result);
  w.scc = result != 0;
}

// One bit a quad of lanes: whether any of its four bits is set.
template <class T>
T quad_mask(T a) {
  T r = 0;
  for (std::size_t i = 0; i < 2 * sizeof(T); ++i) r |= T{((a >> (4 * i)) & 15) != 0} << i;
  return r;
}
// Whole quads on where any lane is.
template <class T>
T whole_quads(T a) {
  T r = 0;
  for (std::size_t i = 0; i < 2 * sizeof(T); ++i) {
    if (((a >> (4 * i)) & 15) != 0) r |= T{15} << (4 * i);
  }
  return r;
}
u64 replicate_bits(u32 a) {
  u64 r = 0;
  for (u32 i = 0; i < 32; ++i) r |= u64{(a >> i) & 1} * 3 << (2 * i);
  return r;
}

constexpr Shape kS = Shape::kScalar;

#define SOP1(name, D, A, ...) \
  {name, kS, sizeof(D) / 4, {sizeof(A) / 4, 0, 0}, kNoTraits, \
   unary<D, A, [](Wave & w, A a) -> D { (void)w; __VA_ARGS__ }>}
#define SOP2(name, D, A, B, ...) \
  {name, kS, sizeof(D) / 4, {sizeof(A) / 4, sizeof(B) / 4, 0}, kNoTraits, \
   binary<D, A, B, [](Wave & w, A a, B b) -> D { (void)w; __VA_ARGS__ }>}
#define SOPK(name, traits, ...) \
  {name, kS, 1, {1, 1, 0}, traits, \
   binary<u32, u32, u32, [](Wave & w, u32 a, u32 b) -> u32 { (void)w; __VA_ARGS__ }>}
#define SOPC(name, A, ...) \
  {"s_cmp_" name, kS, 0, {sizeof(A) / 4, sizeof(A) / 4, 0}, kNoTraits, \
   compare<A, [](A a, A b) -> bool { return (__VA_ARGS__); }>}
#define CMPK(name, A, ...) \
  {"s_cmpk_" name, kS, 0, {1, 1, 0}, kSimm16, compare<A, [](A a, A b) -> bool { return (__VA_ARGS__); }>}
#define LOGIC(name, ...) \
  SOP2("s_" name "_b32", u32, u32, u32, return with_scc<u32>(w, __VA_ARGS__);), \
  SOP2("s_" name "_b64", u64, u64, u64, return with_scc<u64>(w, __VA_ARGS__);), \
  {"s_" name "_saveexec_b64", kS, 2, {2, 0, 0}, kNoTraits, \
   save_exec<[](u64 a, u64 b) -> u64 { return (__VA_ARGS__); }>}

constexpr Operation kTable[] = {
    SOP1("s_mov_b32", u32, u32, return a;),
    SOP1("s_mov_b64", u64, u64, return a;),
    {"s_movk_i32", kS, 1, {1, 0, 0}, kSimm16, unary<u32, u32, [](Wave&, u32 a) { return a; }>},
    {"s_cmov_b32", kS, 1, {1, 0, 0}, kNoTraits, conditional_move<u32>},
    {"s_cmov_b64", kS, 2, {2, 0, 0}, kNoTraits, conditional_move<u64>},
    {"s_cmovk_i32", kS, 1, {1, 0, 0}, kSimm16, conditional_move<u32>},
    SOP1("s_not_b32", u32, u32, return with_scc<u32>(w, ~a);),
    SOP1("s_not_b64", u64, u64, return with_scc<u64>(w, ~a);),
    SOP1("s_brev_b32", u32, u32, return reverse_bits(a);),
    SOP1("s_brev_b64", u64, u64, return reverse_bits(a);),
    SOP1("s_bcnt0_i32_b32", u32, u32, return with_scc<u32>(w, static_cast<u32>(std::popcount(~a)));),
    SOP1("s_bcnt0_i32_b64", u32, u64, return with_scc<u32>(w, static_cast<u32>(std::popcount(~a)));),
    SOP1("s_bcnt1_i32_b32", u32, u32, return with_scc<u32>(w, static_cast<u32>(std::popcount(a)));),
    SOP1("s_bcnt1_i32_b64", u32, u64, return with_scc<u32>(w, static_cast<u32>(std::popcount(a)));),
    SOP1("s_ff0_i32_b32", u32, u32, return first_one<u32>(~a);),
    SOP1("s_ff0_i32_b64", u32, u64, return first_one<u64>(~a);),
    SOP1("s_ff1_i32_b32", u32, u32, return first_one<u32>(a);),
    SOP1("s_ff1_i32_b64", u32, u64, return first_one<u64>(a);),
    SOP1("s_flbit_i32_b32", u32, u32, return leading_zeros<u32>(a);),
    SOP1("s_flbit_i32_b64", u32, u64, return leading_zeros<u64>(a);),
    SOP1("s_flbit_i32", u32, u32, return leading_sign<u32>(a);),
    SOP1("s_flbit_i32_i64", u32, u64, return leading_sign<u64>(a);),
    SOP1("s_sext_i32_i8", u32, u32, return static_cast<u32>(static_cast<std::int8_t>(a));),
    SOP1("s_sext_i32_i16", u32, u32, return static_cast<u32>(static_cast<std::int16_t>(a));),
    SOP1("s_abs_i32", u32, u32, return with_scc<u32>(w, static_cast<i32>(a) < 0 ? 0u - a : a);),
    SOP1("s_quadmask_b32", u32, u32, return with_scc(w, quad_mask(a));),
    SOP1("s_quadmask_b64", u64, u64, return with_scc(w, quad_mask(a));),
    SOP1("s_wqm_b32", u32, u32, return with_scc(w, whole_quads(a));),
    SOP1("s_wqm_b64", u64, u64, return with_scc(w, whole_quads(a));),
    SOP1("s_bitreplicate_b64_b32", u64, u32, return replicate_bits(a);),
    {"s_andn1_wrexec_b64", kS, 2, {2, 0, 0}, kNoTraits,
     write_exec<[](u64 a, u64 b) -> u64 { return ~a & b; }>},
    {"s_andn2_wrexec_b64", kS, 2, {2, 0, 0}, kNoTraits,
     write_exec<[](u64 a, u64 b) -> u64 { return a & ~b; }>},
    {"s_bitset0_b32", kS, 1, {1, 0, 0}, kNoTraits, bit_set<u32, false>},
    {"s_bitset1_b32", kS, 1, {1, 0, 0}, kNoTraits, bit_set<u32, true>},
    {"s_bitset0_b64", kS, 2, {1, 0, 0}, kNoTraits, bit_set<u64, false>},
    {"s_bitset1_b64", kS, 2, {1, 0, 0}, kNoTraits, bit_set<u64, true>},

    SOP2("s_add_u32", u32, u32, u32, return add(w, a, b, 0);),
    SOP2("s_addc_u32", u32, u32, u32, return add(w, a, b, w.scc);),
    SOP2("s_sub_u32", u32, u32, u32, return subtract(w, a, b, 0);),
    SOP2("s_subb_u32", u32, u32, u32, return subtract(w, a, b, w.scc);),
    SOP2("s_add_i32", u32, u32, u32, return add_signed(w, a, b);),
    SOP2("s_sub_i32", u32, u32, u32, return subtract_signed(w, a, b);),
    SOPK("s_addk_i32", kSimm16 | kReadsDst, return add_signed(w, a, b);),
    SOPK("s_mulk_i32", kSimm16 | kReadsDst, return multiply(w, a, b);),
    SOP2("s_mul_i32", u32, u32, u32, return multiply(w, a, b);),
    SOP2("s_mul_hi_u32", u32, u32, u32, return static_cast<u32>((u64{a} * b) >> 32);),
    SOP2("s_mul_hi_i32", u32, u32, u32,
         return static_cast<u32>((i64{static_cast<i32>(a)} * static_cast<i32>(b)) >> 32);),
    SOP2("s_min_u32", u32, u32, u32, w.scc = a < b; return a < b ? a : b;),
    SOP2("s_max_u32", u32, u32, u32, w.scc = (a >= b); return w.scc ? a : b;),
    SOP2("s_min_i32", u32, u32, u32,
         w.scc = static_cast<i32>(a) < static_cast<i32>(b); return w.scc ? a : b;),
    SOP2("s_max_i32", u32, u32, u32,
         w.scc = (static_cast<i32>(a) >= static_cast<i32>(b)); return w.scc ? a : b;),
    SOP2("s_absdiff_i32", u32, u32, u32,
         const u32 d = a - b; return with_scc<u32>(w, static_cast<i32>(d) < 0 ? 0u - d : d);),
    SOP2("s_cselect_b32", u32, u32, u32, return w.scc ? a : b;),
    SOP2("s_cselect_b64", u64, u64, u64, return w.scc ? a : b;),
    LOGIC("and", a & b),
    LOGIC("or", a | b),
    LOGIC("xor", a ^ b),
    LOGIC("andn2", a & ~b),
    LOGIC("orn2", a | ~b),
    LOGIC("nand", ~(a & b)),
    LOGIC("nor", ~(a | b)),
    LOGIC("xnor", ~(a ^ b)),
    {"s_andn1_saveexec_b64", kS, 2, {2, 0, 0}, kNoTraits,
     save_exec<[](u64 a, u64 b) -> u64 { return ~a & b; }>},
    {"s_orn1_saveexec_b64", kS, 2, {2, 0, 0}, kNoTraits,
     save_exec<[](u64 a, u64 b) -> u64 { return ~a | b; }>},
    SOP2("s_lshl_b32", u32, u32, u32, return with_scc<u32>(w, a << (b & 31));),
    SOP2("s_lshl_b64", u64, u64, u32, return with_scc<u64>(w, a << (b & 63));),
    SOP2("s_lshr_b32", u32, u32, u32, return with_scc<u32>(w, a >> (b & 31));),
    SOP2("s_lshr_b64", u64, u64, u32, return with_scc<u64>(w, a >> (b & 63));),
    SOP2("s_ashr_i32", u32, u32, u32,
         return with_scc<u32>(w, static_cast<u32>(static_cast<i32>(a) >> (b & 31)));),
    SOP2("s_ashr_i64", u64, u64, u32,
         return with_scc<u64>(w, static_cast<u64>(static_cast<i64>(a) >> (b & 63)));),
    SOP2("s_bfe_u32", u32, u32, u32, return (bitfield_extract<u32, false>(w, a, b));),
    SOP2("s_bfe_i32", u32, u32, u32, return (bitfield_extract<u32, true>(w, a, b));),
    SOP2("s_bfe_u64", u64, u64, u32, return (bitfield_extract<u64, false>(w, a, b));),
    SOP2("s_bfe_i64", u64, u64, u32, return (bitfield_extract<u64, true>(w, a, b));),
    SOP2("s_bfm_b32", u32, u32, u32, return ((1u << (a & 31)) - 1) << (b & 31);),
    SOP2("s_bfm_b64", u64, u32, u32, return ((u64{1} << (a & 63)) - 1) << (b & 63);),
    SOP2("s_pack_ll_b32_b16", u32, u32, u32, return (a & 0xffff) | (b << 16);),
    SOP2("s_pack_lh_b32_b16", u32, u32, u32, return (a & 0xffff) | (b & 0xffff0000u);),
    SOP2("s_pack_hh_b32_b16", u32, u32, u32, return (a >> 16) | (b & 0xffff0000u);),
#define SHIFT_ADD(n) \
    SOP2("s_lshl" #n "_add_u32", u32, u32, u32, \
         const u64 sum = (u64{a} << n) + b; w.scc = ((sum >> 32) != 0); return static_cast<u32>(sum);)
    SHIFT_ADD(1), SHIFT_ADD(2), SHIFT_ADD(3), SHIFT_ADD(4),
#undef SHIFT_ADD

    SOPC("eq_i32", i32, a == b), SOPC("lg_i32", i32, a != b), SOPC("gt_i32", i32, a > b),
    SOPC("ge_i32", i32, a >= b), SOPC("lt_i32", i32, a < b),  SOPC("le_i32", i32, a <= b),
    SOPC("eq_u32", u32, a == b), SOPC("lg_u32", u32, a != b), SOPC("gt_u32", u32, a > b),
    SOPC("ge_u32", u32, a >= b), SOPC("lt_u32", u32, a < b),  SOPC("le_u32", u32, a <= b),
    SOPC("eq_u64", u64, a == b), SOPC("lg_u64", u64, a != b),
    CMPK("eq_i32", i32, a == b), CMPK("lg_i32", i32, a != b), CMPK("gt_i32", i32, a > b),
    CMPK("ge_i32", i32, a >= b), CMPK("lt_i32", i32, a < b),  CMPK("le_i32", i32, a <= b),
#define CMPK_U32(name, ...) \
  CMPK(name "_u32", u32, [](u32 a, u32 b) { return (__VA_ARGS__); }(a, b & 0xffffu))
    CMPK_U32("eq", a == b), CMPK_U32("lg", a != b), CMPK_U32("gt", (a > b)),
    CMPK_U32("ge", a >= b), CMPK_U32("lt", a < b),  CMPK_U32("le", a <= b),
#undef CMPK_U32
    {"s_setvskip", kS, 0, {1, 1, 0}, kNoTraits, set_vskip},
    {"s_bitcmp0_b32", kS, 0, {1, 1, 0}, kNoTraits,
     compare<u32, [](u32 a, u32 b) -> bool { return ((a >> (b & 31)) & 1) == 0; }>},
    {"s_bitcmp1_b32", kS, 0, {1, 1, 0}, kNoTraits,
     compare<u32, [](u32 a, u32 b) -> bool { return ((a >> (b & 31)) & 1) == 1; }>},
    {"s_bitcmp0_b64", kS, 0, {2, 1, 0}, kNoTraits, bit_compare64<false>},
    {"s_bitcmp1_b64", kS, 0, {2, 1, 0}, kNoTraits, bit_compare64<true>},
};

}  // namespace

std::span<const Operation> scalar_operations() { return kTable; }

}  // namespace asmevo
