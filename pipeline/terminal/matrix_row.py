"""Result of one variant of a matrix."""

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True)
class MatrixRow:
    """The result of a variant.

    `axes` maps each axis to the name of its value; RAM and ROM in bytes.
    `error` is the message of a failure, else ''. Figures are None for a failed variant, and if the target cannot
    measure them.
    """

    name: str
    target: str
    axes: Mapping[str, str]
    verdict: str
    instructions: int | None = None
    ram_bytes: int | None = None
    rom_bytes: int | None = None
    error: str = ""
