// Loads and stores of the flat encoding: flat, global and scratch.
#include "flat_address.hpp"

namespace asmevo {

namespace {

template <Field F, bool Store>
void global(Wave& w, const Step& s) {
  if (s.src[1].kind != Operand::Kind::kAbsent) {
    const u64 base = w.read64(s.src[1]) + static_cast<u64>(i64{s.imm0});
    const u32* offsets = w.v + s.src[0].index * kLanes;
    if (uniform_access<F, Store>(w, s, base, offsets, ~u64{0})) return;
  }
  const LaneAccess access = global_lanes(w, s, F.words);
  if constexpr (Store) store<F, GlobalSpace>(w, s, access);
  else load<F, GlobalSpace>(w, s, access);
}

template <Field F, bool Store>
void flat(Wave& w, const Step& s) {
  const LaneAccess access = global_lanes(w, s, F.words);
  if constexpr (Store) store<F, FlatSpace>(w, s, access);
  else load<F, FlatSpace>(w, s, access);
}

template <Field F, bool Store>
void scratch(Wave& w, const Step& s) {
  const LaneAccess access = private_lanes(w, s, F.words);
  if constexpr (Store) store<F, PrivateSpace>(w, s, access);
  else load<F, PrivateSpace>(w, s, access);
}

template <Field F>
void global_to_lds(Wave& w, const Step& s) {
  load_to_lds<F, GlobalSpace>(w, s, global_lanes(w, s, F.words));
}
template <Field F>
void scratch_to_lds(Wave& w, const Step& s) {
  load_to_lds<F, PrivateSpace>(w, s, private_lanes(w, s, F.words));
}

#define LOAD(suffix, field) \
  {"global_load_" suffix, Shape::kGlobal, Field(field).words, {2, 2, 0}, kNoTraits, \
   global<field, false>}, \
  {"flat_load_" suffix, Shape::kFlat, Field(field).words, {2, 0, 0}, kNoTraits, \
   flat<field, false>}, \
  {"scratch_load_" suffix, Shape::kScratch, Field(field).words, {1, 1, 0}, kNoTraits, \
   scratch<field, false>}
#define STORE(suffix, field) \
  {"global_store_" suffix, Shape::kGlobal, Field(field).words, {2, 2, 0}, kStore, \
   global<field, true>}, \
  {"flat_store_" suffix, Shape::kFlat, Field(field).words, {2, 0, 0}, kStore, \
   flat<field, true>}, \
  {"scratch_store_" suffix, Shape::kScratch, Field(field).words, {1, 1, 0}, kStore, \
   scratch<field, true>}
#define LOAD_TO_LDS(suffix, field) \
  {"global_load_lds_" suffix, Shape::kGlobal, 0, {2, 2, 0}, kNoTraits, global_to_lds<field>}, \
  {"scratch_load_lds_" suffix, Shape::kScratch, 0, {1, 1, 0}, kNoTraits, scratch_to_lds<field>}

constexpr Operation kTable[] = {
    LOAD("dword", Field{1}), LOAD("dwordx2", Field{2}), LOAD("dwordx3", Field{3}),
    LOAD("dwordx4", Field{4}),
    LOAD("ubyte", kUbyte), LOAD("sbyte", kSbyte), LOAD("ushort", kUshort), LOAD("sshort", kSshort),
    LOAD("ubyte_d16", kUbyteD16), LOAD("ubyte_d16_hi", kUbyteD16Hi),
    LOAD("sbyte_d16", kSbyteD16), LOAD("sbyte_d16_hi", kSbyteD16Hi),
    LOAD("short_d16", kShortD16), LOAD("short_d16_hi", kShortD16Hi),
    STORE("dword", Field{1}), STORE("dwordx2", Field{2}), STORE("dwordx3", Field{3}),
    STORE("dwordx4", Field{4}),
    STORE("byte", kUbyte), STORE("byte_d16_hi", kUbyteD16Hi),
    STORE("short", kUshort), STORE("short_d16_hi", kShortD16Hi),
    LOAD_TO_LDS("dword", Field{1}), LOAD_TO_LDS("ubyte", kUbyte), LOAD_TO_LDS("sbyte", kSbyte),
    LOAD_TO_LDS("ushort", kUshort), LOAD_TO_LDS("sshort", kSshort),
};

}  // namespace

std::span<const Operation> flat_operations() { return kTable; }

}  // namespace asmevo
