"""AVERAGE_POOL_2D and MAX_POOL_2D of NHWC images by rows."""

from __future__ import annotations

from math import ceil
from typing import TYPE_CHECKING, Any, ClassVar

from stages.kernels.pool_rows import PoolRows

if TYPE_CHECKING:
    from stages.graph import LayerView
    from stages.targets.spec import Target


class ArmPoolRows(PoolRows):
    """Four maxima or sums at a time."""

    name = "arm_dsp.pool_rows"
    family = "arm_dsp"
    sources = ("pool_rows.c",)
    headers: ClassVar[tuple[str, ...]] = ("arm_dsp_pool_rows.h",)

    def cost(self, view: LayerView, params: Any, target: Target) -> float:
        """As counted, for a word: maxima of two taps 7, of three 10; sums 3 for a tap, means 20 and 4 for a tap."""
        op, (batch, height, out_width, channels) = view.op, view.outputs[0].shape
        _, _, width, _ = view.inputs[0].shape
        average, (rows, columns) = op.op == "avg_pool2d", op.kernel
        down = 8.0 + 3 * rows if average else _passes(rows)
        each = 20.0 + 4 * columns if average else _passes(columns)
        together = 1 if op.stride[1] > 1 else out_width
        runs = out_width // together * (each * ceil(together * channels / 4) + (50 if average else 30))
        return float(batch * (60 + height * (down * ceil(width * channels / 4) + runs + 60)))


def _passes(taps: int) -> float:
    """Instructions of a word: three taps, then two more at a time."""
    pairs, rest = divmod(max(taps - 1, 0), 2)
    return 10.0 * pairs + (7.0 if rest or not pairs else 0.0)
