// The wire format of what the sanitizer knows of an instruction: asmevo/device/emulator/checked.py
// writes it from the instruction model of asmevo/isa, and `Sanitizer` validates it.
#pragma once

#include <array>
#include <cstdint>

#include "wave.hpp"

namespace asmevo {

// How undefined bits of the sources become undefined bits of the results. Everything but kAny is
// exact as far as the sources' values are defined.
enum class Flow : u8 {
  kNone,        // no result
  kAny,         // one undefined bit makes the whole result undefined
  kMove,
  kAnd, kOr, kXor,
  kAdd,         // subtract, multiply, the low bits of which: effects run upwards
  kShiftLeft, kShiftRight, kShiftSigned,  // src0 by src1
  kAndOr, kOr3, kShiftOr, kShiftAdd,
  kBitField,    // src0, offset src1, width src2
  kBitSelect,   // src0 ? src1 : src2, bit by bit
  kPermute,     // bytes of src0:src1 chosen by src2
  kAlign,       // src0:src1 >> src2
  kHalves,      // one half of src0 below one half of src1
  kPair,        // src0 decides the low half of the result, src1 the high one
  kSelect,      // src2 (a lane mask or SCC) ? src1 : src0
  kPacked,      // two dwords, each of the dwords that op_sel and op_sel_hi choose
  kPackedMove,  // one dword of src0 below one dword of src1, both chosen by op_sel
  kMatrix,
  kReadLane, kReadFirstLane, kWriteLane,  // lane number in src1
};
inline constexpr std::array kFlowNames{
    "none", "any", "move", "and", "or", "xor", "add", "shift_left", "shift_right", "shift_signed",
    "and_or", "or3", "shift_or", "shift_add", "bit_field", "bit_select", "permute", "align",
    "halves", "pair", "select", "packed", "packed_move",
    "matrix", "read_lane", "read_first_lane", "write_lane"};

enum class Space : u8 {
  kNone,
  kScalar,     // SMEM
  kBuffer,
  kGlobal,
  kLds,
  kFlat,       // global memory unless the address lies in an aperture, where nothing is checked
  kLanes,      // ds_permute_b32, ds_bpermute_b32, ds_swizzle_b32: no memory
  kUnchecked,  // scratch and others: counted and waited for, addresses not looked at
};
inline constexpr std::array kSpaceNames{
    "none", "scalar", "buffer", "global", "lds", "flat", "lanes", "unchecked"};

enum CheckFlag : u16 {
  kCheckMasked = 1 << 0,     // only lanes of EXEC take part
  kCheckLoad = 1 << 1,
  kCheckStore = 1 << 2,
  kCheckAtomic = 1 << 3,
  kCheckToLds = 1 << 4,      // a load that writes LDS at M0
  kCheckUnordered = 1 << 7,  // returns out of order: only a wait for 0 is enough
  kCheckBarrier = 1 << 8,
  kCheckEnd = 1 << 9,
  kCheckFloat = 1 << 10,     // an atomic whose result depends on the order
  kCheckForward = 1 << 11,   // ds_permute_b32 sends, ds_bpermute_b32 fetches
  kCheckExtend = 1 << 12,    // a load of less than a dword fills the register
};
inline constexpr std::array<std::pair<const char*, u16>, 11> kCheckFlagNames{{
    {"masked", kCheckMasked}, {"load", kCheckLoad}, {"store", kCheckStore},
    {"atomic", kCheckAtomic}, {"to_lds", kCheckToLds}, {"unordered", kCheckUnordered}, {"barrier", kCheckBarrier},
    {"end", kCheckEnd}, {"float", kCheckFloat}, {"forward", kCheckForward},
    {"extend", kCheckExtend}}};

enum CheckOperandFlag : u16 {
  kOperandRead = 1 << 0,
  kOperandWrite = 1 << 1,
  kOperandLaneMask = 1 << 2,  // bit i of a scalar pair belongs to lane i
  kOperandUse = 1 << 3,       // undefined bits here are reported
  kOperandInvert = 1 << 4,    // the operation takes the complement
  kOperandDefined = 1 << 5,   // the result is defined whatever the sources are
};
inline constexpr std::array<std::pair<const char*, u16>, 6> kCheckOperandFlagNames{{
    {"read", kOperandRead}, {"write", kOperandWrite}, {"lane_mask", kOperandLaneMask},
    {"use", kOperandUse}, {"invert", kOperandInvert}, {"defined", kOperandDefined}}};


inline constexpr u16 kShadowScc = 128;  // as in asmevo/isa/registers.py

struct CheckOperand {
  u16 reg;    // a register number, kConstant or kAbsent
  u8 words;
  u8 slot;    // 0 to 2: source of GPR indexing, 3: destination, else not indexed
  u16 flags;
  u16 reserved;
  u32 bits;   // of a one-dword source: those that the operation looks at; of a constant: its upper half
  u32 value;  // of a constant
};
static_assert(sizeof(CheckOperand) == 16);

inline constexpr std::size_t kCheckOperands = 7;
// Positions of the operands of arithmetic...
inline constexpr std::size_t kDst = 0, kSecondDst = 1, kSource = 2, kExtraSource = 5, kExtraDst = 6;
// ...and of memory operations.
inline constexpr std::size_t kData = 1, kAddress = 3, kBase = 4, kOffset = 5, kM0Operand = 6;

struct CheckRecord {
  u8 flow, space;
  u16 flags;
  std::int8_t wait_vm, wait_lgkm;  // -1: no bound
  u8 vmcnt, lgkmcnt;               // by how much issuing raises the counters
  u32 field;                       // bits of a one-dword result that are written
  i32 offset0, offset1;            // bytes
  u8 bytes;                        // that one lane and part of an access moves
  u8 parts;                        // 2 for ds_read2 and the like
  u8 states;                       // wait states that pass
  u8 shift;                        // of narrow data in its register: 16 for the _hi forms
  u8 op_sel, op_sel_hi;
  u8 tile;                         // of a matrix operation of one block: rows, or 0
  u8 reserved;
  CheckOperand operands[kCheckOperands];
};
static_assert(sizeof(CheckRecord) == 140);

}  // namespace asmevo
