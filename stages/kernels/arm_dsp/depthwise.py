"""DEPTHWISE_CONV_2D, 3x3."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from math import prod
from typing import TYPE_CHECKING, Any, ClassVar

from stages.kernels.arm_dsp.base import arithmetic, clamp_fields
from stages.kernels.eight_bit import INT8_OFFSET, weight_rows, why_not_sums, why_not_types
from stages.kernels.kernel import Kernel

if TYPE_CHECKING:
    from collections.abc import Mapping

    import numpy as np
    from numpy.typing import NDArray

    from stages.graph import LayerView, Tensor
    from stages.kernels.arm_dsp.base import Arithmetic
    from stages.kernels.kernel import Lowering
    from stages.targets.spec import Target

FIELDS = ("rows", "pairs", "odd", "jump", "column", "row", "zero_point", "floor", "low")  # of depthwise3x3.S
WIDEN = ("rows", "columns", "row_step", "column_step", "first", "pitch", "flip")  # of the C structure arm_dsp_widen
# Fields of the C structure arm_dsp_depthwise.
ANY_FIELDS = (
    *("rows", "columns", "kernel_y", "pairs", "row_step", "column_step", "tap_step"),
    *("y_row", "y_column", "zero_point", "floor", "low"),
)


class _Planes(Kernel):
    """What the depthwise kernels share: channels are planes, of which a copy is made."""

    ops: ClassVar[frozenset[str]] = frozenset({"depthwise_conv2d"})

    def why_not_layer(self, view: LayerView, target: Target) -> str:
        return why_not_types(view) or self.why_not_shape(view) or _why_not_arithmetic(view)

    @abstractmethod
    def why_not_shape(self, view: LayerView) -> str:
        """The reason the kernel cannot compute windows or weights of this kind, '' when it can."""

    def overlays(self, view: LayerView) -> bool:
        """A channel is copied before its results are written over it."""
        x, y = view.inputs[0], view.outputs[0]
        return x.physical_shape == y.physical_shape and (x.layout == "NCHW") == (y.layout == "NCHW")


class DepthwiseConv2d(_Planes):
    """3x3, stride 1 and 2, one channel at a time; the input and the output may each be NHWC or NCHW.

    A channel is widened into scratch, a padded plane of int16, and multiplied from there. Rows and columns are
    exchanged where that is cheaper. With stride 1 the output can take the input's place.
    """

    name = "arm_dsp.depthwise3x3_s8"
    sources = ("depthwise3x3.S", "depthwise.c")
    headers: ClassVar[tuple[str, ...]] = ("depthwise.h",)

    def why_not_shape(self, view: LayerView) -> str:
        op = view.op
        if op.kernel != (3, 3) or op.dilation != (1, 1) or op.stride not in ((1, 1), (2, 2)):
            return "only 3x3 windows without dilation, stride 1 or 2"
        return ""

    def pack(self, view: LayerView, params: Any) -> Mapping[str, np.ndarray]:
        import numpy as np

        return {
            "channels": np.concatenate([tap_words(view), result_words(layer_arithmetic(view))], 1),
            "fields": np.array(fields(view), np.int32),
            "widen": np.array(widen_fields(view, plane_of(view)), np.int32),
        }

    def lower(self, view: LayerView, params: Any, target: Target) -> Lowering:
        from stages.kernels.arm_dsp.depthwise_tir import depthwise

        return depthwise(view)

    def cost(self, view: LayerView, params: Any, target: Target) -> float:
        """Of the channels and of the padding; as measured."""
        plane = plane_of(view)
        channels = view.op.out_channels * view.inputs[0].shape[0]
        return float(channels * _cost(view, plane) + plane.elements * 2.0)


class DepthwiseConv2dAny(_Planes):
    """Any window, stride and multiplier, and weights with any zero point; not dilated along the rows.

    Two outputs at a time, pairs of taps by SMLAD.
    """

    name = "arm_dsp.depthwise_s8"
    sources = ("depthwise_any.c", "depthwise.c")
    headers: ClassVar[tuple[str, ...]] = ("depthwise.h", "depthwise_any.h")

    def why_not_shape(self, view: LayerView) -> str:
        op = view.op
        return "" if op.dilation[1] == 1 or op.kernel[1] == 1 else f"a dilation of {op.dilation[1]} along the rows"

    def pack(self, view: LayerView, params: Any) -> Mapping[str, np.ndarray]:
        import numpy as np

        made, taps = layer_arithmetic(view), centred_taps(view)
        padded = np.zeros((*taps.shape[:2], 2 * tap_pairs(view)), np.int16)
        padded[:, :, : taps.shape[2]] = taps
        words = padded.view(np.int32).reshape(len(taps), -1)
        plane = any_plane(view)
        return {
            "channels": np.concatenate([words, result_words(made)], 1),
            "fields": np.array(any_fields(view), np.int32),
            "widen": np.array(widen_fields(view, plane), np.int32),
        }

    def lower(self, view: LayerView, params: Any, target: Target) -> Lowering:
        from stages.kernels.arm_dsp.depthwise_any_tir import depthwise

        return depthwise(view)

    def cost(self, view: LayerView, params: Any, target: Target) -> float:
        """As measured: 2.5 instructions for a pair of taps, 2 for a row of them, 19 an output, 2.5 an element."""
        op, out, plane = view.op, view.outputs[0], any_plane(view)
        return float(
            out.elements * (op.kernel[0] * (2.5 * tap_pairs(view) + 2) + 19) + out.shape[3] * plane.elements * 2.5
        )


def _why_not_arithmetic(view: LayerView) -> str:
    if view.op.rounding != "double":
        return "rounds once"
    return why_not_sums(prod(view.op.kernel), lambda: layer_arithmetic(view))


def layer_arithmetic(view: LayerView) -> Arithmetic:
    """The layer's constants with weights as [channels, (ky, kx)]."""
    import numpy as np

    return arithmetic(view, weight_rows(view, view.constant("weights").astype(np.int64)), long=True)


