"""DEPTHWISE_CONV_2D with windows of any height and up to five columns."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

from stages.kernels.eight_bit import centred_weights, why_not_types
from stages.kernels.kernel import Kernel
from stages.kernels.rvp.strips import geometry, is_split, layer_arithmetic, why_not_arithmetic
from stages.kernels.rvp.window_strips import MAX_COLUMNS, orders, starts, strips_cost, swapped, window

if TYPE_CHECKING:
    from collections.abc import Mapping

    import numpy as np

    from stages.graph import LayerView
    from stages.kernels.kernel import Lowering
    from stages.targets.spec import Target


class DepthwiseWindow(Kernel):
    """Windows of up to five columns, or rows where strips run along the rows; strides 1 and 2 along them.

    A group of 4 * lanes channels at a time, in the strips of the 3x3 kernel. Pixels that are not whole registers are
    moved byte by byte.
    """

    name = "rvp.depthwise_s8"
    ops: ClassVar[frozenset[str]] = frozenset({"depthwise_conv2d"})
    sources = ("depthwise_window.c",)
    headers: ClassVar[tuple[str, ...]] = ("depthwise_window.h",)

    def why_not_layer(self, view: LayerView, target: Target) -> str:
        return why_not_types(view) or _why_not_shape(view) or why_not_arithmetic(view)

    def pack_for(self, view: LayerView, params: Any, target: Target) -> Mapping[str, np.ndarray]:
        import numpy as np

        from stages.kernels.rvp import packing

        made, exchanged = layer_arithmetic(view), swapped(view)
        taps = centred_weights(view).astype(np.int64).T.reshape(*view.op.kernel, -1)
        if exchanged:
            taps = taps.transpose(1, 0, 2)
        (rows, columns), (row_stride, stride) = window(view)
        fields = (*geometry(view, exchanged=exchanged), rows, columns, row_stride, 1 + is_split(view))
        return {
            "params": packing.window_params(
                taps,
                made.bias,
                made.multiplier,
                made.rounders,
                target.word_bits,
                starts=starts(stride, columns),
                split=is_split(view),
            ),
            "window": np.array(fields, np.int32),
        }

    def lower(self, view: LayerView, params: Any, target: Target) -> Lowering:
        from stages.kernels.rvp.depthwise_window_tir import depthwise

        return depthwise(view, target.word_bits // 32)

    def cost(self, view: LayerView, params: Any, target: Target) -> float:
        """Of a strip: what `strips_cost` says, by group of channels; 300 around it."""
        lanes = target.word_bits // 32
        groups = -(-view.op.out_channels // (4 * lanes))
        whole = view.op.out_channels % (4 * lanes) == 0
        return float(groups * view.outputs[0].shape[0] * strips_cost(view, swapped(view), lanes, whole=whole))


def _why_not_shape(view: LayerView) -> str:
    op, x, y = view.op, view.inputs[0], view.outputs[0]
    if op.dilation != (1, 1):
        return "only windows without dilation"
    if not orders(view):
        return f"only windows of up to {MAX_COLUMNS} columns or rows, with a stride of 1 or 2 along them"
    if any(op.padding[i] >= op.kernel[i % 2] for i in range(4)):
        return "windows that lie outside of the image"
    if op.depth_multiplier != 1:
        return f"a depth multiplier of {op.depth_multiplier}"
    if "NCHW" in (x.layout, y.layout):
        return "the kernel reads and writes NHWC; it transposes strips itself"
    if op.rounding != "double":
        return "rounds once"
    return ""
