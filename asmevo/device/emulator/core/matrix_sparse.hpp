// Products whose A keeps two of every four elements of k. Included once for every vector width,
// after matrix_dense.hpp.
//
// Stored elements 2n and 2n + 1 of a lane belong to its k = 4n to 4n + 3; two bits of the index
// register's same lane each say which. ABID selects the lane's index bits when CBSZ is 0, the
// lowest ones are used otherwise (CDNA3 ISA, "Sparse Matrix"). D is also C.

namespace asmevo::ASMEVO_MATRIX_WIDTH {

// One element a lane: an index chooses among single bytes.
struct SparseI8 : Format<i32, IntVector> {
  static constexpr std::size_t kPerWord = 4;
  static void unpack(Rows* to, std::size_t at, const WordVector& w) {
    for (u32 e = 0; e < 4; ++e) put(&to[e][at], (IntVector)(w << (24 - 8 * e)) >> 24);
  }
};

inline void add_product(FloatVector& acc, const FloatVector& a, const FloatVector& b) {
  accumulate(acc, a, b);
}
inline void add_product(IntVector& acc, const IntVector& a, const IntVector& b) {
  acc = (IntVector)((WordVector)acc + (WordVector)(a * b));
}

template <class A, class B, std::size_t M>
void sparse(Wave& w, const Step& s) {
  using Vector = typename A::Vector;
  constexpr std::size_t kWords = 2;
  constexpr std::size_t kElements = kWords * A::kPerWord;
  alignas(64) Unpacked<A, kWords> a;
  alignas(64) Unpacked<B, 2 * kWords> b;
  unpack<A, kWords>(a, matrix_rows(w, s, 0));
  unpack<B, 2 * kWords>(b, matrix_rows(w, s, 1));
  u32 index[kLanes];
  std::memcpy(index, w.v + s.src[2].index * kLanes, sizeof index);
  const u32 shift = s.imm0 == 0 ? 2 * kElements * static_cast<u32>(s.imm1) & 31u : 0;
  u32* out = w.v + s.dst * kLanes;
  const u32 nan = w.fp.nan;
  for (std::size_t i = 0; i < M; ++i) {
    u32* row = out + Result<M>::at(0, i);
    Vector acc[M / kWide];
    for (std::size_t v = 0; v < M / kWide; ++v) acc[v] = load<Vector>(row + v * kWide);
    for (std::size_t group = 0; group < kLanes; group += M) {
      const u32 chosen = index[group + i] >> shift;
      for (std::size_t e = 0; e < kElements; ++e) {
        const std::size_t k = 4 * (e / 2) + ((chosen >> (2 * e)) & 3);
        const Vector left = broadcast(a[e][group + i]);
        for (std::size_t v = 0; v < M / kWide; ++v) {
          add_product(acc[v], left, load<Vector>(&b[k][group + v * kWide]));
        }
      }
    }
    for (std::size_t v = 0; v < M / kWide; ++v) store(row + v * kWide, acc[v], nan);
  }
}

}  // namespace
