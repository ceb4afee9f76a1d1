"""MEAN over any axes that make at most two runs in memory, and averages of whole images."""

from collections.abc import Mapping
from typing import Any, ClassVar

from stages.backends.kernels.eight_bit import SUFFIX, not_eight_bit, why_not_nhwc
from stages.backends.kernels.kernel import Kernel, Lowering
from stages.backends.kernels.structure import Structure
from stages.backends.kernels.tir.block import Operand
from stages.backends.kernels.tir.means import means
from stages.backends.kernels.tir.pooling import pool2d
from stages.backends.kernels.tir.strides import reduced_axes, two_axes
from stages.backends.kernels.windows import taps_inside
from stages.backends.riscv.kernels.rvv.scaling import SCALE, scale_fields, why_not_scale
from stages.backends.riscv.kernels.rvv.turns import turns
from stages.backends.targets.spec import Target
from stages.ir.arrays import Array
from stages.ir.graph import LayerView

_AXES = ("x_step", "extent0", "step0", "extent1", "step1", "offset")
MEAN = Structure("rvv_mean", (*_AXES, *SCALE[1:], "zero_point", "low", "high"))
_AVERAGE = Structure("rvv_average", ("pixels", "channels", "low", "high"))
_TOGETHER = 255  # elements of a sum of 16 bits


class Mean(Kernel):
    """Means of a vector of neighbours, or of elements at a distance."""

    name = "rvv.mean"
    estimate_error = 1.25
    ops: ClassVar[frozenset[str]] = frozenset({"mean"})
    roundings: ClassVar[frozenset[str]] = frozenset({"double"})
    sources = ("mean.S",)

    def why_not_layer(self, view: LayerView, target: Target) -> str:
        op, axes = view.op, reduced_axes(view)[1]
        if len(axes) > 2:
            return f"axes of {len(axes)} runs in memory; this kernel is for 2 or fewer"
        if op.shift > 0:
            return f"a shift of {op.shift} is not supported"
        return not_eight_bit(view) or why_not_scale(255 * op.count, op.multiplier, op.shift)

    def pack(self, view: LayerView, params: Any) -> Mapping[str, Array]:
        op, (kept, summed) = view.op, reduced_axes(view)
        outer, inner = two_axes(summed)
        axes = (kept[-1].strides[1], outer.extent, outer.strides[0], inner.extent, inner.strides[0])
        values = dict(zip(_AXES, (*axes, op.input_zero_point * op.count), strict=True))
        values |= {"zero_point": op.output_zero_point, "low": op.act_min, "high": op.act_max}
        scale = scale_fields(op.multiplier, op.shift)
        return {"fields": MEAN.of(values | {name: scale[name] for name in SCALE[1:]})}

    def lower(self, view: LayerView, params: Any, target: Target) -> Lowering:
        kept, summed = reduced_axes(view)
        strided = "" if kept[-1].strides[1] == 1 else "strided_"
        function = f"rvv_mean_{strided}{SUFFIX[view.inputs[0].dtype]}"
        return means(view, kept, two_axes(summed), function, MEAN.shape)

    def cost(self, view: LayerView, params: Any, target: Target) -> float:
        """Return the instructions, from counts.

        4 per element of an iteration, 17 overhead per 255 elements, and 60 for its results.
        """
        (*_, run), summed = reduced_axes(view)
        outer, inner = two_axes(summed)
        return view.outputs[0].elements / run.extent * _cost(target, run.extent, outer.extent, inner.extent)


class Average(Kernel):
    """AVERAGE_POOL_2D with a window over the whole image."""

    name = "rvv.average"
    row_alignment = 1
    estimate_error = 1.25
    ops: ClassVar[frozenset[str]] = frozenset({"avg_pool2d"})
    sources = ("mean.S",)

    def why_not_layer(self, view: LayerView, target: Target) -> str:
        inside = [taps_inside(view, axis) for axis in range(2)]
        if inside != [[size] for size in view.inputs[0].shape[1:3]]:
            return "a window is not the whole image"
        return not_eight_bit(view) or why_not_nhwc(view)

    def pack(self, view: LayerView, params: Any) -> Mapping[str, Array]:
        op, (_, height, width, channels) = view.op, view.inputs[0].shape
        fields = {"pixels": height * width, "channels": channels, "low": op.act_min, "high": op.act_max}
        return {"fields": _AVERAGE.of(fields)}

    def lower(self, view: LayerView, params: Any, target: Target) -> Lowering:
        function = f"rvv_average_{SUFFIX[view.inputs[0].dtype]}"
        return pool2d(view, function, Operand("fields", _AVERAGE.shape, "int32"))

    def cost(self, view: LayerView, params: Any, target: Target) -> float:
        """Return the instructions: as for a mean over all pixels."""
        batch, height, width, channels = view.inputs[0].shape
        return batch * _cost(target, channels, 1, height * width)


def _cost(target: Target, run: int, rows: int, columns: int) -> float:
    row = 4 * columns + 17 * -(-columns // _TOGETHER) + 5
    return turns(target, run, 2) * (row * rows + 60) + 50.0
