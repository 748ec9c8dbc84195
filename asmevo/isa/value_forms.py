"""What operations make of numbered values: the algebra that `asmevo.isa.values` knows.

An operation without a rule here, or a rule that gives ``None``, makes a form of its own. Meanings
are those of the CDNA3 ISA, "Scalar ALU Operations" and "Vector ALU Operations".
"""

from __future__ import annotations

import re
from collections.abc import Callable

from asmevo.isa.registers import EXEC_LO, SCC
from asmevo.isa.value_numbers import Numbers, Taint
from asmevo.isa.wide_forms import (
    SCALAR_WIDE,
    VECTOR_WIDE,
    Arguments,
    Rule,
    high_product,
    with_carry,
)

_Binary = Callable[[Numbers, int, int], int]


def _nonzero(n: Numbers, *words: int) -> int:
    if len(words) == 1:
        return n.negation(n.equal(words[0], n.zero))
    return n.atom(("nonzero", *words), words)


def _arithmetic(name: str, make: _Binary, carry: bool = False) -> Rule:
    def rule(n: Numbers, a: Arguments, register: int, word: int) -> int | None:
        x, y = a.word(0), a.word(1)
        carried = (a.implied[SCC],) if carry else ()
        if register == SCC:
            if name == "add" and not carry:
                return n.carries((x, y))
            pair = sorted((x, y)) if name.startswith("add") else (x, y)
            return n.atom(("carry", name, *pair, *carried), (x, y, *carried))
        made = make(n, x, y)
        for number in carried:
            made = (with_carry(n, made, number) if name.startswith("add")
                    else n.subtract(made, number))
        return made

    return rule


def _unsigned_difference(n: Numbers, a: Arguments, register: int, word: int) -> int | None:
    if register == SCC:
        return n.less(a.word(0), a.word(1), signed=False)
    return n.subtract(a.word(0), a.word(1))


def _bitwise(make: _Binary, words: int) -> Rule:
    def rule(n: Numbers, a: Arguments, register: int, word: int) -> int | None:
        if register == SCC:
            return _nonzero(n, *(make(n, a.word(0, k), a.word(1, k)) for k in range(words)))
        return make(n, a.word(0, word), a.word(1, word))

    return rule


def _simple(make: _Binary, reverse: bool = False) -> Rule:
    def rule(n: Numbers, a: Arguments, register: int, word: int) -> int | None:
        x, y = a.word(0), a.word(1)
        made = make(n, y, x) if reverse else make(n, x, y)
        return _nonzero(n, made) if register == SCC else made

    return rule


def _nested(inner: _Binary, outer: _Binary) -> Rule:
    return lambda n, a, register, word: outer(n, inner(n, a.word(0), a.word(1)), a.word(2))


def _shifted_sum(shift: int) -> Rule:
    def rule(n: Numbers, a: Arguments, register: int, word: int) -> int | None:
        if register == SCC:
            return None
        return n.add(a.word(1), a.word(0), 1 << shift)

    return rule


def _not(words: int) -> Rule:
    def rule(n: Numbers, a: Arguments, register: int, word: int) -> int | None:
        if register == SCC:
            return _nonzero(n, *(n.complement(a.word(0, k)) for k in range(words)))
        return n.complement(a.word(0, word))

    return rule


def _exec_update(make: _Binary, keeps_old: bool) -> Rule:
    """``..._saveexec`` returns the old mask, ``..._wrexec`` the new one."""

    def rule(n: Numbers, a: Arguments, register: int, word: int) -> int | None:
        made = [make(n, a.word(0, k), a.implied[EXEC_LO + k]) for k in range(2)]
        if register == SCC:
            return _nonzero(n, *made)
        if register in (EXEC_LO, EXEC_LO + 1):
            return made[register - EXEC_LO]
        return a.implied[EXEC_LO + word] if keeps_old else made[word]

    return rule


def _scalar_compare(relation: str, signed: bool) -> Rule:
    return lambda n, a, register, word: n.compare(relation, a.word(0), a.word(1), signed=signed)


def _compare_constant(relation: str, signed: bool) -> Rule:
    """The constant has 16 bits, sign-extended for signed comparisons."""

    def rule(n: Numbers, a: Arguments, register: int, word: int) -> int | None:
        value = n.value_of(a.word(1))
        if value is None:
            return None
        return n.compare(relation, a.word(0), n.constant(_short(value, signed)), signed=signed)

    return rule


def _short(value: int, signed: bool = True) -> int:
    value &= 0xFFFF
    return value - 0x10000 if signed and value & 0x8000 else value


def _constant(n: Numbers, a: Arguments, register: int, word: int) -> int | None:
    value = n.value_of(a.word(0))
    return None if value is None else n.constant(_short(value))


def _with_constant(make: _Binary) -> Rule:
    def rule(n: Numbers, a: Arguments, register: int, word: int) -> int | None:
        value = n.value_of(a.word(1))
        if value is None or register == SCC:
            return None
        return make(n, a.word(0), n.constant(_short(value)))

    return rule


