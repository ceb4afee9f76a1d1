"""`drawn=200 seed=7`: how many layers a command draws, and which."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from random import randrange

from pipeline.errors import PipelineError
from stages.messages import escape

_MOST = 2_000


@dataclass(frozen=True)
class Draw:
    """So many layers (`stages.bench.drawn`), asked for by `way`; without a seed others each time."""

    way: str
    count: int
    seed: int

    @classmethod
    def of(cls, given: Mapping[str, str], way: str = "drawn") -> Draw:
        """Raises PipelineError for what is no number."""
        count = _number(way, given[way], _MOST)
        return cls(way, count, _number("seed", given["seed"], 2**31) if "seed" in given else randrange(1, 2**31))

    def __str__(self) -> str:
        return f"{self.way}={self.count} seed={self.seed}"


def _number(name: str, text: str, most: int) -> int:
    if not text.isascii() or not text.isdigit() or not 1 <= int(text) <= most:
        raise PipelineError(f"{name}={escape.name(text)}: should be a number from 1 to {most:,}")
    return int(text)
