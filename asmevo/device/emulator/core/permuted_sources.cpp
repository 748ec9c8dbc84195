#include "permuted_sources.hpp"

#include <bit>

#include "lane_permute.hpp"

namespace asmevo {

namespace {

u32 select(u32 x, u8 which, bool extend) {
  if (which == kSelectDword) return x;
  const u32 bits = which < kSelectWord0 ? 8 : 16;
  const u32 shift = which < kSelectWord0 ? 8 * which : 16 * (which - kSelectWord0);
  const u32 top = x << (32 - bits - shift);
  return extend ? static_cast<u32>(static_cast<i32>(top) >> (32 - bits)) : top >> (32 - bits);
}

}  // namespace

// CDNA3 ISA, "DPP_CTRL Enumerations".
int dpp_source(u32 ctrl, int lane) {
  const int row = lane & ~15, at = lane & 15;
  if (ctrl <= 0xff) return (lane & ~3) + static_cast<int>((ctrl >> (2 * (lane & 3))) & 3);
  const int n = static_cast<int>(ctrl & 15);
  switch (ctrl) {
    case 0x130: return lane + 1 < 64 ? lane + 1 : -1;   // wave_shl:1
    case 0x134: return (lane + 1) & 63;                 // wave_rol:1
    case 0x138: return lane - 1;                        // wave_shr:1
    case 0x13c: return (lane - 1) & 63;                 // wave_ror:1
    case 0x140: return row + 15 - at;                   // row_mirror
    case 0x141: return (lane & ~7) + 7 - (lane & 7);    // row_half_mirror
    // row_bcast:15 hands lane 15 of each row to the next row, row_bcast:31 lane 31 to rows 2 and 3.
    case 0x142: return lane >= 16 ? row - 1 : -1;
    case 0x143: return lane >= 32 ? 31 : -1;
    default: break;
  }
  switch (ctrl & ~15u) {
    case 0x100: return n != 0 && at + n < 16 ? lane + n : -1;  // row_shl
    case 0x110: return n != 0 && at >= n ? lane - n : -1;      // row_shr
    case 0x120: return row + ((at - n) & 15);                  // row_ror
    case 0x150: return row + n;                                // row_newbcast
    default: return -1;
  }
}

bool known_dpp(u32 ctrl) {
  if (ctrl <= 0xff) return true;
  const u32 group = ctrl & ~15u, n = ctrl & 15;
  if (group == 0x100 || group == 0x110 || group == 0x120) return n != 0;
  if (group == 0x150) return true;
  return ctrl == 0x130 || ctrl == 0x134 || ctrl == 0x138 || ctrl == 0x13c ||
         (ctrl >= 0x140 && ctrl <= 0x143);
}

// Permute source 0, then run the operation with the writes that DPP allows. A source lane that
// EXEC disables counts as invalid, like one outside its row.
void run_dpp(Wave& w, const Step& s) {
  const DppPattern& pattern = *s.dpp;
  const u64 exec = w.exec();
  const u32* in = w.v + s.src[0].index * kLanes;
  u64 readable = pattern.valid;
  if (exec != kAllLanes) {
    for (std::size_t i = 0; i < kLanes; ++i) {
      if (((exec >> pattern.source[i]) & 1) == 0) readable &= ~(u64{1} << i);
    }
  }
  permute_row(w.permuted[0], in, pattern.source, pattern.near);
  if (s.src_words[0] == 2) {
    permute_row(w.permuted[1], in + kLanes, pattern.source, pattern.near);
  }
  u64 mask = pattern.write;
  if (!pattern.bound_ctrl) {
    mask &= readable;
  } else if (readable != kAllLanes) {
    for (std::size_t i = 0; i < kLanes; ++i) {
      if (((readable >> i) & 1) == 0) w.permuted[0][i] = w.permuted[1][i] = 0;
    }
  }
  w.write_mask = mask;
  s.inner->handler(w, *s.inner);
  w.write_mask = kAllLanes;
}

void run_sdwa(Wave& w, const Step& s) {
  const SdwaPattern& pattern = *s.sdwa;
  for (std::size_t k = 0; k < 2; ++k) {
    if (s.inner->src[k].kind != Operand::Kind::kPermuted) continue;
    Operand plain = s.src[k];
    plain.neg = plain.abs = false;
    const u32* in = w.row(plain, k);
    for (std::size_t i = 0; i < kLanes; ++i) {
      w.permuted[k][i] = select(in[i], pattern.select[k], pattern.extend[k]);
    }
  }
  if (pattern.dst_select == kSelectDword) {
    s.inner->handler(w, *s.inner);
    return;
  }
  u32* out = w.v + s.dst * kLanes;
  u32 old[kLanes];
  std::memcpy(old, out, sizeof old);
  s.inner->handler(w, *s.inner);
  const bool byte = pattern.dst_select < kSelectWord0;
  const u32 bits = byte ? 8 : 16;
  const u32 shift = byte ? 8 * pattern.dst_select : 16 * (pattern.dst_select - kSelectWord0);
  const u32 field = ((1u << bits) - 1) << shift;
  for (u64 m = w.active(); m != 0; m &= m - 1) {
    const auto i = static_cast<std::size_t>(std::countr_zero(m));
    const u32 placed = (out[i] << shift) & field;
    u32 rest = 0;
    if (pattern.dst_unused == kUnusedPreserve) {
      rest = old[i] & ~field;
    } else if (pattern.dst_unused == kUnusedSext && (placed >> (shift + bits - 1)) != 0) {
      rest = ~field & ~((1u << shift) - 1);  // the bits above; those below are zero
    }
    out[i] = placed | rest;
  }
}

}  // namespace asmevo
