"""Controls that must pass: rewrites of AITER's layer norm, one of each kind."""

from __future__ import annotations

from asmevo.codeobject.assembly import Assembly, Edit
from asmevo.threats.equivalent import equal, swapped
from asmevo.threats.subject import Subject
from asmevo.threats.trick import (
    Derived,
    Rewritten,
    before,
    edited,
    labelled,
    removed,
    renamed,
    replaced,
)

LN = "layer_norm"
_ROTATE = "row_mask:0xf bank_mask:0xf"


def _dpp(step: int) -> tuple[str, ...]:
    """A rotation and its addition in one, for both sums; two wait states before the next."""
    return ("s_nop 0", f"v_add_f32_dpp v16, v16, v16 row_ror:{step} {_ROTATE}",
            f"v_add_f32_dpp v32, v32, v32 row_ror:{step} {_ROTATE}")


def _rotated(subject: Subject) -> Assembly:
    """The start of the loop's body, up to its barrier, copied to where the loop comes back."""
    barrier = subject.lines.index("s_barrier")
    back = subject.lines.index("s_branch label_01B3")
    start = subject.lines.index("ds_write_b32 v221, v12")
    copied = (*subject.lines[start:barrier], "s_branch .Lthreat_rotated")
    marked = labelled(subject.assembly, subject.symbol, barrier, ".Lthreat_rotated")
    return marked.apply([Edit(subject.symbol, back, back + 1, copied, "threat")])


def _without_the_mean(subject: Subject) -> Assembly:
    """The sum of which nothing depends, and all that leads there."""
    dead = ("v_pk_add_f32 v[12:13]", "v_add_f32_e32 v12", "ds_write_b32 v221, v12",
            "v_pk_mov_b32 v[12:13]", "v_mul_f32_e32 v12")
    edits = [Edit(subject.symbol, i, i + 1, (), "threat")
             for i, line in enumerate(subject.lines) if line.startswith(dead)]
    return subject.assembly.apply(edits)


def _hoisted(subject: Subject) -> Assembly:
    """Two loads up by a dozen instructions, past nothing that reads or writes what they use."""
    lines = subject.lines
    at = lines.index("buffer_load_dwordx4 v[60:63], v215, s[16:19], 0 offen")
    to = lines.index("v_pk_mov_b32 v[12:13], 0, 0")
    return subject.assembly.apply([
        Edit(subject.symbol, to, to, lines[at:at + 2], "threat"),
        Edit(subject.symbol, at, at + 2, (), "threat")])


