"""Calls, returns and unknown code: edges, and what every analysis makes of them."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from asmevo.codeobject import disassemble
from asmevo.codeobject.container import CodeObject
from asmevo.codeobject.target import Feature, Target
from asmevo.codeobject.toolchain import ZigToolchain
from asmevo.isa.cfg import Cfg
from asmevo.isa.dataflow import (
    ENTRY,
    defined_before_use,
    liveness,
    reaching_definitions,
    users,
)
from asmevo.isa.effects import State, effects, has_side_effects, machine_states
from asmevo.isa.errors import ControlFlowError
from asmevo.isa.hazards import hazards
from asmevo.isa.instruction import OperandKind
from asmevo.isa.parse import ParseError, parse
from asmevo.isa.program import Program
from asmevo.isa.registers import EVERYTHING, VGPR0, mask, names
from asmevo.isa.resources import register_use
from asmevo.isa.targets import TARGETS
from asmevo.isa.waits import missing_waits

Write = Callable[[str], Program]

_SOURCE = Path(__file__).with_name("compiled_functions.hip")

# Two calls of one function; s_call_b64 counts words, as branches do.
TWICE = """
    v_mov_b32_e32 v1, 0
    s_call_b64 s[30:31], f
    v_mov_b32_e32 v2, v0
    s_call_b64 s[30:31], f
    global_store_dword v[4:5], v0, off
    s_endpgm
    f:
    v_add_f32_e32 v0, v1, v2
    s_setpc_b64 s[30:31]
"""
UNKNOWN = """
    v_mov_b32_e32 v1, 0
    s_swappc_b64 s[30:31], s[0:1]
    global_store_dword v[4:5], v0, off
    s_endpgm
"""


@pytest.fixture(scope="module", params=TARGETS)
def compiled(request: pytest.FixtureRequest,
             tmp_path_factory: pytest.TempPathFactory) -> dict[str, Program]:
    target = Target(request.param, xnack=Feature.OFF)
    assembly = tmp_path_factory.mktemp("functions") / "functions.s"
    subprocess.run(
        [sys.executable, "-m", "ziglang", "clang", "-x", "hip",
         f"--offload-arch={target.processor}", "--offload-device-only", "-nogpuinc",
         "-nogpulib", "-O3", "-S", str(_SOURCE), "-o", str(assembly)], check=True, timeout=120)
    toolchain = ZigToolchain()
    code_object = CodeObject.parse(toolchain.link(toolchain.assemble(assembly.read_text(), target)))
    return {k.symbol: disassemble.whole_program(code_object, k.symbol)
            for k in code_object.kernels}


def _named(program: Program, cfg: Cfg) -> list[str]:
    return [program.labels[cfg.blocks[function].start] for function in cfg.functions]


@pytest.mark.parametrize(("kernel", "functions", "loops"), [
    ("calls_twice", ["calls_twice", "leaf"], 0),
    ("calls_in_a_loop", ["calls_in_a_loop", "leaf"], 1),
    ("calls_a_chain", ["calls_a_chain", "middle", "leaf"], 1)])
def test_compiled_calls_are_followed_and_clean(
        compiled: dict[str, Program], kernel: str, functions: list[str], loops: int) -> None:
    program = compiled[kernel]
    cfg = Cfg.of(program)
    assert _named(program, cfg) == functions
    assert not any(cfg.reachable(index) for index in cfg.unknown)
    assert len(cfg.loops()) == loops
    assert program.offsets[program.entry] == 0
    assert cfg.blocks[cfg.entry].start == program.entry
    # LLVM's callees wait for everything on entry, so nothing is missing on any path.
    assert missing_waits(program) == ()
    assert hazards(program) == ()


def test_a_function_pointer_is_unknown_code(compiled: dict[str, Program]) -> None:
    program = compiled["calls_an_argument"]
    cfg = Cfg.of(program)
    (call,) = (index for index in cfg.unknown if cfg.reachable(index))
    assert program.instructions[call].op == "s_swappc_b64"
    assert liveness(program)[call - 1] == EVERYTHING
    kinds = {v.kind for v in missing_waits(program) if v.producer == call}
    assert kinds == {"missing-vmcnt", "missing-lgkmcnt"}
    assert any(v.consumer == call for v in hazards(program))


def test_returns_go_behind_every_call(write: Write) -> None:
    cfg = Cfg.of(write(TWICE))
    assert [(b.start, b.end) for b in cfg.blocks] == [(0, 2), (2, 4), (4, 6), (6, 8)]
    assert [b.successors for b in cfg.blocks] == [(3,), (3,), (), (1, 2)]
    assert [b.resumes for b in cfg.blocks] == [1, 2, None, None]
    assert cfg.functions == (0, 3)
    assert cfg.loops() == ()
    assert cfg.dominators() == {0: 0, 1: 0, 2: 1, 3: 3}


def test_values_flow_through_calls(write: Write) -> None:
    program = write(TWICE)
    assert users(program, 0) == (6,)
    assert users(program, 6) == (2, 4)
    assert reaching_definitions(program, 6, mask(VGPR0 + 2)) == (ENTRY, 2)
    assert names(liveness(program)[6] & mask(VGPR0, 3)) == "v0, v1"


def test_recursion_and_a_function_that_never_returns(write: Write) -> None:
    recursive = Cfg.of(write("""
        s_call_b64 s[30:31], f
        s_endpgm
        f:
        s_cbranch_scc0 done
        s_call_b64 s[30:31], f
        done:
        s_setpc_b64 s[30:31]
    """))
    assert recursive.loops() == ()
    returning = recursive.blocks[recursive.block_of[4]]
    assert sorted(returning.successors) == [1, 4]
    endless = Cfg.of(write("s_call_b64 s[30:31], f\n s_endpgm\n f:\n s_branch f"))
    assert not endless.reachable(1)
    assert [loop.header for loop in endless.loops()] == [2]


GETPC = """
    s_getpc_b64 s[4:5]
    s_add_u32 s4, s4, {low}
    s_addc_u32 s5, s5, {high}
    {between}
    {jump}
    s_endpgm
    f:
    s_nop 0
    s_setpc_b64 s[30:31]
