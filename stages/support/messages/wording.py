"""Pieces of sentences: many things in few words, and what a misspelt word may mean."""

from __future__ import annotations

import difflib
import math
import re
import textwrap
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from stages.support.messages.escape import LINE_LIMIT

SHOWN = 3
# Longer ones are no misspelt word, and cost seconds to compare.
_LONGEST_WORD = 100


def as_yaml(value: Any) -> str:
    """Return a value as a recipe has it: `false`, `null`, `.inf`, `'text'`, `[1, 2]`, `{a: 1}`."""
    if value is None or isinstance(value, bool):
        return "null" if value is None else str(value).lower()
    if isinstance(value, float) and not math.isfinite(value):
        return ".nan" if value != value else ".inf" if value > 0 else "-.inf"
    if isinstance(value, Mapping):
        return f"{{{', '.join(f'{key}: {as_yaml(one)}' for key, one in value.items())}}}"
    if isinstance(value, list | tuple):
        return f"[{', '.join(map(as_yaml, value))}]"
    return repr(value)


def in_yaml_words(text: str) -> str:
    """Return a sentence of pydantic's with `true`, `false` and `null` in place of Python's names for them."""
    names = {"True": "true", "False": "false", "None": "null"}
    return re.sub(r"(?<!['\w])(True|False|None)(?!['\w])", lambda found: names[found[0]], text)


def did_you_mean(word: str, known: Iterable[str]) -> str:
    """`; did you mean 'layout'?`, or '' when nothing known is near `word`."""
    near = nearest(word, known)
    return f"; did you mean '{near}'?" if near else ""


def nearest(word: str, known: Iterable[str]) -> str:
    """What a misspelt word may mean, '' when nothing known is near it."""
    alike = {name.lower(): name for name in reversed([*known])}
    near = difflib.get_close_matches(word[:_LONGEST_WORD].lower(), alike, n=1, cutoff=0.6)
    return alike[near[0]] if near else ""


def all_known(names: Iterable[str]) -> str:
    """`Known: a, b, c`, in lines short enough to be shown whole."""
    return in_lines(f"Known: {', '.join(names)}")


def in_lines(text: str) -> str:
    """Words in lines short enough to be shown whole."""
    return textwrap.fill(text, LINE_LIMIT, break_long_words=False, break_on_hyphens=False)


def several(names: Sequence[str], shown: int = SHOWN) -> str:
    """`a, b, c and 116 more`: the first `shown` names and how many are left; all of them when only one would be."""
    if len(names) <= shown + 1:
        return ", ".join(names)
    return f"{', '.join(names[:shown])} and {len(names) - shown} more"


def of_several(what: str, which: Sequence[str]) -> str:
    """`layer 3`, `layers 3, 5`, `119 layers (3, 5, 9 and 116 more)`."""
    listed = several(which)
    if len(which) == 1:
        return f"{what} {listed}"
    return f"{what}s {listed}" if len(which) <= SHOWN + 1 else f"{len(which)} {what}s ({listed})"
