"""Logarithms and powers of e that are the same numbers on every machine, for costs that choices and keys come from.

By decimal, which rounds correctly. Those of numpy and of the C library differ in their last digit from one to another.
"""

from __future__ import annotations

from decimal import Context, Decimal
from functools import lru_cache

_ROUNDED = Context(prec=30)


@lru_cache(maxsize=1 << 14)
def ln(number: float) -> float:
    """The natural logarithm of a number above 0."""
    return float(_ROUNDED.ln(Decimal(number)))


def log2(number: float) -> float:
    """The logarithm to base 2 of a number above 0."""
    return float(_ROUNDED.divide(_ROUNDED.ln(Decimal(number)), _ROUNDED.ln(Decimal(2))))


def exp(number: float) -> float:
    """E to the power of a number."""
    return float(_ROUNDED.exp(Decimal(number)))
