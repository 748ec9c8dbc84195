// The first bits of 2/pi, for V_TRIG_PREOP_F64.
#pragma once

#include <cstdint>

namespace asmevo {

// floor(2/pi * 2^1216), most significant word first; the pseudo-code has 1201 bits.
inline constexpr std::uint64_t kTwoOverPi[] = {
    0xa2f9836e4e441529, 0xfc2757d1f534ddc0, 0xdb6295993c439041,
    0xfe5163abdebbc561, 0xb7246e3a424dd2e0, 0x06492eea09d1921c,
    0xfe1deb1cb129a73e, 0xe88235f52ebb4484, 0xe99c7026b45f7e41,
    0x3991d639835339f4, 0x9c845f8bbdf9283b, 0x1ff897ffde05980f,
    0xef2f118b5a0a6d1f, 0x6d367ecf27cb09b7, 0x4f463f669e5fea2d,
    0x7527bac7ebe5f17b, 0x3d0739f78a5292ea, 0x6bfb5fb11f8d5d08,
    0x56033046fc7b6bab,
};
inline constexpr std::uint32_t kTwoOverPiBits = 1201;

// Bit `n` behind the binary point; what lies past the constant is 0.
inline std::uint64_t two_over_pi_bit(std::uint32_t n) {
  return n < kTwoOverPiBits ? (kTwoOverPi[n / 64] >> (63 - n % 64)) & 1 : 0;
}

}  // namespace asmevo
