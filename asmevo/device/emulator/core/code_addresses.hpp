// Where a program's instructions lie in the device's address space, for the operations that read the
// program counter or jump to a register's value.
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <span>
#include <stdexcept>
#include <vector>

namespace asmevo {

// The address of offset 0. Nothing is mapped there: code is not data here.
inline constexpr std::uint64_t kCodeBase = 0x0000'5000'0000'0000;

class CodeAddresses {
 public:
  // Byte offsets of all instructions and of the end, ascending; none when addresses are not known.
  CodeAddresses(std::span<const std::int64_t> offsets, std::size_t instructions)
      : offsets_(offsets.begin(), offsets.end()) {
    if (offsets_.empty()) return;
    if (offsets_.size() != instructions + 1) throw std::invalid_argument("one offset a record, and the end's");
    constexpr std::int64_t kLimit = std::int64_t{1} << 40;
    for (std::size_t i = 0; i < offsets_.size(); ++i) {
      if (offsets_[i] < -kLimit || offsets_[i] > kLimit || (i != 0 && offsets_[i] <= offsets_[i - 1])) {
        throw std::invalid_argument("offsets must ascend and lie near 0");
      }
    }
  }

  std::optional<std::uint64_t> address(std::size_t instruction) const {
    if (instruction >= offsets_.size()) return std::nullopt;
    return kCodeBase + static_cast<std::uint64_t>(offsets_[instruction]);
  }
  std::optional<std::size_t> instruction(std::uint64_t address) const {
    const auto offset = static_cast<std::int64_t>(address - kCodeBase);
    const auto found = std::lower_bound(offsets_.begin(), offsets_.end(), offset);
    if (found == offsets_.end() || *found != offset || found + 1 == offsets_.end()) return std::nullopt;
    return static_cast<std::size_t>(found - offsets_.begin());
  }

 private:
  std::vector<std::int64_t> offsets_;
};

}  // namespace asmevo
