// float_operations.cpp with wider vectors.
#if defined(__x86_64__)
#include "wide_begin.hpp"

#include "float_operations.cpp"

#include "wide_end.hpp"
#endif
