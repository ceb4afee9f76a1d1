"""DEPTHWISE_CONV_2D on NHWC images, sixteen channels at a time."""

from __future__ import annotations

from abc import abstractmethod
from math import prod
from typing import TYPE_CHECKING, Any, ClassVar

from stages.kernels.eight_bit import INT8_OFFSET, weight_rows, why_not_centred_types, why_not_sums
from stages.kernels.generic.parameters import taps
from stages.kernels.mve.base import MveKernel, arithmetic

if TYPE_CHECKING:
    from collections.abc import Mapping

    import numpy as np

    from stages.graph import LayerView
    from stages.kernels.kernel import Lowering
    from stages.kernels.mve.base import Arithmetic
    from stages.targets.spec import Target

GROUP = 16
WIDEST = 254  # the largest weight that is the sum of two int8 numbers
# The C structure mve_depthwise of depthwise.h, field by field.
FIELDS = (
    *("height", "width", "pixel", "out_height", "out_width"),
    *("kernel_y", "kernel_x", "stride_y", "stride_x", "dilation_y", "dilation_x", "top", "left"),
    *("fill", "flip", "zero_point", "low", "high", "pitch"),
)


class DepthwiseKernel(MveKernel):
    """The rows that a row of windows covers are copied into lines of 16 channels: that is all the scratch there is."""

    ops: ClassVar[frozenset[str]] = frozenset({"depthwise_conv2d"})
    headers: ClassVar[tuple[str, ...]] = ("depthwise.h",)
    prefers_lowered: ClassVar[bool] = False

    def why_not_operator(self, view: LayerView) -> str:
        op = view.op
        if bad := why_not_centred_types(view):
            return bad
        if op.depth_multiplier != 1:
            return f"a depth multiplier of {op.depth_multiplier}"
        if op.rounding != "double":
            return "rounds once"
        if centred_weights(view).max() > WIDEST:
            return f"a weight minus its zero point is above {WIDEST}"
        return why_not_sums(prod(op.kernel), lambda: self.arithmetic(view)) or self.why_not_window(view)

    def why_not_window(self, view: LayerView) -> str:
        """The reason the kernel cannot do the layer's window, '' when it can."""
        return ""

    def arithmetic(self, view: LayerView) -> Arithmetic:
        """The layer's constants with weights as [channels, (ky, kx)]."""
        import numpy as np

        weights = weight_rows(view, view.constant("weights").astype(np.int64))
        return arithmetic(view, weights, lowered=self.prefers_lowered)

    def pack(self, view: LayerView, params: Any) -> Mapping[str, np.ndarray]:
        import numpy as np

        made, channels, values = self.arithmetic(view), view.op.out_channels, fields(view)
        groups = group_count(view)
        behind = ((0, 0), (0, groups * GROUP - channels))
        centred = centred_weights(view)
        low = np.clip(centred, -128, 127)
        parts = np.stack([low, centred - low][: parts_of(view)], 2)  # [channels, taps, parts]
        by_tap = parts.reshape(channels, -1).T.astype(np.int8)
        weights = np.pad(by_tap, behind).reshape(-1, groups, GROUP).transpose(1, 0, 2)
        numbers = np.pad(made.params, behind).reshape(3, groups, 4, 4).transpose(1, 0, 3, 2)
        words = np.ascontiguousarray(weights).view(np.int32).reshape(groups, -1)
        return {
            "constants": np.concatenate([words, numbers.reshape(groups, -1).astype(np.int32)], 1),
            "fields": np.array([values[name] for name in FIELDS], np.int32),
        }

    def lower(self, view: LayerView, params: Any, target: Target) -> Lowering:
        from stages.kernels.mve.depthwise_tir import depthwise

        return depthwise(view, self)

    @abstractmethod
    def function(self, view: LayerView) -> str:
        """The C function of a group of channels."""

    @abstractmethod
    def per_output(self, view: LayerView) -> float:
        """Instructions for an output of a group, as counted."""

    def cost(self, view: LayerView, params: Any, target: Target) -> float:
        """Outputs, 6 for a pixel that is copied, 110 for a row."""
        batch, height, width, _ = view.outputs[0].shape
        _, in_height, in_width, _ = view.inputs[0].shape
        rows = height * (width * self.per_output(view) + 60) + in_height * (in_width * 6 + 50)
        return float(batch * group_count(view) * (rows + 60))


class Depthwise3x3(DepthwiseKernel):
    """Strides of 1 and 2 columns, in assembly."""

    name = "mve.depthwise3x3_s8"
    sources = ("depthwise3x3.S", "depthwise3x3.c")

    def why_not_window(self, view: LayerView) -> str:
        op = view.op
        if parts_of(view) > 1:
            return "weights minus their zero point do not fit int8"
        if op.kernel != (3, 3) or op.dilation != (1, 1) or op.stride[1] > 2:
            return "only 3x3 windows without dilation, of stride 1 or 2"
        pairs = centred_weights(view)[:, :8].reshape(-1, 4, 2)
        if (pairs == -128).all(axis=2).any():
            return "two weights of -128 meet: their products do not fit int16"
        return ""

    def function(self, view: LayerView) -> str:
        op = view.op
        plain = view.inputs[0].dtype == "int8" and (op.act_min, op.act_max) == (-128, 127)
        return f"mve_depthwise3x3_{self.arithmetic(view).mode}_s{op.stride[1]}{'' if plain else '_clipped'}"

    def per_output(self, view: LayerView) -> float:
        return 126


class Depthwise(DepthwiseKernel):
    """Any window, stride and dilation; weights that minus their zero point do not fit int8 are each the sum of two."""

    name = "mve.depthwise_s8"
    sources = ("depthwise.c",)
    prefers_lowered = True

    def function(self, view: LayerView) -> str:
        return "mve_depthwise_any" if parts_of(view) == 1 else "mve_depthwise_wide"

    def per_output(self, view: LayerView) -> float:
        return float(prod(view.op.kernel) * (9 + 7 * parts_of(view)) + view.op.kernel[0] * 12 + 75)


def centred_weights(view: LayerView) -> np.ndarray:
    """int16 [channels, (ky, kx)] without their zero point."""
    import numpy as np

    return weight_rows(view, view.constant("weights").astype(np.int16) - np.int16(view.op.weight_zero_point))


def parts_of(view: LayerView) -> int:
    """How many int8 numbers a weight is the sum of."""
    weights = centred_weights(view)
    return 1 if weights.min() >= -128 and weights.max() <= 127 else 2


def group_count(view: LayerView) -> int:
    return -(-int(view.op.out_channels) // GROUP)


def lines(view: LayerView) -> tuple[int, int]:
    """Lines of the scratch, and the bytes of one."""
    op = view.op
    span = [(op.kernel[i] - 1) * op.dilation[i] + 1 for i in range(2)]
    columns = (view.outputs[0].shape[2] - 1) * op.stride[1] + span[1]
    return span[0], columns * GROUP


def fields(view: LayerView) -> dict[str, int]:
    """The fields of mve_depthwise."""
    op, offset = view.op, INT8_OFFSET[view.inputs[0].dtype]
    _, height, width, channels = view.inputs[0].shape
    _, out_height, out_width, _ = view.outputs[0].shape
    values = (
        *(height, width, channels, out_height, out_width, *taps(op).values(), op.input_zero_point - offset, offset),
        *(op.output_zero_point - offset, op.act_min - offset, op.act_max - offset, lines(view)[1]),
    )
    return dict(zip(FIELDS, values, strict=True))
