// The program counter as a value: s_getpc, and jumps and calls through registers, within the program.
#include <cstdio>
#include <string>

#include "code_addresses.hpp"
#include "fault.hpp"
#include "operation.hpp"

namespace asmevo {

namespace {

// The counter has moved on to the next instruction when a handler runs.
u64 next_address(const Wave& w) {
  const auto address = w.code == nullptr ? std::nullopt : w.code->address(w.pc);
  if (!address) throw Fault(FaultKind::kIllegal, "the program's addresses are not known");
  return *address;
}

std::size_t destination(const Wave& w, u64 address) {
  const auto found = w.code == nullptr ? std::nullopt : w.code->instruction(address);
  if (!found) {
    char text[2 + 16 + 1];
    std::snprintf(text, sizeof text, "0x%llx", static_cast<unsigned long long>(address));
    throw Fault(FaultKind::kIllegal, std::string("jump to ") + text + ", where the program has no instruction");
  }
  return *found;
}

void get_counter(Wave& w, const Step& s) { w.set_scalar64(s.dst, next_address(w)); }

void set_counter(Wave& w, const Step& s) { w.pc = destination(w, w.read64(s.src[0])); }

void swap_counter(Wave& w, const Step& s) {
  const std::size_t to = destination(w, w.read64(s.src[0]));
  w.set_scalar64(s.dst, next_address(w));
  w.pc = to;
}

void call(Wave& w, const Step& s) {
  w.set_scalar64(s.dst, next_address(w));
  w.pc = static_cast<std::size_t>(s.target);
}

constexpr Operation kTable[] = {
    {"s_getpc_b64", Shape::kScalar, 2, {}, kNoTraits, get_counter},
    {"s_setpc_b64", Shape::kScalar, 0, {2, 0, 0}, kNoTraits, set_counter},
    {"s_swappc_b64", Shape::kScalar, 2, {2, 0, 0}, kNoTraits, swap_counter},
    {"s_call_b64", Shape::kScalar, 2, {}, kTarget, call},
};

}  // namespace

std::span<const Operation> call_operations() { return kTable; }

}  // namespace asmevo
