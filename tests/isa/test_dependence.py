"""Dependences of straight-line code: each kind by example, and that predecessors are all edges."""

from __future__ import annotations

from collections.abc import Sequence

from hypothesis import given, settings
from hypothesis import strategies as st

from asmevo.isa import ordering
from asmevo.isa.cfg import Cfg
from asmevo.isa.dependence import Dependences, EdgeKind
from asmevo.isa.effects import machine_states
from asmevo.isa.program import Program
from asmevo.isa.registers import mask

VGPR0 = 256
TEXTS = (
    "v_mov_b32_e32 v0, v1", "v_add_u32_e32 v1, v0, v2", "s_barrier", "s_mov_b64 exec, s[2:3]",
    "global_load_dword v2, v[4:5], off", "global_store_dword v[4:5], v1, off", "ds_read_b32 v3, v0",
    "ds_write_b32 v0, v1", "s_waitcnt vmcnt(0)", "buffer_wbl2 sc1", "s_add_u32 s0, s0, s1",
    "s_addc_u32 s1, s1, 0", "global_atomic_add v[4:5], v0, off", "s_memtime s[8:9]",
)


def dependences(texts: Sequence[str]) -> Dependences:
    rows = [(8 * k, 8, text) for k, text in enumerate([*texts, "s_endpgm"])]
    program = Program.from_disassembly(rows, {})
    states = machine_states(program, Cfg.of(program))
    return Dependences(program, 0, len(texts), fences=ordering.fences(program, states),
                       guards=ordering.guards(program))


def kinds(*texts: str) -> dict[tuple[int, int], set[EdgeKind]]:
    found: dict[tuple[int, int], set[EdgeKind]] = {}
    for edge in dependences(texts).edges():
        found.setdefault((edge.producer, edge.consumer), set()).add(edge.kind)
    return found


def test_registers() -> None:
    assert kinds("v_mov_b32_e32 v0, v1", "v_add_u32_e32 v2, v0, v3", "v_mov_b32_e32 v0, v4") == {
        (0, 1): {EdgeKind.RAW}, (0, 2): {EdgeKind.WAW}, (1, 2): {EdgeKind.WAR}}
    (edge,) = dependences(["v_mov_b32_e32 v0, v1", "v_add_u32_e32 v2, v0, v3"]).edges()
    assert edge.registers == mask(VGPR0)


def test_memory_and_barriers() -> None:
    load, store = "global_load_dword v2, v[4:5], off", "global_store_dword v[4:5], v1, off"
    assert kinds(load, load) == {(0, 1): {EdgeKind.WAW}}
    assert kinds(store, "ds_read_b32 v3, v9") == {}
    assert kinds(load, store) == {(0, 1): {EdgeKind.MEMORY}}
    assert kinds("ds_write_b32 v0, v1", "v_mov_b32_e32 v6, v7", "s_barrier",
                 "ds_read_b32 v3, v9") == {
        (0, 2): {EdgeKind.MEMORY}, (2, 3): {EdgeKind.MEMORY}, (0, 3): {EdgeKind.MEMORY}}


def test_fences_hold_everything() -> None:
    found = kinds("v_mov_b32_e32 v0, v1", "s_memtime s[8:9]", "v_mov_b32_e32 v6, v7")
    assert found == {(0, 1): {EdgeKind.FENCE}, (1, 2): {EdgeKind.FENCE}}


@settings(max_examples=150, deadline=None)
@given(st.lists(st.sampled_from(TEXTS), max_size=16))
def test_edges_and_predecessors_agree(texts: list[str]) -> None:
    graph = dependences(texts)
    edges: dict[int, set[int]] = {index: set() for index in range(len(texts))}
    for edge in graph.edges():
        assert edge.producer < edge.consumer
        edges[edge.consumer].add(edge.producer)
    assert edges == graph.predecessors
