"""The rule for names that users give: what becomes a path, a C identifier, a shell word or a value of a workflow.

Every schema uses these types, and every command these functions. Nothing else decides what a name may be.

    Name          cores, boards, plug-ins, packages, values of a matrix: `cortex-m4`, `mve_base`, `rv64gc`
    RecipeName    names with a folder before them: `layers/conv3x3`
    Identifier    regions of memory, the prefix of emitted C: `dtcm`, `model`
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Annotated, Any

from pydantic import AfterValidator, Field

from stages.support.messages import escape
from stages.support.options.strict_model import mistake

LONGEST = 100  # characters: a file's name with something around it stays below 255 bytes
_LONGEST_IDENTIFIER = 220  # an export's is made of the names of a recipe and a variant
_NAME = r"[A-Za-z0-9][A-Za-z0-9_.+-]*"
NAME_PATTERN = f"^{_NAME}$"
RECIPE_PATTERN = f"^{_NAME}(/{_NAME})*$"
IDENTIFIER_PATTERN = "^[a-z][a-z0-9_]*$"
# What each pattern means, and how many characters it may have.
_FORMS = {
    NAME_PATTERN: ("ASCII letters, digits, and _ . + - after the first", LONGEST),
    RECIPE_PATTERN: ("ASCII letters, digits, and _ . + - after the first; a / between folder and file", LONGEST),
    IDENTIFIER_PATTERN: ("lower-case ASCII letters, digits and _, a letter first", _LONGEST_IDENTIFIER),
}


def why_not(text: object, pattern: str = NAME_PATTERN) -> str:
    """Return why the text cannot be a name of this pattern, with what is allowed; '' if it can."""
    form, limit = _FORMS[pattern]
    if isinstance(text, str) and re.fullmatch(pattern, text) and len(text) <= limit:
        return ""
    return f"{escape.quoted(str(text))} cannot be a name; allowed are {form}; {limit} characters at most"


def as_name(text: str) -> str:
    """Return a `Name` that resembles the text, which may be any; '' if nothing of it can stay.

    It leaves room for a number after it.
    """
    return re.sub(r"[^A-Za-z0-9_.+-]+", "_", text).lstrip("_.+-")[: LONGEST - 10].rstrip("_.-")


def _checked(pattern: str, text: str) -> str:
    """Return the text. Raises what `mistake` makes for one that does not fit."""
    if wrong := why_not(text, pattern):
        raise mistake(wrong)
    return text


def _type(pattern: str, *, in_schema: bool = True) -> Any:
    extra: Any = {"pattern": pattern, "maxLength": _FORMS[pattern][1]} if in_schema else None
    return Annotated[str, AfterValidator(lambda text: _checked(pattern, text)), Field(json_schema_extra=extra)]


if TYPE_CHECKING:
    Name = str
    RecipeName = str
    Identifier = str
else:
    # Keys of mappings too, for which a pattern would change the form of the schema.
    Name = _type(NAME_PATTERN, in_schema=False)
    RecipeName = _type(RECIPE_PATTERN)
    Identifier = _type(IDENTIFIER_PATTERN)