def centred_taps(view: LayerView) -> NDArray[np.int64]:
    """Weights less their zero point, [channels, ky, kx]."""
    made = layer_arithmetic(view)
    return (made.weights - made.weight_zero_point).reshape(-1, *view.op.kernel)


def is_wide(view: LayerView) -> bool:
    """Whether weights less their zero point do not fit int8."""
    taps = centred_taps(view)
    return bool(taps.min() < -128 or taps.max() > 127)


def tap_words(view: LayerView) -> NDArray[np.int32]:
    """A channel's taps as depthwise3x3.S reads them, in the order of its plane: [channels, 3], wide [channels, 6]."""
    import numpy as np

    from stages.kernels.arm_dsp.packing import half_words

    taps = centred_taps(view)
    if plane_of(view).swapped:
        taps = taps.transpose(0, 2, 1)
    if not is_wide(view):
        return ((taps & 0xFF) << np.array([0, 8, 16])).sum(2).astype(np.int32)
    last = taps[:, :, 1:]
    if view.op.stride == (2, 2):
        third = np.pad(taps[:, :, 2], ((0, 0), (0, 3)))
        last = third.reshape(-1, 3, 2)
    return np.stack([half_words(taps[:, :, :2]), half_words(last)], 2).reshape(len(taps), -1)


def result_words(made: Arithmetic) -> NDArray[np.int32]:
    """Bias and scale of each channel."""
    import numpy as np

    bias = made.bias.astype(np.uint64).astype(np.uint32).view(np.int32)
    return np.concatenate([bias[:, None], made.scale.scale], 1)


def result_word_count(view: LayerView) -> int:
    """Words of `result_words`."""
    return 1 + int(layer_arithmetic(view).scale.scale.shape[1])


@dataclass(frozen=True)
class Plane:
    """The padded plane of a channel. Rows and columns are the image's columns and rows where `swapped`.

    pitch      elements from a row to the next
    near       the output's rows lie one after the other
    """

    swapped: bool
    out_rows: int
    out_columns: int
    top: int
    left: int
    in_rows: int
    in_columns: int
    rows: int
    pitch: int
    near: bool

    @property
    def elements(self) -> int:
        return self.rows * self.pitch


def plane_of(view: LayerView) -> Plane:
    """The cheaper of the two orders."""
    return min((_plane(view, swapped) for swapped in (False, True)), key=lambda plane: _cost(view, plane))


