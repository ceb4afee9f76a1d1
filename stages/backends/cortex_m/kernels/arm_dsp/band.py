"""Bands of one to three rows of an NHWC image for depthwise_band.S."""

from __future__ import annotations

from stages.backends.cortex_m.kernels.arm_dsp.base import CLAMP, arithmetic, clamps
from stages.backends.cortex_m.kernels.arm_dsp.planes import clamped, is_wide, plane_cost, plane_of
from stages.backends.kernels.structure import Structure
from stages.ir.graph import LayerView

FIELDS = Structure("arm_dsp_depthwise_band", ("width", "step", "row", "channels", *CLAMP, "pad"))
_PACK = {1: 8, 2: 10, 3: 11}  # instructions of a column


def is_band(view: LayerView) -> bool:
    """Return whether depthwise_band.S computes the layer in less time than with planes."""
    op, x, y = view.op, view.inputs[0], view.outputs[0]
    is_able = (
        (x.dtype, op.kernel, op.dilation, op.depth_multiplier) == ("int8", (3, 3), (1, 1), 1)
        and {x.layout, y.layout} <= {"", "NHWC"}
        and (op.stride, op.padding) == ((1, 1), (0, 1, 0, 1))
        and y.shape[1] in _PACK
        and not is_wide(view)
    )
    return is_able and cost(view) < plane_cost(view, plane_of(view))


def cost(view: LayerView) -> int:
    """Return the instructions of one channel, as counted in the assembly."""
    _, rows, columns, _ = view.outputs[0].shape
    results = 12 + 10 * rows + (1 + 2 * rows) * clamped(view)
    if arithmetic(view, long=True).scale.long:
        results += 1 + 3 * rows
    return int(columns) * (_PACK[rows] + results) + 24


def column_words(view: LayerView) -> int:
    """Return the words of a packed column."""
    return 3 if view.outputs[0].shape[1] == 3 else 2


def function(view: LayerView) -> str:
    """Return the function of depthwise_band.S for the layer."""
    kind = ("_clamped" if clamped(view) else "") + ("_long" if arithmetic(view, long=True).scale.long else "")
    return f"arm_dsp_depthwise_band_r{view.outputs[0].shape[1]}{kind}"


def fields(view: LayerView) -> dict[str, int]:
    """Return the fields of the C structure arm_dsp_depthwise_band."""
    op, (_, _, width, channels) = view.op, view.outputs[0].shape
    plain = {"zero_point": op.output_zero_point, "floor": 0, "low": 0}
    pad = (op.input_zero_point & 0xFFFF) * 0x10001
    return {
        "width": width,
        "step": channels,
        "row": width * channels,
        "channels": channels,
        **(clamps(view) if clamped(view) else plain),
        "pad": pad - (1 << 32) if pad >> 31 else pad,
    }
