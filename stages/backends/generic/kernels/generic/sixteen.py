"""Layers on int16 activations, with int8 weights if any.

Images are NHWC; zero points are 0.
"""

from collections.abc import Mapping
from math import prod
from typing import Any, ClassVar

from stages.backends.generic.kernels.generic.division16_tir import wide_div
from stages.backends.generic.kernels.generic.loops import Loops16
from stages.backends.generic.kernels.generic.parameters import CONV16, DENSE16
from stages.backends.generic.kernels.generic.reduction import logical_axes, reduce
from stages.backends.generic.kernels.generic.sixteen_tir import (
    conv16,
    elementwise16,
    fully_connected16,
    functions16,
    interpolated16,
    mean16,
    pool16,
    softmax16,
    wide_sqrt,
)
from stages.backends.kernels.eight_bit import weight_rows
from stages.backends.kernels.kernel import Kernel, Lowering
from stages.backends.kernels.sixteen_bit import why_not_sixteen
from stages.backends.kernels.structure import taps
from stages.backends.kernels.tir.extremum import extremum
from stages.backends.kernels.tir.strides import Axis, broadcast_strides, logical_strides, reduced_axes, walk
from stages.backends.targets.spec import Target
from stages.ir.arithmetic.fixed_point import upper_half
from stages.ir.arrays import Array
from stages.ir.graph import LayerView
from stages.ir.operators.arithmetic import Extremum
from stages.ir.operators.products import DepthwiseConv2D
from stages.ir.operators.reductions import ReduceProd
from stages.support.lazy import np

_MOST_SUMMED = 65535  # of 16 bits, by an int32


class _Products(Kernel):
    bits = 16
    layouts: ClassVar[tuple[str, ...]] = ("NHWC",)
    sources = ("conv16.c",)

    def why_not_layer(self, view: LayerView, target: Target) -> str:
        if bad := why_not_sixteen(view):
            return bad
        if str(view.constant("weights").dtype) != "int8" or view.op.weight_zero_point or view.op.input_zero_point:
            return "weights that are not int8, or zero points other than 0"
        return ""

    def _weights(self, view: LayerView) -> dict[str, Array]:
        weights = weight_rows(view, view.constant("weights"))
        bias = view.constant("bias").reshape(-1) if view.has("bias") else np.zeros(len(weights), np.int64)
        return {"weights": np.ascontiguousarray(weights), "bias": bias.astype(np.int64)}


class Conv16(_Products):
    """Convolutions of all kinds, an image at a time, without im2col."""

    name = "generic.conv16"
    estimate_error = 3
    ops: ClassVar[frozenset[str]] = frozenset({"conv2d", "depthwise_conv2d"})
    roundings: ClassVar[frozenset[str]] = frozenset({"wide"})

    def pack(self, view: LayerView, params: Any) -> Mapping[str, Array]:
        op, x, y = view.op, view.inputs[0], view.outputs[0]
        depth, units = self.group(view)
        fields = {
            "height": x.shape[1],
            "width": x.shape[2],
            "channels": x.shape[3],
            "out_height": y.shape[1],
            "out_width": y.shape[2],
            "out_channels": y.shape[3],
            "depth": depth,
            "units": units,
            **taps(op),
            "low": op.act_min,
            "high": op.act_max,
        }
        scaling = (upper_half(view.constant("multiplier")), view.constant("shift"))
        scales = np.stack([np.broadcast_to(part.reshape(-1), op.out_channels) for part in scaling], axis=1)
        return {**self._weights(view), "scales": scales.astype(np.int32), "conv": CONV16.of(fields)}

    def group(self, view: LayerView) -> tuple[int, int]:
        """Input and output channels of a group."""
        op = view.op
        if isinstance(op, DepthwiseConv2D):
            return 1, op.depth_multiplier
        return op.in_channels // op.groups, op.out_channels // op.groups

    def lower(self, view: LayerView, params: Any, target: Target) -> Lowering:
        return conv16(view, *self.group(view))

    def cost(self, view: LayerView, params: Any, target: Target) -> float:
        """Return 5 instructions per product, 15 per window element, 40 per output."""
        output_cost = prod(view.op.kernel) * (5 * self.group(view)[0] + 15) + 40
        return float(view.outputs[0].elements * output_cost)


