"""Sliding windows in TIR."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from stages.backends.kernels.tir.fixed_point import select, widen
from stages.ir.graph import LayerView
from stages.support.lazy import T

Expr = Any  # a TIR expression or a Python int


def tap(output: Expr, position: Expr, stride: int, dilation: int, before: int) -> Expr:
    """Return the image index, maybe outside, of window element `position` at an output index."""
    return output * stride + position * dilation - before


def inside(row: Expr, height: int, column: Expr, width: int) -> Expr:
    """Return whether (row, column) lies in an image of that size."""
    return T.And(T.And(row >= 0, row < height), T.And(column >= 0, column < width))


def taps(op: Any, output: tuple[Expr, Expr], position: tuple[Expr, Expr]) -> tuple[Expr, Expr]:
    """Return image row and column, maybe outside, of window element `position` at `output`."""
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
    """Return `load(row, column)` of a window element, `outside` beyond the image.

    `image` is (height, width).
    """
    iy, ix = taps(op, output, position)
    return select(inside(iy, image[0], ix, image[1]), load(iy, ix), outside)


def activation(
    view: LayerView, x: Any, output: tuple[Expr, Expr], position: tuple[Expr, Expr], channel: Expr, offset: int = 0
) -> Expr:
    """Return x[row, column, channel] less `offset`, int32.

    Outside of the image, x is the zero point.
    """
    op = view.op
    outside = op.input_zero_point - offset
    return padded(op, x.shape[:2], output, position, lambda iy, ix: widen(x[iy, ix, channel]) - offset, outside)


def gathered_element(
    fields: Mapping[str, int], pixel: Expr, element: Expr, load: Callable[[Expr, Expr, Expr], Expr], outside: Expr
) -> Expr:
    """As `gathered`, for the index of an element in the order (row, column, channel)."""
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
    """Return a window element at an output pixel, by its index.

    `fields` are the fields of the C structure that describes the windows.
    """
    oy, ox = T.truncdiv(pixel, fields["out_width"]), T.truncmod(pixel, fields["out_width"])
    iy = tap(oy, position[0], fields["stride_y"], fields["dilation_y"], fields["top"])
    ix = tap(ox, position[1], fields["stride_x"], fields["dilation_x"], fields["left"])
    return select(inside(iy, fields["height"], ix, fields["width"]), load(iy, ix), outside)
