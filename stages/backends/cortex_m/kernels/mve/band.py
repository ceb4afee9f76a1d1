"""Bands of one to three rows of an NHWC image for depthwise_band.S."""

from __future__ import annotations

from stages.backends.cortex_m.kernels.mve.base import arithmetic
from stages.backends.cortex_m.kernels.mve.lines import parts_of
from stages.backends.cortex_m.kernels.mve.strips import CHUNK, strips_of
from stages.backends.kernels.eight_bit import centred_weights
from stages.backends.kernels.structure import Structure
from stages.ir.graph import LayerView
from stages.support.lazy import np, npt

LINES = 5  # bytes of a column in a strip, for bands of up to three rows
LANES = 8  # channels whose strips are in scratch at a time
WORDS = 7  # of a channel's constants
_MOST_BYTES = 32767  # from the first output to the last: offsets of 16 bits
FIELDS = Structure(
    "mve_depthwise_band",
    ("width", "pixel", "windows", "pitch", "groups", "zero_point", "low", "high", "fill"),
)


def is_band(view: LayerView) -> bool:
    """Return whether depthwise_band.S computes the layer in less time than other strips."""
    op, x, y = view.op, view.inputs[0], view.outputs[0]
    if (x.dtype, op.kernel, op.stride, op.dilation, op.depth_multiplier) != ("int8", (3, 3), (1, 1), (1, 1), 1):
        return False
    _, rows, _, channels = y.shape
    if op.padding != (0, 1, 0, 1) or rows > LINES - 2 or channels % LANES or y.bytes > _MOST_BYTES:
        return False
    return parts_of(view) == 1 and arithmetic(view).mode == "exact" and cost(view) < strips_of(view).cost()


def cost(view: LayerView) -> float:
    """Return the instructions, as counted in the assembly."""
    batch, rows, columns, channels = view.outputs[0].shape
    strips = (columns + 2) * LINES
    channel = 13 + -(-rows * columns // 8) * 36
    group = 16 + rows + columns * (3 * rows + 8) + LANES * channel
    return float(batch * (60 + strips + channels // LANES * group))


def function(view: LayerView) -> str:
    """Return the function of depthwise_band.S for the layer."""
    return f"mve_depthwise_band_r{view.outputs[0].shape[1]}"


def fields(view: LayerView) -> dict[str, int]:
    """Return the fields of the C structure mve_depthwise_band."""
    op, (_, rows, columns, channels) = view.op, view.outputs[0].shape
    return {
        "width": columns,
        "pixel": channels,
        "windows": rows * columns,
        "pitch": (columns + 2) * LINES,
        "groups": channels // LANES,
        "zero_point": op.output_zero_point,
        "low": op.act_min,
        "high": op.act_max,
        "fill": op.input_zero_point,
    }


def constants(view: LayerView) -> npt.NDArray[np.int32]:
    """Return int32 [channels, 7]: bias, multiplier, rounder and 16 bytes of weights."""
    weights = np.zeros((view.op.out_channels, CHUNK), np.int8)
    taps = centred_weights(view).reshape(-1, 3, 3)
    for column in range(3):
        weights[:, column * LINES : column * LINES + 3] = taps[:, :, column]
    return np.concatenate([arithmetic(view).params.T.astype(np.int32), weights.view(np.int32)], 1)


def places(view: LayerView) -> npt.NDArray[np.int16]:
    """Return int16 [eights * 8]: the bytes of outputs from y, -1 after the last."""
    _, rows, columns, channels = view.outputs[0].shape
    column, row = np.divmod(np.arange(-(-rows * columns // 8) * 8), rows)
    by_window = np.where(column < columns, (row * columns + column) * channels, -1)
    return np.ascontiguousarray(by_window.reshape(-1, 2, 4).swapaxes(1, 2).reshape(-1).astype(np.int16))


def strip_bytes(view: LayerView) -> int:
    """Return the bytes of eight strips and of the vectors that are read after the last windows."""
    _, rows, columns, _ = view.outputs[0].shape
    pitch, last = (columns + 2) * LINES, -(-rows * columns // 8) * 8 - 1
    return int((LANES - 1) * pitch + max(pitch, last // rows * LINES + last % rows + CHUNK))
