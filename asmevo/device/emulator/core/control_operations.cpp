// Branches, waits, barrier, GPR indexing and the operations that only cost time (SOPP).
#include <string>

#include "fault.hpp"
#include "operation.hpp"

namespace asmevo {

namespace {

template <auto Taken>
void branch(Wave& w, const Step& s) {
  if (Taken(w)) w.pc = static_cast<std::size_t>(s.target);
}

void nothing(Wave&, const Step&) {}

// No trap handler is modelled: a trap ends the launch with its number (LLVM's llvm.trap is 2).
void trap(Wave&, const Step& s) {
  throw Fault(FaultKind::kIllegal, "the kernel trapped (s_trap " + std::to_string(s.imm0) + ")");
}

void end_program(Wave& w, const Step&) { w.stop = Stop::kEnd; }
void barrier(Wave& w, const Step&) { w.stop = Stop::kBarrier; }

// imm0 = vmcnt, imm1 = lgkmcnt; -1 leaves a counter alone. Nothing here raises expcnt.
void waitcnt(Wave& w, const Step& s) {
  if (s.imm0 >= 0) w.wait_vm(static_cast<unsigned>(s.imm0));
  if (s.imm1 >= 0) w.wait_lgkm(static_cast<unsigned>(s.imm1));
}

// CDNA3 ISA, "VGPR Indexing": M0[7:0] is the index, M0[15:12] say which operands it applies to.
void set_mode_bits(Wave& w, u32 mode) {
  w.s[kM0] = (w.s[kM0] & ~0xf000u) | (mode << 12);
}
void gpr_index_on(Wave& w, const Step& s) {
  w.s[kM0] = (w.s[kM0] & ~0xffu) | (w.read32(s.src[0]) & 0xff);
  set_mode_bits(w, static_cast<u32>(s.imm0));
  w.gpr_index_enabled = true;
}
void gpr_index_off(Wave& w, const Step&) { w.gpr_index_enabled = false; }
void gpr_index_mode(Wave& w, const Step& s) { set_mode_bits(w, static_cast<u32>(s.imm0)); }
void gpr_index(Wave& w, const Step& s) {
  w.s[kM0] = (w.s[kM0] & ~0xffu) | (w.read32(s.src[0]) & 0xff);
}

// The constant is the address of the next instruction, where s_call_b64 returns to.
void get_pc(Wave& w, const Step& s) { w.set_scalar64(s.dst, w.read64(s.src[0])); }
void call(Wave& w, const Step& s) {
  get_pc(w, s);
  w.pc = static_cast<std::size_t>(s.target);
}
void set_pc(Wave& w, const Step& s) { w.pc = s.code->find(w.read64(s.src[0])); }
void swap_pc(Wave& w, const Step& s) {
  const std::size_t target = s.code->find(w.read64(s.src[0]));
  if (w.pc >= s.code->addresses.size()) {
    throw Fault(FaultKind::kIllegal, "a call that is the last instruction");
  }
  w.set_scalar64(s.dst, s.code->addresses[w.pc]);
  w.pc = target;
}

constexpr Shape kB = Shape::kBranch;
constexpr Shape kC = Shape::kControl;

constexpr Operation kTable[] = {
    {"s_branch", kB, 0, {}, kNoTraits, branch<[](Wave&) { return true; }>},
    {"s_cbranch_scc0", kB, 0, {}, kNoTraits, branch<[](Wave& w) { return w.scc == 0; }>},
    {"s_cbranch_scc1", kB, 0, {}, kNoTraits, branch<[](Wave& w) { return w.scc != 0; }>},
    {"s_cbranch_vccz", kB, 0, {}, kNoTraits, branch<[](Wave& w) { return w.scalar64(kVcc) == 0; }>},
    {"s_cbranch_vccnz", kB, 0, {}, kNoTraits,
     branch<[](Wave& w) { return w.scalar64(kVcc) != 0; }>},
    {"s_cbranch_execz", kB, 0, {}, kNoTraits, branch<[](Wave& w) { return w.exec() == 0; }>},
    {"s_cbranch_execnz", kB, 0, {}, kNoTraits, branch<[](Wave& w) { return w.exec() != 0; }>},
    {"s_setpc_b64", Shape::kScalar, 0, {2, 0, 0}, kNoTraits, set_pc},
    {"s_swappc_b64", Shape::kScalar, 2, {2, 0, 0}, kNoTraits, swap_pc},
    {"s_call_b64", Shape::kProgramCounter, 2, {2, 0, 0}, kNoTraits, call},
    {"s_getpc_b64", Shape::kProgramCounter, 2, {2, 0, 0}, kNoTraits, get_pc},
    // Taken when a debugger has set a flag; there is none.
    {"s_cbranch_cdbgsys", kB, 0, {}, kNoTraits, nothing},
    {"s_cbranch_cdbguser", kB, 0, {}, kNoTraits, nothing},
    {"s_cbranch_cdbgsys_or_user", kB, 0, {}, kNoTraits, nothing},
    {"s_cbranch_cdbgsys_and_user", kB, 0, {}, kNoTraits, nothing},
    {"s_endpgm", kC, 0, {}, kNoTraits, end_program},
    {"s_endpgm_saved", kC, 0, {}, kNoTraits, end_program},
    {"s_trap", kC, 0, {}, kNoTraits, trap},
    {"s_barrier", kC, 0, {}, kNoTraits, barrier},
    {"s_waitcnt", kC, 0, {}, kNoTraits, waitcnt},
    {"s_nop", kC, 0, {}, kNoTraits, nothing},
    {"v_nop", kC, 0, {}, kNoTraits, nothing},
    {"s_sleep", kC, 0, {}, kNoTraits, nothing},
    {"s_setprio", kC, 0, {}, kNoTraits, nothing},
    {"s_wakeup", kC, 0, {}, kNoTraits, nothing},
    {"s_icache_inv", kC, 0, {}, kNoTraits, nothing},
    {"s_incperflevel", kC, 0, {}, kNoTraits, nothing},
    {"s_decperflevel", kC, 0, {}, kNoTraits, nothing},
    {"s_ttracedata", kC, 0, {}, kNoTraits, nothing},
    {"v_clrexcp", kC, 0, {}, kNoTraits, nothing},
    {"s_set_gpr_idx_on", kC, 0, {1, 0, 0}, kIndexesGprs, gpr_index_on},
    {"s_set_gpr_idx_off", kC, 0, {}, kNoTraits, gpr_index_off},
    {"s_set_gpr_idx_mode", kC, 0, {}, kNoTraits, gpr_index_mode},
    {"s_set_gpr_idx_idx", kC, 0, {1, 0, 0}, kNoTraits, gpr_index},
};

}  // namespace

std::span<const Operation> control_operations() { return kTable; }

}  // namespace asmevo
