"""A published program: its files, and C that runs one row of silicon.yaml."""

import re
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from stages.backends.timing.silicon import Measurement
from stages.base import StageError

_LEVEL, _OPTION = re.compile(r"(?<!\S)-O\w+"), re.compile(r"(?<!\S)-f(?!function-sections|data-sections)[\w-]+")


class NotInCheckout(StageError):
    """A checkout lacks a file of a row: another version or a port has it."""


@dataclass(frozen=True)
class Program:
    """Files and flags of a row.

    sources  C files
    include  folders of their headers
    flags    of the compiler, for all files
    main     C that defines `prepare`, which is not counted, and `run`, which returns 0 on success; OUTPUT and
             OUTPUT_BYTES, an array with the result. It may call `fill`, which writes random bytes, and define
             CHECK(), which is 0 if the result is right
    compiler that of the row, as text (stages/delivery/bench/silicon/compilers.py)
    files    further C files and headers, by name; their folder is searched for headers first
    """

    sources: tuple[Path, ...]
    include: tuple[Path, ...]
    flags: tuple[str, ...]
    main: str
    files: dict[str, str] = field(default_factory=dict)
    compiler: str = ""


@dataclass(frozen=True)
class PublishedCode:
    """A program that runs rows.

    header    glob of a file that every checkout has
    families  architecture families that it supports
    program   returns the program of a row from a checkout; raises StageError for missing files
    """

    header: str
    families: tuple[str, ...]
    program: Callable[[Measurement, Path], Program]


def flags_of(compiler: str) -> tuple[str, ...]:
    """Return the optimization in a row's `compiler` as flags; -O2 if there is none.

    Sections are always separate.
    """
    levels = _LEVEL.findall(compiler)
    return (levels[-1] if levels else "-O2", *_OPTION.findall(compiler))
