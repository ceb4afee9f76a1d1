"""DEPTHWISE_CONV_2D: 3x3 and rows of five or seven taps by planes, any window by channels."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping
from math import prod
from typing import Any, ClassVar

from stages.backends.cortex_m.kernels.arm_dsp import band, channels
from stages.backends.cortex_m.kernels.arm_dsp.base import Arithmetic, arithmetic, clamps
from stages.backends.cortex_m.kernels.arm_dsp.packing import half_words
from stages.backends.cortex_m.kernels.arm_dsp.planes import (
    BYTES_FIELDS,
    FIELDS,
    ROW_FIELDS,
    WIDEN,
    bytes_cost,
    centred_taps,
    channel_steps,
    clamped,
    is_wide,
    plane_cost,
    plane_of,
    reads_bytes,
    row_plane,
    tap_pairs,
    widen_fields,
)
from stages.backends.kernels.eight_bit import lies_planar, same_bytes, why_not_sums, why_not_types
from stages.backends.kernels.kernel import Kernel, Lowering
from stages.backends.kernels.single_channel import SingleChannel
from stages.backends.targets.spec import Target
from stages.ir.graph import LayerView
from stages.support.lazy import np, npt


class _Planes(SingleChannel):
    """Depthwise kernels that copy each channel into a plane. Tensors may be NHWC, NCHW or NHCW."""

    band_layouts: ClassVar[tuple[str, ...]] = ("NHCW",)

    def why_not_layer(self, view: LayerView, target: Target) -> str:
        return why_not_types(view) or self.why_not_shape(view) or _why_not_arithmetic(view)

    @abstractmethod
    def why_not_shape(self, view: LayerView) -> str:
        """Return why the kernel cannot compute these windows or weights, '' if it can."""

    def overlays(self, view: LayerView) -> bool:
        """Return whether results may replace the input: each channel is copied before its results."""
        return same_bytes(view.inputs[0], view.outputs[0])


class DepthwiseConv2d(_Planes):
    """3x3 depthwise convolution, stride 1 and 2, one channel at a time.

    A channel is widened into scratch, a padded plane of int16. Rows and columns are swapped where that is cheaper. With
    stride 1 the output can replace the input. Bands of few rows are computed without a plane (`reads_bytes`, `band`).
    """

    name = "arm_dsp.depthwise3x3_s8"
    row_alignment = 1
    roundings: ClassVar[frozenset[str]] = frozenset({"double"})
    sources = ("depthwise3x3.S", "depthwise_band.S", "depthwise.c", "widen.S")
    headers: ClassVar[tuple[str, ...]] = ("depthwise.h", "depthwise_band.h")

    def why_not_shape(self, view: LayerView) -> str:
        op = view.op
        if op.kernel != (3, 3) or op.dilation != (1, 1) or op.stride not in ((1, 1), (2, 2)):
            return "only 3x3 windows without dilation and with stride 1 or 2 are supported"
        return ""

    def pack(self, view: LayerView, params: Any) -> Mapping[str, np.ndarray]:
        words = np.concatenate([tap_words(view), result_words(arithmetic(view, long=True))], 1)
        if reads_bytes(view):
            return {"channels": words, "fields": BYTES_FIELDS.of(bytes_fields(view))}
        if band.is_band(view):
            return {"channels": words, "fields": band.FIELDS.of(band.fields(view))}
        return {
            "channels": words,
            "fields": FIELDS.of(fields(view)),
            "widen": WIDEN.of(widen_fields(view, plane_of(view))),
        }

    def lower(self, view: LayerView, params: Any, target: Target) -> Lowering:
        from stages.backends.cortex_m.kernels.arm_dsp.depthwise_tir import depthwise

        return depthwise(view)

    def cost(self, view: LayerView, params: Any, target: Target) -> float:
        """Return the instructions of the channels and the padding, as measured."""
        plane = plane_of(view)
        channels = view.op.out_channels * view.inputs[0].shape[0]
        if reads_bytes(view):
            return channels * bytes_cost(view)
        if band.is_band(view):
            return float(channels * band.cost(view))
        return float(channels * plane_cost(view, plane) + plane.elements * 2.0)


class DepthwiseConv2dRows(_Planes):
    """Depthwise convolution of five or seven columns and up to seven rows.

    Any row stride and column dilation. Computes two outputs at a time, from pairs of taps at even and at odd columns.
    """

    name = "arm_dsp.depthwise_rows_s8"
    row_alignment = 1
    roundings: ClassVar[frozenset[str]] = frozenset({"double"})
    estimate_error = 1.5
    sources = ("depthwise_rows.S", "depthwise.c", "widen.S")
    headers: ClassVar[tuple[str, ...]] = ("depthwise.h", "depthwise_rows.h")

    def why_not_shape(self, view: LayerView) -> str:
        op = view.op
        if op.kernel[1] not in (5, 7) or op.kernel[0] > 7 or op.stride[1] != 1 or op.dilation[1] != 1:
            return "only windows of 5 or 7 columns and up to 7 rows, column stride 1 and row dilation 1 are supported"
        return ""

    def pack(self, view: LayerView, params: Any) -> Mapping[str, np.ndarray]:
        constants, taps = arithmetic(view, long=True), centred_taps(view)
        channels, rows, columns = taps.shape
        pairs = np.concatenate([taps[:, :, : columns - 1], taps[:, :, 1:]], 2).reshape(channels, rows, -1, 2)
        words = half_words(pairs).reshape(channels, -1)
        return {
            "channels": np.concatenate([words, result_words(constants)], 1),
            "fields": ROW_FIELDS.of(row_fields(view)),
            "widen": WIDEN.of(widen_fields(view, row_plane(view))),
        }

    def lower(self, view: LayerView, params: Any, target: Target) -> Lowering:
        from stages.backends.cortex_m.kernels.arm_dsp.depthwise_rows_tir import depthwise

        return depthwise(view)

    def cost(self, view: LayerView, params: Any, target: Target) -> float:
        """Return the instructions, as measured.

        9 or 12 per row of taps of two outputs, 31 per two outputs, 2.6 per element, 25 per row.
        """
        op, out, plane = view.op, view.outputs[0], row_plane(view)
        long = 9 if arithmetic(view, long=True).scale.long else 0
        pair = op.kernel[0] * (9 if op.kernel[1] == 5 else 12) + 31 + long
        rows = plane.out_rows * (-(-plane.out_columns // 2) * pair + 25)
        widened = plane.in_rows * (plane.in_columns * 2.6 + 14)
        return float(out.shape[0] * out.shape[3] * (rows + widened + 110) + 2 * plane.elements)


class DepthwiseConv2dChannels(Kernel):
    """Depthwise convolution of any window, stride, dilation and multiplier on NHWC images.

    Four channels at a time; the output may have either layout. A window is a list of pointers to its pixels, without
    copies.
    """

    name = "arm_dsp.depthwise_channels_s8"
    row_alignment = 1
    estimate_error = 1.25
    ops: ClassVar[frozenset[str]] = frozenset({"depthwise_conv2d"})
    sources = ("depthwise_channels.S", "depthwise_channels.c")

    def why_not_layer(self, view: LayerView, target: Target) -> str:
        x = view.inputs[0]
        if x.shape[3] < channels.BLOCK:
            return f"{x.shape[3]} channels; this kernel needs at least {channels.BLOCK}"
        if lies_planar(x):
            return f"tensor {x.name} is NCHW; this kernel reads NHWC"
        return why_not_types(view) or _why_not_arithmetic(view)

    def pack(self, view: LayerView, params: Any) -> Mapping[str, np.ndarray]:
        x = view.inputs[0]
        return {
            "blocks": channels.blocks(view),
            "outside": np.full(x.shape[3], view.op.input_zero_point, x.dtype),
            "fields": channels.FIELDS.of(channels.fields(view)),
        }

    def lower(self, view: LayerView, params: Any, target: Target) -> Lowering:
        from stages.backends.cortex_m.kernels.arm_dsp.depthwise_channels_tir import depthwise

        return depthwise(view)

    def cost(self, view: LayerView, params: Any, target: Target) -> float:
        """Return the instructions, as measured.

        16 per two taps of a block, 29 per results of a block, 60 per window and 5 per tap.
        """
        op, y = view.op, view.outputs[0]
        pixels, taps = y.shape[0] * y.shape[1] * y.shape[2], prod(op.kernel)
        long = 20 if channels.scale_words(view) > 2 else 0
        block = 16 * channels.pairs(view) + 29 + long + (0 if channels.is_near(view) else 9)
        groups = op.depth_multiplier * (channels.block_count(view) * block + 40)
        return float(pixels * (groups + 5.0 * taps + 60))


def _why_not_arithmetic(view: LayerView) -> str:
    return why_not_sums(prod(view.op.kernel), lambda: arithmetic(view, long=True))


def tap_words(view: LayerView) -> npt.NDArray[np.int32]:
    """Return the taps of each channel: [channels, 3], wide [channels, 6]."""
    taps = centred_taps(view)
    if band.is_band(view):
        columns = taps.transpose(0, 2, 1)[:, :, [0, 1, 1, 2]].astype(np.int8)
        return np.ascontiguousarray(columns).view(np.int32).reshape(len(taps), -1)
    if plane_of(view).swapped and not reads_bytes(view):
        taps = taps.transpose(0, 2, 1)
    if not is_wide(view):
        return ((taps & 0xFF) << np.array([0, 8, 16])).sum(2).astype(np.int32)
    last = taps[:, :, 1:]
    if view.op.stride == (2, 2):
        third = np.pad(taps[:, :, 2], ((0, 0), (0, 3)))
        last = third.reshape(-1, 3, 2)
    return np.stack([half_words(taps[:, :, :2]), half_words(last)], 2).reshape(len(taps), -1)


def result_words(constants: Arithmetic) -> npt.NDArray[np.int32]:
    """Return bias and scale of each channel."""
    bias = constants.bias.astype(np.uint64).astype(np.uint32).view(np.int32)
    return np.concatenate([bias[:, None], constants.scale.scale], 1)


def fields(view: LayerView) -> dict[str, int]:
    """Return the fields of depthwise3x3.S."""
    op, plane, stride = view.op, plane_of(view), view.op.stride[0]
    pairs, odd = divmod(plane.out_columns, 2)
    jump = 4 if stride == 1 else 8 * (pairs + odd) + 8
    row, column = channel_steps(view.outputs[0], plane.swapped)
    plain = {"zero_point": op.output_zero_point, "floor": 0, "low": 0}
    return {
        "rows": plane.out_rows,
        "pairs": pairs,
        "odd": odd,
        "jump": jump,
        "column": column,
        "row": row,
        **(clamps(view) if clamped(view) or is_wide(view) else plain),
    }


def bytes_fields(view: LayerView) -> dict[str, int]:
    """Return the fields of depthwise3x3.S for rows without a plane."""
    op, x, y = view.op, view.inputs[0], view.outputs[0]
    stride, x_row = op.stride[0], channel_steps(x, False)[0]
    row, column = channel_steps(y, False)
    return {
        "rows": y.shape[1],
        "pairs": (y.shape[2] - (3 if stride == 1 else 1)) // 2,
        "odd": y.shape[2] % 2,
        "jump": x_row - (x.shape[2] - 3) if stride == 1 else 2 * x_row - x.shape[2],
        "column": column,
        "row": row,
        **(clamps(view) if clamped(view) else {"zero_point": op.output_zero_point, "floor": 0, "low": 0}),
        "x_row": x_row,
        "pad": op.input_zero_point & 0xFF,
    }


def row_fields(view: LayerView) -> dict[str, int]:
    """Return the fields of the C structure arm_dsp_depthwise."""
    op, plane = view.op, row_plane(view)
    row, column = channel_steps(view.outputs[0], False)
    return {
        "rows": plane.out_rows,
        "columns": plane.out_columns,
        "kernel_y": op.kernel[0],
        "pairs": tap_pairs(view),
        "row_step": plane.pitch * op.stride[0],
        "column_step": op.stride[1],
        "tap_step": plane.pitch * op.dilation[0],
        "y_row": row,
        "y_column": column,
        **clamps(view),
    }
