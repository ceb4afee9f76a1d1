"""Sliding windows in TIR."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from tvm.tirx.script.builder import ir as T

from stages.backends.kernels.tir.fixed_point import select

Expr = Any  # a TIR expression or a Python int


def tap(output: Expr, position: Expr, stride: int, dilation: int, before: int) -> Expr:
    """Index in the image, maybe outside it, of a window's element `position` at output index `output`."""
    return output * stride + position * dilation - before


def inside(row: Expr, height: int, column: Expr, width: int) -> Expr:
    """Whether (row, column) lies in an image of that size."""
    return T.And(T.And(row >= 0, row < height), T.And(column >= 0, column < width))


def taps(op: Any, output: tuple[Expr, Expr], position: tuple[Expr, Expr]) -> tuple[Expr, Expr]:
    """Row and column in the image, maybe outside it, of the element `position` of an operator's window at `output`."""
    dilation = getattr(op, "dilation", (1, 1))
    row, column = (tap(output[n], position[n], op.stride[n], dilation[n], op.padding[n]) for n in range(2))
    return row, column


def padded(
    op: Any,
    image: Sequence[int],
    output: tuple[Expr, Expr],
    position: tuple[Expr, Expr],
    load: Callable[[Expr, Expr], Expr],
    outside: Expr,
) -> Expr:
    """`load(row, column)` of an element of a window, `outside` where it is not in the `image` of that height, width."""
    iy, ix = taps(op, output, position)
    return select(inside(iy, image[0], ix, image[1]), load(iy, ix), outside)


def gathered_element(
    fields: Mapping[str, int],
    pixel: Expr,
    element: Expr,
    load: Callable[[Expr, Expr, Expr], Expr],
    outside: Expr,
) -> Expr:
    """`gathered` by the number of an element of the window: (row, column, channel) in that order."""
    point, channel = T.truncdiv(element, fields["channels"]), T.truncmod(element, fields["channels"])
    position = T.truncdiv(point, fields["kernel_width"]), T.truncmod(point, fields["kernel_width"])
    return gathered(fields, pixel, position, lambda iy, ix: load(iy, ix, channel), outside)


def gathered(
    fields: Mapping[str, int],
    pixel: Expr,
    position: tuple[Expr, Expr],
    load: Callable[[Expr, Expr], Expr],
    outside: Expr,
) -> Expr:
    """The same at an output pixel, by its number; `fields` are those of the C structure that tells of the windows."""
    oy, ox = T.truncdiv(pixel, fields["out_width"]), T.truncmod(pixel, fields["out_width"])
    iy = tap(oy, position[0], fields["stride_y"], fields["dilation_y"], fields["top"])
    ix = tap(ox, position[1], fields["stride_x"], fields["dilation_x"], fields["left"])
    return select(inside(iy, fields["height"], ix, fields["width"]), load(iy, ix), outside)
