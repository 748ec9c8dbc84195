// The handlers of matrix_table.hpp at one vector width; last of the files included for it.

namespace asmevo::ASMEVO_MATRIX_WIDTH {

#define DENSE(name, A, B, size, blocks, words) dense<A, B, size, blocks, words>,
#define QUADS(name, A, B, words) quads<A, B, words>,
#define SPARSE(name, A, B, size) sparse<A, B, size>,
inline constexpr Handler kHandlers[] = {ASMEVO_MATRIX_OPERATIONS(DENSE, QUADS, SPARSE)};
#undef DENSE
#undef QUADS
#undef SPARSE

// Absent where the sums of CDNA3 are the same, or unknown.
template <class A, class B, std::size_t M, std::size_t Blocks, std::size_t Words>
constexpr Handler fused_handler() {
  if constexpr (std::is_same_v<A, F32> || std::is_same_v<A, I8>) {
    return nullptr;
  } else {
    return fused<A, B, M, Blocks, Words>;
  }
}

#define DENSE(name, A, B, size, blocks, words) fused_handler<A, B, size, blocks, words>(),
#define QUADS(name, A, B, words) fused_handler<A, B, 4, 16, words>(),
#define SPARSE(name, A, B, size) nullptr,
inline constexpr Handler kFusedHandlers[] = {ASMEVO_MATRIX_OPERATIONS(DENSE, QUADS, SPARSE)};
#undef DENSE
#undef QUADS
#undef SPARSE

}  // namespace
