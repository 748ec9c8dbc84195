// MUBUF loads and stores.
#include "buffer_resource.hpp"

namespace asmevo {

namespace {

// Whether the uniform path moved the data.
bool uniform_load_to_lds(Wave& w, const Step& s, const Buffer& buffer) {
  u32 low;
  const u8* bytes = uniform_region<4>(w, buffer.base + buffer.fixed, buffer.offset,
                                      buffer.room(), false, low);
  if (bytes == nullptr) return false;
  Pending& p = begin_load_to_lds(w, s);
  for (std::size_t i = 0; i < kLanes; ++i) {
    std::memcpy(&p.data[i], bytes + (buffer.offset[i] - low), 4);
  }
  return true;
}

template <Field F>
void buffer_load(Wave& w, const Step& s) {
  const Buffer view(w, s);
  if (s.flags & kFlagLds) {
    if constexpr (F.words == 1) {
      if constexpr (F.bytes == 4) {
        if (view.is_raw() && uniform_load_to_lds(w, s, view)) return;
      }
      load_to_lds<F, GlobalSpace>(w, s, view.lanes<F>(w.active()));
    }
    return;
  }
  if (view.is_raw() && uniform_access<F, false>(w, s, view.base + view.fixed, view.offset,
                                                view.room())) {
    return;
  }
  load<F, GlobalSpace>(w, s, view.lanes<F>(w.active()));
}

template <Field F>
void buffer_store(Wave& w, const Step& s) {
  const Buffer view(w, s);
  if (view.is_raw() && uniform_access<F, true>(w, s, view.base + view.fixed, view.offset,
                                               view.room())) {
    return;
  }
  store<F, GlobalSpace>(w, s, view.lanes<F>(w.active()));
}

// Writing back or invalidating caches changes nothing: every access of the emulator is coherent.
void write_back(Wave& w, const Step&) { w.issue_vm().kind = Pending::Kind::kStore; }
void invalidate(Wave&, const Step&) {}

#define LOAD(suffix, field) \
  {"buffer_load_" suffix, Shape::kBuffer, Field(field).words, {2, 4, 1}, kNoTraits, \
   buffer_load<field>}
#define STORE(suffix, field) \
  {"buffer_store_" suffix, Shape::kBuffer, Field(field).words, {2, 4, 1}, kStore, \
   buffer_store<field>}

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
    {"buffer_wbl2", Shape::kCache, 0, {0, 0, 0}, kNoTraits, write_back},
    {"buffer_inv", Shape::kCache, 0, {0, 0, 0}, kNoTraits, invalidate},
};

}  // namespace

std::span<const Operation> buffer_operations() { return kTable; }

}  // namespace asmevo
