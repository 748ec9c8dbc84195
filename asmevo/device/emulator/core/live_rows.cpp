#include "live_rows.hpp"

#include <string_view>

namespace asmevo {

namespace {

bool writes_exec(const Step& s, const Operation& op) {
  const std::string_view name = op.name;
  if (name.find("exec") != name.npos || name.starts_with("v_cmpx")) return true;
  const auto reaches = [](u16 reg, u32 words) { return reg < kScalarFile && reg + words > kExec; };
  const bool carries = (op.traits & kCarryOut) && reaches(s.sdst, 2);
  if (writes_vectors(op.shape)) return carries;
  // A mask is a pair whatever the shape says; a scalar load writes up to 16 registers.
  return carries || reaches(s.dst, std::max<u32>(s.dst_words, 2));
}

// Whether every lane of every word of the destination gets a value.
bool writes_whole_rows(const Step& s, const Operation& op) {
  if (s.dst_words == 0 || !writes_vectors(op.shape)) return false;
  if (op.shape == Shape::kMatrix) return !(op.traits & kReadsDst);
  if (op.shape != Shape::kVector) return s.early != Early::kNo;  // it is there before anything looks
  return s.dpp == nullptr && s.sdwa == nullptr && s.op_sel == 0 && !(op.traits & kKeepsDst);
}

bool reads_destination(const Operation& op) {
  constexpr u32 kReading = kStore | kAtomic | kReadsDst | kKeepsDst | kSwaps;
  return writes_vectors(op.shape) && (op.traits & kReading) != 0;
}

template <class Visit>
void for_each_read(const Step& s, const Operation& op, Visit&& visit) {
  for (std::size_t k = 0; k < 3; ++k) {
    if (s.src[k].kind == Operand::Kind::kVector) visit(Rows{s.src[k].index, s.src_words[k]});
  }
  if (reads_destination(op) || s.op_sel != 0 || s.sdwa != nullptr) visit(Rows{s.dst, s.dst_words});
}

void mark(std::vector<bool>& rows, Rows range) {
  for (u32 i = range.first; i < range.first + range.count && i < rows.size(); ++i) rows[i] = true;
}

}  // namespace

std::vector<bool> rows_read(std::span<const Step> steps, std::span<const Operation* const> ops,
                            std::size_t count) {
  std::vector<bool> read(count);
  for (std::size_t i = 0; i < ops.size(); ++i) {
    for_each_read(steps[i], *ops[i], [&](Rows rows) { mark(read, rows); });
  }
  return read;
}

std::vector<Rows> live_rows(const Program& program, std::size_t entry, bool full) {
  const auto& steps = program.steps();
  const auto& ops = program.operations();
  if (program.indexes_gprs()) {
    return {{0, program.reachable_vgprs()}, {program.vgprs(), program.reachable_agprs()}};
  }
  const std::vector<bool>& read = program.rows_read();
  std::vector<bool> live = read;
  if (full) {
    std::vector<bool> written(program.rows()), early(program.rows());  // early: read before that
    for (std::size_t i = entry; i < ops.size(); ++i) {
      const Step& s = steps[i];
      if (ends_the_walk(*ops[i]) || writes_exec(s, *ops[i])) break;
      for_each_read(s, *ops[i], [&](Rows rows) {
        for (u32 row = rows.first; row < rows.first + rows.count; ++row) {
          if (!written[row]) early[row] = true;
        }
      });
      if (writes_whole_rows(s, *ops[i])) mark(written, {s.dst, s.dst_words});
    }
    for (std::size_t row = 0; row < live.size(); ++row) {
      live[row] = early[row] || (read[row] && !written[row]);
    }
  }
  std::vector<Rows> runs;
  for (u32 row = 0; row < live.size(); ++row) {
    if (!live[row]) continue;
    // The two kinds of registers have patterns of their own.
    const bool joins = !runs.empty() && runs.back().first + runs.back().count == row &&
                       row != program.vgprs();
    if (joins) {
      ++runs.back().count;
    } else {
      runs.push_back({row, 1});
    }
  }
  return runs;
}

}  // namespace asmevo
