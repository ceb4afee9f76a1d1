"""AVERAGE_POOL_2D, MAX_POOL_2D and MEAN over a whole image that comes by bands of rows."""

from collections.abc import Callable, Mapping
from typing import Any, ClassVar

from stages.backends.generic.kernels.generic.parameters import ROW_AVERAGES, ROW_MEANS, epilogue
from stages.backends.kernels.eight_bit import SUFFIX, not_eight_bit, why_not_nhwc
from stages.backends.kernels.kernel import Lowering, RowSumKernel
from stages.backends.kernels.tir.block import Block, Function, Operand, loop, store
from stages.backends.kernels.tir.fixed_point import clamp, maximum, mean, output, requantize, widen
from stages.backends.targets.spec import Target
from stages.ir.arrays import Array
from stages.ir.graph import LayerView
from stages.support.lazy import T

MAX_PIXELS = ((1 << 31) - 1) // 256  # of a sum of 8-bit values, with half a count to round


class RowSums(RowSumKernel):
    """Sums, or maxima, of the channels over bands of rows, then the output from them."""

    name = "generic.row_sums"
    ops: ClassVar[frozenset[str]] = frozenset({"avg_pool2d", "max_pool2d", "mean"})
    sources: ClassVar[tuple[str, ...]] = ("row_sums.c",)
    estimate_error = 1.5
    row_alignment = 1
    prefix = "fl"  # of the functions that add a band

    def why_not_rows(self, view: LayerView, target: Target) -> str:
        """Return why the layer cannot be computed by bands of rows, '' if it can."""
        reason = self.why_not_layouts(view) or self.why_not_rounding(view)
        return reason or not_eight_bit(view) or why_not_nhwc(view) or _why_not_global(view)

    def begin(self, view: LayerView) -> int:
        """Return the byte that fills the sums before the first band."""
        return 0x80 if _is_max(view) else 0

    def pack(self, view: LayerView, params: Any) -> Mapping[str, Array]:
        """Return the constant of `lower_result`."""
        op = view.op
        if op.op == "mean":
            scaling = {"offset": op.input_zero_point * op.count, "multiplier": op.multiplier, "shift": op.shift}
            return {"fields": ROW_MEANS.of(scaling | epilogue(op, op.rounding))}
        return {"fields": ROW_AVERAGES.of({"count": _count(view), "low": op.act_min, "high": op.act_max})}

    def lower_rows(self, view: LayerView, rows: int, target: Target) -> Lowering:
        """Return the addition of a band [1, rows, width, channels] to the sums.

        Roles: input:0, scratch:sums.
        """
        kind = "maxima" if _is_max(view) else "sums"
        function = f"{self.prefix}_row_{kind}_{SUFFIX[view.inputs[0].dtype]}"
        is_max = _is_max(view)
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

    def lower_result(self, view: LayerView, target: Target) -> Lowering:
        """Return the output from the sums of all rows.

        Roles: scratch:sums, constant:fields, output:0.
        """
        if view.op.op == "mean":
            return means(view, ROW_MEANS.shape)
        count = _count(view)
        fields = ROW_AVERAGES.shape
        op = view.op

        def average(total: Any) -> Any:
            return clamp(mean(total, count), op.act_min, op.act_max)

        return _result(view, "fl_row_averages", fields, average)

    def cost_rows(self, view: LayerView, rows: int, target: Target) -> float:
        """Return counted costs: 2.4 instructions per element of 8 channels, 2.75 of 4, 5 of one.

        Maxima take 0.9 more. Each group of channels takes 25, a call 40.
        """
        _, _, width, channels = view.inputs[0].shape
        groups = {8: channels // 8, 4: channels % 8 // 4, 1: channels % 4}
        more = 0.9 if _is_max(view) else 0.0
        elements = sum(count * size * ({8: 2.4, 4: 2.75, 1: 5.0}[size] + more) for size, count in groups.items())
        return rows * width * elements + 25 * sum(groups.values()) + 40

    def cost_result(self, view: LayerView, target: Target) -> float:
        """Return 28 instructions per mean, 14 per other output, 30 per call."""
        return (28.0 if view.op.op == "mean" else 14.0) * view.outputs[0].elements + 30


def _is_max(view: LayerView) -> bool:
    return bool(view.op.op == "max_pool2d")


def _count(view: LayerView) -> int:
    """Return the divisor of the sums; 1 for maxima."""
    return 1 if _is_max(view) else view.inputs[0].shape[1] * view.inputs[0].shape[2]


def _why_not_global(view: LayerView) -> str:
    """Return why an output is not of all pixels of one image, '' if it is."""
    op, shape = view.op, view.inputs[0].shape
    if len(shape) != 4:
        return f"the input has {len(shape)} axes, not 4"
    if shape[0] != 1:
        return f"{shape[0]} images; this kernel is for one"
    image = shape[1:3]
    if op.op == "mean":
        reduced = {axis % 4 for axis in op.axes if shape[axis] > 1}
        if reduced != {axis for axis in (1, 2) if shape[axis] > 1}:
            return f"a mean over the axes {sorted(reduced)}, not over height and width"
    elif tuple(op.kernel) != tuple(image):
        return f"windows of {op.kernel[0]}x{op.kernel[1]} in an image of {image[0]}x{image[1]}"
    elif any(op.padding) or view.outputs[0].shape[1:3] != (1, 1):
        return "more than one window, or padding"
    pixels = image[0] * image[1]
    return f"sums of {pixels:,} pixels; int32 holds {MAX_PIXELS:,}" if pixels > MAX_PIXELS else ""


SUMS = "scratch:sums"


class _Rows(Function):
    """Function with the sums of earlier rows as a parameter."""

    def sums(self, channels: int) -> Any:
        """Return the int32 buffer [channels] that keeps its values between calls."""
        return self._parameter(SUMS, "sums", (channels,), "int32")


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
