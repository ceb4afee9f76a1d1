"""Data movement by words."""

from __future__ import annotations

from typing import ClassVar

from stages.backends.kernels.word_copies import WordConcatenation, WordMove


class Move(WordMove):
    """Slices, transposes and the like are one copy; a pad fills what is around it; a resize copies pixels, or rows."""

    name = "riscv.move"
    estimate_error = 1.25
    prefix: ClassVar[str] = "riscv"
    block: ClassVar[float] = 53.0


class Concatenation(WordConcatenation):
    """One copy for each input."""

    name = "riscv.concatenation"
    estimate_error = 1.25
    prefix: ClassVar[str] = "riscv"
    block: ClassVar[float] = 53.0
