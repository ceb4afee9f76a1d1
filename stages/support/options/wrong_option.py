"""The first error of pydantic about options of a kernel or an accelerator, as a message."""

from typing import NamedTuple

from pydantic import BaseModel, ValidationError

from stages.support.messages import escape
from stages.support.messages.wording import as_yaml, did_you_mean, in_yaml_words


class WrongOption(NamedTuple):
    """Message, path of the option in the model, and whether its name is wrong."""

    message: str
    at: tuple[str | int, ...]
    key: bool


def first_wrong(error: ValidationError, model: type[BaseModel]) -> WrongOption:
    """Return the first error: `unknown key 'x'`, or `x: should be …, is …`."""
    first = error.errors()[0]
    at = first["loc"]
    where, value = ".".join(escape.name(str(part)) for part in at), first["input"]
    if first["type"] == "extra_forbidden":
        known = model.model_fields if len(at) == 1 else ()
        return WrongOption(f"unknown key '{where}'{did_you_mean(str(at[-1]), known)}", at, key=True)
    text = in_yaml_words(first["msg"].removeprefix("Value error, ").removeprefix("Input "))
    if not isinstance(value, str | int | float):
        return WrongOption(f"{where}: {text}", at, key=False)
    choices = first.get("ctx", {}).get("expected", "").replace(" or ", ", ").split(", ")
    guess = did_you_mean(value, [choice.strip("'") for choice in choices]) if isinstance(value, str) else ""
    return WrongOption(f"{where}: {text}, is {escape.name(as_yaml(value))}{guess}", at, key=False)
