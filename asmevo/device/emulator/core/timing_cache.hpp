// Tags of one cache of 128-byte lines, with when each line arrives.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <new>

#ifdef __linux__
#include <sys/mman.h>
#endif

namespace asmevo::timing {

inline std::uint64_t hash_line(std::uint64_t line) {
  line ^= line >> 33;
  line *= 0xff51afd7ed558ccdull;
  line ^= line >> 33;
  line *= 0xc4ceb9fe1a85ec53ull;
  return line ^ (line >> 33);
}

// How a cache chooses the set of a line. Those of a compute unit hold any run of lines as long as they
// are (MT4G: hits up to the capacity); beyond them addresses are spread over channels and sets.
enum class Sets : std::uint8_t { InTurn, Hashed };

// Set-associative with least-recently-used replacement.
class Cache {
 public:
  // Of a line that is there: the clk of its fill, for which whoever hits before waits.
  struct State {
    std::uint64_t arrival : 63;
    std::uint64_t dirty : 1;
  };

  // At least one line.
  Cache(std::uint32_t lines, Sets sets)
      : hashed_(sets == Sets::Hashed),
        ways_(std::min(lines, kWays)),
        sets_(std::max(lines / ways_, 1u)),
        data_(allocate(sets_)) {}

  // The line, now the most recent of its set, or null.
  State* find(std::uint64_t line) {
    Set& set = set_of(line);
    std::uint32_t way = 0;
    while (way < ways_ && set.tags[way] != line + 1) ++way;
    if (way == ways_) return nullptr;
    if (way != 0) {
      const State state = set.states[way];
      push(set, way, line, state);
    }
    return &set.states[0];
  }

  // Puts a line that is not there in the place of the least recent one of its set.
  State& insert(std::uint64_t line, std::uint64_t arrival) {
    Set& set = set_of(line);
    push(set, ways_ - 1, line, {arrival, 0});
    return set.states[0];
  }

  // Has the host fetch what a lookup of the line needs: large caches do not fit into the host's.
  void prefetch(std::uint64_t line) const {
    __builtin_prefetch(&data_.get()[index_of(line)].tags[0]);
  }

  void clear() { std::memset(static_cast<void*>(data_.get()), 0, sets_ * sizeof(Set)); }

 private:
  static constexpr std::uint32_t kWays = 16;
  struct Set {  // the most recent line first
    std::uint64_t tags[kWays];  // line + 1; 0: empty
    State states[kWays];
  };
  struct Free {
    void operator()(Set* sets) const { std::free(sets); }
  };

  // Zeroed. Lookups of a large cache are random: huge pages save a TLB miss for most.
  static Set* allocate(std::size_t sets) {
    constexpr std::size_t kHuge = std::size_t{2} << 20;
    const std::size_t size = sets * sizeof(Set);
    if (size < kHuge) {
      void* const data = std::calloc(sets, sizeof(Set));
      if (!data) throw std::bad_alloc();
      return static_cast<Set*>(data);
    }
    const std::size_t rounded = (size + kHuge - 1) / kHuge * kHuge;
    void* const data = std::aligned_alloc(kHuge, rounded);
    if (!data) throw std::bad_alloc();
#ifdef __linux__
    madvise(data, rounded, MADV_HUGEPAGE);  // advice: whether it is taken does not matter
#endif
    std::memset(data, 0, size);
    return static_cast<Set*>(data);
  }

  std::uint64_t index_of(std::uint64_t line) const {
    return hashed_ ? ((hash_line(line) >> 32) * sets_) >> 32 : line % sets_;
  }
  Set& set_of(std::uint64_t line) { return data_.get()[index_of(line)]; }

  // Makes a line the first of its set; those before `way` move back by one.
  static void push(Set& set, std::uint32_t way, std::uint64_t line, State state) {
    std::memmove(&set.tags[1], &set.tags[0], way * sizeof set.tags[0]);
    std::memmove(&set.states[1], &set.states[0], way * sizeof set.states[0]);
    set.tags[0] = line + 1;
    set.states[0] = state;
  }

  bool hashed_;
  std::uint32_t ways_;
  std::uint32_t sets_;
  std::unique_ptr<Set[], Free> data_;
};

}  // namespace asmevo::timing
