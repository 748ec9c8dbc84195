// Lanes of a row in another order, as DPP wants them.
#pragma once

#include <cstdint>

#include "record.hpp"

#if defined(__AVX2__)
#include <immintrin.h>
#endif

namespace asmevo {

// to[i] = from[source[i]]; `to` is another row than `from`. `near`: every lane's source lies in its
// own group of 16 lanes.
inline void permute_row(std::uint32_t* to, const std::uint32_t* from, const std::uint8_t* source,
                        bool near) {
#if defined(__AVX2__)
  if (near) {
    const __m256i eight = _mm256_set1_epi32(8), mask = _mm256_set1_epi32(7);
    for (std::size_t row = 0; row < kLanes; row += 16) {
      const __m256i low = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(from + row));
      const __m256i high = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(from + row + 8));
      for (std::size_t half = 0; half < 16; half += 8) {
        const __m256i index = _mm256_cvtepu8_epi32(
            _mm_loadl_epi64(reinterpret_cast<const __m128i*>(source + row + half)));
        const __m256i within = _mm256_and_si256(index, mask);
        const __m256i is_high = _mm256_cmpeq_epi32(_mm256_and_si256(index, eight), eight);
        const __m256i picked = _mm256_blendv_epi8(_mm256_permutevar8x32_epi32(low, within),
                                                  _mm256_permutevar8x32_epi32(high, within), is_high);
        _mm256_storeu_si256(reinterpret_cast<__m256i*>(to + row + half), picked);
      }
    }
    return;
  }
#else
  static_cast<void>(near);
#endif
  for (std::size_t i = 0; i < kLanes; ++i) to[i] = from[source[i]];
}

}  // namespace asmevo
