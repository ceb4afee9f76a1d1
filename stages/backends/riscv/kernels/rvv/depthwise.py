"""DEPTHWISE_CONV_2D, and CONV_2D of few channels, on NHWC images.

The lanes of a vector are channels, of one pixel or of neighbours.
"""

from collections.abc import Mapping
from typing import Any, ClassVar

from stages.backends.kernels.eight_bit import why_not_nhwc, why_not_sums, why_not_types
from stages.backends.kernels.kernel import Kernel, Lowering
from stages.backends.riscv.kernels.rvv.depthwise_lines import FIELDS, arithmetic, fields, lines_of
from stages.backends.targets.spec import Target
from stages.ir.arrays import Array
from stages.ir.graph import LayerView
from stages.support.lazy import np


class _Windows(Kernel):
    """Base of the kernels that call functions of depthwise.S."""

    row_alignment = 1
    estimate_error = 1.3
    sources = ("depthwise.S",)

    def why_not_layer(self, view: LayerView, target: Target) -> str:
        if bad := why_not_types(view) or why_not_nhwc(view) or self.why_not_window(view):
            return bad
        lines = lines_of(view, target.vlen)
        if lines.is_few and lines.offsets().max() + lines.x_step >= 1 << 16:
            return "the inputs of two vectors are more than 64 KB apart"
        return why_not_sums(lines.taps, lambda: arithmetic(view))

    def why_not_window(self, view: LayerView) -> str:
        """Return why the kernel cannot compute the layer's window, '' if it can."""
        return ""

    def pack_for(self, view: LayerView, params: Any, target: Target) -> Mapping[str, Array]:
        constants, lines = arithmetic(view), lines_of(view, target.vlen)
        return {
            "weights": lines.weights(constants.weights),
            "channels": lines.by_groups(constants.params),
            "columns": np.array(lines.columns, np.int32),
            "fields": FIELDS.of(fields(view, lines)),
        }

    def lower(self, view: LayerView, params: Any, target: Target) -> Lowering:
        from stages.backends.riscv.kernels.rvv.depthwise_tir import depthwise

        return depthwise(view, lines_of(view, target.vlen), arithmetic(view).mode, target.word_bits)

    def cost(self, view: LayerView, params: Any, target: Target) -> float:
        return float(view.inputs[0].shape[0] * lines_of(view, target.vlen).cost())


class Depthwise(_Windows):
    """Depthwise convolution with any window, stride, dilation and depth multiplier.

    3x3 windows have code of their own; with strides 1 and 2 neighbours share columns.
    """

    name = "rvv.depthwise_s8"
    ops: ClassVar[frozenset[str]] = frozenset({"depthwise_conv2d"})


class FewInputs(_Windows):
    """Convolution that reads inputs by index.

    An example is the first layer of a network, with 8 or 16 output channels.
    """

    name = "rvv.few_inputs_s8"
    ops: ClassVar[frozenset[str]] = frozenset({"conv2d"})

    def why_not_window(self, view: LayerView) -> str:
        op = view.op
        if op.groups > 1:
            return "grouped convolutions are not supported"
        if op.dilation[1] > 1 and op.in_channels > 1 and op.kernel[1] > 1:
            return f"a dilation of {op.dilation[1]} is not supported"
        return ""
