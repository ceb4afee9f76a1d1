"""Rules for names that users choose and that become paths, C identifiers or shell words.

Every schema uses these types and every command these functions.

    Name          cores, boards, plug-ins, packages, values of a matrix: `cortex-m4`, `mve_base`, `rv64gc`
    RecipeName    names with a folder before them: `layers/conv3x3`
    Identifier    regions of memory, the prefix of emitted C: `dtcm`, `model`
"""

import re
from typing import TYPE_CHECKING, Annotated, Any

from pydantic import AfterValidator, Field

from stages.support.messages import escape
from stages.support.options.strict_model import mistake

LONGEST = 100  # characters: file names with a prefix and a suffix stay below 255 bytes
_LONGEST_IDENTIFIER = 220  # an export joins the names of recipe and variant
_NAME = r"[A-Za-z0-9][A-Za-z0-9_.+-]*"
NAME_PATTERN = f"^{_NAME}$"
RECIPE_PATTERN = f"^{_NAME}(/{_NAME})*$"
IDENTIFIER_PATTERN = "^[a-z][a-z0-9_]*$"
# Description and largest number of characters of each pattern.
_FORMS = {
    NAME_PATTERN: ("ASCII letters, digits, and _ . + - after the first", LONGEST),
    RECIPE_PATTERN: ("ASCII letters, digits, and _ . + - after the first; a / between folder and file", LONGEST),
    IDENTIFIER_PATTERN: ("lower-case ASCII letters, digits and _, a letter first", _LONGEST_IDENTIFIER),
}


def invalid_name(text: object, pattern: str = NAME_PATTERN) -> str:
    """Return why the text is not a valid name for this pattern; '' if it is."""
    form, limit = _FORMS[pattern]
    if isinstance(text, str) and re.fullmatch(pattern, text) and len(text) <= limit:
        return ""
    return f"{escape.quoted(str(text))} cannot be a name; allowed are {form}; {limit} characters at most"


def as_name(text: str) -> str:
    """Return a valid `Name` similar to any text; '' if no character of it is allowed.

    It leaves 10 characters for a number at the end.
    """
    return re.sub(r"[^A-Za-z0-9_.+-]+", "_", text).lstrip("_.+-")[: LONGEST - 10].rstrip("_.-")


def _checked(pattern: str, text: str) -> str:
    """Return the text. Raises an error of `mistake` if it does not match the pattern."""
    if wrong := invalid_name(text, pattern):
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
    # Names are also keys of mappings, where a pattern would change the schema.
    Name = _type(NAME_PATTERN, in_schema=False)
    RecipeName = _type(RECIPE_PATTERN)
    Identifier = _type(IDENTIFIER_PATTERN)