def _packed(first: int, second: int) -> Rule:
    """Halves of two words; 0 is the low one."""
    def rule(n: Numbers, a: Arguments, register: int, word: int) -> int | None:
        low, high = (n.field(a.word(k), 16 * half, 16) for k, half in enumerate((first, second)))
        return n.add(low, high, 1 << 16)

    return rule


def _bit_set(on: bool) -> Rule:
    def rule(n: Numbers, a: Arguments, register: int, word: int) -> int | None:
        bit = n.value_of(a.word(1))
        if bit is None:
            return None
        mask = n.constant(1 << (bit & 31))
        return (n.disjunction(a.word(0), mask) if on
                else n.conjunction(a.word(0), n.complement(mask)))

    return rule


def _product24(add: bool) -> Rule:
    """24-bit factors without sign."""
    def rule(n: Numbers, a: Arguments, register: int, word: int) -> int | None:
        made = n.multiply(*(n.field(a.word(k), 0, 24) for k in range(2)))
        return n.add(made, a.word(2)) if add else made

    return rule


def _signed_product24(n: Numbers, a: Arguments, register: int, word: int) -> int | None:
    """24-bit factors with sign, where these are small enough to have none."""
    x, y = a.word(0), a.word(1)
    if (n.possible_ones(x) | n.possible_ones(y)) >> 23:
        return None
    return n.multiply(x, y)


def _bit_choice(n: Numbers, a: Arguments, register: int, word: int) -> int | None:
    mask, one, other = (a.word(k) for k in range(3))
    return n.disjunction(n.conjunction(mask, one), n.conjunction(n.complement(mask), other))


def _uniform(n: Numbers, a: Arguments, register: int, word: int) -> int | None:
    """A value that all lanes share is what any of them has."""
    varying = Taint.WORK_ITEM | Taint.UNDEFINED | Taint.LDS
    return None if n.taints[a.word(0)] & varying else a.word(0)


def _both(relation: str) -> Rule:
    def rule(n: Numbers, a: Arguments, register: int, word: int) -> int | None:
        low, high = (n.equal(a.word(0, k), a.word(1, k)) for k in range(2))
        made = n.conjunction(low, high)
        return made if relation == "eq" else n.negation(made)

    return rule


def _bit(relation: str) -> Rule:
    def rule(n: Numbers, a: Arguments, register: int, word: int) -> int | None:
        bit = n.value_of(a.word(1))
        if bit is None:
            return None
        return n.compare(relation, n.field(a.word(0), bit & 31, 1), n.zero, signed=False)

    return rule


def _scalar_field(n: Numbers, a: Arguments, register: int, word: int) -> int | None:
    """S1[4:0] is the first bit, S1[22:16] the width."""
    where = n.value_of(a.word(1))
    if where is None:
        return None
    made = n.field(a.word(0), where & 31, where >> 16 & 127)
    return _nonzero(n, made) if register == SCC else made


def _vector_field(n: Numbers, a: Arguments, register: int, word: int) -> int | None:
    first, width = n.value_of(a.word(1)), n.value_of(a.word(2))
    return None if first is None or width is None else n.field(a.word(0), first & 31, width & 31)


def _choice(words: int) -> Rule:
    return lambda n, a, register, word: n.choice(a.implied[SCC], a.word(0, word), a.word(1, word))


def _conditional_move(n: Numbers, a: Arguments, register: int, word: int) -> int | None:
    return n.choice(a.implied[SCC], a.word(1, word), a.word(0, word))


def _and_not(n: Numbers, a: int, b: int) -> int:
    return n.conjunction(a, n.complement(b))


def _not_and(n: Numbers, a: int, b: int) -> int:
    return n.conjunction(n.complement(a), b)


_LOGIC: dict[str, _Binary] = {
    "and": Numbers.conjunction, "or": Numbers.disjunction, "xor": Numbers.exclusive,
    "andn2": _and_not, "andn1": _not_and,
    "orn2": lambda n, a, b: n.disjunction(a, n.complement(b)),
    "orn1": lambda n, a, b: n.disjunction(n.complement(a), b),
    "nand": lambda n, a, b: n.complement(n.conjunction(a, b)),
    "nor": lambda n, a, b: n.complement(n.disjunction(a, b)),
    "xnor": lambda n, a, b: n.complement(n.exclusive(a, b)),
}
_RELATIONS = ("eq", "lg", "lt", "le", "gt", "ge")


