"""Data movement by words, with transpositions by the instructions of P."""

from __future__ import annotations

from typing import ClassVar

from stages.backends.kernels.word_copies import WordConcatenation, WordMove


class Move(WordMove):
    """Slices, transposes and the like are one copy; a pad fills what is around it; a resize copies pixels, or rows."""

    name = "rvp.move"
    estimate_error = 1.25
    prefix: ClassVar[str] = "rvp"
    block: ClassVar[float] = 41.0


class Concatenation(WordConcatenation):
    """One copy for each input."""

    name = "rvp.concatenation"
    estimate_error = 1.25
    prefix: ClassVar[str] = "rvp"
    block: ClassVar[float] = 41.0
