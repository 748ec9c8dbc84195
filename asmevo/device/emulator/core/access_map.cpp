#include "access_map.hpp"

#include <algorithm>
#include <new>

#if defined(__linux__)
#include <sys/mman.h>
#endif

namespace asmevo {

namespace {

constexpr std::size_t kDwords = AccessMap::kLineBytes / 4;
constexpr std::uint32_t kLow = 0x55555555u;  // the lower bit of every dword's state

std::uint32_t low(std::uint32_t states) { return states & kLow; }
std::uint32_t high(std::uint32_t states) { return (states >> 1) & kLow; }

// Dwords whose access by another workgroup in `states` excludes this one.
std::uint32_t excluded(std::uint32_t states, std::uint32_t dwords, AccessKind kind) {
  switch (kind) {
    case AccessKind::kRead: return dwords & high(states);
    case AccessKind::kWrite: return dwords & (low(states) | high(states));
    case AccessKind::kUpdate: return dwords & (low(states) ^ high(states));
  }
  return dwords;
}

// Marks are as scattered as what they stand for; fewer pages cost fewer page faults.
void ask_for_huge_pages([[maybe_unused]] void* bytes, [[maybe_unused]] std::size_t size) {
#if defined(__linux__) && defined(MADV_HUGEPAGE)
  constexpr std::size_t kHuge = 2u << 20, kPage = 4096;
  if (size < kHuge) return;
  const auto start = reinterpret_cast<std::uintptr_t>(bytes);
  const std::uintptr_t first = (start + kPage - 1) & ~(kPage - 1);
  // Advice: where it is not taken, nothing is lost.
  madvise(reinterpret_cast<void*>(first), (start + size - first) & ~(kPage - 1), MADV_HUGEPAGE);
#endif
}

}  // namespace

AccessMap::AccessMap(std::size_t lines)
    : lines_(static_cast<Line*>(std::calloc(lines + 1, sizeof(Line))), &std::free) {
  if (lines_ == nullptr) throw std::bad_alloc();
  ask_for_huge_pages(lines_.get(), (lines + 1) * sizeof(Line));
}

bool AccessTracker::note_line(std::size_t line, std::uint32_t dwords, AccessKind kind) {
  AccessMap::Line& mine = own_.lines_.get()[line];
  std::atomic_ref<std::uint64_t> current(mine.current);
  const std::uint64_t before = current.load(std::memory_order_relaxed);
  auto states = static_cast<std::uint32_t>(before);
  std::uint32_t past = mine.past;
  if (before == 0 && past == 0 && kind == AccessKind::kWrite) [[likely]] {  // most stores
    current.store(std::uint64_t{workgroup_} << 32 | dwords << 1, std::memory_order_release);
    if (!others_.empty()) touched_.push_back({line, dwords, kind});
    return false;
  }
  if (before >> 32 != workgroup_ && states != 0) {
    past |= states;
    states = 0;
    std::atomic_ref(mine.past).store(past, std::memory_order_relaxed);
  }
  const std::uint32_t l = low(states), h = high(states);
  // What this workgroup alone has read or written, its own atomics may change at once.
  if (kind == AccessKind::kUpdate && (dwords & (l ^ h)) != 0) {
    if ((dwords & ~(l ^ h)) != 0) throw Conflict{};
    kind = AccessKind::kWrite;
  }
  if (excluded(past, dwords, kind) != 0) throw Conflict{};
  std::uint32_t nl = l, nh = h;
  if (kind == AccessKind::kUpdate) {
    nl |= dwords;
    nh |= dwords;
  } else {
    if ((dwords & l & h) != 0) throw Conflict{};
    if (kind == AccessKind::kWrite) {
      nh |= dwords;
      nl &= ~dwords;
    } else {
      nl |= dwords & ~h;
    }
  }
  const std::uint64_t after = std::uint64_t{workgroup_} << 32 | nh << 1 | nl;
  if (after != before) {
    current.store(after, std::memory_order_release);
    if (!others_.empty()) touched_.push_back({line, dwords, kind});
  }
  return kind == AccessKind::kUpdate;
}

bool AccessTracker::note(std::size_t dword, std::size_t count, AccessKind kind) {
  bool deferred = false;
  while (count != 0) {
    const std::size_t first = dword % kDwords;
    const std::size_t n = std::min(count, kDwords - first);
    const auto all = static_cast<std::uint32_t>((std::uint64_t{1} << (2 * n)) - 1) & kLow;
    const std::size_t line = dword / kDwords;
    AccessMap::Line& mine = own_.lines_.get()[line];
    if (kind == AccessKind::kWrite && others_.empty() && (mine.current | mine.past) == 0) {
      mine.current = std::uint64_t{workgroup_} << 32 | all << (2 * first + 1);  // most stores
      deferred = false;
    } else {
      deferred = note_line(line, all << (2 * first), kind);
    }
    dword += n;
    count -= n;
  }
  return deferred;
}

void AccessTracker::note_updates(std::size_t dword, std::size_t count) {
  while (count != 0) {
    const std::size_t line = dword / kDwords, first = dword % kDwords;
    const std::size_t n = std::min(count, kDwords - first);
    const auto all = static_cast<std::uint32_t>((std::uint64_t{1} << (2 * n)) - 1) & kLow;
    const std::uint32_t dwords = all << (2 * first);
    const std::uint64_t current =
        std::atomic_ref(own_.lines_.get()[line].current).load(std::memory_order_relaxed);
    const auto states = static_cast<std::uint32_t>(current >> 32 == workgroup_ ? current : 0);
    const std::uint32_t own = dwords & (low(states) ^ high(states));
    if (own != 0) note_line(line, own, AccessKind::kUpdate);
    if (own != dwords) note_line(line, dwords & ~own, AccessKind::kUpdate);
    dword += n;
    count -= n;
  }
  settle();
}

void AccessTracker::settle() {
  if (touched_.empty()) return;
  std::atomic_thread_fence(std::memory_order_seq_cst);
  for (const AccessMap* other : others_) {
    for (const Touched& t : touched_) {
      AccessMap::Line& line = other->lines_.get()[t.line];
      const auto current = std::atomic_ref(line.current).load(std::memory_order_acquire);
      const auto past = std::atomic_ref(line.past).load(std::memory_order_relaxed);
      if ((excluded(static_cast<std::uint32_t>(current), t.dwords, t.kind) |
           excluded(past, t.dwords, t.kind)) != 0) {
        throw Conflict{};
      }
    }
  }
  touched_.clear();
}

bool AccessTracker::mark(std::size_t dword, std::size_t count, AccessKind kind) {
  const bool deferred = note(dword, count, kind);
  settle();
  return deferred;
}

}  // namespace asmevo
