"""AVERAGE_POOL_2D and MAX_POOL_2D of NHWC images by rows."""

from __future__ import annotations

from math import ceil
from typing import TYPE_CHECKING, Any, ClassVar

from stages.kernels.pool_rows import PoolRows

if TYPE_CHECKING:
    from stages.graph import LayerView
    from stages.targets.spec import Target


class MvePoolRows(PoolRows):
    """16 maxima or 8 sums at a time."""

    name = "mve.pool_rows"
    family = "mve"
    sources = ("pool_rows.c",)
    headers: ClassVar[tuple[str, ...]] = ("mve_pool_rows.h",)

    def cost(self, view: LayerView, params: Any, target: Target) -> float:
        """As counted: a pass over two taps takes 5 instructions for a vector, over three 7; a mean 12 and 5 a tap."""
        op, (batch, height, out_width, channels) = view.op, view.outputs[0].shape
        _, _, width, _ = view.inputs[0].shape
        average, (rows, columns), strided = op.op == "avg_pool2d", op.kernel, op.stride[1] > 1
        lanes = 8 if average else 16
        down = _passes(rows) * ceil(width * channels / lanes)
        together = 1 if strided else out_width
        if strided and not average and channels <= 8:
            pixels = max(1, 16 // channels)
            across = ceil(out_width / pixels) * (5 * columns + 14)
        else:
            each = 5 * columns + 12 if average else _passes(columns)
            across = out_width // together * (each * ceil(together * channels / lanes) + (40 if average else 15))
        return float(batch * (60 + height * (down + across + 60 + (12 * out_width if average else 0))))


def _passes(taps: int) -> float:
    """Instructions of a vector: three taps, then two more at a time."""
    pairs, rest = divmod(max(taps - 1, 0), 2)
    return 7.0 * pairs + (5.0 if rest or not pairs else 0.0)
