"""Which words of the kernarg a kernel makes use of, and which of its addresses carry."""

from __future__ import annotations

import pytest

from asmevo.gates.argument_uses import ArgumentUses, lost_uses
from asmevo.isa.program import Program
from asmevo.isa.value_numbers import Numbers
from asmevo.isa.values import Values
from tests.gates.listing import written
from tests.gates.test_launch_uses import ENTRY

# A pointer at 0 and two sizes at 16, of which the second one decides nothing. Word workgroup * 256
# + work-item of the buffer, by a sum of all 64 bits.
ORIGINAL = """
    s_load_dwordx2 s[4:5], s[0:1], 0x0
    s_load_dwordx2 s[6:7], s[0:1], 0x10
    s_waitcnt lgkmcnt(0)
    s_lshl_b32 s8, s2, 10
    s_add_u32 s4, s4, s8
    s_addc_u32 s5, s5, 0
    v_lshlrev_b32_e32 v1, 2, v0
    v_mov_b32_e32 v3, s5
    v_add_co_u32_e32 v2, vcc, s4, v1
    v_addc_co_u32_e32 v3, vcc, 0, v3, vcc
    v_mov_b32_e32 v4, s6
    global_store_dword v[2:3], v4, off
    s_endpgm
"""
POINTER = (0, 4)


class Pair:
    """An original and candidates whose values are numbered alike."""

    def __init__(self, original: str = ORIGINAL) -> None:
        self.numbers = Numbers()
        self.numbers.pointers.update(map(self.numbers.kernarg, POINTER))
        self.original = self.uses(written(original))

    def uses(self, program: Program) -> ArgumentUses:
        return ArgumentUses.of(Values(program, ENTRY, self.numbers))

    def lost(self, candidate: str) -> dict[str, str]:
        program = written(candidate)
        return dict(lost_uses(self.original, self.uses(program), program))


def changed(*changes: tuple[str, str], text: str = ORIGINAL) -> str:
    for old, new in changes:
        assert text.count(old) == 1, old
        text = text.replace(old, new)
    return text


def test_words_that_something_comes_from() -> None:
    """A word that is loaded along with others and used by nothing is none."""
    uses = Pair().original
    assert uses.words == {0, 4, 16}
    assert not uses.uncarried


HONEST = {
    "itself": (),
    "one load for all": (
        ("s_load_dwordx2 s[4:5], s[0:1], 0x0\n    s_load_dwordx2 s[6:7], s[0:1], 0x10",
         "s_load_dwordx8 s[12:19], s[0:1], 0x0"),
        ("s_lshl_b32 s8", "s_mov_b64 s[4:5], s[12:13]\n s_mov_b64 s[6:7], s[16:17]\n"
                          "s_lshl_b32 s8")),
    "no load of what nobody uses": (
        ("s_load_dwordx2 s[6:7], s[0:1], 0x10", "s_load_dword s6, s[0:1], 0x10"),),
    "the terms in another order": (
        ("s_add_u32 s4, s4, s8", "s_add_u32 s4, s8, s4"),
        ("vcc, s4, v1", "vcc, v1, v9"), ("v_mov_b32_e32 v3, s5", "v_mov_b32_e32 v9, s4\n"
                                                               "v_mov_b32_e32 v3, s5")),
    "the hardware adds": (
        ("v_add_co_u32_e32 v2, vcc, s4, v1\n    v_addc_co_u32_e32 v3, vcc, 0, v3, vcc\n", ""),
        ("global_store_dword v[2:3], v4, off", "global_store_dword v1, v4, s[4:5]")),
}


@pytest.mark.parametrize("name", HONEST)
def test_honest_rewrites_use_the_same(name: str) -> None:
    assert not Pair().lost(changed(*HONEST[name]))


CHEATS = {
    "a size that is built in": ("lost-launch-operand", "the kernarg at 0x10", (
        ("v_mov_b32_e32 v4, s6", "v_mov_b32_e32 v4, 0x3e8"),)),
    "a size whose use is overwritten": ("lost-launch-operand", "the kernarg at 0x10", (
        ("v_mov_b32_e32 v4, s6", "v_mov_b32_e32 v4, s6\n v_mov_b32_e32 v4, 7"),)),
    "a size used where nothing gets to": ("lost-launch-operand", "the kernarg at 0x10", (
        ("v_mov_b32_e32 v4, s6", "v_mov_b32_e32 v4, 7"),
        ("s_endpgm", "s_endpgm\n v_mov_b32_e32 v5, s6\n global_store_dword v[2:3], v5, off\n"
                     "s_endpgm"))),
    "a vector sum without its carry": ("lost-carry", "global_store_dword v[2:3], v4, off", (
        ("v_addc_co_u32_e32 v3, vcc, 0, v3, vcc\n", ""),)),
    "no carry at all": ("lost-carry", "global_store_dword v[2:3], v4, off", (
        ("s_addc_u32 s5, s5, 0\n", ""), ("v_addc_co_u32_e32 v3, vcc, 0, v3, vcc\n", ""))),
    "an upper word that is built in": ("lost-carry", "upper word", (
        ("v_mov_b32_e32 v3, s5", "v_mov_b32_e32 v3, 0x7000"),
        ("v_addc_co_u32_e32 v3, vcc, 0, v3, vcc\n", ""))),
}


@pytest.mark.parametrize("name", CHEATS)
def test_uses_that_are_gone(name: str) -> None:
    code, reason, changes = CHEATS[name]
    lost = Pair().lost(changed(*changes))
    assert reason in lost[code]


# Steps through the buffer, 256 bytes at a time.
LOOP = """
    s_load_dwordx2 s[4:5], s[0:1], 0x0
    s_load_dword s6, s[0:1], 0x10
    s_waitcnt lgkmcnt(0)
    v_lshlrev_b32_e32 v1, 2, v0
    v_mov_b32_e32 v4, 0
    again:
    global_store_dword v1, v4, s[4:5]
    s_add_u32 s4, s4, 0x100
    s_addc_u32 s5, s5, 0
    s_sub_u32 s6, s6, 1
    s_cmp_lg_u32 s6, 0
    s_cbranch_scc1 again
    s_endpgm
"""


def test_a_pointer_that_steps_without_carrying() -> None:
    assert not Pair(LOOP).lost(LOOP)
    assert Pair(LOOP).lost(changed(("s_addc_u32 s5, s5, 0\n", ""), text=LOOP)).keys() == {
        "lost-carry"}


def test_what_the_original_lacks_may_be_lacking() -> None:
    """AITER's kernels step through buffers that they know to be within one 4 GiB window."""
    short = changed(("s_addc_u32 s5, s5, 0\n", ""), text=LOOP)
    pair = Pair(short)
    assert pair.original.uncarried
    assert not pair.lost(short)
    assert not pair.lost(LOOP)
    twice = changed(("s_add_u32 s4, s4, 0x100", "s_add_u32 s4, s4, 0x80\n s_add_u32 s4, s4, 0x80"),
                    text=short)
    assert not pair.lost(twice)