class FullyConnected16(_Products):
    """A row at a time. Results are scaled in float64, as LiteRT does; any core can compute it."""

    name = "generic.fully_connected16"
    ops: ClassVar[frozenset[str]] = frozenset({"fully_connected"})
    roundings: ClassVar[frozenset[str]] = frozenset({"real"})

    def pack(self, view: LayerView, params: Any) -> Mapping[str, Array]:
        op = view.op
        fields = {"units": op.units, "depth": op.depth, "low": op.act_min, "high": op.act_max}
        return {**self._weights(view), "real": view.constant("real"), "dense": DENSE16.of(fields)}

    def lower(self, view: LayerView, params: Any, target: Target) -> Lowering:
        return fully_connected16(view)

    def cost(self, view: LayerView, params: Any, target: Target) -> float:
        """Return 5 instructions per product, 250 per output.

        Most cores compute float64 in software.
        """
        return float(view.outputs[0].elements * (5 * view.op.depth + 250))


class Elementwise16(Loops16):
    """ADD, SUB, MUL with broadcasting, QUANTIZE from and to int16, DEQUANTIZE.

    Loops of plain TIR.
    """

    name = "generic.elementwise16"
    ops: ClassVar[frozenset[str]] = frozenset({"add", "sub", "mul", "requantize", "quantize", "dequantize"})
    roundings: ClassVar[frozenset[str]] = frozenset({"double"})

    def why_not_layer(self, view: LayerView, target: Target) -> str:
        types = {tensor.dtype for tensor in (*view.inputs, *view.outputs)}
        others = {"quantize": {"float32"}, "dequantize": {"float32"}, "requantize": {"int8", "uint8", "int32"}}
        if not types & {"int16", "int32"} or types - {"int16"} - others.get(view.op.op, set()):
            return f"tensors are {', '.join(sorted(types))}; this kernel is for int16"
        return (
            "inputs have zero points; this kernel is for zero points of 0"
            if any(getattr(view.op, "zero_points", ()))
            else ""
        )

    def lower(self, view: LayerView, params: Any, target: Target) -> Lowering:
        return elementwise16(view)

    def cost(self, view: LayerView, params: Any, target: Target) -> float:
        """Return 25 instructions per requantization, 300 per float without an FPU."""
        op = view.op.op
        element_cost = {"add": 75.0, "sub": 75.0}.get(op, 25.0)
        if op in ("quantize", "dequantize") and not target.fpu:
            element_cost = 300.0
        return element_cost * view.outputs[0].elements


class Pool16(Loops16):
    """AVERAGE_POOL_2D and MAX_POOL_2D, as loops of plain TIR."""

    name = "generic.pool16"
    ops: ClassVar[frozenset[str]] = frozenset({"avg_pool2d", "max_pool2d"})
    layouts: ClassVar[tuple[str, ...]] = ("NHWC",)

    def why_not_layer(self, view: LayerView, target: Target) -> str:
        return why_not_sixteen(view) or _too_many(prod(view.op.kernel))

    def lower(self, view: LayerView, params: Any, target: Target) -> Lowering:
        return pool16(view)

    def cost(self, view: LayerView, params: Any, target: Target) -> float:
        """Return 10 instructions per window element, 40 per output."""
        return view.outputs[0].elements * (10.0 * prod(view.op.kernel) + 40)


class Mean16(Loops16):
    """MEAN over any axes, as loops of plain TIR."""

    name = "generic.mean16"
    ops: ClassVar[frozenset[str]] = frozenset({"mean"})
    roundings: ClassVar[frozenset[str]] = frozenset({"double"})

    def why_not_layer(self, view: LayerView, target: Target) -> str:
        return why_not_sixteen(view) or _too_many(view.op.count)

    def lower(self, view: LayerView, params: Any, target: Target) -> Lowering:
        return mean16(view, *reduced_axes(view))

    def cost(self, view: LayerView, params: Any, target: Target) -> float:
        """Return 5 instructions per input, 30 per output."""
        return 5.0 * view.inputs[0].elements + 30 * view.outputs[0].elements


class Interpolated16(Loops16):
    """LOGISTIC and TANH, as loops of plain TIR."""

    name = "generic.interpolated16"
    ops: ClassVar[frozenset[str]] = frozenset({"interpolated"})
    element = 30.0

    def lower(self, view: LayerView, params: Any, target: Target) -> Lowering:
        return interpolated16(view)