def _scalar_rules() -> dict[str, Rule]:
    rules: dict[str, Rule] = {
        "s_add_u32": _arithmetic("add", Numbers.add),
        "s_add_i32": _arithmetic("add_i", Numbers.add),
        "s_sub_u32": _unsigned_difference,
        "s_sub_i32": _arithmetic("sub_i", Numbers.subtract),
        "s_addc_u32": _arithmetic("add", Numbers.add, carry=True),
        "s_subb_u32": _arithmetic("sub", Numbers.subtract, carry=True),
        "s_mul_i32": _simple(Numbers.multiply),
        "s_lshl_b32": _simple(Numbers.shift_left), "s_lshr_b32": _simple(Numbers.shift_right),
        "s_not_b32": _not(1), "s_not_b64": _not(2), "s_bfe_u32": _scalar_field,
        "s_cselect_b32": _choice(1), "s_cselect_b64": _choice(2),
        "s_cmov_b32": _conditional_move, "s_cmov_b64": _conditional_move,
        "s_movk_i32": _constant, "s_addk_i32": _with_constant(Numbers.add),
        "s_mulk_i32": _with_constant(Numbers.multiply),
        "s_bitcmp0_b32": _bit("eq"), "s_bitcmp1_b32": _bit("lg"),
        "s_cmp_eq_u64": _both("eq"), "s_cmp_lg_u64": _both("lg"),
        "s_bitset0_b32": _bit_set(False), "s_bitset1_b32": _bit_set(True),
        "s_pack_ll_b32_b16": _packed(0, 0), "s_pack_lh_b32_b16": _packed(0, 1),
        "s_pack_hh_b32_b16": _packed(1, 1), "s_mul_hi_u32": _simple(high_product), **SCALAR_WIDE,
    }
    for name, make in _LOGIC.items():
        rules[f"s_{name}_b32"], rules[f"s_{name}_b64"] = _bitwise(make, 1), _bitwise(make, 2)
        rules[f"s_{name}_saveexec_b64"] = _exec_update(make, keeps_old=True)
        rules[f"s_{name}_wrexec_b64"] = _exec_update(make, keeps_old=False)
    for relation in _RELATIONS:
        for kind in ("i32", "u32"):
            rules[f"s_cmp_{relation}_{kind}"] = _scalar_compare(relation, kind == "i32")
            rules[f"s_cmpk_{relation}_{kind}"] = _compare_constant(relation, kind == "i32")
    for shift in range(1, 5):
        rules[f"s_lshl{shift}_add_u32"] = _shifted_sum(shift)
    return rules


def _lanes(n: Numbers, condition: int, a: Arguments, word: int) -> int:
    """Half of a lane mask: lanes that are off give 0."""
    inner = n.without_negation(condition)
    bits = n.atom(("lanes", inner, word), (inner,))
    if inner != condition:
        bits = n.complement(bits)
    return n.conjunction(a.implied[EXEC_LO + word], bits)


def _vector_compare(relation: str, kind: str) -> Rule:
    def rule(n: Numbers, a: Arguments, register: int, word: int) -> int | None:
        if register in (EXEC_LO, EXEC_LO + 1):
            word = register - EXEC_LO
        if kind in ("u32", "i32"):
            condition = n.compare(relation, a.word(0), a.word(1), signed=kind == "i32")
        else:
            x, y = a.operands[:2]
            turned = {"gt": "lt", "ge": "le", "ngt": "nlt", "nge": "nle"}.get(relation)
            if turned is not None:
                x, y = y, x
            condition = n.atom(("compare", turned or relation, kind, x, y), (*x, *y))
        return _lanes(n, condition, a, word)

    return rule


def _vector_rules() -> dict[str, Rule]:
    add, shift = Numbers.add, Numbers.shift_left
    both, either = Numbers.conjunction, Numbers.disjunction
    return {
        "v_add_u32": _simple(add), "v_sub_u32": _simple(Numbers.subtract),
        "v_subrev_u32": _simple(Numbers.subtract, reverse=True),
        "v_mul_lo_u32": _simple(Numbers.multiply),
        "v_lshlrev_b32": _simple(shift, reverse=True),
        "v_lshrrev_b32": _simple(Numbers.shift_right, reverse=True),
        "v_and_b32": _simple(both), "v_or_b32": _simple(either),
        "v_xor_b32": _simple(Numbers.exclusive), "v_not_b32": _not(1),
        "v_bfe_u32": _vector_field, "v_lshl_add_u32": _nested(shift, add),
        "v_add_lshl_u32": _nested(add, shift), "v_add3_u32": _nested(add, add),
        "v_and_or_b32": _nested(both, either), "v_or3_b32": _nested(either, either),
        "v_lshl_or_b32": _nested(shift, either),
        "v_mul_hi_u32": _simple(high_product), "v_mul_u32_u24": _product24(add=False),
        "v_mad_u32_u24": _product24(add=True), "v_bfi_b32": _bit_choice,
        "v_mul_i32_i24": _signed_product24,
        "v_readfirstlane_b32": _uniform, **VECTOR_WIDE,
    }


_SCALAR, _VECTOR = _scalar_rules(), _vector_rules()
_COMPARE = re.compile(r"v_cmpx?_(eq|lg|ne|lt|le|gt|ge|nlt|nle|ngt|nge|neq|nlg|o|u)_([uif]\d+)")


def rule_of(op: str) -> Rule | None:
    """The rule of an operation without modifiers."""
    if op.startswith("s_"):
        return _SCALAR.get(op)
    rule = _VECTOR.get(op)
    if rule is None and (match := _COMPARE.fullmatch(op)):
        return _vector_compare(match[1], match[2])
    return rule
