#include "early_return.hpp"

#include <algorithm>
#include <string_view>
#include <vector>

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

// Whether nothing can tell the load `steps[at]` from one that returns at once, if no older one returns
// into its registers behind it.
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

bool accesses_memory(Shape shape) {
  return counts_in_vm(shape) || shape == Shape::kFlat || shape == Shape::kLds;
}

}  // namespace

void find_early_returns(std::span<Step> steps, std::span<const Operation* const> ops, u32 rows) {
  std::vector<bool> late(rows);  // what loads that return later write
  const auto mark = [&](u32 first, u32 count) {
    for (u32 row = first; row < std::min(first + count, rows); ++row) late[row] = true;
  };
  for (std::size_t i = 0; i < ops.size(); ++i) {
    Step& s = steps[i];
    if (returns_unseen(steps, ops, i)) {
      s.early = Early::kAtIssue;
    } else if (accesses_memory(ops[i]->shape)) {
      mark(s.dst, s.dst_words);
      if (s.flags & kFlagReturn) mark(s.sdst, s.dst_words);
    }
  }
  // One that is early itself has its registers to itself until a wait guarantees it.
  for (Step& s : steps.first(ops.size())) {
    if (s.early == Early::kNo) continue;
    for (u32 row = s.dst; row < std::min<u32>(s.dst + s.dst_words, rows); ++row) {
      if (late[row]) s.early = Early::kUnlessOverwritten;
    }
  }
}

}  // namespace asmevo