# Encodings.
_ENCODINGS = (
    equal("VOP2 becomes VOP3", LN, edited(replaced(
        "v_lshlrev_b32_e32 v216", "v_lshlrev_b32_e64 v216, 4, v0"))),
    equal("VOP3 becomes VOP2", LN, edited(
        replaced("v_add_u32_e64 v216, v216, s49", "v_add_u32_e32 v216, s49, v216"),
        replaced("v_and_b32_e64 v220", "v_and_b32_e32 v220, 63, v220"))),
    equal("a literal from a register that holds it", LN, edited(replaced(
        "v_and_b32_e32 v64, 0xffff0000, v48", "v_and_b32_e32 v64, v5, v48"))),
    equal("a literal in place of a register", LN, edited(replaced(
        "v_mul_f32_e32 v14, v32, v222", "v_mul_f32_e32 v14, 0x39000000, v32"))),
    equal("an inline constant as a literal move", LN, edited(replaced(
        "s_mov_b32 s54, 0", "s_mov_b32 s54, 0x12345678", "s_mov_b32 s54, 0"))),
    equal("a packed move as two moves", LN, edited(replaced(
        "v_pk_mov_b32 v[12:13], 0, 0", "v_mov_b32_e32 v12, 0", "v_mov_b32_e32 v13, 0"))),
    equal("two operands change places", LN, edited(
        replaced("v_add_f32_e32 v14, v14, v15", "v_add_f32_e32 v14, v15, v14"),
        replaced("s_add_u32 s53, s53, 1", "s_add_u32 s53, 1, s53"))),
    equal("op_sel takes the low half twice", LN, edited(replaced(
        "v_pk_mul_f32 v[48:49], v[48:49], v[14:15]",
        "v_pk_mul_f32 v[48:49], v[48:49], v[14:15] op_sel_hi:[1,0]"))),
)
# Order.
_ORDER = (
    equal("two scalar loads change places", LN, swapped("s_load_dwordx2 s[16:17]")),
    equal("two vector loads that are waited for together change places", LN,
          swapped("buffer_load_dwordx4 v[48:51], v212")),
    equal("independent arithmetic changes places", LN, swapped("v_lshlrev_b32_e32 v48, 16, v48")),
    equal("two LDS reads change places", LN, swapped("ds_read_b32 v16, v220")),
    equal("two stores to different buffers' parts change places", LN,
          swapped("v_pk_add_f32 v[48:49], v[48:49]")),
    equal("loads are hoisted", LN, Derived(_hoisted)),
    equal("a constant is made later", LN, edited(
        removed("v_mov_b32_e32 v222, 0x39000000"),
        before("v_mul_f32_e32 v12, v16, v222", "v_mov_b32_e32 v222, 0x39000000"))),
    equal("the start of a loop is peeled", LN, Derived(_rotated)),
)
# Waits and distances.
_WAITS = (
    equal("a wait is split", LN, edited(
        replaced("s_waitcnt vmcnt(6)", "s_waitcnt vmcnt(7)"),
        before("v_and_b32_e32 v208, 0xffff0000, v176", "s_waitcnt vmcnt(8)"))),
    equal("a wait for three counters becomes three", LN, edited(replaced(
        "s_waitcnt vmcnt(0) expcnt(0) lgkmcnt(0)", "s_waitcnt vmcnt(0)", "s_waitcnt expcnt(0)",
        "s_waitcnt lgkmcnt(0)"))),
    equal("waits are merged", LN, edited(
        replaced("s_waitcnt lgkmcnt(0)", "s_waitcnt vmcnt(0) expcnt(0) lgkmcnt(0)"))),
    equal("a wait is stricter", LN, edited(replaced("s_waitcnt vmcnt(6)", "s_waitcnt vmcnt(5)"))),
    equal("a wait moves down to the first use", LN, edited(
        removed("s_waitcnt lgkmcnt(0)"),
        before("s_and_b32 s17, s17, 0xffff", "s_waitcnt lgkmcnt(0)"))),
    equal("nothing is waited for before the end", LN, edited(
        removed("s_waitcnt vmcnt(0) expcnt(0) lgkmcnt(0)"))),
    equal("a nop more", LN, edited(before("v_rsq_f32_e32 v14, v14", "s_nop 3"))),
)
# Registers.
_REGISTERS = (
    equal("a vector register has another name", LN, Rewritten(renamed({"v222": "v240"}))),
    equal("a scalar register has another name", LN, Rewritten(renamed({"s53": "s60"}))),
    equal("a pair of registers has another name", LN, Rewritten(
        lambda line: renamed({"v14": "v246", "v15": "v247"})(line).replace(
            "v[14:15]", "v[246:247]"))),
    equal("two registers change names", LN, Rewritten(renamed({"v212": "v216", "v216": "v212"}))),
)
# Arithmetic.
_ARITHMETIC = (
    equal("a product with a power of two becomes a shift", LN, edited(
        replaced("s_mul_i32 s49, 0x400, s5", "s_lshl_b32 s49, s5, 10"),
        replaced("s_mul_i32 s48, 0x100, s5", "s_lshl_b32 s48, s5, 8"))),
    equal("two products become one", LN, edited(
        replaced("s_mov_b32 s52, s48", "s_lshl_b32 s52, s30, 1"),
        replaced("s_mul_i32 s48, 2, s48", "s_mul_i32 s48, 4, s30"))),
    equal("an address that is there already is copied", LN, edited(replaced(
        "v_lshlrev_b32_e32 v216, 4, v0", "v_mov_b32_e32 v216, v212"))),
    equal("a chain of address additions becomes one of offsets", LN, edited(replaced(
        "v_add_u32_e64 v218, v217, s49", "s_lshl_b32 s40, s49, 1",
        "v_add_u32_e64 v218, v216, s40"))),
    equal("a byte permutation as shift, mask and or", LN, edited(replaced(
        "v_perm_b32 v176, v64, v48, s31", "v_lshrrev_b32_e32 v176, 16, v48",
        "v_and_or_b32 v176, v64, v5, v176"))),
    equal("a shift and an addition in one", LN, edited(
        removed("v_lshlrev_b32_e32 v221, 2, v0"),
        replaced("v_add_u32_e64 v221, v221, s48", "v_lshl_add_u32 v221, v0, 2, s48"))),
)
# Fewer instructions.
_FEWER = (
    equal("moves of a register to itself are left out", LN, edited(
        removed("s_mov_b32 s2, s2"), removed("s_mov_b32 s3, s3"), removed("s_mov_b32 s4, s4"))),
    equal("constants that nobody reads are left out", LN, edited(
        removed("v_mov_b32_e32 v6, 0x7fff0000"), removed("v_mov_b32_e32 v7, 0x7fff"),
        removed("v_mov_b32_e32 v9, 0xffff0000"))),
    equal("a sum that nothing depends on is left out", LN, Derived(_without_the_mean)),
    equal("LDS reads are paired", LN, edited(*(
        replaced(f"ds_read_b32 v{16 + 2 * i}, v220",
                 f"ds_read2_b32 v[{16 + 2 * i}:{17 + 2 * i}], v220"
                 + (f" offset0:{32 * i}" if i else "") + f" offset1:{32 * i + 16}", drop=2)
        for i in range(8)))),
    equal("LDS writes are paired", LN, edited(replaced(
        "ds_write_b32 v221, v12", "ds_write2st64_b32 v221, v12, v14 offset1:4", drop=2))),
    equal("a move with DPP and an addition are fused", LN, edited(*(
        replaced(f"v_mov_b32_dpp v208, v16 row_ror:{step}", *_dpp(step), drop=4)
        for step in (8, 4, 2, 1)))),
)
# Caches.
_CACHES = (
    equal("a load is marked as non-temporal", LN, edited(replaced(
        "buffer_load_dwordx4 v[48:51], v212, s[16:19], 0 offen",
        "buffer_load_dwordx4 v[48:51], v212, s[16:19], 0 offen nt"))),
)

THREATS = (*_ENCODINGS, *_ORDER, *_WAITS, *_REGISTERS, *_ARITHMETIC, *_FEWER, *_CACHES)
