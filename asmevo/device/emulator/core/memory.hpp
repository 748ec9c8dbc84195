// Device memory: disjoint regions at arbitrary 64-bit addresses, backed by host buffers.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "fault.hpp"

namespace asmevo {

struct MappedRegion {
  std::string name;
  std::uint64_t base;
  std::uint64_t size;
  std::uint8_t* bytes;
  bool writable;
};

class Memory {
 public:
  // Throws std::invalid_argument when regions overlap or wrap around the address space.
  explicit Memory(std::vector<MappedRegion> regions);

  // The region that holds all of [address, address + size), or null.
  const MappedRegion* find(std::uint64_t address, std::uint64_t size) noexcept {
    if (last_ != nullptr && holds(*last_, address, size)) return last_;
    return search(address, size);
  }

  // Host bytes of one access; throws the fault a GPU would raise when it is not mapped.
  std::uint8_t* access(std::uint64_t address, std::uint64_t size, bool write, int lane) {
    const MappedRegion* region = find(address, size);
    if (region == nullptr || (write && !region->writable)) fail(address, size, write, lane);
    return region->bytes + (address - region->base);
  }

  [[noreturn]] void fail(std::uint64_t address, std::uint64_t size, bool write, int lane) const;

 private:
  static bool holds(const MappedRegion& r, std::uint64_t address, std::uint64_t size) noexcept {
    const std::uint64_t offset = address - r.base;
    return offset < r.size && size <= r.size - offset;
  }
  const MappedRegion* search(std::uint64_t address, std::uint64_t size) noexcept;

  std::vector<MappedRegion> regions_;  // by base
  const MappedRegion* last_ = nullptr;
};

}  // namespace asmevo
