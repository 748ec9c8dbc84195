"""Edits as a model gives them: JSON that may be anything, checked before it becomes a proposal."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

from asmevo.codeobject.assembly import Edit, label_of
from asmevo.errors import AsmEvoError
from asmevo.isa.parse import parse
from asmevo.isa.resources import register_use
from asmevo.propose.agent.untrusted import line
from asmevo.propose.preview import Preview
from asmevo.propose.proposal import Direction, Evidence
from asmevo.propose.repair import repair
from asmevo.propose.rule import RuleContext

_MOST_EDITS = 512
_MOST_LINES = 8192
_MOST_PROBLEMS = 12
_FIELDS = frozenset({"edits", "rationale", "direction", "assumption", "place_waits"})
_EDIT_FIELDS = frozenset({"start", "stop", "lines"})


@dataclass(frozen=True, slots=True)
class Submission:
    """Well-formed edits. ``note`` tells the model what was done to them."""

    edits: tuple[Edit, ...]
    rationale: str
    direction: Direction
    assumption: str = ""
    note: str = ""


@dataclass(frozen=True, slots=True)
class Malformed:
    """What a model submitted is refused for these problems.

    ``edits`` are those of it that can be represented, empty when it is no list of edits at all.
    """

    problems: tuple[str, ...]
    edits: tuple[Edit, ...] = ()

    @property
    def sentence(self) -> str:
        more = len(self.problems) - 1
        return self.problems[0] + (f" (and {more} more problems)" if more else "")


class Reader:
    """Reads the input of ``submit_edits`` and ``check_edits`` against one base."""

    def __init__(self, context: RuleContext) -> None:
        self._context = context
        self._evidence: Evidence = context.evidence
        self._labels = frozenset(context.program.labels.values())

    def submission(self, given: object) -> Submission | Malformed:
        """A submission, or everything that is wrong with it."""
        problems: list[str] = []
        fields = self._fields(given, problems)
        edits = self._edits(fields.get("edits"), problems)
        rationale = _text(fields, "rationale", problems, required=True)
        assumption = _text(fields, "assumption", problems)
        direction = self._direction(fields.get("direction"), problems)
        place = self._place(fields, problems)
        if problems or direction is None:
            return Malformed(tuple(problems[:_MOST_PROBLEMS]), edits)
        note = ""
        if place:
            edits, note = self._placed(edits)
        return Submission(edits, rationale, direction, assumption, note)

    def check(self, given: object) -> str:
        """What can be said of edits without building them."""
        problems: list[str] = []
        fields = self._fields(given, problems)
        edits = self._edits(fields.get("edits"), problems)
        place = self._place(fields, problems)
        if problems:
            return "not well-formed:\n" + "\n".join(problems[:_MOST_PROBLEMS])
        note = ""
        if place:
            edits, note = self._placed(edits)
        try:
            preview = self._context.preview.apply(edits)
            lacking = [*self._context.new_missing(preview), *self._context.new_hazards(preview)]
            used = register_use(preview.program)
        except AsmEvoError as error:
            return f"well-formed, but it cannot be looked at on paper: {line(str(error))}"
        before = register_use(self._context.program)
        out = [note] if note else []
        out.append(f"well-formed; {len(preview.lines)} instructions instead of "
                   f"{len(self._evidence.lines)}")
        out.append("VGPRs, AGPRs, SGPRs used: {}, {}, {} (before: {}, {}, {})".format(
            *used, *before))
        out += [
            f"lacks {v.kind}: '{line(v.producer_text)}' at {v.producer} and "
            f"'{line(v.consumer_text)}' at {v.consumer} (indices after the edits) need "
            f"{v.needed}, have {v.found}"
            for v in lacking[:_MOST_PROBLEMS]
        ]
        if not lacking:
            out.append("no wait and no wait state is missing that the base has")
        return "\n".join(out)

    def _fields(self, given: object, problems: list[str]) -> dict[str, object]:
        if not isinstance(given, dict):
            problems.append("the input is not an object")
            return {}
        problems += [f"unknown field '{line(str(name), 60)}'" for name in set(given) - _FIELDS]
        return given

    def _edits(self, given: object, problems: list[str]) -> tuple[Edit, ...]:
        """The edits, with every problem; those that are no edits are left out."""
        if not isinstance(given, list) or not given:
            problems.append("'edits' must be a list of at least one edit")
            return ()
        if len(given) > _MOST_EDITS:
            problems.append(f"at most {_MOST_EDITS} edits at a time, not {len(given)}")
            return ()
        found: list[Edit] = []
        wrong: list[str] = []
        for number, entry in enumerate(given):
            edit = self._edit(number, entry, wrong)
            if edit is not None:
                found.append(edit)
        if sum(len(e.lines) for e in found) > _MOST_LINES:
            problems.append(f"at most {_MOST_LINES} instructions at a time")
            return ()
        edits = tuple(found)
        if not wrong:
            self._check_together(edits, wrong)
        problems += wrong
        return edits

    def _edit(self, number: int, entry: object, problems: list[str]) -> Edit | None:
        where = f"edit {number}"
        if not isinstance(entry, dict) or not set(entry) <= _EDIT_FIELDS:
            problems.append(f"{where} must be an object with start, stop and lines")
            return None
        start, stop, lines = entry.get("start"), entry.get("stop"), entry.get("lines")
        if not _whole(start) or not _whole(stop):
            problems.append(f"{where}: start and stop must be whole numbers")
            return None
        if not isinstance(lines, list) or not all(isinstance(text, str) for text in lines):
            problems.append(f"{where}: lines must be a list of instruction texts")
            return None
        assert isinstance(start, int)
        assert isinstance(stop, int)
        count = len(self._evidence.program)
        if not 0 <= start <= stop <= count:
            problems.append(f"{where}: 0 <= start <= stop <= {count} does not hold for "
                            f"{start} and {stop}")
        for place, text in enumerate(lines):
            if label_of(text) is None and (problem := self._instruction(text)) is not None:
                problems.append(f"{where}, line {place}: {problem}")
        return Edit(self._evidence.kernel, start, stop, tuple(lines), "agent")

    def _instruction(self, text: str) -> str | None:
        """Why a line may not stand in a kernel; ``None`` when it may."""
        if not text.isascii() or not text.isprintable() or not text.strip():
            return "a line is one instruction in printable ASCII characters"
        if text.lstrip().startswith("."):
            return f"'{line(text, 80)}' is a directive, not an instruction"
        try:
            parse(text)
        except AsmEvoError as error:
            return f"'{line(text, 80)}': {line(str(error))}"
        return None

    def _check_together(self, edits: Sequence[Edit], problems: list[str]) -> None:
        ordered = sorted(edits, key=lambda e: (e.start, e.stop))
        for first, second in pairwise(ordered):
            if second.start < first.stop or (first.start, first.stop) == (
                    second.start, second.stop):
                problems.append(
                    f"the edits of {first.start} to {first.stop} and of {second.start} to "
                    f"{second.stop} overlap")
        texts = [text for edit in edits for text in edit.lines]
        new = [name for text in texts if (name := label_of(text)) is not None]
        for name in new:
            if name in self._labels or new.count(name) > 1:
                problems.append(f"the label '{line(name, 80)}' is there already")
        for text in texts:
            if (label_of(text) is None and parse(text).is_branch
                    and text.split()[-1] not in self._labels.union(new)):
                problems.append(f"'{line(text, 80)}' does not go to a label of the kernel or one "
                                "that the edits bring in")
        lines = self._evidence.lines
        if not problems and all(lines[e.start:e.stop] == e.lines for e in edits):
            problems.append("the edits change nothing")

    def _direction(self, given: object, problems: list[str]) -> Direction | None:
        wanted = self._evidence.directions or tuple(Direction)
        for direction in wanted:
            if given == direction.value:
                return direction
        problems.append("'direction' must be one of "
                        + ", ".join(d.value for d in wanted) + " in this assignment")
        return None

    def _place(self, fields: dict[str, object], problems: list[str]) -> bool:
        place = fields.get("place_waits", False)
        if not isinstance(place, bool):
            problems.append("'place_waits' must be true or false")
            return False
        return place

    def _placed(self, edits: tuple[Edit, ...]) -> tuple[tuple[Edit, ...], str]:
        """The edits with the waits and wait states that they need."""
        try:
            preview = self._context.preview.apply(edits)
            mended: Preview = repair(self._context, preview)
        except AsmEvoError as error:
            return edits, f"waits were not placed: {line(str(error))}"
        if mended.lines == preview.lines:
            return edits, "no wait had to be placed"
        return mended.edits("agent"), "waits were placed where your order needs them"


def _whole(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _text(
    fields: dict[str, object], name: str, problems: list[str], *, required: bool = False
) -> str:
    value = fields.get(name, "")
    if not isinstance(value, str):
        problems.append(f"'{name}' must be text")
        return ""
    if required and not value.strip():
        problems.append(f"'{name}' must not be empty")
    return line(value, 600)
