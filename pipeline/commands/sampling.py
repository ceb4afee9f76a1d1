"""The arguments `drawn=200 seed=7`: how many random layers a command samples, and which."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from random import randrange

from pipeline.errors import PipelineError
from stages.support.messages import escape

_MOST = 2_000


@dataclass(frozen=True)
class Sampling:
    """Number of random layers and their seed; `option` is the argument that gave the number."""

    option: str
    count: int
    seed: int

    @classmethod
    def of(cls, values: Mapping[str, str], option: str = "drawn") -> Sampling:
        """Parse the arguments; without a seed, choose a random one. Raises PipelineError."""
        count = _number(option, values[option], _MOST)
        return cls(option, count, _number("seed", values["seed"], 2**31) if "seed" in values else randrange(1, 2**31))

    def __str__(self) -> str:
        return f"{self.option}={self.count} seed={self.seed}"


def _number(name: str, text: str, most: int) -> int:
    if not text.isascii() or not text.isdigit() or not 1 <= int(text) <= most:
        raise PipelineError(f"{name}={escape.name(text)}: expected a number from 1 to {most:,}")
    return int(text)
