// Who touched which dword of the writable regions: finds whether the workgroups of a launch are
// independent of one another, so that the order in which they run cannot matter.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <span>
#include <vector>

namespace asmevo {

// Thrown, and caught by the launch, when two workgroups touch the same dword other than by reading
// it or by atomics that return nothing.
struct Conflict {};

// The marks one host thread leaves. A line is 16 dwords with two bits each: 0 untouched, 1 read,
// 2 written (reading included), 3 touched by atomics without return alone.
class AccessMap {
 public:
  static constexpr std::size_t kLineBytes = 64;

  explicit AccessMap(std::size_t lines);

 private:
  friend class AccessTracker;
  // Zeroed memory straight from the system: only lines that are touched cost anything.
  struct Line {
    std::uint64_t current;  // workgroup << 32 | its bits
    std::uint32_t past;     // bits of the thread's earlier workgroups
    std::uint32_t unused;
  };
  std::unique_ptr<Line, decltype(&std::free)> lines_;
};

// An atomic without return that takes effect when its workgroup's turn comes.
struct DeferredUpdate {
  void (*apply)(std::uint8_t* bytes, std::uint64_t operand);
  std::uint8_t* bytes;
  std::uint64_t operand;
};

enum class AccessKind : std::uint8_t { kRead, kWrite, kUpdate };

// Marks the accesses of one thread's workgroups and compares them with those of the others.
//
// Whether a launch has a conflict does not depend on the schedule: until the first one, every
// workgroup does what it would do alone, so what each touches is a property of the launch. A thread
// marks first and looks at the marks of the others second, with a fence between, so of two that
// race at least one sees the other and stops before it touches the data.
class AccessTracker {
 public:
  AccessTracker(AccessMap& own, std::vector<const AccessMap*> others)
      : own_(own), others_(std::move(others)) {}

  // `workgroup` is at least 1 and not used twice in a launch.
  void begin(std::uint32_t workgroup) {
    workgroup_ = workgroup;
    updates.clear();
  }

  // Alone, a thread runs the workgroups in their order, so their atomics need not wait.
  bool defers() const { return !others_.empty(); }

  // `dword` counts from the first tracked byte. For updates: whether it must be deferred.
  bool mark(std::size_t dword, std::size_t count, AccessKind kind);
  // Marks without looking at other threads, and the look at all that was marked since the last one.
  bool note(std::size_t dword, std::size_t count, AccessKind kind);
  void settle();
  // Marks atomics of one dword each, side by side.
  void note_updates(std::size_t dword, std::size_t count);

  std::vector<DeferredUpdate> updates;  // of the current workgroup, in its own order

 private:
  struct Touched {
    std::size_t line;
    std::uint32_t dwords;  // bit 2i: dword i
    AccessKind kind;
  };
  bool note_line(std::size_t line, std::uint32_t dwords, AccessKind kind);

  AccessMap& own_;
  std::vector<const AccessMap*> others_;
  std::vector<Touched> touched_;
  std::uint32_t workgroup_ = 0;
};

}  // namespace asmevo
