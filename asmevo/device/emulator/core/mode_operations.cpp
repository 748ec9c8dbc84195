// s_getreg, s_setreg: hardware registers. Only MODE is modelled; Python's lowering refuses the
// others by name, and so does a record that asks for one.
#include <string>

#include "fault.hpp"
#include "operation.hpp"

namespace asmevo {

namespace {

constexpr u32 kHwregMode = 1;

struct Field {
  u32 shift;
  u32 mask;
};

// hwreg(id, offset, width): id in bits 0 to 5, offset in 6 to 10, width - 1 in 11 to 15.
Field field_of(u32 encoded) {
  if ((encoded & 63) != kHwregMode) {
    throw Fault(FaultKind::kIllegal,
                "hardware register " + std::to_string(encoded & 63) + " is not modelled");
  }
  const u32 width = ((encoded >> 11) & 31) + 1;
  return {(encoded >> 6) & 31, width == 32 ? ~0u : (1u << width) - 1};
}

u32 mode(const Wave& w) {
  return w.fp.bits | (w.gpr_index_enabled ? kModeGprIndex : 0) | (w.vskip ? kModeVskip : 0);
}

void get_register(Wave& w, const Step& s) {
  const Field f = field_of(w.read32(s.src[0]));
  w.s[s.dst] = (mode(w) >> f.shift) & f.mask;
}

// src0 is the value, src1 the register. Exceptions and single stepping would trap.
void set_register(Wave& w, const Step& s) {
  const Field f = field_of(w.read32(s.src[1]));
  const u32 field = f.mask << f.shift;
  const u32 bits = (mode(w) & ~field) | ((w.read32(s.src[0]) << f.shift) & field);
  if ((bits & ~(kModeFloat | kModeGprIndex | kModeVskip)) != 0) {
    throw Fault(FaultKind::kIllegal,
                "MODE bits other than FP_ROUND, FP_DENORM, DX10_CLAMP, IEEE, FP16_OVFL, GPR_IDX_EN "
                "and VSKIP are not modelled");
  }
  if ((bits & kModeGprIndex) != 0 && !w.gpr_index_enabled) {
    throw Fault(FaultKind::kIllegal, "GPR indexing is turned on by s_set_gpr_idx_on only");
  }
  w.fp = FpMode::from(bits & kModeFloat, w.fp.single.nan);
  w.gpr_index_enabled = (bits & kModeGprIndex) != 0;
  w.vskip = (bits & kModeVskip) != 0;
}

constexpr Operation kTable[] = {
    {"s_getreg_b32", Shape::kScalar, 1, {1, 0, 0}, kSimm16, get_register},
    {"s_setreg_b32", Shape::kScalar, 0, {1, 1, 0}, kSimm16, set_register},
    {"s_setreg_imm32_b32", Shape::kScalar, 0, {1, 1, 0}, kSimm16, set_register},
};

}  // namespace

std::span<const Operation> mode_operations() { return kTable; }

}  // namespace asmevo
