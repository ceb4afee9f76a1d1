"""AVERAGE_POOL_2D and MAX_POOL_2D of NHWC images by rows."""

from math import ceil
from typing import Any, ClassVar

from stages.backends.kernels.pool_rows import PoolRows, mean_groups, mean_runs
from stages.backends.kernels.windows import taps_inside
from stages.backends.targets.spec import Target
from stages.ir.graph import LayerView


class ArmPoolRows(PoolRows):
    """Pooling by rows, four maxima or sums at a time."""

    name = "arm_dsp.pool_rows"
    row_alignment = 1
    estimate_error = 1.25
    family = "arm_dsp"
    sources = ("pool_rows.c",)
    headers: ClassVar[tuple[str, ...]] = ("arm_dsp_pool_rows.h",)

    def cost(self, view: LayerView, params: Any, target: Target) -> float:
        """Return the instructions, from counts.

        Averages: 14 per word of sums and 25 per word of means, 6.5 and 12 more per further tap, 60 per pixel group.
        Maxima: `_maxima`, 120 per row.
        """
        op, (batch, height, out_width, channels) = view.op, view.outputs[0].shape
        rows, across = taps_inside(view, 0), view.inputs[0].shape[2] * channels
        if not op.is_max:
            groups, runs = len(mean_groups(view)), mean_runs(view)
            means = sum(_means(run, op.kernel[1]) + 12 for run in runs)
            around = 60 * groups + 24 * out_width + means
            return float(batch * (230 + sum(_sums(across, taps) for taps in rows) + height * around))
        strided = op.stride[1] > 1
        pixels = (out_width if strided else 1) * _maxima(channels * (1 if strided else out_width), op.kernel[1])
        return float(batch * (105 + sum(_maxima(across, taps) for taps in rows) + height * (pixels + 120)))


def _sums(count: int, taps: int) -> float:
    """Return the instructions of the column sums of a row."""
    word = {2: 13.5, 3: 16.5, 4: 19.5}.get(taps, 16 + 6.5 * taps)
    return count // 4 * word + count % 4 * 8.5 * taps


def _means(count: int, taps: int) -> float:
    """Return the instructions of the means of one call.

    The elements after the last full word take another word, or single means for fewer than four.
    """
    if count < 4:
        return count * 4.5 * taps
    return ceil(count / 4) * {2: 24.0, 3: 29.0}.get(taps, 9 + 11.7 * taps)


def _maxima(count: int, taps: int) -> float:
    """Return the instructions of passes over three taps, then two.

    A word takes 11.6 and 8, a single element 7.6, a pass 27.
    """
    threes = (taps - 1) // 2 if taps > 2 else 0
    twos = int(taps < 3 or taps % 2 == 0)
    passes = 27.0 * (threes + twos)
    if count < 4:
        return passes + 7.6 * count * (threes + twos)
    return passes + ceil(count / 4) * (11.6 * threes + 8 * twos)
