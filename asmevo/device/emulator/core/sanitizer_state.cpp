#include "sanitizer_state.hpp"

#include <algorithm>

#include "sanitizer.hpp"

namespace asmevo {

void WaveShadow::reset(std::size_t row_count, std::size_t instructions, bool hazards) {
  bits.resize(row_count * kLanes);
  rows.resize(row_count);
  dirty.clear();
  for (std::size_t row = 0; row < row_count; ++row) set(row, Row::kUndefined);
  row_origin.resize(row_count);
  std::fill(std::begin(scalar), std::end(scalar), kAllBits);
  for (u16 i = 0; i <= kShadowScc; ++i) scalar_origin[i] = {Origin::Kind::kLaunch, i, 0};
  for (Queue* queue : {&vm, &lgkm}) {
    queue->clear();
    queue->ordered = 0;
  }
  row_flights.assign(row_count, 0);
  flying.clear();
  std::fill(std::begin(scalar_flights), std::end(scalar_flights), u8{0});
  register_flights = 0;
  lds_ops.assign(1, {});
  done = arrived = visible = {};
  barriers = 0;
  at_barrier = false;
  clock = 1;
  issued.assign(hazards ? instructions : 0, 0);
}

u32* WaveShadow::mixed(u16 row) {
  u32* out = &bits[row * kLanes];
  if (rows[row] != Row::kMixed) {
    std::fill_n(out, kLanes, rows[row] == Row::kUndefined ? kAllBits : 0u);
    set(row, Row::kMixed);
  }
  return out;
}

void ShadowLds::reset(u32 bytes, std::size_t waves) {
  limit = bytes;
  words = (bytes + 3) / 4;
  undefined.assign(words, kAllBits);
  origin.assign(words, {});
  last_write.assign(words, {});
  last_read.assign(words * waves, 0);
}

ShadowMemory::ShadowMemory(const std::vector<CheckedRegion>& regions) {
  for (const CheckedRegion& r : regions) {
    if (r.size == 0) continue;
    if (r.base + (r.size - 1) < r.base || r.data < r.base || r.data - r.base > r.size ||
        r.data_size > r.size - (r.data - r.base)) {
      throw std::invalid_argument("a checked region's data lies outside its mapping");
    }
    Region region{r.base, r.size, r.data, r.data_size, r.writable, r.undefined, r.guarded, nullptr};
    if (r.writable && r.data_size != 0) {
      const std::size_t count = r.data_size / 4 + 2;
      auto* words = static_cast<MemoryWord*>(std::calloc(count, sizeof(MemoryWord)));
      if (words == nullptr) throw std::bad_alloc();
      region.words.reset(words);
    }
    regions_.push_back(std::move(region));
  }
  std::sort(regions_.begin(), regions_.end(),
            [](const Region& a, const Region& b) { return a.base < b.base; });
}

void ShadowMemory::clear() {
  for (Region& r : regions_) {
    if (r.words != nullptr) std::fill_n(r.words.get(), r.data_size / 4 + 2, MemoryWord{});
  }
}

ShadowMemory::Region* ShadowMemory::find(u64 address, u64 bytes) {
  if (last_ != nullptr && last_->maps(address, bytes)) return last_;
  auto after = std::upper_bound(regions_.begin(), regions_.end(), address,
                                [](u64 a, const Region& r) { return a < r.base; });
  if (after == regions_.begin()) return nullptr;
  Region& candidate = *std::prev(after);
  if (!candidate.maps(address, bytes)) return nullptr;
  last_ = &candidate;
  return last_;
}

}  // namespace asmevo
