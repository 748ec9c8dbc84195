// Caches and bandwidth as the cycle model sees them: those of a compute unit, and what it shares.
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>
#include <vector>

#include "timing.hpp"
#include "timing_cache.hpp"
#include "timing_channel.hpp"
#include "timing_sharing.hpp"
#include "trace.hpp"

namespace asmevo::timing {

// L2 of an XCD, MALL and HBM, as far as the simulated compute units may use them: where only some
// of those at work are simulated, each path takes as much longer, and each cache holds as much less.
class SharedMemory {
 public:
  struct Found {
    std::uint64_t arrival;
    MemoryLevel level;
  };

  SharedMemory(const Parameters& parameters, const Launch& launch, const Sharing& sharing)
      : p_(parameters),
        sharing_(sharing),
        l2_(scaled(parameters.l2_lines, sharing.xcd_footprint()), Sets::Hashed),
        mall_(std::min(scaled(parameters.mall_lines, sharing.device_footprint()),
                       sharing.touches()),
              Sets::Hashed),
        channels_(parameters.l2_channels),
        read_(cost(parameters.l2_read_q8, launch.busy_units_of_xcd, launch)),
        write_(cost(parameters.l2_write_q8, launch.busy_units_of_xcd, launch)),
        mall_cost_(cost(parameters.mall_q8, launch.busy_units, launch)),
        hbm_read_(cost(parameters.hbm_read_q8, launch.busy_units, launch)),
        hbm_write_(cost(parameters.hbm_write_q8, launch.busy_units, launch)) {}

  // A line that a compute unit's cache asks for at `clk` and finds in L2 after `l2_latency`.
  Found read(std::uint64_t line, std::uint64_t clk, std::uint32_t l2_latency) {
    Channel& channel = channel_of(line);
    const std::uint64_t start = channel.serve(clk, read_);
    if (const Cache::State* found = l2_.find(line)) {
      return {std::max<std::uint64_t>(start + l2_latency, found->arrival), MemoryLevel::L2};
    }
    const Found found = fill(line, start, channel);
    l2_.insert(line, found.arrival);
    return found;
  }

  // When a store is in L2. What it makes dirty leaves for HBM at some time: its path is booked, and
  // the store does not wait for it.
  std::uint64_t write(std::uint64_t line, std::uint64_t clk) {
    const std::uint64_t start = channel_of(line).serve(clk, write_);
    Cache::State* found = l2_.find(line);
    if (!found) found = &l2_.insert(line, 0);
    make_dirty(line, *found, clk);
    return start + p_.store_latency;
  }

  // When an atomic's line has been read, changed and written in L2, where atomics are done. Those
  // of one line wait for one another on its channel.
  Found atomic(std::uint64_t line, std::uint64_t clk) {
    Channel& channel = channel_of(line);
    const std::uint64_t start = channel.serve(clk, write_ * p_.atomic_factor);
    Cache::State* found = l2_.find(line);
    Found result{start, MemoryLevel::L2};
    if (!found) {
      result = fill(line, start, channel);
      result.arrival -= std::min<std::uint64_t>(p_.l2_latency, result.arrival);
      found = &l2_.insert(line, result.arrival);
    }
    make_dirty(line, *found, clk);
    result.arrival = std::max<std::uint64_t>(result.arrival, found->arrival) + p_.atomic_latency;
    return result;
  }

  void prefetch(std::uint64_t line) const {
    l2_.prefetch(line);
    mall_.prefetch(line);
  }

  // When everything written has left for HBM.
  std::uint64_t drained() const { return written_ != 0 ? hbm_channel_.end() : 0; }

  // Lines that leave for HBM.
  std::uint64_t written() const { return written_; }

 private:
  static std::uint32_t scaled(std::uint32_t lines, double footprint) {
    return std::max(1u, static_cast<std::uint32_t>(lines / footprint));
  }
  static std::uint64_t cost(std::uint32_t q8, std::uint32_t busy, const Launch& launch) {
    return std::max<std::uint64_t>(
        1, (std::uint64_t{q8} * busy + launch.units / 2) / launch.units);
  }

  Channel& channel_of(std::uint64_t line) {
    return channels_[(hash_line(line) & 0xffffffffu) * channels_.size() >> 32];
  }

