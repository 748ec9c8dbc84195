// The wire format of a lowered instruction: what Python's lowering writes and `Program` validates.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

namespace asmevo {

inline constexpr std::size_t kLanes = 64;

// Register numbers are those of asmevo/isa/registers.py.
inline constexpr std::uint16_t kVcc = 106;
inline constexpr std::uint16_t kM0 = 124;
inline constexpr std::uint16_t kExec = 126;
inline constexpr std::uint16_t kScalarFile = 128;
// Sources that hardware computes (CDNA3 ISA, "Instruction Operands"): the operand codes, and where a
// step finds the value of each of its sources behind the registers.
inline constexpr std::uint16_t kVccz = 251, kExecz = 252, kScc = 253;
inline constexpr std::uint16_t kStatusSlots = 6;
inline constexpr std::uint16_t kVgpr0 = 256;
inline constexpr std::uint16_t kAgpr0 = 512;
inline constexpr std::uint16_t kRegisterEnd = 768;
inline constexpr std::uint16_t kConstant = 0xfffe;  // the value is in literal_lo / literal_hi
inline constexpr std::uint16_t kAbsent = 0xffff;

enum RecordFlag : std::uint16_t {
  kFlagClamp = 1 << 0,
  kFlagDpp = 1 << 1,
  kFlagBoundCtrl = 1 << 2,  // DPP: an invalid source lane reads 0 instead of disabling the write
  kFlagOffen = 1 << 3,
  kFlagIdxen = 1 << 4,
  kFlagSdwa = 1 << 5,
  kFlagLds = 1 << 6,      // a buffer load writes LDS at M0 instead of a register
  kFlagReturn = 1 << 7,   // an atomic returns the old value: to sdst, or to dst of a scalar one
};

struct Record {
  std::uint16_t op;
  std::uint16_t dst;
  std::uint16_t sdst;  // second destination: a carry-out mask
  std::uint16_t flags;
  std::uint16_t src0, src1, src2;
  std::uint16_t dpp_ctrl;  // CDNA3 ISA, "DPP_CTRL Enumerations"; of SDWA: see SdwaPattern
  std::uint32_t literal_lo0, literal_lo1, literal_lo2;
  std::uint32_t literal_hi0, literal_hi1, literal_hi2;
  std::int32_t target;        // instruction index of a branch target
  std::int32_t imm0, imm1;    // offsets, wait counts: see each operation's shape
  std::uint8_t neg, abs;      // bit i: source i
  std::uint8_t neg_hi;        // VOP3P
  std::uint8_t op_sel, op_sel_hi;
  std::uint8_t row_mask, bank_mask;
  std::uint8_t omod;          // 1: mul:2, 2: mul:4, 3: div:2
};
static_assert(sizeof(Record) == 60);

struct RecordField {
  const char* name;
  std::size_t offset;
  std::size_t size;
  bool is_signed;
};

#define ASMEVO_FIELD(name, is_signed) \
  RecordField { #name, offsetof(Record, name), sizeof(Record::name), is_signed }
inline constexpr std::array kRecordFields{
    ASMEVO_FIELD(op, false),          ASMEVO_FIELD(dst, false),
    ASMEVO_FIELD(sdst, false),        ASMEVO_FIELD(flags, false),
    ASMEVO_FIELD(src0, false),        ASMEVO_FIELD(src1, false),
    ASMEVO_FIELD(src2, false),        ASMEVO_FIELD(dpp_ctrl, false),
    ASMEVO_FIELD(literal_lo0, false), ASMEVO_FIELD(literal_lo1, false),
    ASMEVO_FIELD(literal_lo2, false), ASMEVO_FIELD(literal_hi0, false),
    ASMEVO_FIELD(literal_hi1, false), ASMEVO_FIELD(literal_hi2, false),
    ASMEVO_FIELD(target, true),       ASMEVO_FIELD(imm0, true),
    ASMEVO_FIELD(imm1, true),         ASMEVO_FIELD(neg, false),
    ASMEVO_FIELD(abs, false),         ASMEVO_FIELD(neg_hi, false),
    ASMEVO_FIELD(op_sel, false),      ASMEVO_FIELD(op_sel_hi, false),
    ASMEVO_FIELD(row_mask, false),    ASMEVO_FIELD(bank_mask, false),
    ASMEVO_FIELD(omod, false),
};
#undef ASMEVO_FIELD

}  // namespace asmevo
