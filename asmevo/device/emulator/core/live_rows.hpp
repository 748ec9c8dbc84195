// Vector registers whose value at launch can matter: only those have to be filled with a pattern.
#pragma once

#include <vector>

#include "program.hpp"
#include "straight_line.hpp"

namespace asmevo {

// Of `count` rows, those that some instruction reads.
std::vector<bool> rows_read(std::span<const Step> steps, std::span<const Operation* const> ops,
                            std::size_t count);

// Rows that some instruction reads. Of a wave that starts with all lanes (`full`) not those that the
// code from `entry` up to its first branch writes before anything reads them.
std::vector<Rows> live_rows(const Program& program, std::size_t entry, bool full);

}  // namespace asmevo