  // A line from beyond L2. One that another compute unit or XCD brings in is on its way at the same
  // time: it arrives no sooner, but pays no path of its own.
  Found fill(std::uint64_t line, std::uint64_t clk, Channel& channel) {
    if (mall_.find(line)) {
      channel.serve(clk, write_);
      return {mall_channel_.serve(clk, mall_cost_) + p_.mall_latency, MemoryLevel::Mall};
    }
    mall_.insert(line, 0);
    const ColdShares& cold = sharing_.of(line);
    const double at = static_cast<double>(hash_line(line ^ kSalt) >> 11) * 0x1p-53;
    if (at >= cold.beyond_l2) return {clk + p_.hbm_latency, MemoryLevel::L2};
    channel.serve(clk, write_);
    const std::uint64_t start = mall_channel_.serve(clk, mall_cost_);
    if (at >= cold.from_hbm) return {start + p_.hbm_latency, MemoryLevel::Mall};
    return {std::max(start, hbm_channel_.serve(clk, hbm_read_)) + p_.hbm_latency,
            MemoryLevel::Hbm};
  }

  void make_dirty(std::uint64_t number, Cache::State& line, std::uint64_t clk) {
    if (line.dirty) return;
    line.dirty = 1;
    ++written_;
    hbm_channel_.serve(clk, hbm_write_);
    if (!mall_.find(number)) mall_.insert(number, 0);
  }

  static constexpr std::uint64_t kSalt = 0x9e3779b97f4a7c15ull;  // not the bits that choose sets

  const Parameters& p_;
  const Sharing& sharing_;
  Cache l2_;
  Cache mall_;
  std::vector<Channel> channels_;
  Channel mall_channel_;
  Channel hbm_channel_;
  std::uint64_t read_;
  std::uint64_t write_;
  std::uint64_t mall_cost_;
  std::uint64_t hbm_read_;
  std::uint64_t hbm_write_;
  std::uint64_t written_ = 0;
};

// vL1D, sL1D and L1I of a compute unit, and its path to L2.
class UnitMemory {
 public:
  UnitMemory(const Parameters& parameters, SharedMemory& shared)
      : p_(parameters),
        shared_(shared),
        vl1d_(parameters.vl1d_lines, Sets::InTurn),
        sl1d_(parameters.sl1d_lines, Sets::InTurn),
        code_(parameters.code_lines, Sets::InTurn) {}

  // A vector load's line whose tag is looked up at `clk`.
  SharedMemory::Found load(std::uint64_t line, std::uint64_t clk) {
    if (const Cache::State* found = vl1d_.find(line)) {
      return {std::max<std::uint64_t>(clk + p_.vl1d_latency, found->arrival), MemoryLevel::L1};
    }
    const auto found = shared_.read(line, fill_path_.serve(clk, p_.cu_fill_q8),
                                    p_.l2_latency);
    vl1d_.insert(line, found.arrival);
    return found;
  }

  SharedMemory::Found load_scalar(std::uint64_t line, std::uint64_t clk) {
    if (const Cache::State* found = sl1d_.find(line)) {
      return {std::max<std::uint64_t>(clk + p_.sl1d_latency, found->arrival), MemoryLevel::L1};
    }
    const auto found =
        shared_.read(line, clk, p_.sl1d_latency + p_.sl1d_miss_latency);
    sl1d_.insert(line, found.arrival);
    return found;
  }

  SharedMemory::Found store(std::uint64_t line, std::uint64_t clk) {
    return {shared_.write(line, clk), MemoryLevel::L2};
  }

  SharedMemory::Found atomic(std::uint64_t line, std::uint64_t clk) {
    return shared_.atomic(line, clk);
  }

  // When a line of code that a wave reaches at `clk` is there. The lines behind it are asked for
  // at the same time.
  std::uint64_t fetch(std::uint32_t code_line, std::uint64_t clk) {
    if (p_.code_miss_latency == 0) return clk;
    std::uint64_t arrival = clk;
    for (std::uint32_t ahead = 0; ahead <= p_.code_lines_ahead; ++ahead) {
      const std::uint64_t line = std::uint64_t{code_line} + ahead;
      const Cache::State* found = code_.find(line);
      if (!found) found = &code_.insert(line, clk + p_.code_miss_latency);
      if (ahead == 0) arrival = std::max<std::uint64_t>(clk, found->arrival);
    }
    return arrival;
  }

  void prefetch(std::uint64_t line) const { shared_.prefetch(line); }

  void invalidate_vector() { vl1d_.clear(); }
  void invalidate_scalar() { sl1d_.clear(); }

 private:
  const Parameters& p_;
  SharedMemory& shared_;
  Cache vl1d_;
  Cache sl1d_;
  Cache code_;
  Channel fill_path_;
};

}  // namespace asmevo::timing
