"""DEPTHWISE_CONV_2D on NHWC images, one channel per lane."""

from collections.abc import Mapping
from math import prod
from typing import Any, ClassVar

from stages.backends.cortex_m.kernels.mve.base import Arithmetic, MveKernel, arithmetic
from stages.backends.cortex_m.kernels.mve.lanes import Lanes, constants_of, lanes_of
from stages.backends.cortex_m.kernels.mve.lines import FIELDS, GROUP, fields, group_count, is_plain, parts_of
from stages.backends.kernels.eight_bit import centred_weights, same_bytes, why_not_centred_types, why_not_sums
from stages.backends.kernels.kernel import Lowering
from stages.backends.targets.spec import Target
from stages.ir.arrays import Array
from stages.ir.graph import LayerView
from stages.support.lazy import np


class DepthwiseKernel(MveKernel):
    """Depthwise layers without a multiplier, in modes exact and lowered."""

    ops: ClassVar[frozenset[str]] = frozenset({"depthwise_conv2d"})
    roundings: ClassVar[frozenset[str]] = frozenset({"double"})
    headers: ClassVar[tuple[str, ...]] = ("depthwise.h",)

    def why_not_operator(self, view: LayerView) -> str:
        op = view.op
        if bad := why_not_centred_types(view):
            return bad
        if op.depth_multiplier != 1:
            return f"a depth multiplier of {op.depth_multiplier} is not supported"
        if parts_of(view) > 1:
            return "weights minus their zero point do not fit int8"
        return why_not_sums(prod(op.kernel), lambda: self.arithmetic(view)) or self.why_not_window(view)

    def why_not_window(self, view: LayerView) -> str:
        """Return why the kernel cannot compute the layer's window, '' if it can."""
        return ""

    def arithmetic(self, view: LayerView) -> Arithmetic:
        """Return the layer's constants with weights as [channels, (ky, kx)]."""
        return arithmetic(view, lowered=False, shifted=False)


class Depthwise3x3(DepthwiseKernel):
    """3x3 depthwise convolution with column strides 1 and 2, in assembly.

    Works row by row; scratch holds as many line buffers as a window spans rows, used in turn.
    """

    name = "mve.depthwise3x3_s8"
    row_alignment = 1
    estimate_error = 1.25
    sources = ("depthwise3x3.S", "depthwise3x3.c")

    def why_not_window(self, view: LayerView) -> str:
        op = view.op
        if op.kernel != (3, 3) or op.dilation != (1, 1) or op.stride[1] > 2:
            return "only 3x3 windows without dilation and with stride 1 or 2 are supported"
        return why_not_pairs(centred_weights(view)[:, :8])

    def overlays(self, view: LayerView) -> bool:
        """Return whether results may replace the input: line buffers hold the rows still needed."""
        return same_bytes(view.inputs[0], view.outputs[0])

    def pack(self, view: LayerView, params: Any) -> Mapping[str, Array]:
        constants, channels = self.arithmetic(view), view.op.out_channels
        groups = group_count(view)
        behind = ((0, 0), (0, groups * GROUP - channels))
        weights = np.pad(centred_weights(view).T.astype(np.int8), behind).reshape(-1, groups, GROUP).transpose(1, 0, 2)
        numbers = np.pad(constants.params, behind).reshape(3, groups, 4, 4).transpose(1, 0, 3, 2)
        words = np.ascontiguousarray(weights).view(np.int32).reshape(groups, -1)
        return {
            "constants": np.concatenate([words, numbers.reshape(groups, -1).astype(np.int32)], 1),
            "fields": FIELDS.of(fields(view)),
        }

    def lower(self, view: LayerView, params: Any, target: Target) -> Lowering:
        from stages.backends.cortex_m.kernels.mve.depthwise_tir import depthwise

        mode, clipped = self.arithmetic(view).mode, "" if is_plain(view) else "_clipped"
        return depthwise(view, f"mve_depthwise3x3_{mode}_s{view.op.stride[1]}{clipped}", mode)

    def cost(self, view: LayerView, params: Any, target: Target) -> float:
        """Return the instructions, from counts: outputs, 4 or 6 per copied pixel, 140 per row."""
        batch, height, width, channels = view.outputs[0].shape
        _, in_height, in_width, _ = view.inputs[0].shape
        output = 116 + 8 * (self.arithmetic(view).mode == "lowered") + 6 * (not is_plain(view))
        pixel = 4 if channels >= GROUP and view.inputs[0].dtype == "int8" else 6
        rows = height * (width * output + 90) + in_height * (in_width * pixel + 50)
        return float(batch * group_count(view) * (rows + 60))


class Depthwise(DepthwiseKernel):
    """Depthwise convolution of any window, stride and dilation.

    16 channels at a time, or four where fewer remain.
    """

    name = "mve.depthwise_s8"
    row_alignment = 1
    estimate_error = 1.25
    sources = ("lanes.S", "quads.S", "lanes.c")
    headers: ClassVar[tuple[str, ...]] = ("lanes.h",)

    def why_not_window(self, view: LayerView) -> str:
        taps = prod(view.op.kernel)
        return why_not_pairs(centred_weights(view)[:, taps % 2 :])

    def lanes(self, view: LayerView) -> Lanes:
        """Return the distribution of the layer's channels over vectors."""
        return lanes_of(view, self.arithmetic(view).mode)

    def pack(self, view: LayerView, params: Any) -> Mapping[str, Array]:
        return constants_of(self.lanes(view), self.arithmetic(view).params, centred_weights(view))

    def lower(self, view: LayerView, params: Any, target: Target) -> Lowering:
        from stages.backends.cortex_m.kernels.mve.lanes_tir import depthwise

        return depthwise(self.lanes(view))

    def cost(self, view: LayerView, params: Any, target: Target) -> float:
        return float(view.inputs[0].shape[0] * self.lanes(view).cost())


def why_not_pairs(weights: Array) -> str:
    """Return why products cannot be added in int16 two by two, '' if they can.

    Weights are [channels, pairs * 2].
    """
    pairs = (weights == -128).reshape(len(weights), -1, 2)
    return "two paired weights are -128; their products do not fit int16" if pairs.all(axis=2).any() else ""
