// The handlers of matrix_table.hpp at one vector width; last of the files included for it.

namespace asmevo::ASMEVO_MATRIX_WIDTH {

#define DENSE(name, A, B, size, blocks, words) dense<A, B, size, blocks, words>,
#define QUADS(name, A, B, words) quads<A, B, words>,
#define SPARSE(name, A, B, size) sparse<A, B, size>,
inline constexpr Handler kHandlers[] = {ASMEVO_MATRIX_OPERATIONS(DENSE, QUADS, SPARSE)};
#undef DENSE
#undef QUADS
#undef SPARSE

}  // namespace
