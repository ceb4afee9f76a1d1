"""DEPTHWISE_CONV_2D, 3x3."""

from __future__ import annotations

from math import prod
from typing import TYPE_CHECKING, Any, ClassVar

from stages.kernels.eight_bit import weight_rows, why_not_sums, why_not_types
from stages.kernels.kernel import Kernel
from stages.kernels.rvp.base import arithmetic, clip_word

if TYPE_CHECKING:
    from collections.abc import Mapping

    import numpy as np
    from numpy.typing import NDArray

    from stages.graph import LayerView
    from stages.kernels.kernel import Lowering
    from stages.kernels.rvp.base import Arithmetic
    from stages.targets.spec import Target

GEOMETRY_FIELDS = 12  # int32 fields of the C structure rvp_depthwise_geometry


class DepthwiseConv2d(Kernel):
    """3x3, stride 1 and 2, on NHWC images, a group of 4 * lanes channels at a time.

    Strips of four columns (or rows, where that wastes fewer) are transposed into scratch, so that the columns of a
    channel are neighbours, and back.
    """

    name = "rvp.depthwise3x3_s8"
    ops: ClassVar[frozenset[str]] = frozenset({"depthwise_conv2d"})
    sources = ("depthwise3x3_s8.S", "depthwise.c")
    headers: ClassVar[tuple[str, ...]] = ("depthwise.h",)

    def why_not_layer(self, view: LayerView, target: Target) -> str:
        return why_not_types(view) or _why_not_shape(view, target) or why_not_arithmetic(view)

    def pack_for(self, view: LayerView, params: Any, target: Target) -> Mapping[str, np.ndarray]:
        import numpy as np

        from stages.kernels.rvp import packing

        made = layer_arithmetic(view)
        taps = centred(view).T.reshape(3, 3, -1)
        if swapped(view):
            taps = taps.transpose(1, 0, 2)
        return {
            "params": packing.depthwise_params(
                taps, made.bias, made.multiplier, made.rounders, target.word_bits, split=is_split(view)
            ),
            "geometry": np.array(geometry(view, exchanged=swapped(view)), np.int32),
        }

    def lower(self, view: LayerView, params: Any, target: Target) -> Lowering:
        from stages.kernels.rvp.depthwise_tir import depthwise

        return depthwise(view, target.word_bits // 32)

    def cost(self, view: LayerView, params: Any, target: Target) -> float:
        """Per strip: 4 * 39 (stride 2: 46) a row in the kernel, 32 for a row in, 27 out, 300 around, as measured."""
        lanes, stride = target.word_bits // 32, view.op.stride[0]
        _, _, out_rows, out_columns = extents(view, exchanged=swapped(view))
        strips = -(-out_columns // 4)
        row = 4 * (39 if stride == 1 else 46) + 27 + 32 * stride * stride + (72 if is_split(view) else 0)
        return float(view.op.out_channels / (4 * lanes) * strips * (out_rows * row + 300))


def _why_not_shape(view: LayerView, target: Target) -> str:
    op, x, y = view.op, view.inputs[0], view.outputs[0]
    group = 4 * (target.word_bits // 32)
    if op.kernel != (3, 3) or op.dilation != (1, 1) or op.stride not in ((1, 1), (2, 2)):
        return "only 3x3 windows without dilation, stride 1 or 2"
    if op.depth_multiplier != 1:
        return f"a depth multiplier of {op.depth_multiplier}"
    if op.out_channels % group:
        return f"{op.out_channels} channels are no multiple of {group}"
    if "NCHW" in (x.layout, y.layout):
        return "the kernel reads and writes NHWC; it transposes strips itself"
    if op.rounding != "double":
        return "rounds once"
    return ""


def why_not_arithmetic(view: LayerView) -> str:
    """Why the layer's constants are not what the kernels multiply and round by, '' if they are."""
    if bad := why_not_sums(prod(view.op.kernel), lambda: layer_arithmetic(view)):
        return bad
    if is_split(view) and view.inputs[0].dtype == "int8":
        return "weights minus their zero point do not fit int8"
    if centred(view).max() > 2 * 127:
        return "a weight minus its zero point is 255, which is not the sum of two int8"
    return ""


def centred(view: LayerView) -> NDArray[np.int64]:
    """Weights minus their zero point, [channels, (ky, kx)]."""
    made = layer_arithmetic(view)
    return made.weights - made.weight_zero_point


def is_split(view: LayerView) -> bool:
    """Whether weights minus their zero point need more than int8."""
    taps = centred(view)
    return bool(taps.min() < -128 or taps.max() > 127)


def layer_arithmetic(view: LayerView) -> Arithmetic:
    """The layer's constants with weights as [channels, (ky, kx)]. uint8 activations stay unsigned."""
    import numpy as np

    weights = weight_rows(view, view.constant("weights").astype(np.int64))
    return arithmetic(view, weights, signed_activations=False)


def swapped(view: LayerView) -> bool:
    """Whether strips run along the rows of the image, four rows wide: where four columns would waste more."""
    _, height, width, _ = view.outputs[0].shape
    return bool(_work(width, height) < _work(height, width))


def _work(rows: int, columns: int) -> int:
    """What the strips cost, in sixths of a row: each costs a row beside its own, and one tile more comes in."""
    return -(-columns // 4) * 6 * (rows + 1) + rows


def extents(view: LayerView, *, exchanged: bool) -> tuple[int, int, int, int]:
    """Rows and columns of input and output, as the strips see them. `exchanged`: they run along the rows."""
    _, rows, columns, _ = view.inputs[0].shape
    _, out_rows, out_columns, _ = view.outputs[0].shape
    return (columns, rows, out_columns, out_rows) if exchanged else (rows, columns, out_rows, out_columns)


def geometry(view: LayerView, *, exchanged: bool) -> tuple[int, ...]:
    """The fields of rvp_depthwise_geometry, in order. `exchanged`: strips run along the rows."""
    op, x, y = view.op, view.inputs[0], view.outputs[0]
    channels = op.out_channels
    rows, columns, out_rows, out_columns = extents(view, exchanged=exchanged)
    steps = (x.shape[2] * channels, channels)
    out_steps = (y.shape[2] * channels, channels)
    padding = op.padding[:2]
    if exchanged:
        steps, out_steps, padding = steps[::-1], out_steps[::-1], padding[::-1]
    tail = (op.input_zero_point, clip_word(view))
    return (rows, columns, *steps, out_rows, out_columns, *out_steps, *padding, *tail)


def scratch_bytes(view: LayerView, lanes: int) -> int:
    """Two strips of input, one of results, two registers: what depthwise.c uses."""
    stride: int = view.op.stride[0]
    _, _, out_rows, _ = extents(view, exchanged=swapped(view))
    rows = (out_rows - 1) * stride + 3
    return 4 * lanes * (2 + 4 * out_rows + 2 * rows * 4 * (1 + stride))
