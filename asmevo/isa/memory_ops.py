"""Vector memory and LDS operations (CDNA2 to CDNA4 ISA, "Vector Memory", "Flat", "Data Share")."""

from __future__ import annotations

from asmevo.isa.form import Form
from asmevo.isa.instruction import Unit
from asmevo.isa.registers import EXEC_MASK, FLAT_SCRATCH_LO, M0_MASK, MODE_MASK, mask

_STATE = EXEC_MASK | MODE_MASK
_FLAT_SCRATCH = mask(FLAT_SCRATCH_LO, 2)

_LOAD_WIDTHS = "ubyte sbyte ushort sshort dword dwordx2 dwordx3 dwordx4"
# Sixteen-bit loads into one half of a register keep the other half.
_HALF_LOADS = "ubyte_d16 ubyte_d16_hi sbyte_d16 sbyte_d16_hi short_d16 short_d16_hi"
_STORE_WIDTHS = "byte byte_d16_hi short short_d16_hi dword dwordx2 dwordx3 dwordx4"
_ATOMICS = """
    swap cmpswap add sub smin umin smax umax and or xor inc dec
    swap_x2 cmpswap_x2 add_x2 sub_x2 smin_x2 umin_x2 smax_x2 umax_x2 and_x2 or_x2 xor_x2 inc_x2
    dec_x2 add_f32 pk_add_f16 pk_add_bf16 add_f64 min_f64 max_f64"""
_FORMATS = "x xy xyz xyzw"

_DS_READS = """
    ds_read_b32 ds_read_b64 ds_read_b96 ds_read_b128 ds_read_i8 ds_read_u8 ds_read_i16 ds_read_u16
    ds_read2_b32 ds_read2st64_b32 ds_read2_b64 ds_read2st64_b64
    ds_read_b64_tr_b4 ds_read_b96_tr_b6 ds_read_b64_tr_b8 ds_read_b64_tr_b16"""
_DS_HALF_READS = """
    ds_read_u8_d16 ds_read_u8_d16_hi ds_read_i8_d16 ds_read_i8_d16_hi ds_read_u16_d16
    ds_read_u16_d16_hi"""
_DS_WRITES = """
    ds_write_b8 ds_write_b8_d16_hi ds_write_b16 ds_write_b16_d16_hi ds_write_b32 ds_write_b64
    ds_write_b96 ds_write_b128"""
_DS_WRITES2 = "ds_write2_b32 ds_write2st64_b32 ds_write2_b64 ds_write2st64_b64"
_DS_ATOMICS = """
    add_u32 sub_u32 rsub_u32 inc_u32 dec_u32 min_i32 max_i32 min_u32 max_u32 and_b32 or_b32 xor_b32
    min_f32 max_f32 add_f32 add_u64 sub_u64 rsub_u64 inc_u64 dec_u64 min_i64 max_i64 min_u64
    max_u64 and_b64 or_b64 xor_b64 min_f64 max_f64 add_f64 pk_add_f16 pk_add_bf16"""
_DS_ATOMICS2 = "mskor_b32 mskor_b64 cmpst_b32 cmpst_b64 cmpst_f32 cmpst_f64"


def _buffer() -> dict[str, Form]:
    forms: dict[str, Form] = {}

    def load(op: str, roles: str) -> None:
        forms[op] = Form(Unit.VMEM, roles, _STATE, is_load=True, vmcnt=1, lds_roles="rrr")

    def store(op: str) -> None:
        forms[op] = Form(Unit.VMEM, "rrrr", _STATE, is_store=True, vmcnt=1)

    for width in _LOAD_WIDTHS.split():
        load(f"buffer_load_{width}", "wrrr")
    for width in _HALF_LOADS.split():
        load(f"buffer_load_{width}", "xrrr")
    for width in _STORE_WIDTHS.split():
        store(f"buffer_store_{width}")
    for channels in _FORMATS.split():
        for kind in ("format_", "format_d16_"):
            # An odd number of 16-bit channels leaves the last half register alone.
            roles = "xrrr" if kind == "format_d16_" and len(channels) % 2 else "wrrr"
            load(f"buffer_load_{kind}{channels}", roles)
            store(f"buffer_store_{kind}{channels}")
            forms[f"tbuffer_load_{kind}{channels}"] = Form(
                Unit.VMEM, roles, _STATE, is_load=True, vmcnt=1)
            forms[f"tbuffer_store_{kind}{channels}"] = Form(
                Unit.VMEM, "rrrr", _STATE, is_store=True, vmcnt=1)
    load("buffer_load_format_d16_hi_x", "xrrr")
    store("buffer_store_format_d16_hi_x")
    for name in _ATOMICS.split():
        forms[f"buffer_atomic_{name}"] = Form(
            Unit.VMEM, "rrrr", _STATE, is_atomic=True, vmcnt=1, returning_roles="xrrr")
    forms["buffer_wbl2"] = Form(Unit.VMEM, "", MODE_MASK, vmcnt=1)
    # Invalidation is not counted (LLVM, SIInsertWaitcnts).
    for op in ("buffer_inv", "buffer_invl2", "buffer_wbinvl1", "buffer_wbinvl1_vol"):
        forms[op] = Form(Unit.VMEM, "", MODE_MASK)
    return forms


