"""AVERAGE_POOL_2D and MAX_POOL_2D of NHWC images by rows."""

from typing import Any, ClassVar

from stages.backends.kernels.pool_rows import PoolRows, mean_groups, mean_runs
from stages.backends.kernels.windows import taps_inside
from stages.backends.riscv.kernels.rvv.turns import turns
from stages.backends.targets.spec import Target
from stages.ir.graph import LayerView


class VectorPoolRows(PoolRows):
    """Pooling by rows, with vectors along the rows of the image."""

    name = "rvv.pool_rows"
    row_alignment = 1
    estimate_error = 1.25
    family = "rvv"
    sources = ("pool_rows.c", "pool_lines.S")
    headers: ClassVar[tuple[str, ...]] = ("rvv_pool_rows.h",)

    def cost(self, view: LayerView, params: Any, target: Target) -> float:
        """Return the instructions, from counts.

        A tap of an iteration takes 5. Averages take 100 per pixel group, maxima 60 per row, besides their vectors.
        """
        op, (batch, height, out_width, channels) = view.op, view.outputs[0].shape
        rows, across = taps_inside(view, 0), view.inputs[0].shape[2] * channels
        taps = 5 * (op.kernel[1] - 1)
        if not op.is_max:
            lines = sum(turns(target, across, 2) * (5 * n + 8) + 10 for n in rows)
            means = sum(turns(target, run, 2) * (taps + 14) + 20 for run in mean_runs(view))
            return float(batch * (150 + lines + height * (100 * len(mean_groups(view)) + 9 * out_width + means)))
        lines = sum(turns(target, across) * (5 * n + 5) + 10 for n in rows)
        if op.stride[1] == 1:
            pixels = turns(target, channels * out_width) * (taps + 10)
        elif channels < out_width:
            pixels = channels * (turns(target, out_width) * (taps + 12) + 7)
        else:
            pixels = out_width * (turns(target, channels) * (taps + 10) + 15)
        return float(batch * (150 + lines + height * (pixels + 60)))
