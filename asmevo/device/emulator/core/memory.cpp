#include "memory.hpp"

#include <algorithm>
#include <cstdio>
#include <stdexcept>

namespace asmevo {

namespace {

std::string hex(std::uint64_t value) {
  char text[24];
  std::snprintf(text, sizeof text, "0x%llx", static_cast<unsigned long long>(value));
  return text;
}

std::uint64_t distance(const MappedRegion& r, std::uint64_t address) {
  if (address < r.base) return r.base - address;
  const std::uint64_t last = r.base + (r.size - 1);
  return address > last ? address - last : 0;
}

}  // namespace

Memory::Memory(std::vector<MappedRegion> regions) : regions_(std::move(regions)) {
  std::erase_if(regions_, [](const MappedRegion& r) { return r.size == 0; });
  std::sort(regions_.begin(), regions_.end(),
            [](const MappedRegion& a, const MappedRegion& b) { return a.base < b.base; });
  for (std::size_t i = 0; i < regions_.size(); ++i) {
    const MappedRegion& r = regions_[i];
    if (r.base + (r.size - 1) < r.base) {
      throw std::invalid_argument("region '" + r.name + "' wraps around the address space");
    }
    if (i > 0 && r.base - regions_[i - 1].base < regions_[i - 1].size) {
      throw std::invalid_argument("regions '" + regions_[i - 1].name + "' and '" + r.name +
                                  "' overlap");
    }
  }
  std::uint64_t dwords = 0;
  for (MappedRegion& r : regions_) {
    if (!r.writable) continue;
    r.first_dword = dwords;
    // Whole lines, aligned as the region is in a line of device memory: kernels cut their work at
    // such boundaries.
    dwords += (r.size / AccessMap::kLineBytes + 2) * (AccessMap::kLineBytes / 4);
  }
  lines_ = dwords / (AccessMap::kLineBytes / 4);
}

const MappedRegion* Memory::search(std::uint64_t address, std::uint64_t size) noexcept {
  auto after = std::upper_bound(
      regions_.begin(), regions_.end(), address,
      [](std::uint64_t a, const MappedRegion& r) { return a < r.base; });
  if (after == regions_.begin()) return nullptr;
  const MappedRegion& candidate = *std::prev(after);
  if (!holds(candidate, address, size)) return nullptr;
  last_ = &candidate;
  return last_;
}

bool Memory::mark(const MappedRegion& region, std::uint64_t offset, std::uint64_t size,
                  AccessKind kind) {
  const std::uint64_t skew = region.base % AccessMap::kLineBytes;
  const std::uint64_t first = (skew + offset) / 4, last = (skew + offset + size - 1) / 4;
  return tracker_->mark(region.first_dword + first, last - first + 1, kind);
}

void Memory::mark_lanes(std::uint64_t address, const std::uint32_t* offsets, std::size_t lanes,
                        std::uint64_t size, bool write) {
  const MappedRegion* region = find(address + offsets[0], size);
  if (region == nullptr || !region->writable) return;
  const AccessKind kind = write ? AccessKind::kWrite : AccessKind::kRead;
  const std::uint64_t base = address - region->base + region->base % AccessMap::kLineBytes;
  std::uint32_t gaps = 0;
  for (std::uint32_t i = 0; i < lanes; ++i) {
    gaps |= offsets[i] - offsets[0] - i * static_cast<std::uint32_t>(size);
  }
  for (std::size_t i = 0; i < lanes;) {
    // Lanes side by side make one range.
    std::size_t end = gaps == 0 ? lanes : i + 1;
    while (end < lanes && offsets[end] - offsets[end - 1] == size) ++end;
    const std::uint64_t first = (base + offsets[i]) / 4;
    const std::uint64_t last = (base + offsets[end - 1] + size - 1) / 4;
    tracker_->note(region->first_dword + first, last - first + 1, kind);
    i = end;
  }
  tracker_->settle();
}

void Memory::update(std::uint64_t address, std::uint64_t size, int lane,
                    void (*apply)(std::uint8_t*, std::uint64_t), std::uint64_t operand) {
  const MappedRegion* region = find(address, size);
  if (region == nullptr || !region->writable) fail(address, size, true, lane);
  const std::uint64_t offset = address - region->base;
  std::uint8_t* bytes = region->bytes + offset;
  if (tracker_ != nullptr && mark(*region, offset, size, AccessKind::kUpdate) &&
      tracker_->defers()) {
    tracker_->updates.push_back({apply, bytes, operand});
  } else {
    apply(bytes, operand);
  }
}

std::uint8_t* Memory::update_run(std::uint64_t address, std::uint64_t size) {
  const MappedRegion* region = find(address, size);
  if (region == nullptr || !region->writable) return nullptr;
  const std::uint64_t offset = address - region->base;
  if (tracker_ != nullptr) {
    if (tracker_->defers()) return nullptr;
    const std::uint64_t skew = region->base % AccessMap::kLineBytes;
    tracker_->note_updates(region->first_dword + (skew + offset) / 4, size / 4);
  }
  return region->bytes + offset;
}

void Memory::fail(std::uint64_t address, std::uint64_t size, bool write, int lane) const {
  std::string message = std::string(write ? "store" : "load") + " of " + std::to_string(size) +
                        " bytes at " + hex(address) + " in lane " + std::to_string(lane);
  const auto nearest = std::min_element(
      regions_.begin(), regions_.end(), [&](const MappedRegion& a, const MappedRegion& b) {
        return distance(a, address) < distance(b, address);
      });
  if (nearest == regions_.end()) {
    message += ": no memory is mapped";
  } else if (distance(*nearest, address) == 0 && holds(*nearest, address, size)) {
    message += ": region '" + nearest->name + "' is read-only";
  } else {
    message += " is outside every mapped region; nearest is '" + nearest->name + "' at " +
               hex(nearest->base) + " of " + std::to_string(nearest->size) + " bytes";
  }
  throw Fault(FaultKind::kMemory, message, lane, address);
}

}  // namespace asmevo