def _flat() -> dict[str, Form]:
    forms: dict[str, Form] = {}
    # A flat access may hit LDS or memory, so it raises both counters; segment-specific ones do not.
    for prefix, address, unit, reads, lgkmcnt in (
        ("flat", "r", Unit.FLAT, _STATE | _FLAT_SCRATCH, 1),
        ("global", "rr", Unit.VMEM, _STATE, 0),
        ("scratch", "rr", Unit.VMEM, _STATE | _FLAT_SCRATCH, 0),
    ):
        for widths, destination in ((_LOAD_WIDTHS, "w"), (_HALF_LOADS, "x")):
            for width in widths.split():
                forms[f"{prefix}_load_{width}"] = Form(
                    unit, destination + address, reads, is_load=True, vmcnt=1, lgkmcnt=lgkmcnt)
        for width in _STORE_WIDTHS.split():
            forms[f"{prefix}_store_{width}"] = Form(
                unit, "r" + address, reads, is_store=True, vmcnt=1, lgkmcnt=lgkmcnt)
        if prefix == "scratch":
            continue
        for name in _ATOMICS.split():
            forms[f"{prefix}_atomic_{name}"] = Form(
                unit, "r" + address, reads, is_atomic=True, vmcnt=1, lgkmcnt=lgkmcnt,
                returning_roles="wr" + address)
    for prefix, reads, widths in (
        ("global", 0, "ubyte sbyte ushort sshort dword dwordx3 dwordx4"),
        ("scratch", _FLAT_SCRATCH, "ubyte sbyte ushort sshort dword"),
    ):
        for width in widths.split():
            forms[f"{prefix}_load_lds_{width}"] = Form(
                Unit.VMEM, "rr", _STATE | M0_MASK | reads, is_load=True, vmcnt=1)
    return forms


def _lds() -> dict[str, Form]:
    forms: dict[str, Form] = {}

    def add(op: str, roles: str, reads: int = _STATE, *, load: bool = False, store: bool = False,
            atomic: bool = False) -> None:
        forms[op] = Form(Unit.LDS, roles, reads, is_load=load, is_store=store, is_atomic=atomic,
                         lgkmcnt=1)

    for op in _DS_READS.split():
        add(op, "wr", load=True)
    for op in _DS_HALF_READS.split():
        add(op, "xr", load=True)
    for op in _DS_WRITES.split():
        add(op, "rr", store=True)
    for op in _DS_WRITES2.split():
        add(op, "rrr", store=True)
    for names, sources in ((_DS_ATOMICS, "rr"), (_DS_ATOMICS2, "rrr")):
        for name in names.split():
            add(f"ds_{name}", sources, atomic=True)
            operation, _, kind = name.rpartition("_")
            add(f"ds_{operation}_rtn_{kind}", "w" + sources, atomic=True)
    for width in ("b32", "b64"):
        add(f"ds_wrxchg_rtn_{width}", "wrr", atomic=True)
        add(f"ds_wrxchg2_rtn_{width}", "wrrr", atomic=True)
        add(f"ds_wrxchg2st64_rtn_{width}", "wrrr", atomic=True)
    add("ds_wrap_rtn_b32", "wrrr", atomic=True)
    # Cross-lane data movement through the LDS crossbar: no memory is touched.
    add("ds_permute_b32", "wrr")
    add("ds_bpermute_b32", "wrr")
    add("ds_swizzle_b32", "wr")
    add("ds_condxchg32_rtn_b64", "wrr", atomic=True)
    add("ds_nop", "")
    # Global wave sync: semaphores and barriers of all workgroups, addressed through M0.
    for op, roles in (
        ("init", "r"), ("barrier", "r"), ("sema_br", "r"), ("sema_v", ""), ("sema_p", ""),
        ("sema_release_all", ""),
    ):
        add(f"ds_gws_{op}", roles, _STATE | M0_MASK, atomic=True)
    add("ds_read_addtid_b32", "w", _STATE | M0_MASK, load=True)
    add("ds_write_addtid_b32", "r", _STATE | M0_MASK, store=True)
    add("ds_append", "w", _STATE | M0_MASK, atomic=True)
    add("ds_consume", "w", _STATE | M0_MASK, atomic=True)
    return forms


MEMORY_FORMS = _buffer() | _flat() | _lds()
