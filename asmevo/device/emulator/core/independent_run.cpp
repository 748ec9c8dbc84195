#include "independent_run.hpp"

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <exception>
#include <map>
#include <mutex>
#include <thread>

#include "resident_workgroup.hpp"

namespace asmevo {

namespace {

// With a budget below kPatience, the part of it.
constexpr u64 kWaitingPart = 8;

struct Stopped {};

// Applies the deferred atomics of finished workgroups in launch order.
class Commits {
 public:
  // How far workgroups may run ahead of the first that has not finished: bounds what is deferred.
  static constexpr std::size_t kWindow = 64;

  void finish(std::size_t position, std::vector<DeferredUpdate>&& updates) {
    const std::scoped_lock lock(mutex_);
    waiting_.emplace(position, std::move(updates));
    for (auto at = waiting_.begin(); at != waiting_.end() && at->first == next_;
         at = waiting_.erase(at)) {
      for (const DeferredUpdate& u : at->second) u.apply(u.bytes, u.operand);
      ++next_;
    }
    changed_.notify_all();
  }
  // Whether there is room for `position`, waiting a little for it.
  bool room(std::size_t position) {
    std::unique_lock lock(mutex_);
    if (position < next_ + kWindow) return true;
    changed_.wait_for(lock, std::chrono::milliseconds(50));
    return position < next_ + kWindow;
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  std::map<std::size_t, std::vector<DeferredUpdate>> waiting_;
  std::size_t next_ = 0;
};

class IndependentRun {
 public:
  IndependentRun(const Program& program, const Memory& memory, const Launch& launch,
                 std::span<const u32> order, u32 threads, const Poll& poll)
      : program_(program), memory_(memory), launch_(launch), order_(order), poll_(poll) {
    if (order.size() > 1) {
      for (u32 t = 0; t < threads; ++t) maps_.emplace_back(memory.lines());
    }
  }

  std::optional<u64> alone() {
    Allowance allowance{launch_.instruction_budget, poll_};
    try {
      work(0, allowance);
    } catch (const Conflict&) {
      return std::nullopt;
    }
    return launch_.instruction_budget - allowance.instructions;
  }

  std::optional<u64> together() {
    std::vector<std::thread> helpers;
    std::exception_ptr interrupt;
    try {
      for (std::size_t t = 1; t < maps_.size(); ++t) helpers.emplace_back([this, t] { help(t); });
      help(0);
    } catch (...) {
      interrupt = std::current_exception();
      stop_ = true;
    }
    for (std::thread& helper : helpers) helper.join();
    if (interrupt) std::rethrow_exception(interrupt);
    if (stop_ || executed_ > launch_.instruction_budget) return std::nullopt;
    return executed_.load();
  }

 private:
  // One thread of several. Only the calling one, number 0, lets exceptions of `poll` out.
  void help(std::size_t thread) {
    std::exception_ptr polled;
    const Poll poll = [&] {
      if (stop_.load(std::memory_order_relaxed)) throw Stopped{};
      if (thread != 0) return;
      try {
        poll_();
      } catch (...) {
        polled = std::current_exception();
        throw Stopped{};
      }
    };
    Allowance allowance{launch_.instruction_budget, poll};
    try {
      work(thread, allowance);
    } catch (...) {  // a conflict, a fault, or no memory: the serial run finds out what it means
      stop_ = true;
    }
    executed_ += launch_.instruction_budget - allowance.instructions;
    if (polled) std::rethrow_exception(polled);
  }

  void work(std::size_t thread, Allowance& allowance) {
    const bool several = maps_.size() > 1;
    Memory memory(memory_);
    std::optional<AccessTracker> tracker;
    if (!maps_.empty()) {
      std::vector<const AccessMap*> others;
      for (const AccessMap& map : maps_) {
        if (&map != &maps_[thread]) others.push_back(&map);
      }
      tracker.emplace(maps_[thread], std::move(others));
      memory.track(&*tracker);
    }
    ResidentWorkgroup group(program_, launch_);
    for (std::size_t at; (at = next_++) < order_.size();) {
      while (several && !commits_.room(at)) allowance.poll();
      if (tracker) tracker->begin(static_cast<u32>(at) + 1);
      group.begin(order_[at], memory, false, allowance);
      while (!group.ended()) {
        try {
          group.take_turns(allowance);
        } catch (const Fault& fault) {
          if (tracker && fault.kind == FaultKind::kBudget && may_wait(group)) throw Conflict{};
          throw;
        }
        if (several && stop_.load(std::memory_order_relaxed)) throw Stopped{};
        if (tracker && group.executed() > kPatience) throw Conflict{};
      }
      if (several) commits_.finish(at, std::move(tracker->updates));
    }
  }

  // Of a launch that ran out of instructions: whether this workgroup took so many of them that it
  // rather waits for another one. Where patience is the smaller it has decided already.
  bool may_wait(const ResidentWorkgroup& group) const {
    return group.executed() >= launch_.instruction_budget / kWaitingPart;
  }

  const Program& program_;
  const Memory& memory_;
  const Launch& launch_;
  std::span<const u32> order_;
  const Poll& poll_;
  std::vector<AccessMap> maps_;  // a thread; none when there is but one workgroup
  std::atomic<std::size_t> next_ = 0;
  std::atomic<bool> stop_ = false;
  std::atomic<u64> executed_ = 0;
  Commits commits_;
};

}  // namespace

std::optional<u64> run_independently(const Program& program, const Memory& memory,
                                     const Launch& launch, std::span<const u32> order, u32 threads,
                                     const Poll& poll) {
  IndependentRun run(program, memory, launch, order, threads, poll);
  return threads > 1 && order.size() > 1 ? run.together() : run.alone();
}

}  // namespace asmevo