def _plane(view: LayerView, swapped: bool) -> Plane:
    op, x, y = view.op, view.inputs[0], view.outputs[0]
    stride = op.stride[0]
    sizes, outs, before = x.shape[1:3], y.shape[1:3], op.padding[:2]
    if swapped:
        sizes, outs, before = sizes[::-1], outs[::-1], before[::-1]
    rows, pitch = (outs[0] - 1) * stride + 3, -(-outs[1] // 2) * 2 * stride + 2
    return Plane(
        swapped=swapped,
        out_rows=outs[0],
        out_columns=outs[1],
        top=before[0],
        left=before[1],
        in_rows=max(min(sizes[0], rows - before[0]), 0),
        in_columns=max(min(sizes[1], pitch - before[1]), 0),
        rows=rows,
        pitch=pitch,
        near=not swapped and (y.layout == "NCHW" or y.shape[3] == 1),
    )


def _cost(view: LayerView, plane: Plane) -> float:
    """Instructions of one channel: 28 for a pair of outputs (stride 2: 31, apart: 2 more), 1.9 or 2.6 an element."""
    long = 7 if layer_arithmetic(view).scale.long else 0
    pair = (28 if view.op.stride[0] == 1 else 31) + (0 if plane.near else 2) + long
    single = 26 + long if plane.out_columns % 2 else 0
    near = channel_steps(view.inputs[0], plane.swapped)[1] == 1
    widened = plane.in_rows * (plane.in_columns * (1.9 if near else 2.6) + 14)
    return plane.out_rows * (plane.out_columns // 2 * pair + single + 22) + widened + 90


def fields(view: LayerView) -> tuple[int, ...]:
    """The fields of depthwise3x3.S."""
    op, plane, stride = view.op, plane_of(view), view.op.stride[0]
    pairs, odd = divmod(plane.out_columns, 2)
    jump = 4 if stride == 1 else 8 * (pairs + odd) + 8
    row, column = channel_steps(view.outputs[0], plane.swapped)
    clip = clamp_fields(view) if clamped(view) or is_wide(view) else (op.output_zero_point, 0, 0)
    return (plane.out_rows, pairs, odd, jump, column, row, *clip)


def widen_fields(view: LayerView, plane: Plane) -> tuple[int, ...]:
    """The fields of arm_dsp_widen."""
    x = view.inputs[0]
    first = plane.top * plane.pitch + plane.left
    return (
        plane.in_rows,
        plane.in_columns,
        *channel_steps(x, plane.swapped),
        first,
        plane.pitch,
        INT8_OFFSET[x.dtype],
    )


def clamped(view: LayerView) -> bool:
    """Whether the output's bounds are others than those of int8."""
    return (view.op.act_min, view.op.act_max) != (-128, 127)


def channel_steps(tensor: Tensor, swapped: bool) -> tuple[int, int]:
    """Bytes from a row and from a column to the next."""
    _, _, width, channels = tensor.shape
    steps = (width, 1) if tensor.layout == "NCHW" else (width * channels, channels)
    return steps[::-1] if swapped else steps


def tap_pairs(view: LayerView) -> int:
    """Pairs of taps in a row of the window."""
    return -(-int(view.op.kernel[1]) // 2)


def any_plane(view: LayerView) -> Plane:
    """The plane for windows of any kind. Rows are even, and one pair of outputs longer than the outputs need."""
    op, x, y = view.op, view.inputs[0], view.outputs[0]
    rows = (y.shape[1] - 1) * op.stride[0] + (op.kernel[0] - 1) * op.dilation[0] + 1
    columns = (y.shape[2] + y.shape[2] % 2 - 1) * op.stride[1] + 2 * tap_pairs(view)
    pitch = columns + columns % 2
    top, left = op.padding[:2]
    return Plane(
        swapped=False,
        out_rows=y.shape[1],
        out_columns=y.shape[2],
        top=top,
        left=left,
        in_rows=max(min(x.shape[1], rows - top), 0),
        in_columns=max(min(x.shape[2], pitch - left), 0),
        rows=rows,
        pitch=pitch,
        near=False,
    )


def any_fields(view: LayerView) -> tuple[int, ...]:
    """The fields of the C structure arm_dsp_depthwise."""
    op, plane = view.op, any_plane(view)
    steps = (plane.pitch * op.stride[0], op.stride[1], plane.pitch * op.dilation[0])
    row, column = channel_steps(view.outputs[0], False)
    return (plane.out_rows, plane.out_columns, op.kernel[0], tap_pairs(view), *steps, row, column, *clamp_fields(view))
