"""Whether launches vary enough for an argument or an axis built into code to be noticed."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from asmevo.dispatch.inferred.argument import Arguments, ScalarArgument, Use
from asmevo.dispatch.inferred.inference_error import InferenceError
from asmevo.dispatch.inferred.launch import AXES
from asmevo.dispatch.inferred.probing import Launched


def constant_scalars(arguments: Arguments, launches: Sequence[Launched]) -> list[ScalarArgument]:
    """Bounds and strides that are the same in all launches."""
    return [scalar for scalar in arguments.scalars if scalar.use in (Use.BOUND, Use.STRIDE)
            and len({launch.scalars[scalar.name] for launch in launches}) == 1]


def others(value: int | float) -> tuple[int, ...]:
    """Other values to try of a scalar for which only one is known to work."""
    known = int(value)
    return tuple(v for v in (known - 1, known + 1, 2 * known, known // 2, 4 * known) if v > 0)


def monotony(arguments: Arguments, launches: Sequence[Launched]) -> InferenceError | None:
    """What is the same in all launches though the code would do something else with another.

    A candidate with a row length built in, or without its second axis, would pass them all.
    """
    for scalar in constant_scalars(arguments, launches):
        return InferenceError(
            f"'{scalar.name}', a {scalar.use.value}, is {launches[0].scalars[scalar.name]} in "
            f"every launch that works, {_launches(launches)}",
            ["launch.workgroup", "scalars[].value", "shapes"])
    for axis in sorted(arguments.workgroup_axes):
        if all(launch.grid[axis] == 1 for launch in launches):
            return InferenceError(
                f"the code uses the workgroup's {AXES[axis]}, but every launch that works has one "
                f"workgroup along it, {_launches(launches)}",
                ["launch.grid", "launch.workgroup", "scalars[].value", "shapes"])
    return None


def _launches(launches: Iterable[Launched]) -> str:
    workgroups = {" x ".join(map(str, launch.workgroup)) for launch in launches}
    return f"with workgroups of {', '.join(sorted(workgroups))}"
