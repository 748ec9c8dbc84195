// DPP and SDWA: operations that read lanes, bytes and words of their sources in another order.
#pragma once

#include "wave.hpp"

namespace asmevo {

// Source lane of a lane for a DPP control value; -1 when there is none.
int dpp_source(u32 ctrl, int lane);
bool known_dpp(u32 ctrl);

// Fill the permuted rows, then run `Step::inner`, which reads them.
void run_dpp(Wave& w, const Step& s);
void run_sdwa(Wave& w, const Step& s);

}  // namespace asmevo
