"""AVERAGE_POOL_2D and MAX_POOL_2D of NHWC images by rows."""

from math import ceil, prod
from typing import Any, ClassVar

from stages.backends.kernels.pool_rows import PoolRows, mean_groups, mean_runs
from stages.backends.kernels.windows import taps_inside
from stages.backends.targets.spec import Target
from stages.ir.graph import LayerView

BY_PRODUCT = 11  # elements: as in pool_rows.c
FEW = 8  # channels of which strided windows are gathered


class MvePoolRows(PoolRows):
    """Pooling by rows, 16 maxima or 8 sums at a time."""

    name = "mve.pool_rows"
    row_alignment = 1
    estimate_error = 1.25
    family = "mve"
    sources = ("pool_rows.c",)
    headers: ClassVar[tuple[str, ...]] = ("mve_pool_rows.h",)

    def cost(self, view: LayerView, params: Any, target: Target) -> float:
        """Return the instructions, from counts.

        Averages take 97 per pixel group, maxima 48 per row, besides their vectors.
        """
        op, (batch, height, out_width, channels) = view.op, view.outputs[0].shape
        rows, across = taps_inside(view, 0), view.inputs[0].shape[2] * channels
        if not op.is_max:
            groups, runs = len(mean_groups(view)), mean_runs(view)
            means = sum(_means(run, op.kernel[1], prod(op.kernel)) + 23 for run in runs)
            around = 97 * groups + 9 * out_width + means
            return float(batch * (144 + sum(_sums(across, taps) for taps in rows) + height * around))
        if op.stride[1] == 1:
            pixels = _maxima(channels * out_width, op.kernel[1])
        elif channels > FEW:
            pixels = out_width * _maxima(channels, op.kernel[1])
        else:
            at_once = min(16 // channels, 1 + (256 - channels) // (op.stride[1] * channels))
            pixels = ceil(out_width / at_once) * 16.0 * op.kernel[1]
        return float(batch * (111 + sum(_maxima(across, taps) for taps in rows) + height * (pixels + 48)))


def _sums(count: int, taps: int) -> float:
    """Return the instructions of the column sums of a row.

    The first pass takes up to three taps, each further pass one more.
    """
    first = {1: 4.0, 2: 5.0}.get(taps, 7.0)
    more = max(0, taps - 3)
    return ceil(count / 8) * (first + 5 * more) + 8.5 * (1 + more)


def _means(count: int, taps: int, elements: int) -> float:
    """Return the instructions of the means of one call.

    Means of more than `BY_PRODUCT` elements are quotients.
    """
    if elements <= BY_PRODUCT and taps in (2, 3):
        return ceil(count / 8) * (2.0 + 2 * taps)
    return ceil(count / 8) * ((13.5 if elements <= BY_PRODUCT else 23.0) + 5 * taps)


def _maxima(count: int, taps: int) -> float:
    """Return the instructions of passes over three taps, then two.

    A vector takes 7 and 5, a pass 8.5, and 8 overhead.
    """
    threes = (taps - 1) // 2 if taps > 2 else 0
    twos = int(taps < 3 or taps % 2 == 0)
    return 8 + 8.5 * (threes + twos) + ceil(count / 16) * (7.0 * threes + 5 * twos)
