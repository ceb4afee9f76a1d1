"""Sliding windows in TIR."""

from __future__ import annotations

from typing import Any

from tvm.tirx.script.builder import ir as T

Expr = Any  # a TIR expression or a Python int


def tap(output: Expr, position: Expr, stride: int, dilation: int, before: int) -> Expr:
    """Index in the image, maybe outside it, of a window's element `position` at output index `output`."""
    return output * stride + position * dilation - before


def inside(row: Expr, height: int, column: Expr, width: int) -> Expr:
    """Whether (row, column) lies in an image of that size."""
    return T.And(T.And(row >= 0, row < height), T.And(column >= 0, column < width))
