// Opens the second compilation of a file of operations: with AVX-512, for x86 hosts that have it.
//
// A lane loop takes half the instructions there, and flushing denormals a third, because comparisons
// give masks. Every lane sees the same IEEE operations, so results are the same bytes. Headers come
// first: what they define must run on any host, whichever copy of it the linker keeps.
#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <type_traits>
#include <utility>
#include <vector>

#include "float8.hpp"
#include "lane_permute.hpp"
#include "min_max.hpp"
#include "round_integral.hpp"
#include "transcendental.hpp"
#include "two_over_pi.hpp"
#include "typed_lanes.hpp"

#if defined(__clang__)
#pragma clang attribute push( \
    __attribute__((target("avx512f,avx512bw,avx512dq,avx512vl"))), apply_to = function)
#else
#pragma GCC push_options
#pragma GCC target("avx512f,avx512bw,avx512dq,avx512vl,prefer-vector-width=512")
#endif

#undef ASMEVO_TABLE
#define ASMEVO_TABLE(name) wide_##name
