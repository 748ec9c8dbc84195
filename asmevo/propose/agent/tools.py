"""The tools a model has: eight to look, one to try an edit on paper, one to submit edits.

There is none to run, time, verify or accept anything: those decisions are not a proposer's.
"""

from __future__ import annotations

from typing import Any

from asmevo.propose.proposal import Direction

SUBMIT = "submit_edits"
CHECK = "check_edits"

_RANGE: dict[str, Any] = {
    "type": "object",
    "properties": {
        "start": {"type": "integer", "description": "index of the first instruction"},
        "stop": {"type": "integer", "description": "index behind the last instruction"},
    },
    "required": ["start", "stop"],
    "additionalProperties": False,
}
_NOTHING: dict[str, Any] = {"type": "object", "properties": {}, "additionalProperties": False}
_EDITS: dict[str, Any] = {
    "type": "array",
    "description": "Edits of the base, all applied together. Indices are those of the base; edits "
                   "may not overlap.",
    "items": {
        "type": "object",
        "properties": {
            "start": {"type": "integer", "description": "index of the first instruction replaced"},
            "stop": {"type": "integer",
                     "description": "index behind the last one replaced; start == stop inserts in "
                                    "front of start"},
            "lines": {"type": "array", "items": {"type": "string"},
                      "description": "the instructions that stand there instead, one each, "
                                     "without comments; a line like .L_new: is a new label for "
                                     "what follows it; [] deletes"},
        },
        "required": ["start", "stop", "lines"],
        "additionalProperties": False,
    },
}
_PLACE: dict[str, Any] = {
    "type": "boolean",
    "description": "Have the s_waitcnt and s_nop that the new order needs put in (and existing "
                   "counts lowered) for you. Leave it out or false to submit exactly your lines.",
}

TOOLS: tuple[dict[str, Any], ...] = (
    {"name": "overview", "input_schema": _NOTHING,
     "description": "The kernel as a whole: processor, size, registers and the waves they allow, "
                    "loops, timed dispatches, stalled cycles by cause."},
    {"name": "list_windows", "input_schema": _NOTHING,
     "description": "The hot windows, worst first: their instructions, share of all stalled "
                    "cycles, causes, what a perfect schedule could recover, trip counts and "
                    "pressure."},
    {"name": "read_instructions", "input_schema": _RANGE,
     "description": "Instructions start to stop (exclusive, at most 256) with their labels, how "
                    "often each was issued and how long it stalled."},
    {"name": "hottest_instructions",
     "input_schema": {
         "type": "object",
         "properties": {"count": {"type": "integer", "description": "how many, 1 to 256"}},
         "required": ["count"], "additionalProperties": False},
     "description": "Profile lines of the instructions that stall longest, anywhere."},
    {"name": "dependences", "input_schema": _RANGE,
     "description": "Dependences (raw, war, waw, memory, fence, wait) and hazard pairs between the "
                    "instructions of one basic block."},
    {"name": "registers", "input_schema": _RANGE,
     "description": "Registers live before and behind a range, and those free throughout it."},
    {"name": "history", "input_schema": _NOTHING,
     "description": "What this run has learnt: insights, what each proposer and rule has achieved, "
                    "and the latest rejected proposals with their reasons."},
    {"name": CHECK,
     "input_schema": {
         "type": "object", "properties": {"edits": _EDITS, "place_waits": _PLACE},
         "required": ["edits"], "additionalProperties": False},
     "description": "Look at edits without submitting them: whether they are well-formed, which "
                    "waits or wait states they lack, and the registers used afterwards. Costs no "
                    "attempt and says nothing about results or speed."},
    {"name": SUBMIT,
     "input_schema": {
         "type": "object",
         "properties": {
             "edits": _EDITS,
             "rationale": {"type": "string",
                           "description": "why this should be faster and still correct, in one or "
                                          "two sentences"},
             "direction": {"type": "string", "enum": [d.value for d in Direction]},
             "assumption": {"type": "string",
                            "description": "what you take for granted without proof; empty when "
                                           "nothing"},
             "place_waits": _PLACE,
         },
         "required": ["edits", "rationale", "direction"], "additionalProperties": False},
     "description": "Submit edits. They are built, checked, run and timed as one candidate; the "
                    "answer says which gate stopped it and why, or its speedup over the original. "
                    "Counts as an attempt, also when the edits are malformed."},
)
