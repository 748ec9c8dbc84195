"""Local replacements: shuffles, LDS pairs, split sums, encodings."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from asmevo.propose.proposal import Evidence
from asmevo.propose.rule import RuleContext
from asmevo.propose.rules.align_fetch import AlignFetch
from asmevo.propose.rules.fuse_dpp import FuseDpp
from asmevo.propose.rules.pair_lds_reads import PairLdsReads
from asmevo.propose.rules.split_accumulators import SplitAccumulators
from tests.propose.emulated import OUTPUT, stored

STORE = "global_store_dword v[2:3], v1, off\ns_endpgm"
SHUFFLE = "row_ror:8 row_mask:0xf bank_mask:0xf"


@pytest.mark.parametrize("user", ["v_add_f32_e32 v1, v9, v4", "v_add_f32_e32 v1, v4, v9"])
def test_a_shuffle_folds_into_its_user(kernels: Any, user: str) -> None:
    text = f"v_mov_b32_dpp v9, v5 {SHUFFLE}\n{user}\n{STORE}"
    assert kernels.first(FuseDpp(), text) == [
        f"v_add_f32_dpp v1, v5, v4 {SHUFFLE}", *STORE.split("\n")]


@pytest.mark.parametrize("text", [
    f"v_mov_b32_dpp v9, v5 {SHUFFLE}\nv_sub_f32_e32 v1, v9, v4",            # not commutative
    f"v_mov_b32_dpp v9, v5 {SHUFFLE}\nv_add_f32_e32 v1, v9, v9",            # both operands
    f"v_mov_b32_dpp v9, v5 {SHUFFLE}\nv_add_f32_e32 v1, s4, v9",            # no room for an SGPR
    f"v_mov_b32_dpp v9, v5 {SHUFFLE}\nv_add_f32_e32 v8, v9, v4\nv_add_f32_e32 v1, v9, v8",
    f"v_mov_b32_dpp v9, v5 {SHUFFLE}\nv_mov_b32_e32 v5, 0\nv_add_f32_e32 v1, v9, v5",
    f"v_mov_b32_dpp v9, v5 {SHUFFLE}\ns_mov_b64 exec, 3\nv_add_f32_e32 v1, v9, v4",
    # Lanes without a source keep the old v9, which the fused form would not add.
    "v_mov_b32_dpp v9, v5 row_shr:8 row_mask:0xf bank_mask:0xf\nv_add_f32_e32 v1, v9, v4",
    "v_mov_b32_dpp v9, v5 row_ror:8 row_mask:0x3 bank_mask:0xf\nv_add_f32_e32 v1, v9, v4",
])
def test_shuffles_that_stay(kernels: Any, text: str) -> None:
    assert kernels.proposals(FuseDpp(), f"{text}\n{STORE}") == []


@pytest.mark.parametrize(("bounds", "folds"), [("", False), (" bound_ctrl:0", True)])
def test_lanes_whose_source_is_off(kernels: Any, bounds: str, folds: bool) -> None:
    """They keep the old v9, which the fused form would not add, or get 0 in both."""
    body = [f"v_mov_b32_dpp v9, v5 {SHUFFLE}{bounds}", "v_add_f32_e32 v8, v9, v4"]
    lines = ["v_lshlrev_b32_e32 v1, 2, v0", "v_cvt_f32_u32_e32 v5, v0", "v_mov_b32_e32 v4, 1.0",
             "v_mov_b32_e32 v8, 0", "v_mov_b32_e32 v9, 2.0", "s_mov_b64 exec, s[8:9]", "s_nop 4",
             *body, "s_mov_b64 exec, -1", f"global_store_dword v1, v8, {OUTPUT}", "s_endpgm"]
    text = "\n".join(lines)
    assert bool(kernels.proposals(FuseDpp(), text)) == folds
    fused = [*lines[:7], f"v_add_f32_dpp v8, v5, v4 {SHUFFLE}{bounds}", *lines[9:]]
    scalars = {8: 0x00FF00FF, 9: 0}
    assert np.array_equal(stored(lines, scalars), stored(fused, scalars)) == folds


def _reads(*offsets: int, address: str = "v40") -> list[str]:
    return [f"ds_read_b32 v{10 + k}, {address} offset:{o}" for k, o in enumerate(offsets)]


USE = "s_waitcnt lgkmcnt(0)\nv_add_f32_e32 v1, v10, v11\nv_add_f32_e32 v1, v1, v12\n" \
      f"v_add_f32_e32 v1, v1, v13\n{STORE}"


def test_neighbouring_reads_pair(kernels: Any) -> None:
    text = "\n".join((*_reads(4, 1020, 8, 64), USE))
    assert kernels.first(PairLdsReads(), text)[:3] == [
        "ds_read2_b32 v[10:11], v40 offset0:1 offset1:255",
        "ds_read2_b32 v[12:13], v40 offset0:2 offset1:16", "s_waitcnt lgkmcnt(0)"]


def test_far_offsets_advance_the_address(kernels: Any) -> None:
    text = "\n".join(("v_mov_b32_e32 v40, v0", *_reads(1024, 1028, 2044, 1032), USE))
    assert kernels.first(PairLdsReads(), text)[:4] == [
        "v_mov_b32_e32 v40, v0", "v_add_u32_e32 v40, 0x400, v40",
        "ds_read2_b32 v[10:11], v40 offset1:1", "ds_read2_b32 v[12:13], v40 offset0:255 offset1:2"]


@pytest.mark.parametrize("reads", [
    _reads(2, 6, 10, 14),                                        # not dword-aligned
    ["ds_read_b32 v11, v40", "ds_read_b32 v12, v40 offset:4"],   # an odd first register
    ["ds_read_b32 v10, v40", "ds_read_b32 v11, v41"],            # two addresses
    ["ds_read_b32 v10, v10", "ds_read_b32 v11, v10 offset:4"],   # the address is overwritten
    ["ds_read_b32 v10, v40", "again:", "ds_read_b32 v11, v40 offset:4"],
    _reads(1024, 1028, 2044, 2048),                              # v40 comes from the entry
])
def test_reads_that_do_not_pair(kernels: Any, reads: list[str]) -> None:
    text = "\n".join((*reads, USE))
    assert kernels.proposals(PairLdsReads(), text) == []


def test_an_address_used_elsewhere_is_not_advanced(kernels: Any) -> None:
    text = "\n".join((
        "v_mov_b32_e32 v40, v0", *_reads(1024, 1028, 2044, 1032), "ds_write_b32 v40, v1", USE))
    assert kernels.first(PairLdsReads(), text) is None


def test_a_sum_splits_in_two(kernels: Any) -> None:
    terms = [f"v_pk_fma_f32 v[10:11], v[{k}:{k + 1}], v[{k}:{k + 1}], v[10:11]"
             for k in range(20, 32, 2)]
    text = "\n".join(("v_mov_b32_e32 v12, 0", "v_mov_b32_e32 v13, 0", *terms,
                      "global_store_dwordx2 v[2:3], v[10:11], off", "s_endpgm"))
    split = kernels.first(SplitAccumulators(), text)
    assert split[2:9] == [
        terms[0], "v_pk_mul_f32 v[12:13], v[22:23], v[22:23]",
        terms[2], "v_pk_fma_f32 v[12:13], v[26:27], v[26:27], v[12:13]",
        terms[4], "v_pk_fma_f32 v[12:13], v[30:31], v[30:31], v[12:13]",
        "v_pk_add_f32 v[10:11], v[10:11], v[12:13]"]
    assert all("rounding" in p.assumption for p in kernels.proposals(SplitAccumulators(), text))


def test_a_sum_without_a_free_register_stays(kernels: Any) -> None:
    terms = [f"v_add_f32_e32 v1, v1, v{k}" for k in range(20, 28)]
    text = "\n".join((*terms, "v_mov_b32_e32 v40, v1",
                      "global_store_dwordx4 v[2:3], v[20:23], off",
                      "global_store_dwordx4 v[2:3], v[24:27], off", STORE))
    busy = text.replace("v_mov_b32_e32 v40, v1\n", "")
    assert kernels.proposals(SplitAccumulators(), busy) == []
    assert any("v40" in line for p in kernels.proposals(SplitAccumulators(), text)
               for line in kernels.edited(text, p)[:9])


def test_a_partial_sum_used_in_between_ends_the_chain(kernels: Any) -> None:
    terms = [f"v_add_f32_e32 v1, v1, v{k}" for k in range(20, 26)]
    text = "\n".join((*terms[:3], "global_store_dword v[2:3], v1, off", *terms[3:],
                      "v_mov_b32_e32 v40, 0", STORE))
    assert kernels.proposals(SplitAccumulators(), text) == []


def test_widening_aligns_what_follows(kernels: Any) -> None:
    text = "v_mov_b32_e32 v8, v9\n" + "\n".join(
        f"v_fma_f32 v1, v{k}, v1, v8" for k in range(4)) + f"\n{STORE}"
    assert kernels.first(AlignFetch(), text)[:2] == ["v_mov_b32_e64 v8, v9",
                                                     "v_fma_f32 v1, v0, v1, v8"]


def test_aligned_code_stays(kernels: Any) -> None:
    text = "v_mov_b32_e32 v8, v9\nv_mov_b32_e32 v9, v10\nv_fma_f32 v1, v0, v1, v8\n" + STORE
    assert kernels.proposals(AlignFetch(), text) == []


def test_a_known_violation_keeps_its_text(kernels: Any) -> None:
    # Two wait states are missing here, which a gate recognises by the text of both instructions.
    text = "v_readfirstlane_b32 s4, v9\nv_mov_b32_e32 v8, s4\n" + "\n".join(
        f"v_fma_f32 v1, v{k}, v1, v8" for k in range(4)) + f"\n{STORE}"
    assert kernels.context(text).preview.hazards
    assert kernels.first(AlignFetch(), text) is None


def test_layer_norm_loses_most_misaligned_instructions(layer_norm_evidence: Evidence) -> None:
    context = RuleContext(layer_norm_evidence)
    proposal = next(iter(AlignFetch().matches(context)))
    after = context.preview.apply(proposal.edits).program
    assert _misaligned(after) * 4 < _misaligned(context.program)


def _misaligned(program: Any) -> int:
    return sum(
        end - start == 8 and start % 8 == 4
        for start, end in zip(program.offsets, program.offsets[1:], strict=False))
