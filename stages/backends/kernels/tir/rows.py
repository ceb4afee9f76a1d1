"""Rows of a matrix gathered from the windows of an image, in TIR."""

from collections.abc import Mapping
from typing import Any

from stages.backends.kernels.eight_bit import weight_zero_point
from stages.backends.kernels.matrix import depth_of
from stages.backends.kernels.tir.block import Block, Operand, accumulator, loop, position, store
from stages.backends.kernels.tir.fixed_point import lowered, widen
from stages.backends.kernels.tir.window import gathered
from stages.ir.graph import LayerView
from stages.support.lazy import T

Expr = Any  # a TIR expression or a Python int


def gather_rows(
    view: LayerView,
    name: str,
    function: str,
    fields: Mapping[str, int],
    shape: tuple[int, int, int],
    *,
    with_offsets: bool = True,
) -> Block:
    """Return the block that gathers windows as int8, one per row.

    fields  the int32 fields of the C structure for `function`, in order
    shape   rows, bytes from row to row, and written bytes of a row: zeros after the window

    The windows are those of output pixels first ... first + rows - 1. If the weights have a zero point, offsets[i] is
    the addend to the sums of row i: minus the zero point times the sum of the row's bytes. Without `with_offsets` the
    function has no such operand.
    """
    rows, row, written = shape
    window, zero_point = depth_of(view), weight_zero_point(view) if with_offsets else 0
    image = (fields["height"], fields["width"], fields["channels"])

    def element(b: Any, pixel: Expr, ky: Expr, kx: Expr, c: Expr) -> Expr:
        fill = T.int8(fields["fill"])
        return gathered(fields, pixel, (ky, kx), lambda iy, ix: lowered(b.x[iy, ix, c], fields["flip"]), fill)

    def meaning(b: Any) -> None:
        with position("start", b.first[0]) as start, loop(("p", rows)) as p:
            loops = (("ky", fields["kernel_height"]), ("kx", fields["kernel_width"]), ("c", fields["channels"]))
            with loop(*loops) as (ky, kx, c):
                k = (ky * fields["kernel_width"] + kx) * fields["channels"] + c
                store(b.rows, element(b, start + p, ky, kx, c), p, k)
            if written > window:
                with loop(("k", written - window)) as k:
                    store(b.rows, T.int8(0), p, k + window)
            if zero_point:
                store(b.acc, 0, 0)
                with loop(("k", written)) as k:
                    store(b.acc, b.acc[0] + widen(b.rows[p, k]), 0)
                store(b.offsets, b.acc[0] * (0 - zero_point), p)

    operands = (
        Operand("x", image, view.inputs[0].dtype),
        Operand("first", (1,), "int32"),
        Operand("windows", (len(fields),), "int32"),
        Operand("rows", (rows, row), "int8", "rw"),
        *((Operand("offsets", (rows,), "int32", "w"),) if with_offsets else ()),
        accumulator(),
    )

    def arguments(b: Any) -> list[Any]:
        return [b.x, b.rows, *((b.offsets,) if with_offsets else ()), b.first[0], rows, b.windows]

    return Block(name, operands, meaning, function, arguments)
