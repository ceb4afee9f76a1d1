"""What is said of options that a kernel or an accelerator does not have, or not so."""

from typing import Literal

import pytest
from pydantic import Field, ValidationError

from stages.support.options.strict_model import StrictModel
from stages.support.options.wrong_option import first_wrong


class Options(StrictModel):
    extension: Literal["none", "tflite"] = "none"
    banks: int = Field(default=4, ge=1)
    sizes: tuple[int, ...] = ()


@pytest.mark.parametrize(
    ("given", "message", "at", "key"),
    [
        ({"extention": "none"}, "unknown key 'extention'; did you mean 'extension'?", ("extention",), True),
        ({"z\x1b": 1}, "unknown key 'z\\x1b'", ("z\x1b",), True),
        ({"extension": "tflit"}, "extension: should be 'none' or 'tflite', is 'tflit'; did you mean 'tflite'?",
         ("extension",), False),
        ({"banks": 0}, "banks: should be greater than or equal to 1, is 0", ("banks",), False),
        ({"banks": [1]}, "banks: should be a valid integer", ("banks",), False),
        ({"sizes": [1, "x"]}, "sizes.1: should be a valid integer, is 'x'", ("sizes", 1), False),
    ],
)  # fmt: skip
def test_the_option_its_value_and_what_may_stand_there(
    given: dict[str, object], message: str, at: tuple[str | int, ...], key: bool
) -> None:
    with pytest.raises(ValidationError) as caught:
        Options.model_validate(given)
    assert first_wrong(caught.value, Options) == (message, at, key)
