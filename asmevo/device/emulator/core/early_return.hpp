// Which loads may write their registers at issue, because nothing can tell it from the latest moment
// that the ISA allows.
#pragma once

#include <span>

#include "operation.hpp"

namespace asmevo {

// Sets `Step::early` of loads from which code runs straight on to a wait that guarantees them, where
// nothing on the way, nor the load itself, reads or writes their registers. `ops` are the operations of
// the steps, which have `rows` vector registers.
void find_early_returns(std::span<Step> steps, std::span<const Operation* const> ops, u32 rows);

}  // namespace asmevo
