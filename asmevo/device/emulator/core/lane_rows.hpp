// One lane's value in a register or a pair of registers.
#pragma once

#include "wave.hpp"

namespace asmevo {

template <class T>
T read_rows(const u32* rows, std::size_t lane) {
  T value = rows[lane];
  if constexpr (sizeof(T) == 8) value |= T{rows[kLanes + lane]} << 32;
  return value;
}

template <class T>
void write_rows(u32* rows, std::size_t lane, T value) {
  rows[lane] = static_cast<u32>(value);
  if constexpr (sizeof(T) == 8) rows[kLanes + lane] = static_cast<u32>(value >> 32);
}

}  // namespace asmevo
