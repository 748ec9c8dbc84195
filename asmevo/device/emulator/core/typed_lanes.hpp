// Vector operations written as a function of one lane: rows of the operation table whose operand
// sizes, constant types and handler all follow from the lane function's operand types.
#pragma once

#include <bit>
#include <limits>
#include <type_traits>

#include "float_bits.hpp"
#include "operation.hpp"
#include "soft_float.hpp"

namespace asmevo {

// Operand types: the C++ type a lane function sees, the words it takes, and how constants read.
struct U16 { using Value = u32; static constexpr u8 kWords = 1; static constexpr Type kType = Type::kShort; };
struct I16 { using Value = i32; static constexpr u8 kWords = 1; static constexpr Type kType = Type::kShort; };
struct U32 { using Value = u32; static constexpr u8 kWords = 1; static constexpr Type kType = Type::kWord; };
struct I32 { using Value = i32; static constexpr u8 kWords = 1; static constexpr Type kType = Type::kWord; };
struct U64 { using Value = u64; static constexpr u8 kWords = 2; static constexpr Type kType = Type::kUnsigned64; };
struct I64 { using Value = i64; static constexpr u8 kWords = 2; static constexpr Type kType = Type::kSigned64; };
// Floats are bit patterns, as the lane functions decide about denormals and NaNs.
struct F16 { using Value = u32; static constexpr u8 kWords = 1; static constexpr Type kType = Type::kHalf; using Format = soft::Half; };
struct F32 { using Value = u32; static constexpr u8 kWords = 1; static constexpr Type kType = Type::kWord; using Format = soft::Single; };
struct F64 { using Value = u64; static constexpr u8 kWords = 2; static constexpr Type kType = Type::kWide; using Format = soft::Wide; };
// Two 16-bit elements in a word, taken whole.
struct Pair { using Value = u32; static constexpr u8 kWords = 1; static constexpr Type kType = Type::kPair; };

template <class T>
inline constexpr bool kIsFloat = requires { typename T::Format; };
template <class T>
inline constexpr bool kIsShort =
    std::is_same_v<T, U16> || std::is_same_v<T, I16> || std::is_same_v<T, F16>;

// Source `k` of a step, read lane by lane.
template <class T>
class Source {
 public:
  Source(Wave& w, const Step& s, std::size_t k) {
    Operand plain = s.src[k];
    if constexpr (kIsFloat<T>) {
      if (plain.neg) flip_ = T::Format::kSign;
      if (plain.abs) clear_ = T::Format::kSign;
    }
    plain.neg = plain.abs = false;
    lo_ = w.row(plain, k, 0);
    if constexpr (T::kWords == 2) hi_ = w.row(plain, k, 1);
    if constexpr (kIsShort<T>) shift_ = (s.op_sel >> k) & 1 ? 16 : 0;
  }

  typename T::Value operator[](std::size_t i) const {
    if constexpr (T::kWords == 2) {
      const u64 x = lo_[i] | u64{hi_[i]} << 32;
      if constexpr (kIsFloat<T>) return (x & ~clear_) ^ flip_;
      return static_cast<typename T::Value>(x);
    } else if constexpr (std::is_same_v<T, I16>) {
      return static_cast<std::int16_t>(lo_[i] >> shift_);
    } else if constexpr (kIsShort<T>) {
      const u32 x = (lo_[i] >> shift_) & 0xffffu;
      if constexpr (kIsFloat<T>) return static_cast<u32>((x & ~clear_) ^ flip_);
      return x;
    } else if constexpr (kIsFloat<T>) {
      return static_cast<u32>((lo_[i] & ~clear_) ^ flip_);
    } else {
      return static_cast<typename T::Value>(lo_[i]);
    }
  }

 private:
  const u32* lo_ = nullptr;
  const u32* hi_ = nullptr;
  u64 clear_ = 0, flip_ = 0;
  u32 shift_ = 0;
};

// mul:2, mul:4 and div:2 as powers of two.
inline constexpr i32 kOmodPower[] = {0, 1, 2, -1};

// "Output modifiers are not compatible with output denormals", ignored in IEEE mode, and turn -0
// into +0 (CDNA3 ISA, "Instruction Outputs").
inline bool omod_applies(const FpMode& fp, const FpControl& c) { return !fp.ieee && !c.keep_out; }

template <class F>
u64 output_modified(u64 x, u8 omod, const FpMode& fp, const FpControl& c) {
  if (omod == 0 || !omod_applies(fp, c) || F::is_nan(x)) return x;
  const u64 r = soft::scale<F>(x, kOmodPower[omod], c);
  return F::is_zero(r) ? 0 : r;
}

// Clamp to [0, 1]; a NaN becomes 0 only in DX10 mode (CDNA3 ISA, "DX10_CLAMP").
template <class F>
u64 clamped(u64 x, bool dx10) {
  constexpr u64 kOne = static_cast<u64>(F::kBias) << F::kMantissa;
  if (F::is_nan(x)) return dx10 ? 0 : x;
  if ((x & F::kSign) != 0) return 0;
  return x > kOne ? kOne : x;
}

inline const FpControl& control_of(const FpMode& fp, F16) { return fp.half; }
inline const FpControl& control_of(const FpMode& fp, F32) { return fp.single; }
inline const FpControl& control_of(const FpMode& fp, F64) { return fp.wide; }

// Where lane results go. Integers may arrive wider than they are stored: with clamp they saturate,
// else they wrap.
template <class T>
class Destination {
 public:
  Destination(Wave& w, const Step& s, bool keeps_high)
      : wave_(w), step_(s), lo_(w.begin_write(s.dst)), old_(w.v + s.dst * kLanes),
        clamp_((s.flags & kFlagClamp) != 0) {
    if constexpr (kIsShort<T>) {
      high_ = (s.op_sel & 8) != 0;
      keep_ = high_ ? 0xffffu : keeps_high ? 0xffff0000u : 0;
    }
  }

