"""CONV_2D 1x1 on one input channel: a table of all results."""

from collections.abc import Mapping
from typing import Any, ClassVar

from stages.backends.kernels.eight_bit import lies_planar, sums, why_not_types
from stages.backends.kernels.kernel import Kernel, Lowering
from stages.backends.kernels.tir.block import Function
from stages.backends.targets.spec import Target
from stages.ir.arithmetic.fixed_point import multiply_by_quantized_multiplier, wrap
from stages.ir.arrays import Array
from stages.ir.graph import LayerView
from stages.support.lazy import np

MOST_CHANNELS = 64  # 16 KB of table


class OneInput(Kernel):
    """A table has the output pixel for each value of the input pixel.

    It takes 256 bytes of ROM per channel.
    """

    name = "arm_dsp.one_input_s8"
    row_alignment = 1
    estimate_error = 1.25
    calls = True
    ops: ClassVar[frozenset[str]] = frozenset({"conv2d"})
    sources = ("one_input.c",)

    def why_not_layer(self, view: LayerView, target: Target) -> str:
        op, y = view.op, view.outputs[0]
        if bad := why_not_types(view):
            return bad
        if op.in_channels != 1 or (*op.kernel, *op.stride, *op.padding) != (1, 1, 1, 1, 0, 0, 0, 0):
            return "not a pointwise layer on one channel"
        if op.out_channels > MOST_CHANNELS:
            return f"{op.out_channels} output channels; the limit is {MOST_CHANNELS}"
        return f"tensor {y.name} is {y.layout}; this kernel writes NHWC" if lies_planar(y) else ""

    def pack(self, view: LayerView, params: Any) -> Mapping[str, Array]:
        """Return the table by the input's bits, uint8 [256, channels up to a multiple of four]."""
        op, x, layer = view.op, view.inputs[0], sums(view, 0)
        bits = np.arange(256)
        values = np.where((bits > 127) & (x.dtype == "int8"), bits - 256, bits)
        weights = layer.weights[:, 0] - layer.weight_zero_point
        totals = wrap(values[:, None] * weights + layer.bias)
        scaled = multiply_by_quantized_multiplier(totals, layer.multiplier, layer.shift, op.rounding)
        results = np.clip(scaled + op.output_zero_point, op.act_min, op.act_max)
        return {"table": np.pad(results, ((0, 0), (0, -op.out_channels % 4))).astype(np.uint8)}

    def lower(self, view: LayerView, params: Any, target: Target) -> Lowering:
        x, y, channels = view.inputs[0], view.outputs[0], view.op.out_channels
        with Function("conv2d") as f:
            source = f.input(0, (x.elements,), x.dtype)
            table = f.constant("table", (256, -(-channels // 4) * 4), "uint8")
            out = f.output(0, (y.elements,), y.dtype)
            f.call("arm_dsp_one_input", (source, "r"), (table, "r"), (out, "w"), x.elements, channels)
        return f.lowering()

    def cost(self, view: LayerView, params: Any, target: Target) -> float:
        """Return instructions, from counts: 20 per four words, 6 a further word, 12 a pixel."""
        fours, words = divmod(-(-view.op.out_channels // 4), 4)
        return float(view.inputs[0].elements * (20 * fours + 6 * words + 12) + 60)
