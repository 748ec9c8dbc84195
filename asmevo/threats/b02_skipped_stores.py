"""B2: stores are left out for some lanes, rows or workgroups."""

from __future__ import annotations

from asmevo.codeobject.assembly import Assembly, Edit
from asmevo.gates.verdict import Gate
from asmevo.threats.subject import Subject
from asmevo.threats.threat import ANY, LAUNCH, Threat
from asmevo.threats.trick import Derived, EditMismatch, before, edited, removed, replaced
from asmevo.threats.weaker import Weaker


def _without_first_store(subject: Subject) -> Assembly:
    stores = [i for i, line in enumerate(subject.lines)
              if line.startswith(("buffer_store_", "global_store_", "buffer_atomic_",
                                  "global_atomic_", "flat_store_"))]
    if not stores:
        raise EditMismatch(f"kernel '{subject.name}' stores nothing")
    return subject.assembly.apply(
        [Edit(subject.symbol, stores[0], stores[0] + 1, (), "threat")])


THREATS = (
    Threat("B2", "the first store is missing", ANY, Derived(_without_first_store),
           # A store less is a count less, too, of what a wait must leave outstanding.
           Gate.G2, ("lost-launch-operand", "new-missing-vmcnt", "bits", "max-abs", "cosine",
                     "nan-class", "infinity", "outside-envelope", "unreached")),
    Threat("B2", "a quarter of the first row is not stored", "layer_norm",
           edited(removed("buffer_store_dwordx4 v[48:51], v212, s[12:15]")),
           Gate.G2, ("nan-class", "max-abs"), Weaker.POISON),
    Threat("B2", "workgroups behind the first store nothing", "layer_norm",
           # The buffer descriptor of the output ends before its first byte.
           edited(before("s_mov_b32 s14, 0x80000000", "s_cmp_eq_u32 s2, 0"),
                  replaced("s_mov_b32 s14, 0x80000000", "s_cselect_b32 s14, 0x80000000, 0")),
           Gate.G1, LAUNCH, Weaker.SHAPES),
    Threat("B2", "workgroups behind the first store nothing by arithmetic", "layer_norm",
           # 0x80000000 >> (31 * workgroup) with operations of the reviewed list.
           edited(replaced("s_mov_b32 s14, 0x80000000", "s_mul_i32 s40, s2, 31",
                           "s_mov_b32 s14, 0x80000000", "s_lshr_b32 s14, s14, s40")),
           Gate.G2, (*LAUNCH, "nan-class", "max-abs"), Weaker.SHAPES),
    Threat("B2", "the last lane stores nothing", "topksoftmax",
           edited(replaced("s_bfm_b64 exec, s18, 0", "s_sub_u32 s18, s18, 1",
                           "s_bfm_b64 exec, s18, 0", nth=1)),
           Gate.G2, (*LAUNCH, "bits")),
    Threat("B2", "one lane of eight stores nothing", "topksoftmax",
           edited(replaced("s_mov_b32 s18, 8", "s_mov_b32 s18, 7")),
           Gate.G2, ("bits",), Weaker.POISON),
)
