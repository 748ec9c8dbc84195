// Device memory: disjoint regions at arbitrary 64-bit addresses, backed by host buffers.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "access_map.hpp"
#include "fault.hpp"

namespace asmevo {

struct MappedRegion {
  std::string name;
  std::uint64_t base;
  std::uint64_t size;
  std::uint8_t* bytes;
  bool writable;
  const std::uint8_t* initial = nullptr;  // a copy of what `bytes` hold before a launch, if there is one
  std::uint64_t first_dword = 0;  // of its marks, when accesses are tracked
};

// Cheap to copy: every host thread of a launch has its own, over the same bytes.
class Memory {
 public:
  // Throws std::invalid_argument when regions overlap or wrap around the address space.
  explicit Memory(std::vector<MappedRegion> regions);
  Memory(const Memory& other) : regions_(other.regions_) {}

  const std::vector<MappedRegion>& regions() const { return regions_; }

  // The host bytes of [address, address + size) when one region holds all of it and may be accessed
  // so, else null. The caller marks what it touches of it: `tracked` and `mark_lanes`.
  std::uint8_t* range(std::uint64_t address, std::uint64_t size, bool write) noexcept {
    const MappedRegion* region = find(address, size);
    if (region == nullptr || (write && !region->writable)) return nullptr;
    return region->bytes + (address - region->base);
  }

  // Host bytes of one access; throws the fault a GPU would raise when it is not mapped.
  std::uint8_t* access(std::uint64_t address, std::uint64_t size, bool write, int lane) {
    const MappedRegion* region = find(address, size);
    if (region == nullptr || (write && !region->writable)) fail(address, size, write, lane);
    const std::uint64_t offset = address - region->base;
    if (tracker_ != nullptr && region->writable) [[unlikely]] {
      mark(*region, offset, size, write ? AccessKind::kWrite : AccessKind::kRead);
    }
    return region->bytes + offset;
  }

  // An atomic that returns nothing: `apply` now, or when the workgroup's turn comes.
  void update(std::uint64_t address, std::uint64_t size, int lane,
              void (*apply)(std::uint8_t*, std::uint64_t), std::uint64_t operand);

  // The same for atomics of one dword each, side by side: their bytes, or null when each has to go
  // its own way.
  std::uint8_t* update_run(std::uint64_t address, std::uint64_t size);

  // `lanes` accesses of `size` bytes at address + offsets[i], all inside one region.
  void mark_lanes(std::uint64_t address, const std::uint32_t* offsets, std::size_t lanes,
                  std::uint64_t size, bool write);
  bool tracked() const { return tracker_ != nullptr; }
  void track(AccessTracker* tracker) { tracker_ = tracker; }
  // Lines of an `AccessMap` that covers the writable regions.
  std::size_t lines() const { return lines_; }

  [[noreturn]] void fail(std::uint64_t address, std::uint64_t size, bool write, int lane) const;

 private:
  static bool holds(const MappedRegion& r, std::uint64_t address, std::uint64_t size) noexcept {
    const std::uint64_t offset = address - r.base;
    return offset < r.size && size <= r.size - offset;
  }
  const MappedRegion* find(std::uint64_t address, std::uint64_t size) noexcept {
    if (last_ != nullptr && holds(*last_, address, size)) return last_;
    return search(address, size);
  }
  const MappedRegion* search(std::uint64_t address, std::uint64_t size) noexcept;
  bool mark(const MappedRegion& region, std::uint64_t offset, std::uint64_t size, AccessKind kind);

  std::vector<MappedRegion> regions_;  // by base
  std::size_t lines_ = 0;
  const MappedRegion* last_ = nullptr;
  AccessTracker* tracker_ = nullptr;
};

}  // namespace asmevo
