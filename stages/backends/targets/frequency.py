"""Clock frequencies in YAML: Hz, or a number with a unit, such as 180M."""

from typing import Annotated

from pydantic import BeforeValidator, Field

_UNIT = {"k": 1_000, "M": 1_000_000, "G": 1_000_000_000}


def parse_frequency(value: object) -> object:
    """Return Hz for an integer or for a string such as `180M` (decimal: 180 MHz)."""
    if not isinstance(value, str):
        return value
    number, unit = (value[:-1], _UNIT[value[-1]]) if value[-1:] in _UNIT else (value, 1)
    try:
        hertz = float(number) * unit
    except ValueError:
        hertz = -1.0
    if hertz != hertz // 1 or not 0 < hertz < 1e12:
        raise ValueError("a clock is a number of Hz, or a number with k, M or G, such as 180M")
    return int(hertz)


Frequency = Annotated[int, BeforeValidator(parse_frequency), Field(gt=0)]
