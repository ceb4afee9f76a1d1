"""How much of the windows of a layer lies inside its image, along each axis."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from stages.graph import LayerView


def taps_inside(view: LayerView, axis: int) -> list[int]:
    """Of the window of each row of the output (axis 0), or of each column (1), the taps that lie inside the image."""
    op, size = view.op, view.inputs[0].shape[1 + axis]
    dilation, taps = getattr(op, "dilation", (1, 1))[axis], range(op.kernel[axis])
    starts = (at * op.stride[axis] - op.padding[axis] for at in range(view.outputs[0].shape[1 + axis]))
    return [sum(0 <= start + tap * dilation < size for tap in taps) for start in starts]


def windows_inside(view: LayerView, axis: int) -> list[bool]:
    """Whether the window of each row or column of the output lies inside the image along the axis."""
    return [taps == view.op.kernel[axis] for taps in taps_inside(view, axis)]
