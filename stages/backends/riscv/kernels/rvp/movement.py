"""Data movement in words, with transposes by P instructions."""

from typing import ClassVar

from stages.backends.kernels.word_copies import WordConcatenation, WordCopies, WordMove, WordSlide, WordVariable


class _Words(WordCopies):
    """Base of the kernels that copy data with functions of copies.c."""

    row_alignment = 1
    estimate_error = 2.0
    prefix: ClassVar[str] = "rvp"


class Move(_Words, WordMove):
    """Slices and transposes as a copy, pads as fill and copy, resizes as many copies."""

    name = "rvp.move"


class Concatenation(_Words, WordConcatenation):
    """Concatenation as one copy per input."""

    name = "rvp.concatenation"


class Slide(_Words, WordSlide):
    """Rows of a window moved within its state."""

    name = "rvp.slide"


class Variable(_Words, WordVariable):
    """A whole state, read or written."""

    name = "rvp.variable"