"""
CALL = "s_swappc_b64 s[30:31], s[4:5]"


# s_getpc_b64 gives byte 4 and f is at byte 24.
@pytest.mark.parametrize(("low", "high", "between", "jump", "known"), [
    ("20", "0", "s_nop 0", CALL, True),
    ("f@rel32@lo+4", "f@rel32@hi+12", "s_nop 0", CALL, True),
    ("20", "0", "s_mov_b64 s[6:7], s[4:5]", CALL.replace("s[4:5]", "s[6:7]"), True),
    ("20", "0", "s_add_u32 s4, s4, 4", CALL, False),
    ("20", "0", "s_mov_b32 s5, 0", CALL, False),
    ("20", "-1", "s_nop 0", CALL, False), ("22", "0", "s_nop 0", CALL, False),
    ("0x7ffffff0", "0", "s_nop 0", CALL, False), ("g@rel32@lo+4", "0", "s_nop 0", CALL, False),
    ("20", "0", "here:", CALL, False)])
def test_addresses_made_from_the_program_counter(
        write: Write, low: str, high: str, between: str, jump: str, known: bool) -> None:
    program = write(GETPC.format(low=low, high=high, between=between, jump=jump))
    cfg = Cfg.of(program)
    call = next(n for n, i in enumerate(program.instructions) if i.op == "s_swappc_b64")
    assert (call in cfg.unknown) is not known
    assert (len(cfg.functions) == 2) is known


def test_far_branches_forward_and_back(write: Write) -> None:
    program = write("""
        start:
        s_getpc_b64 s[4:5]
        s_add_u32 s4, s4, 16
        s_addc_u32 s5, s5, 0
        s_setpc_b64 s[4:5]
        s_nop 0
        s_getpc_b64 s[6:7]
        s_add_u32 s6, s6, -24
        s_addc_u32 s7, s7, -1
        s_setpc_b64 s[6:7]
        s_endpgm
    """)
    cfg = Cfg.of(program)
    assert not cfg.reachable(4)
    assert [sorted(loop.blocks) for loop in cfg.loops()] == [[0, 2]]


@pytest.mark.parametrize("text", [
    # Not through the link register, never called, and through another call's link register.
    "s_call_b64 s[30:31], f\n s_endpgm\n f:\n s_setpc_b64 s[28:29]",
    "s_setpc_b64 s[30:31]\n s_endpgm",
    "s_call_b64 s[30:31], f\n s_call_b64 s[28:29], f\n s_endpgm\n f:\n s_setpc_b64 s[30:31]"])
def test_other_indirect_jumps_are_refused(write: Write, text: str) -> None:
    with pytest.raises(ControlFlowError, match="run time"):
        Cfg.of(write(text))


def test_unknown_code_may_do_anything(write: Write) -> None:
    program = write(UNKNOWN)
    cfg = Cfg.of(program)
    assert cfg.unknown == {1}
    fact = effects(program, cfg)[1]
    assert (fact.reads, fact.writes, fact.kills) == (EVERYTHING, EVERYTHING, 0)
    assert liveness(program)[0] == EVERYTHING
    assert users(program, 0) == (1,)
    assert reaching_definitions(program, 2, mask(VGPR0)) == (ENTRY, 1)
    after = machine_states(program, cfg)[2]
    assert after & State.VSKIP
    assert after & State.EXEC_LO_PARTIAL
    assert after & State.INDEX_DST
    everything_defined = defined_before_use(program, EVERYTHING)
    assert everything_defined == ()
    (read, late) = defined_before_use(program, mask(VGPR0 + 4, 2))
    assert (read.consumer, late.consumer) == (1, 2)
    assert read.registers & mask(VGPR0 + 9)
    assert not read.registers & mask(VGPR0 + 1)


@pytest.mark.parametrize("code", ["s_swappc_b64 s[30:31], s[0:1]", ".long 0xdeadbeef"])
def test_waits_around_unknown_code(write: Write, code: str) -> None:
    program = write(f"""
        global_load_dword v0, v[8:9], off
        global_store_dword v[8:9], v1, off
        {code}
        v_mov_b32_e32 v2, 0
        s_waitcnt vmcnt(0) lgkmcnt(0)
        v_mov_b32_e32 v3, 0
        s_endpgm
    """)
    assert {(v.kind, v.producer, v.consumer) for v in missing_waits(program)} == {
        ("missing-vmcnt", 0, 2), ("missing-vmcnt-barrier", 1, 2),
        ("missing-vmcnt", 2, 3), ("missing-lgkmcnt", 2, 3)}


@pytest.mark.parametrize("code", ["s_swappc_b64 s[30:31], s[0:1]", ".long 0xdeadbeef"])
def test_wait_states_around_unknown_code(write: Write, code: str) -> None:
    def pairs(before: int, after: int) -> set[tuple[int, int]]:
        program = write(f"""
            v_mfma_f32_32x32x1_2b_f32 v[0:31], v32, v33, 0
            s_nop {before - 1}
            {code}
            s_nop {after - 1}
            v_readlane_b32 s0, v40, s1
            s_endpgm
        """)
        return {(v.producer, v.consumer) for v in hazards(program)}

    assert pairs(18, 20) == set()
    assert pairs(17, 20) == {(0, 2)}
    assert pairs(18, 19) == {(2, 4)}


def test_an_undecodable_word_is_an_opaque_instruction(write: Write) -> None:
    instruction = parse(".long  0xDEADBEEF")
    assert instruction.text == instruction.op == ".long 0xdeadbeef"
    assert instruction.reads == instruction.writes == EVERYTHING
    assert has_side_effects(instruction)
    program = write("v_mov_b32_e32 v3, 0\n .long 0xdeadbeef\n s_endpgm")
    assert register_use(program) == (4, 0, 0)
    assert Cfg.of(program).unknown == {1}
    for text in (".long", ".long 1, 2", ".long 0x100000000", ".long -1", ".long f"):
        with pytest.raises(ParseError):
            parse(text)


def test_symbols_are_literals() -> None:
    instruction = parse("s_add_u32 s4, s4, f@rel32@lo+4")
    operand = instruction.operands[2]
    assert (operand.kind, operand.value) == (OperandKind.SYMBOL, 4)
    assert parse(instruction.text) == instruction
    for text in ("f@rel32@lo+0x100000000", "f@plt", "f+4"):
        with pytest.raises(ParseError):
            parse(f"s_add_u32 s4, s4, {text}")


def test_hostile_calls_are_refused_in_time() -> None:
    """Every instruction is a function of all that follow, and each of them returns everywhere."""
    count = 3000
    rows = [(4 * n, 4, f"s_call_b64 s[30:31], {n % 7}") for n in range(count)]
    rows += [(4 * (count + n), 4, "s_setpc_b64 s[30:31]") for n in range(8)]
    with pytest.raises(ControlFlowError, match="too m"):
        Cfg.of(Program.from_disassembly(rows, {}))
