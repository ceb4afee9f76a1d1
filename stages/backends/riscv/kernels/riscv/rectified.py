"""Check for layers with a ReLU that `rectified.h` supports."""

from stages.backends.kernels.eight_bit import sums
from stages.ir.graph import LayerView
from stages.support.lazy import np


def is_rectified(view: LayerView) -> bool:
    """Return whether no output is below the zero point and all shifted sums fit 32 bits."""
    op, layer_sums = view.op, sums(view, 0)
    s = -layer_sums.shift.astype(np.int64)
    if op.act_min < op.output_zero_point or s.min() < 1:
        return False
    upper = layer_sums.range.size * layer_sums.multiplier.astype(np.int64) >> 31
    added = abs(2 * op.output_zero_point + 1) << s - 1
    return bool((upper + 2 + added < 1 << 31).all())