class Softmax16(Loops16):
    """SOFTMAX by rows, as loops of plain TIR."""

    name = "generic.softmax16"
    ops: ClassVar[frozenset[str]] = frozenset({"wide_softmax"})
    element = 70.0
    row = 300
    layouts: ClassVar[tuple[str, ...]] = ("NHWC",)

    def why_not_layer(self, view: LayerView, target: Target) -> str:
        return why_not_sixteen(view) or _too_many(view.inputs[0].shape[-1])

    def lower(self, view: LayerView, params: Any, target: Target) -> Lowering:
        return softmax16(view)


class Extremes16(Loops16):
    """MINIMUM and MAXIMUM with broadcasting; maximum, minimum and product over axes.

    Loops of plain TIR.
    """

    name = "generic.extremes16"
    ops: ClassVar[frozenset[str]] = frozenset({"maximum", "minimum", "reduce_max", "reduce_min", "reduce_prod"})

    def lower(self, view: LayerView, params: Any, target: Target) -> Lowering:
        if isinstance(view.op, Extremum):
            return extremum(view, "")
        return reduce(view, reduced_axes(view)[0], logical_axes(view))

    def cost(self, view: LayerView, params: Any, target: Target) -> float:
        """Return 8 instructions per compared element, 20 per multiplied one."""
        element_cost = 20.0 if isinstance(view.op, ReduceProd) else 8.0
        return element_cost * max(tensor.elements for tensor in (*view.inputs, *view.outputs))


class Functions16(Loops16):
    """Interpolated tables, LEAKY_RELU, and sums with power-of-two scales."""

    name = "generic.functions16"
    ops: ClassVar[frozenset[str]] = frozenset({"lines", "leaky", "power_of_two_add", "power_of_two_sub"})

    def cost(self, view: LayerView, params: Any, target: Target) -> float:
        """Return 25 instructions per element, 40 for a sum."""
        return (40.0 if len(view.inputs) > 1 else 25.0) * view.outputs[0].elements

    def lower(self, view: LayerView, params: Any, target: Target) -> Lowering:
        return functions16(view)


class Root16(Loops16):
    """SQRT in float32. The C library or the core rounds the root correctly."""

    name = "generic.root16"
    ops: ClassVar[frozenset[str]] = frozenset({"wide_sqrt"})
    in_place = True

    def cost(self, view: LayerView, params: Any, target: Target) -> float:
        """Return 25 instructions per element with an FPU, 700 without."""
        return (25.0 if target.fpu else 700.0) * view.outputs[0].elements

    def lower(self, view: LayerView, params: Any, target: Target) -> Lowering:
        return wide_sqrt(view)


class Division16(Loops16):
    """DIV with broadcasting by reciprocals from Newton steps.

    Neighbours with the same divisor share a reciprocal.
    """

    name = "generic.division16"
    ops: ClassVar[frozenset[str]] = frozenset({"wide_div"})
    in_place = True

    def cost(self, view: LayerView, params: Any, target: Target) -> float:
        """Return 95 instructions per element, 160 per reciprocal; on 64 bits 60 and 80."""
        element_cost, inverse = (95.0, 160.0) if target.word_bits == 32 else (60.0, 80.0)
        axes, divided = _division_loops(view)
        return element_cost * view.outputs[0].elements + inverse * prod(axis.extent for axis in axes[:divided])

    def lower(self, view: LayerView, params: Any, target: Target) -> Lowering:
        return wide_div(view, *_division_loops(view))


def _division_loops(view: LayerView) -> tuple[list[Axis], int]:
    """Return the loops over output, dividends and divisors.

    The second value is the number of outer loops that select a divisor.
    """
    out = view.outputs[0]
    axes = walk(out.shape, logical_strides(out), *(broadcast_strides(x, out.shape) for x in view.inputs))
    return axes, max((depth for depth, axis in enumerate(axes, 1) if axis.strides[2]), default=0)


def _too_many(count: int) -> str:
    return f"sums of {count} 16-bit elements; int32 holds {_MOST_SUMMED}" if count > _MOST_SUMMED else ""


KERNELS: tuple[type[Kernel], ...] = (
    Conv16,
    Division16,
    Elementwise16,
    Extremes16,
    FullyConnected16,
    Functions16,
    Interpolated16,
    Mean16,
    Pool16,
    Root16,
    Softmax16,
)
