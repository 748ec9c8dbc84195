// A launch whose workgroups do not depend on one another, on one or several host threads.
#pragma once

#include <optional>

#include "launch.hpp"

namespace asmevo {

// A deadline and the caller's own poll.
using Poll = std::function<void()>;

// Runs `order` with `threads` host threads. Empty when the workgroups may depend on each other, or
// with several threads when any faulted or ran out of instructions: memory is then undefined. With
// one thread, throws the first `Fault` in launch order.
std::optional<u64> run_independently(const Program& program, const Memory& memory,
                                     const Launch& launch, std::span<const u32> order, u32 threads,
                                     const Poll& poll);

}  // namespace asmevo
