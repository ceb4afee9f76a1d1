"""TIR of averages, means and maxima of an image that comes by bands of rows."""

from collections.abc import Callable
from typing import Any

from tvm.tirx.script.builder import ir as T

from stages.backends.kernels.kernel import Lowering
from stages.backends.kernels.tir.block import Block, Function, Operand, loop, store
from stages.backends.kernels.tir.fixed_point import clamp, maximum, mean, output, requantize, widen
from stages.ir.graph import LayerView

SUMS = "scratch:sums"


class _Rows(Function):
    """Function with the sums of earlier rows as a parameter."""

    def sums(self, channels: int) -> Any:
        """Return the int32 buffer [channels] that keeps its values between calls."""
        return self._parameter(SUMS, "sums", (channels,), "int32")


def band(view: LayerView, rows: int, function: str, *, is_max: bool) -> Lowering:
    """Return the call `function(x, sums, pixels, channels)` that adds `rows` rows to the sums."""
    x = view.inputs[0]
    _, _, width, channels = x.shape

    def meaning(b: Any) -> None:
        with loop(("row", rows), ("column", width), ("c", channels)) as (row, column, c):
            value = widen(b.x[row, column, c])
            store(b.sums, maximum(value, b.sums[c]) if is_max else b.sums[c] + value, c)

    operands = (Operand("x", (rows, width, channels), x.dtype), Operand("sums", (channels,), "int32", "rw"))
    block = Block("band", operands, meaning, function, lambda b: [b.x, b.sums, rows * width, channels])
    with _Rows("row_sums") as f:
        image, sums = f.input(0, (1, rows, width, channels), x.dtype), f.sums(channels)
        f.place(block, x=(image, 0, 0, 0, 0), sums=sums)
    return f.lowering()


def averages(view: LayerView, count: int, fields: tuple[int, ...]) -> Lowering:
    """Return the output from sums of `count` pixels; from maxima if `count` is 1."""
    op = view.op

    def average(total: Any) -> Any:
        return clamp(mean(total, count), op.act_min, op.act_max)

    return _result(view, "fl_row_averages", fields, average)


def means(view: LayerView, fields: tuple[int, ...]) -> Lowering:
    """Return the output of a MEAN from its sums."""
    op = view.op

    def scaled(total: Any) -> Any:
        centred = total - op.input_zero_point * op.count
        return output(view, requantize(centred, op.multiplier, op.shift, op.rounding))

    return _result(view, "fl_row_means", fields, scaled)


def _result(view: LayerView, function: str, fields: tuple[int, ...], value: Callable[[Any], Any]) -> Lowering:
    """Return the call `function(sums, y, channels, fields)`; `value` is y[c] of sums[c]."""
    y, channels = view.outputs[0], view.inputs[0].shape[3]

    def meaning(b: Any) -> None:
        with loop(("c", channels)) as c:
            store(b.y, T.Cast(y.dtype, value(b.sums[c])), c)

    operands = (
        Operand("sums", (channels,), "int32"),
        Operand("fields", fields, "int32"),
        Operand("y", (channels,), y.dtype, "w"),
    )
    block = Block("result", operands, meaning, function, lambda b: [b.sums, b.y, channels, b.fields])
    with _Rows("row_result") as f:
        sums, packed = f.sums(channels), f.constant("fields", fields, "int32")
        f.place(block, sums=sums, fields=packed, y=f.output(0, (channels,), y.dtype))
    return f.lowering()
