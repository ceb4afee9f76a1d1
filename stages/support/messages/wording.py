"""Parts of sentences: lists in few words, and suggestions for misspelt words."""

import difflib
import math
import re
import textwrap
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from stages.support.messages.escape import LINE_LIMIT

SHOWN = 3
# Longer texts are not misspelt words, and take seconds to compare.
_LONGEST_WORD = 100


def as_yaml(value: Any) -> str:
    """Return a value as YAML: `false`, `null`, `.inf`, `'text'`, `[1, 2]`, `{a: 1}`."""
    if value is None or isinstance(value, bool):
        return "null" if value is None else str(value).lower()
    if isinstance(value, float) and not math.isfinite(value):
        return ".nan" if value != value else ".inf" if value > 0 else "-.inf"
    if isinstance(value, Mapping):
        return f"{{{', '.join(f'{key}: {as_yaml(item)}' for key, item in value.items())}}}"
    if isinstance(value, list | tuple):
        return f"[{', '.join(map(as_yaml, value))}]"
    return repr(value)


def in_yaml_words(text: str) -> str:
    """Return a message of pydantic with `true`, `false` and `null` for Python's names."""
    names = {"True": "true", "False": "false", "None": "null"}
    return re.sub(r"(?<!['\w])(True|False|None)(?!['\w])", lambda match: names[match[0]], text)


def did_you_mean(word: str, known: Iterable[str]) -> str:
    """Return `; did you mean 'layout'?`, or '' if no known word is similar."""
    near = nearest(word, known)
    return f"; did you mean '{near}'?" if near else ""


def nearest(word: str, known: Iterable[str]) -> str:
    """Return the known word that is most similar to `word`, '' if none is."""
    alike = {name.lower(): name for name in reversed([*known])}
    near = difflib.get_close_matches(word[:_LONGEST_WORD].lower(), alike, n=1, cutoff=0.6)
    return alike[near[0]] if near else ""


def all_known(names: Iterable[str]) -> str:
    """Return `Known: a, b, c` in lines that fit a message."""
    return in_lines(f"Known: {', '.join(names)}")


def in_lines(text: str) -> str:
    """Return the text in lines that fit a message."""
    return textwrap.fill(text, LINE_LIMIT, break_long_words=False, break_on_hyphens=False)


def several(names: Sequence[str], shown: int = SHOWN) -> str:
    """Return `a, b, c and 116 more`: the first `shown` names.

    All of them if only one would be left out.
    """
    if len(names) <= shown + 1:
        return ", ".join(names)
    return f"{', '.join(names[:shown])} and {len(names) - shown} more"


def of_several(what: str, which: Sequence[str]) -> str:
    """Return `layer 3`, `layers 3, 5`, or `119 layers (3, 5, 9 and 116 more)`."""
    listed = several(which)
    if len(which) == 1:
        return f"{what} {listed}"
    return f"{what}s {listed}" if len(which) <= SHOWN + 1 else f"{len(which)} {what}s ({listed})"
