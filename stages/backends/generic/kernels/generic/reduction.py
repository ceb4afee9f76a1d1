"""Reductions, softmax and L2_NORMALIZATION."""

from collections.abc import Mapping
from typing import Any, ClassVar

from stages.backends.generic.kernels.generic.loops import Loops, Loops8
from stages.backends.generic.kernels.generic.parameters import MEAN, epilogue
from stages.backends.kernels.eight_bit import SUFFIX, not_eight_bit
from stages.backends.kernels.kernel import Kernel, Lowering
from stages.backends.kernels.tir.strides import Axis, logical_strides, reduced_axes, two_axes
from stages.backends.targets.spec import Target
from stages.ir.arrays import Array
from stages.ir.graph import LayerView
from stages.ir.operators.reductions import ReduceProd


class Mean(Kernel):
    """MEAN, a run of means at a time.

    Any layouts, and any axes that make at most two runs in memory.
    """

    name = "generic.mean"
    estimate_error = 1.25
    ops: ClassVar[frozenset[str]] = frozenset({"mean"})
    sources = ("mean.c",)

    def why_not_layer(self, view: LayerView, target: Target) -> str:
        runs = len(reduced_axes(view)[1])
        return not_eight_bit(view) or (
            f"axes of {runs} runs in memory; this kernel is for 2 or fewer" if runs > 2 else ""
        )

    def pack(self, view: LayerView, params: Any) -> Mapping[str, Array]:
        op = view.op
        kept, (outer, inner) = reduced_axes(view)[0], two_axes(reduced_axes(view)[1])
        fields = {
            "x_step": kept[-1].strides[1],
            "extent0": outer.extent,
            "step0": outer.strides[0],
            "extent1": inner.extent,
            "step1": inner.strides[0],
            "offset": op.input_zero_point * op.count,
            "multiplier": op.multiplier,
            "shift": op.shift,
        }
        return {"fields": MEAN.of(fields | epilogue(op, op.rounding))}

    def lower(self, view: LayerView, params: Any, target: Target) -> Lowering:
        from stages.backends.kernels.tir.means import means

        kept, summed = reduced_axes(view)
        return means(view, kept, two_axes(summed), f"fl_mean_{SUFFIX[view.inputs[0].dtype]}", MEAN.shape)

    def cost(self, view: LayerView, params: Any, target: Target) -> float:
        """Return counted costs: adjacent means, four at a time, 2.8 per element and 33 per mean.

        Other means cost 6 and 85, or 2.4 per element if the elements are adjacent.
        """
        (*_, run), summed = reduced_axes(view)
        count, inner = view.op.count, two_axes(summed)[1]
        fours = run.extent // 4 if run.strides[1] == 1 else 0
        single = (2.4 if inner.strides[0] == 1 else 6.0) * count + 85
        row = fours * 4 * (2.8 * count + 33) + (run.extent - fours * 4) * single
        return view.outputs[0].elements / run.extent * row + 60


class Reduce(Loops8):
    """Sum, product, maximum and minimum over any axes."""

    name = "generic.reduce"
    ops: ClassVar[frozenset[str]] = frozenset({"reduce_max", "reduce_min", "reduce_prod", "sum"})

    def lower(self, view: LayerView, params: Any, target: Target) -> Lowering:
        from stages.backends.generic.kernels.generic.reduction_tir import reduce

        return reduce(view, reduced_axes(view)[0], logical_axes(view))

    def cost(self, view: LayerView, params: Any, target: Target) -> float:
        """Return 6 instructions per added or compared input, 20 per product, 30 per output."""
        element_cost = 20.0 if isinstance(view.op, ReduceProd) else 6.0
        return element_cost * view.inputs[0].elements + 30 * view.outputs[0].elements


class Softmax(Kernel):
    """SOFTMAX by rows: the maximum, the sum of exponentials from a table, the quotients."""

    name = "generic.softmax"
    estimate_error = 3
    ops: ClassVar[frozenset[str]] = frozenset({"softmax"})
    sources = ("softmax.c",)

    def why_not_layer(self, view: LayerView, target: Target) -> str:
        return not_eight_bit(view)

    def pack(self, view: LayerView, params: Any) -> Mapping[str, Array]:
        return {"exp": view.constant("exp")}

    def lower(self, view: LayerView, params: Any, target: Target) -> Lowering:
        from stages.backends.kernels.tir.softmax import softmax

        return softmax(view, f"fl_softmax_{SUFFIX[view.inputs[0].dtype]}")

    def cost(self, view: LayerView, params: Any, target: Target) -> float:
        """Return 30 instructions per element, 300 per row."""
        elements = view.outputs[0].elements
        return 30.0 * elements + 300 * elements / view.outputs[0].shape[-1]


class SoftmaxTo16(Loops):
    """SOFTMAX of 8 bits to int16 by rows, as loops of plain TIR."""

    name = "generic.softmax_to_16"
    ops: ClassVar[frozenset[str]] = frozenset({"softmax"})
    element = 50.0
    row = 500

    def why_not_layer(self, view: LayerView, target: Target) -> str:
        dtype = view.outputs[0].dtype
        return "" if dtype == "int16" else f"tensor {view.outputs[0].name} is {dtype}; this kernel is for int16"

    def lower(self, view: LayerView, params: Any, target: Target) -> Lowering:
        from stages.backends.kernels.tir.softmax import softmax

        return softmax(view)


class LogSoftmax(Loops8):
    """LOG_SOFTMAX by rows: maximum, sum of exponentials, its logarithm, differences."""

    name = "generic.log_softmax"
    ops: ClassVar[frozenset[str]] = frozenset({"log_softmax"})
    element = 35.0
    row = 900

    def lower(self, view: LayerView, params: Any, target: Target) -> Lowering:
        from stages.backends.generic.kernels.generic.log_softmax_tir import log_softmax

        return log_softmax(view)


class L2Normalization(Kernel):
    """L2_NORMALIZATION by rows: the sum of squares, its inverse square root, the products."""

    name = "generic.l2_normalization"
    ops: ClassVar[frozenset[str]] = frozenset({"l2_normalization"})
    sources = ("l2_normalization.c",)

    def why_not_layer(self, view: LayerView, target: Target) -> str:
        return not_eight_bit(view)

    def lower(self, view: LayerView, params: Any, target: Target) -> Lowering:
        from stages.backends.generic.kernels.generic.reduction_tir import l2_normalization

        return l2_normalization(view)

    def cost(self, view: LayerView, params: Any, target: Target) -> float:
        """Return 35 instructions per element, 400 per row."""
        elements = view.outputs[0].elements
        return 35.0 * elements + 400 * elements / view.outputs[0].shape[-1]


def logical_axes(view: LayerView) -> list[Axis]:
    """Return the reduced axes, outermost first. Products depend on the order of their factors."""
    x = view.inputs[0]
    steps = logical_strides(x)
    axes = [Axis(x.shape[axis], (steps[axis],)) for axis in sorted(view.op.axes) if x.shape[axis] > 1]
    return axes or [Axis(1, (1,))]


KERNELS: tuple[type[Kernel], ...] = (L2Normalization, LogSoftmax, Mean, Reduce, Softmax, SoftmaxTo16)
