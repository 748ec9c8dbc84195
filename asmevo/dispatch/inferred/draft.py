"""What the code alone tells of a kernel whose launch could not be inferred, as a YAML to finish."""

from __future__ import annotations

from typing import Any

from omegaconf import OmegaConf

from asmevo.codeobject.container import Kernel
from asmevo.dispatch.dispatch import Role
from asmevo.dispatch.inferred.argument import Arguments, PointerArgument
from asmevo.dispatch.inferred.launch import workgroups

_MISSING = "???"
_HEAD = """\
# The launch of this kernel could not be inferred. This is what its code and metadata tell: names,
# offsets, roles (whether an output also reads what it holds is not known) and types. Put in every
# ??? and declare it with oracle=declared.
"""


def draft_text(kernel: Kernel, arguments: Arguments) -> str:
    """The keys of a kernel's YAML, ``???`` where somebody has to say."""
    content: dict[str, Any] = {
        "symbol": kernel.symbol,
        "shapes": [],
        "held_out_shapes": [],
        "launch": {"grid": [_MISSING] * 3, "workgroup": list(workgroups(kernel)[0][0])},
        "buffers": [
            {"name": p.name, "offset": p.offset, "role": _role(p).value,
             "element": p.elements[0].value, "count": _MISSING,
             **({"misdescribed": True} if p.offset in arguments.undescribed else {})}
            for p in arguments.pointers if p.used],
        "scalars": [
            {"name": s.name, "offset": s.offset, "type": s.type, "value": _MISSING}
            for s in arguments.scalars],
    }
    steering = [p.name for p in arguments.pointers if p.steers]
    notes = "".join(f"# The contents of {name} decide addresses or branches.\n"
                    for name in steering)
    notes += "".join(f"# {s.name} is used as: {s.use.value}.\n" for s in arguments.scalars)
    return _HEAD + notes + OmegaConf.to_yaml(OmegaConf.create(content))


def _role(pointer: PointerArgument) -> Role:
    if pointer.atomics:
        return Role.INOUT
    return Role.OUTPUT if pointer.stores else Role.INPUT
