// Opens the second compilation of a file of operations: with AVX-512, for x86 hosts that have it.
//
// A lane loop takes half the instructions there, and flushing denormals a third, because comparisons
// give masks. Every lane sees the same IEEE operations, so results are the same bytes. Headers come
// first: what they define must run on any host, whichever copy of it the linker keeps.
#include <algorithm>
#include <bit>
#include <cmath>
#include <utility>

#include <immintrin.h>

#include "min_max.hpp"
#include "round_integral.hpp"
#include "transcendental.hpp"
#include "typed_lanes.hpp"

namespace asmevo {

// The loops of typed_lanes.hpp are not compiled again, and could not inline lane functions that are:
// operations made of them have no wider form.
template <class Signature, auto F, HighHalf High = HighHalf::kZero>
constexpr Operation no_wide_operation(const char* name, u32 = kNoTraits) {
  return {name, Shape::kVector, 0, {}, kNoTraits, nullptr};
}

}  // namespace asmevo

#define lane_operation no_wide_operation

#if defined(__clang__)
#pragma clang attribute push( \
    __attribute__((target("avx512f,avx512bw,avx512dq,avx512vl"))), apply_to = function)
#else
#pragma GCC push_options
#pragma GCC target("avx512f,avx512bw,avx512dq,avx512vl,prefer-vector-width=512")
#endif

#undef ASMEVO_TABLE
#define ASMEVO_TABLE(name) wide_##name
