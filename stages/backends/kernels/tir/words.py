"""Values packed in an int32 word, in TIR."""

from typing import Any

from stages.support.lazy import T

Expr = Any  # a TIR expression or a Python int


def byte(word: Expr, number: Expr) -> Expr:
    """Return a byte of an int32 as a signed value. Byte 0 is the lowest."""
    return T.bitwise_xor(T.bitwise_and(T.shift_right(word, number * 8), 255), 128) - 128


def half_word(word: Expr, number: int) -> Expr:
    """Return the lower (0) or upper (1) half of an int32 as a signed value."""
    return T.shift_right(word, 16) if number else T.shift_right(T.shift_left(word, 16), 16)
