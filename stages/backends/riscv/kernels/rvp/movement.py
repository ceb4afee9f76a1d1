"""Data movement in words, with transposes by P instructions."""

from __future__ import annotations

from typing import ClassVar

from stages.backends.kernels.word_copies import WordConcatenation, WordMove, WordSlide, WordVariable


class Move(WordMove):
    """Slices and transposes as one copy, pads as a fill and a copy, resizes as copies of pixels or rows."""

    name = "rvp.move"
    row_alignment = 1
    estimate_error = 1.25
    prefix: ClassVar[str] = "rvp"
    block: ClassVar[float] = 41.0


class Concatenation(WordConcatenation):
    """Concatenation as one copy per input."""

    name = "rvp.concatenation"
    row_alignment = 1
    estimate_error = 1.25
    prefix: ClassVar[str] = "rvp"
    block: ClassVar[float] = 41.0


class Slide(WordSlide):
    """Rows of a window moved within its state."""

    name = "rvp.slide"
    row_alignment = 1
    estimate_error = 1.25
    prefix: ClassVar[str] = "rvp"
    block: ClassVar[float] = 41.0


class Variable(WordVariable):
    """A whole state, read or written."""

    name = "rvp.variable"
    row_alignment = 1
    estimate_error = 1.25
    prefix: ClassVar[str] = "rvp"
    block: ClassVar[float] = 41.0
