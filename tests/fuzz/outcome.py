"""What became of a mutant, and what is wrong with a message.

A mutant either runs, and then its outputs are LiteRT's, or is refused with a message a user can act on. Everything
else is a fault; FAULTS has the classes, worst first.
"""

import re
from dataclasses import dataclass, field

FAULTS = (
    "wrong output",
    "crash",
    "hang",
    "too much memory",
    "half artifact",
    "temporary files left",
    "traceback",
    "unexpected",
    "somebody else's words",
    "Python warning",
    "stray output",
    "raw control characters",
    "more than five lines",
    "long line",
    "empty message",
    "names no place",
    "success reported",
)
_LONGEST_LINE = 1000  # the list of supported operators is the longest there is
# What libraries say of their own insides, which tells a user nothing.
_FOREIGN = re.compile(
    r"TVM's front end: |\b(?:Assertion|Attribute|Index|Key|Name|Runtime|Type|Unicode\w+|Value|Zero\w+)Error\b|"
    r"Check failed|list index out of range|not enough values|too many values|object has no attribute|NoneType|"
    r"cannot reshape array|\(parsing options: |could not broadcast"
)


@dataclass(frozen=True)
class Outcome:
    """`verdict` is what happened in two or three words; `message` what the user reads; `faults` what is wrong."""

    verdict: str
    message: str = ""
    faults: tuple[str, ...] = field(default=())


def message_faults(message: str, place: re.Pattern[str]) -> tuple[str, ...]:
    """Faults of what a user reads when something is refused; `place` finds where it says what it is about."""
    lines = message.rstrip("\n").split("\n")
    found = {
        "empty message": not message.strip(),
        "traceback": "Traceback (most recent call last)" in message,
        "unexpected": re.search(r"\bunexpected [A-Z]\w+:", message) is not None,
        "somebody else's words": _FOREIGN.search(message) is not None,
        "raw control characters": has_control_characters(message),
        "more than five lines": len(lines) > 5,
        "long line": any(len(line) > _LONGEST_LINE for line in lines),
        "names no place": bool(message.strip()) and place.search(message) is None,
    }
    return tuple(name for name, is_so in found.items() if is_so)


def has_control_characters(text: str) -> bool:
    """Whether a text for people has characters that a terminal obeys, or that nobody sees."""
    return any(not (letter.isprintable() or letter in "\n\t ") for letter in text)
