// Which loads may write their registers at issue, because nothing can tell it from the latest moment
// that the ISA allows.
#pragma once

#include <span>

#include "operation.hpp"

namespace asmevo {

// Whether code runs straight on from the load `steps[at]` to a wait that guarantees it, and nothing on
// the way, nor the load itself, reads or writes its registers. `ops` are the operations of the steps.
bool returns_unseen(std::span<const Step> steps, std::span<const Operation* const> ops,
                    std::size_t at);

}  // namespace asmevo
