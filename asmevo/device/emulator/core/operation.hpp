// The table of operations: name, operand shape and handler of everything the emulator executes.
// Python's lowering reads the same table through the module, so the two cannot disagree.
#pragma once

#include <span>

#include "wave.hpp"

namespace asmevo {

// How operands and immediates of an operation are laid out in a record.
enum class Shape : u8 {
  kScalar,      // dst, src0..2: scalar registers or constants
  kBranch,      // target
  kControl,     // imm0; src0 for s_set_gpr_idx_on
  kScalarLoad,  // dst; src0 = base pair, src1 = offset register or absent, imm0 = offset
  kVector,      // dst = vector register, src0..2; sdst = carry-out mask of kCarryOut
  kCompare,     // dst = scalar pair, src0, src1
  kReadLane,    // dst = scalar register, src0 = vector register, src1 = lane
  kWriteLane,   // dst = vector register, src0, src1 = lane
  kMatrix,      // dst, src0 = A, src1 = B: vector registers; src2 = C: the same or a constant, or
                // the index register of kReadsDst; imm0 = CBSZ, imm1 = ABID | BLGP << 4
  kBuffer,      // dst = data, src0 = address, src1 = resource, src2 = soffset, imm0 = offset
  kGlobal,      // dst = data, src0 = address, src1 = base pair or absent, imm0 = offset
  kLds,         // dst = data read; src0 = address, src1, src2 = data written; imm0, imm1 = offsets
  kFlat,        // dst = data, src0 = address pair, imm0 = offset
  kScratch,     // dst = data, src0 = VGPR offset or absent, src1 = SGPR offset or absent, imm0
  kCache,       // nothing
  kProgramCounter,  // dst = scalar pair, src0 = constant: the address of the next instruction;
                    // target of a call
};

enum Trait : u32 {
  kNoTraits = 0,
  kMods = 1 << 0,  // sources take neg and abs
  kClamp = 1 << 1,  // the result takes clamp
  kOmod = 1 << 2,  // the result takes mul:2, mul:4 and div:2
  kFloat = kMods | kClamp | kOmod,
  kCarryOut = 1 << 3,  // writes a mask to sdst
  kCarryIn = 1 << 4,  // src2 is a scalar pair
  kAccumulate = 1 << 5,  // src2 is the destination
  kPacked = 1 << 6,  // VOP3P: op_sel, op_sel_hi, neg_lo, neg_hi
  kAccSource = 1 << 7,  // src0 is an AGPR
  kAccDst = 1 << 8,  // the destination is an AGPR
  kStore = 1 << 9,  // dst is read, not written
  kSimm16 = 1 << 10,  // SOPK: the last source is a sign-extended 16-bit immediate
  kIndexesGprs = 1 << 11,  // turns GPR indexing on
  kAtomic = 1 << 12,  // dst is the data; sdst receives the old value
  kOpSel = 1 << 13,  // VOP3: op_sel bit i is of source i, bit 3 of the destination
  kKeepsDst = 1 << 14,  // part of the destination keeps its value whatever the modifiers
  kSwaps = 1 << 15,  // src0 is written as well
  kReadsDst = 1 << 16,  // SOPK: src0 is the destination; a sparse matrix operation adds to dst
  kBroadcastsA = 1 << 17,  // matrix operation of several blocks: takes CBSZ and ABID
  kPermutesB = 1 << 18,  // matrix operation that takes BLGP
  kReturnsHalf = 1 << 19,  // an atomic's old value has half the words of its data
};

// How a constant becomes the value of a source.
enum class Type : u8 {
  kWord,        // a 32-bit pattern; a float is f32
  kShort,       // 16 bits; a float is f16
  kHalf,        // f16
  kPair,        // two 16-bit elements: an integer is 32 bits wide, a float is f16 in the low half
  kSingles,     // two 32-bit elements; the constant is the low one
  kMixed,       // f32, or f16 where op_sel_hi says so
  kUnsigned64,  // an inline integer is sign-extended, a literal zero-extended
  kSigned64,    // both are sign-extended
  kWide,        // f64; a literal is its upper half
};

struct Operation {
  const char* name;
  Shape shape;
  u8 dst_words;
  u8 src_words[3];
  u32 traits;
  Handler handler;
  Type types[3] = {};
  Handler wide = nullptr;  // the same with the host's widest vectors, where it has them
  Handler fused = nullptr;  // matrix sums as CDNA3 takes them, where they differ
  Handler wide_fused = nullptr;
};

// Files of operations name their table so; wide_begin.hpp compiles some of them again as wide_<name>.
#define ASMEVO_TABLE(name) name

std::span<const Operation> scalar_operations();
std::span<const Operation> control_operations();
std::span<const Operation> mode_operations();
std::span<const Operation> integer_operations();
std::span<const Operation> short_operations();
std::span<const Operation> byte_operations();
std::span<const Operation> dot_operations();
std::span<const Operation> float_operations();
std::span<const Operation> half_operations();
std::span<const Operation> packed_operations();
std::span<const Operation> double_operations();
std::span<const Operation> conversion_operations();
std::span<const Operation> division_operations();
std::span<const Operation> transcendental_operations();
std::span<const Operation> compare_operations();
std::span<const Operation> matrix_operations();
std::span<const Operation> scalar_memory_operations();
std::span<const Operation> buffer_operations();
std::span<const Operation> flat_operations();
std::span<const Operation> atomic_operations();
std::span<const Operation> lds_operations();
std::span<const Operation> lds_permute_operations();
std::span<const Operation> lds_atomic_operations();

#if defined(__x86_64__)
std::span<const Operation> wide_integer_operations();
std::span<const Operation> wide_float_operations();
std::span<const Operation> wide_compare_operations();
#endif

// All tables one after another; an operation's id is its index.
std::span<const Operation> operations();

}  // namespace asmevo
