#include "early_return.hpp"

#include <algorithm>
#include <string_view>

#include "straight_line.hpp"

namespace asmevo {

namespace {

// Far enough for the unrolled loops of production kernels.
constexpr std::size_t kHorizon = 512;

bool counts_in_vm(Shape shape) {
  return shape == Shape::kBuffer || shape == Shape::kGlobal || shape == Shape::kScratch;
}

bool touches(const Step& s, const Operation& op, Rows rows) {
  if (reads(s, rows)) return true;
  if (!writes_vectors(op.shape)) return false;
  if (s.dst_words != 0 && !(s.flags & kFlagLds) && rows.meets(s.dst, s.dst_words)) return true;
  return (s.flags & kFlagReturn) && rows.meets(s.sdst, s.dst_words);
}

}  // namespace

bool returns_unseen(std::span<const Step> steps, std::span<const Operation* const> ops,
                    std::size_t at) {
  const Step& load = steps[at];
  const Operation& op = *ops[at];
  const bool in_vm = counts_in_vm(op.shape);
  const bool is_load = (in_vm || op.shape == Shape::kLds) && load.dst_words != 0 &&
                       !(op.traits & (kStore | kAtomic)) && !(load.flags & kFlagLds);
  const Rows rows{load.dst, load.dst_words};
  if (!is_load || reads(load, rows)) return false;
  int later = 0;  // operations that the same counter counts; each returns after the load
  const std::size_t end = std::min(ops.size(), at + kHorizon);
  for (std::size_t i = at + 1; i < end; ++i) {
    const Step& s = steps[i];
    if (ops[i]->name == std::string_view("s_waitcnt")) {
      const i32 allowed = in_vm ? s.imm0 : s.imm1;
      if (allowed >= 0 && allowed <= later) return true;
      continue;
    }
    if (ends_the_walk(*ops[i]) || touches(s, *ops[i], rows)) return false;
    later += in_vm ? counts_in_vm(ops[i]->shape) : ops[i]->shape == Shape::kLds;
  }
  return false;
}

}  // namespace asmevo
