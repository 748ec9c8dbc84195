"""What descriptor and metadata must say of a candidate's code, and settings that may not change."""

from __future__ import annotations

import struct

from asmevo.codeobject.assembly import Edit
from asmevo.codeobject.container import CodeObject
from asmevo.gates.assemble import AssembleGate, Method
from asmevo.gates.static import StaticGate
from asmevo.gates.trial import Trial
from asmevo.gates.verdict import Outcome, Verdict
from asmevo.task.session import Session


def built(session: Session, at: int, *lines: str, stop: int | None = None,
          method: Method = Method.AUTO) -> Trial:
    edit = Edit(session.symbol, at, at if stop is None else stop, lines, "test")
    trial = Trial(session.baseline, session.toolchain, assembly=session.assembly.apply([edit]))
    assert AssembleGate(method).judge(trial, 0).passed
    return trial


def static(session: Session, data: bytes) -> Verdict:
    trial = Trial(session.baseline, session.toolchain, code_object=CodeObject.parse(data))
    return StaticGate().judge(trial, 0)


def test_the_note_grows_with_the_code(session: Session) -> None:
    trial = built(session, 0, "s_mov_b32 s90, 0")
    assert trial.code_object is not None
    assert StaticGate().judge(trial, 0).passed
    count = trial.code_object.kernel(session.symbol).metadata[".sgpr_count"]
    assert isinstance(count, int)
    data = bytearray(trial.code_object.data)
    # msgpack: the key, then a positive fixint.
    at = data.index(b".sgpr_count") + len(b".sgpr_count")
    assert data[at] == count
    data[at] = 40
    verdict = static(session, bytes(data))
    assert (verdict.outcome, verdict.code) == (Outcome.FAIL, "metadata")
    assert "40" in verdict.reason


def test_the_descriptor_may_not_understate_vector_registers(session: Session) -> None:
    """GRANULATED_WORKITEM_VGPR_COUNT are the low 6 bits of compute_pgm_rsrc1, in units of 8."""
    data = bytearray(session.code_object.data)
    at = session.code_object.section(".rodata").offset + 48
    word, = struct.unpack_from("<I", data, at)
    struct.pack_into("<I", data, at, word & ~0x3F | 3)
    assert static(session, bytes(data)).code == "resources"


def test_lds_beyond_the_declared_size(session: Session) -> None:
    """G0 refuses it in a rebuild; in an object that is given nobody has looked before."""
    original = session.code_object
    lines = [line.text for line in session.assembly.body(session.symbol).lines if line.text]
    at = next(i for i, text in enumerate(lines) if text.startswith("ds_write"))
    size = original.kernel(session.symbol).descriptor.group_segment_fixed_size
    code = original.code(original.kernel(session.symbol))
    offset = session.baseline.program.offsets[at]
    where = bytes(original.data).index(code) + offset
    data = bytearray(original.data)
    struct.pack_into("<H", data, where, 0xFFFE)  # OFFSET0 and OFFSET1 of a DS instruction
    verdict = static(session, bytes(data))
    assert size == 0x10000
    assert verdict.code == "segments", verdict
    assert f"declares {size}" in verdict.reason


def test_a_mode_may_not_become_another(session: Session) -> None:
    """The number of s_setprio and the like is the original's, what they set is not."""
    low = built(session, 0, "s_setprio 1")
    assert low.code_object is not None
    baseline = type(session.baseline)(
        low.code_object, session.symbol, session.assembly, (), session.device)
    high = built(session, 0, "s_setprio 3")
    trial = Trial(baseline, session.toolchain, code_object=high.code_object)
    assert StaticGate().judge(trial, 0).code == "changed-setting"
    same = Trial(baseline, session.toolchain, code_object=low.code_object)
    assert StaticGate().judge(same, 0).passed


def test_a_user_may_allow_priorities_and_nothing_else_that_is_counted(session: Session) -> None:
    priorities = built(session, 0, "s_setprio 1", "s_setprio 0")
    assert StaticGate().judge(priorities, 0).code == "forbidden-opcode"
    assert StaticGate(["s_sleep"]).judge(priorities, 0).code == "forbidden-opcode"
    assert StaticGate(["s_setprio"]).judge(priorities, 0).passed
    for text in ("s_sleep 1", "s_setreg_imm32_b32 hwreg(HW_REG_MODE, 0, 8), 0", "s_sendmsg 0"):
        op = text.split()[0]
        assert StaticGate([op, "s_setprio"]).judge(
            built(session, 0, text), 0).code == "forbidden-opcode", op
