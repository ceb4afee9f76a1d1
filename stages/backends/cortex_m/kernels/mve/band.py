"""Bands of one to three rows of an NHWC image for depthwise_band.S."""

from __future__ import annotations

from stages.backends.cortex_m.kernels.mve.base import arithmetic
from stages.backends.cortex_m.kernels.mve.lines import is_plain, parts_of
from stages.backends.cortex_m.kernels.mve.strips import CHUNK, strips_of
from stages.backends.kernels.eight_bit import centred_weights
from stages.backends.kernels.structure import Structure
from stages.ir.graph import LayerView
from stages.support.lazy import np, npt

_MOST_LINES = 5  # bytes of a column in a strip; three columns are in a vector
LANES = 8  # channels whose strips are in scratch at a time
WORDS = 6  # of a channel's constants
HEAD = 8  # int16 before the places of outputs: the order of the weights
_MOST_BYTES = 32767  # from the first output to the last: offsets of 16 bits
FIELDS = Structure(
    "mve_depthwise_band",
    ("width", "pixel", "windows", "pitch", "groups", "zero_point", "low", "high", "fill", "inside", "row"),
)


def lines_of(view: LayerView) -> int:
    """Return the rows of the image that the windows read: bytes of a column in a strip."""
    return int((view.outputs[0].shape[1] - 1) * view.op.stride[0] + 3)


def is_band(view: LayerView) -> bool:
    """Return whether depthwise_band.S computes the layer in less time than other strips."""
    op, x, y = view.op, view.inputs[0], view.outputs[0]
    if (x.dtype, op.kernel, op.dilation, op.depth_multiplier) != ("int8", (3, 3), (1, 1), 1):
        return False
    if op.stride not in ((1, 1), (2, 2)) or lines_of(view) > _MOST_LINES or lines_of(view) > x.shape[1]:
        return False
    if op.padding[0] or y.shape[3] % LANES or y.bytes > _MOST_BYTES or _pixels(view) < 1:
        return False
    return parts_of(view) == 1 and arithmetic(view).mode == "exact" and cost(view) < strips_of(view).cost()


def _columns(view: LayerView) -> int:
    """Return the columns of a strip, with padding."""
    return int((view.outputs[0].shape[2] - 1) * view.op.stride[1] + 3)


def _pixels(view: LayerView) -> int:
    """Return the pixels of a row that the windows read."""
    return int(min(view.inputs[0].shape[2], _columns(view) - view.op.padding[1]))


def cost(view: LayerView) -> float:
    """Return the instructions, as counted in the assembly."""
    batch, rows, columns, channels = view.outputs[0].shape
    lines = lines_of(view)
    channel = 14 + -(-rows * columns // 8) * (36 if is_plain(view) else 37)
    group = 14 + lines + _pixels(view) * (3 * lines + 2) + LANES * channel
    return float(batch * (60 + _columns(view) * lines + channels // LANES * group))


def function(view: LayerView) -> str:
    """Return the function of depthwise_band.S for the layer."""
    stride, clipped = "_s2" if view.op.stride[0] > 1 else "", "" if is_plain(view) else "_clipped"
    return f"mve_depthwise_band_r{view.outputs[0].shape[1]}{stride}{clipped}"


def fields(view: LayerView) -> dict[str, int]:
    """Return the fields of the C structure mve_depthwise_band."""
    op, (_, rows, columns, channels) = view.op, view.outputs[0].shape
    return {
        "width": _pixels(view),
        "pixel": channels,
        "windows": rows * columns,
        "pitch": _columns(view) * lines_of(view),
        "groups": channels // LANES,
        "zero_point": op.output_zero_point,
        "low": op.act_min,
        "high": op.act_max,
        "fill": op.input_zero_point,
        "inside": op.padding[1] * lines_of(view),
        "row": view.inputs[0].shape[2] * channels,
    }


def constants(view: LayerView) -> npt.NDArray[np.int32]:
    """Return int32 [channels, 6]: 12 bytes, of them 9 weights; bias, multiplier, rounder."""
    weights = np.ascontiguousarray(np.pad(centred_weights(view).astype(np.int8), ((0, 0), (0, 3))))
    return np.concatenate([weights.view(np.int32), arithmetic(view).params.T.astype(np.int32)], 1)


def places(view: LayerView) -> npt.NDArray[np.int16]:
    """Return int16 [8 + eights * 8]: the order of the weights, and the place of each output.

    order  16 bytes: the weight of each byte of a strip
    place  bytes from y, -1 after the last output
    """
    _, rows, columns, channels = view.outputs[0].shape
    column, row = np.divmod(np.arange(-(-rows * columns // 8) * 8), rows)
    by_window = np.where(column < columns, (row * columns + column) * channels, -1)
    order = np.full(CHUNK, 9, np.uint8)
    for tap in range(9):
        order[tap % 3 * lines_of(view) + tap // 3] = tap
    by_lane = by_window.reshape(-1, 2, 4).swapaxes(1, 2).reshape(-1).astype(np.int16)
    return np.concatenate([order.view(np.int16), by_lane])


def strip_bytes(view: LayerView) -> int:
    """Return the bytes of eight strips and of the vectors that are read after the last windows."""
    _, rows, columns, _ = view.outputs[0].shape
    pitch, last = _columns(view) * lines_of(view), -(-rows * columns // 8) * 8 - 1
    read = (last // rows * lines_of(view) + last % rows) * view.op.stride[0] + CHUNK
    return int((LANES - 1) * pitch + max(pitch, read))
