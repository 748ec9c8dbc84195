// What stops a launch: a fault of the kernel, thrown by a handler and carried to Python.
#pragma once

#include <cstdint>
#include <exception>
#include <string>
#include <utility>

namespace asmevo {

enum class FaultKind { kMemory, kBudget, kIllegal, kTimeout };

struct Fault : std::exception {
  Fault(FaultKind k, std::string m, int l = -1, std::uint64_t a = 0)
      : kind(k), message(std::move(m)), lane(l), address(a) {}
  const char* what() const noexcept override { return message.c_str(); }

  FaultKind kind;
  std::string message;
  int lane;
  std::uint64_t address;
  std::size_t instruction = 0;  // filled in by the run loop
  std::uint64_t workgroup = 0;
};

}  // namespace asmevo
