"""The processor a code object is built for."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from asmevo.codeobject.errors import CodeObjectError

EM_AMDGPU = 224


class Feature(StrEnum):
    """A target feature's setting, as ELF flags of code object version 4 and later state it."""

    UNSUPPORTED = "unsupported"
    ANY = "any"
    OFF = "off"
    ON = "on"


# LLVM "User Guide for AMDGPU Backend", tables "AMDGPU ELF Header e_flags" for V4/V5 and V6.
_MACHINES = {
    0x2F: "gfx906", 0x30: "gfx908", 0x3F: "gfx90a", 0x40: "gfx940", 0x4B: "gfx941", 0x4C: "gfx942",
    0x4F: "gfx950",
}
_MACHINE_MASK = 0xFF
_XNACK_SHIFT = 8
_SRAMECC_SHIFT = 10
_KNOWN_FLAGS = 0xFFF
_SETTINGS = (Feature.UNSUPPORTED, Feature.ANY, Feature.OFF, Feature.ON)
_SIGNS = {"+": Feature.ON, "-": Feature.OFF}
_TRIPLE = "amdgcn-amd-amdhsa--"
_VERSIONS = {2: 4, 3: 5, 4: 6}


@dataclass(frozen=True, slots=True)
class Target:
    """A processor name and the two features that a code object may fix."""

    isa: str
    xnack: Feature = Feature.ANY
    sramecc: Feature = Feature.ANY

    @classmethod
    def from_flags(cls, flags: int, abi_version: int) -> tuple[Target, int]:
        """The target of ELF ``e_flags`` and the code object version of an ABI version.

        Raises `CodeObjectError` on processors and versions that AsmEvo does not know.
        """
        if abi_version not in _VERSIONS:
            raise CodeObjectError(f"ELF ABI version {abi_version} is not code object version 4, 5 "
                                  "or 6")
        isa = _MACHINES.get(flags & _MACHINE_MASK)
        if isa is None:
            raise CodeObjectError(f"AMDGPU processor {flags & _MACHINE_MASK:#x} is not one of "
                                  f"{', '.join(_MACHINES.values())}")
        if flags & ~_KNOWN_FLAGS:
            raise CodeObjectError(f"unknown bits in the ELF flags {flags:#x}")
        return cls(isa, _SETTINGS[flags >> _XNACK_SHIFT & 3],
                   _SETTINGS[flags >> _SRAMECC_SHIFT & 3]), _VERSIONS[abi_version]

    @classmethod
    def from_id(cls, text: str) -> Target:
        """The target of a target ID, ``gfx942:sramecc+:xnack-``, with or without its triple.

        A feature that is not named is `Feature.ANY` (LLVM "User Guide for AMDGPU Backend",
        "Target ID"). Raises `CodeObjectError` on anything else.
        """
        isa, *named = text.removeprefix(_TRIPLE).split(":")
        if isa not in _MACHINES.values():
            raise CodeObjectError(f"{isa[:40]!r} is not one of the processors "
                                  f"{', '.join(_MACHINES.values())}")
        settings: dict[str, Feature] = {}
        for feature in named:
            name, sign = feature[:-1], feature[-1:]
            if name not in ("sramecc", "xnack") or name in settings or sign not in _SIGNS:
                raise CodeObjectError(f"{text[:80]!r} is not a target ID such as "
                                      "gfx942:sramecc+:xnack-")
            settings[name] = _SIGNS[sign]
        return cls(isa, **settings)

    def runs_on(self, device: Target) -> bool:
        """Whether code for this target may be loaded on a device of that target ID.

        A feature that the code fixes must be set so on the device; what is not known of the device
        may be either. Code that leaves it open runs on both (LLVM, "Target Features").
        """
        return self.isa == device.isa and all(
            needed not in (Feature.ON, Feature.OFF) or needed is has
            for needed, has in ((self.xnack, device.xnack), (self.sramecc, device.sramecc)))

    @property
    def processor(self) -> str:
        """The target ID that compilers take, e.g. ``gfx942:sramecc+:xnack-``."""
        parts = [self.isa]
        for name, setting in (("sramecc", self.sramecc), ("xnack", self.xnack)):
            if setting in (Feature.ON, Feature.OFF):
                parts.append(name + ("+" if setting is Feature.ON else "-"))
        return ":".join(parts)

    @property
    def triple(self) -> str:
        """The argument of the `.amdgcn_target` directive."""
        return f"{_TRIPLE}{self.processor}"