  template <class V>
  void set(std::size_t i, V value) {
    if constexpr (kIsFloat<T>) {
      auto bits = static_cast<u64>(value);
      if (step_.omod != 0) {
        bits = output_modified<typename T::Format>(bits, step_.omod, wave_.fp,
                                                   control_of(wave_.fp, T{}));
      }
      if (clamp_) bits = clamped<typename T::Format>(bits, wave_.fp.dx10_clamp);
      store(i, bits);
    } else if (clamp_) {
      store(i, saturated(value));
    } else {
      store(i, static_cast<u64>(value));
    }
  }

  void store(std::size_t i, u64 bits) {
    if constexpr (T::kWords == 2) {
      lo_[i] = static_cast<u32>(bits);
      lo_[i + kLanes] = static_cast<u32>(bits >> 32);
    } else if constexpr (kIsShort<T>) {
      const u32 half = static_cast<u32>(bits) & 0xffffu;
      lo_[i] = (keep_ == 0 ? 0 : old_[i] & keep_) | (high_ ? half << 16 : half);
    } else {
      lo_[i] = static_cast<u32>(bits);
    }
  }

  void finish() { wave_.end_write(step_.dst, T::kWords); }

 private:
  template <class V>
  static u64 saturated(V value) {
    using Limits = std::conditional_t<
        std::is_same_v<T, U16>, std::numeric_limits<std::uint16_t>,
        std::conditional_t<std::is_same_v<T, I16>, std::numeric_limits<std::int16_t>,
                           std::numeric_limits<typename T::Value>>>;
    constexpr auto kLow = Limits::min();
    constexpr auto kHigh = Limits::max();
    if constexpr (std::is_signed_v<V> || std::is_same_v<V, __int128>) {
      if (value < static_cast<V>(kLow)) return static_cast<u64>(kLow);
    }
    if (value > static_cast<V>(kHigh)) return static_cast<u64>(kHigh);
    return static_cast<u64>(value);
  }

  Wave& wave_;
  const Step& step_;
  u32* lo_;
  const u32* old_;
  bool clamp_;
  bool high_ = false;
  u32 keep_ = 0;
};

// Which half of a 16-bit destination that op_sel does not name keeps its value: LLVM,
// GCNSubtarget::zeroesHigh16BitsOfDest. Most GFX9 operations write zeros to the high half.
enum class HighHalf { kZero, kKeep };

template <class Signature, auto F, HighHalf High>
struct LaneHandler;

template <class D, class... S, auto F, HighHalf High>
struct LaneHandler<D(S...), F, High> {
  static void run(Wave& w, const Step& s) { run(w, s, std::index_sequence_for<S...>{}); }

 private:
  template <std::size_t... K>
  static void run(Wave& w, const Step& s, std::index_sequence<K...>) {
    run_rows(w, s, Source<S>(w, s, K)...);
  }
  static void run_rows(Wave& w, const Step& s, const Source<S>... source) {
    Destination<D> out(w, s, High == HighHalf::kKeep);
    const FpMode fp = w.fp;
    if (s.omod == 0 && (s.flags & kFlagClamp) == 0) [[likely]] {
      ASMEVO_LANES(i) out.store(i, static_cast<u64>(apply(fp, source[i]...)));
    } else {
      for (std::size_t i = 0; i < kLanes; ++i) out.set(i, apply(fp, source[i]...));
    }
    out.finish();
  }
  static auto apply(const FpMode& fp, typename S::Value... value) {
    if constexpr (std::is_invocable_v<decltype(F), const FpMode&, typename S::Value...>) {
      return F(fp, value...);
    } else {
      return F(value...);
    }
  }
};

template <class Signature>
struct SignatureFacts;
template <class D, class... S>
struct SignatureFacts<D(S...)> {
  static constexpr u8 kDst = D::kWords;
  static constexpr bool kFloatResult = kIsFloat<D>;
  static constexpr bool kFloatSource = (kIsFloat<S> || ...);
  static constexpr bool kShort = kIsShort<D>;
  static constexpr std::size_t kSources = sizeof...(S);
  static constexpr void fill(Operation& op) {
    const u8 words[] = {S::kWords...};
    const Type types[] = {S::kType...};
    for (std::size_t k = 0; k < sizeof...(S); ++k) {
      op.src_words[k] = words[k];
      op.types[k] = types[k];
    }
  }
};

// A row for `F`, a function of an optional FpMode and the sources' values. Float sources take neg
// and abs, and float results omod and clamp; an integer result takes clamp with kClamp.
template <class Signature, auto F, HighHalf High = HighHalf::kZero>
constexpr Operation lane_operation(const char* name, u32 traits = kNoTraits) {
  using Facts = SignatureFacts<Signature>;
  Operation op{name, Shape::kVector, Facts::kDst, {}, traits, LaneHandler<Signature, F, High>::run};
  if (Facts::kFloatSource) op.traits |= kMods;
  if (High == HighHalf::kKeep) op.traits |= kKeepsDst;
  if (Facts::kFloatResult) op.traits |= kClamp | kOmod;
  Facts::fill(op);
  return op;
}

}  // namespace asmevo
