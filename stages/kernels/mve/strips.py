"""Depthwise windows whose taps are neighbouring bytes: the strips of the channels, and the C structure about them."""

from __future__ import annotations

from math import prod
from typing import TYPE_CHECKING

from stages.kernels.eight_bit import INT8_OFFSET
from stages.kernels.mve.lines import GROUP, parts_of
from stages.kernels.structure import TAPS, Structure, taps

if TYPE_CHECKING:
    from stages.graph import LayerView

CHUNK = 16  # taps of a vector
STEPS = (1, 2, 3, 6)  # from a window to the next that taps.S has functions of their own for
FIELDS = Structure(  # of taps.h
    "mve_taps",
    (
        *("pitch", "y_channel", "taps", "step", "out_pixel", "zero_point", "low", "high"),
        *("eights", "rest", "rest_bytes", "chunks", "last_bytes"),
        *(
            "height",
            "width",
            "pixel",
            "out_height",
            "out_width",
            *TAPS,
            "fill",
            "flip",
            "multiplier",
            "strips",
            "rotated",
        ),
    ),
)


def taps_of(view: LayerView) -> int:
    return prod(view.op.kernel)


def chunks_of(view: LayerView) -> int:
    return -(-taps_of(view) // CHUNK)


def channels_at_once(view: LayerView) -> int:
    return min(int(view.op.in_channels), GROUP)


def step_of(view: LayerView) -> int:
    """Bytes from a window to the next: those of a dilated one are its own."""
    op = view.op
    return int(op.kernel[0] * (op.stride[1] if op.dilation[1] == 1 else op.kernel[1]))


def pitch_of(view: LayerView) -> int:
    """Bytes of a channel's strip: all columns that windows have, each of a byte for each row of a window."""
    width = view.outputs[0].shape[2]
    return (width - 1) * step_of(view) + taps_of(view)


def strip_bytes(view: LayerView) -> int:
    """Of all strips, with what is read behind the last: windows up to a multiple of 8, whole vectors of each."""
    width = view.outputs[0].shape[2]
    behind = -width % 8 * step_of(view) + chunks_of(view) * CHUNK
    return channels_at_once(view) * pitch_of(view) + behind


def rotated_bytes(view: LayerView) -> int:
    """Of a channel's weights in the order of the windows, where a vector does not hold them."""
    return chunks_of(view) * CHUNK * parts_of(view) if chunks_of(view) > 1 else 0


def fields(view: LayerView) -> dict[str, int]:
    """The fields of taps.h."""
    op, offset = view.op, INT8_OFFSET[view.inputs[0].dtype]
    _, height, width, pixel = view.inputs[0].shape
    _, out_height, out_width, out_pixel = view.outputs[0].shape
    eights, rest = divmod(out_width, 8)
    return {
        "pitch": pitch_of(view),
        "y_channel": op.depth_multiplier,
        "taps": taps_of(view),
        "step": step_of(view),
        "out_pixel": out_pixel,
        "zero_point": op.output_zero_point,
        "low": op.act_min,
        "high": op.act_max,
        "eights": eights,
        "rest": rest,
        "rest_bytes": rest * out_pixel,
        "chunks": chunks_of(view),
        "last_bytes": ((out_width - 1) % 4 + 1) * out_pixel,
        "height": height,
        "width": width,
        "pixel": pixel,
        "out_height": out_height,
        "out_width": out_width,
        **taps(op),
        "fill": op.input_zero_point - offset,
        "flip": offset,
        "multiplier": op.depth_multiplier,
        "strips": strip_bytes(view),
        "rotated": rotated_bytes(view),
    }
