"""AVERAGE_POOL_2D, MAX_POOL_2D and MEAN over a whole image that comes by bands of rows."""

from collections.abc import Mapping
from typing import Any, ClassVar

from stages.backends.generic.kernels.generic.parameters import ROW_AVERAGES, ROW_MEANS, epilogue
from stages.backends.kernels.eight_bit import SUFFIX, not_eight_bit, why_not_nhwc
from stages.backends.kernels.kernel import Lowering, RowSumKernel
from stages.backends.targets.spec import Target
from stages.ir.arrays import Array
from stages.ir.graph import LayerView

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
        from stages.backends.generic.kernels.generic.row_sums_tir import band

        kind = "maxima" if _is_max(view) else "sums"
        function = f"{self.prefix}_row_{kind}_{SUFFIX[view.inputs[0].dtype]}"
        return band(view, rows, function, is_max=_is_max(view))

    def lower_result(self, view: LayerView, target: Target) -> Lowering:
        """Return the output from the sums of all rows.

        Roles: scratch:sums, constant:fields, output:0.
        """
        from stages.backends.generic.kernels.generic.row_sums_tir import averages, means

        if view.op.op == "mean":
            return means(view, ROW_MEANS.shape)
        return averages(view, _count(view), ROW_AVERAGES.shape)

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
