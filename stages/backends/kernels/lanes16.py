"""Constants of depthwise convolutions of int16 activations, by groups of channels."""

from __future__ import annotations

from dataclasses import dataclass

from stages.backends.kernels.eight_bit import weight_rows
from stages.backends.kernels.scales16 import halves, scales
from stages.backends.kernels.structure import Structure
from stages.ir.arrays import Array
from stages.ir.graph import LayerView
from stages.support.lazy import np, npt

FIELDS = Structure.of_header("fl_depthwise16", __file__, "include/depthwise16_fields.h")
_LARGEST = 1 << 15  # of an activation


@dataclass(frozen=True)
class Lanes:
    """The order in which a family reads weights.

    group   channels that are computed at a time
    taps    taps of a row of the window whose weights are read at once; rows are padded to a multiple
    inner, apart, outer
            position of channel c of the group and tap t in these group * taps bytes:
            c % inner * apart + c // inner * outer + t
    """

    group: int
    taps: int
    inner: int
    apart: int
    outer: int

    def steps(self, view: LayerView) -> int:
        """Steps in which a row of the window is read."""
        return -(-int(view.op.kernel[1]) // self.taps)

    def groups(self, view: LayerView) -> int:
        """Return the vectors that hold the channels, the last possibly incomplete."""
        return -(-int(view.op.out_channels) // self.group)


def packed_weights(view: LayerView, lanes: Lanes) -> npt.NDArray[np.int8]:
    """Return weights as [groups][kernel_height][steps][group * taps], flat."""
    op = view.op
    rows = weight_rows(view, view.constant("weights")).reshape(op.out_channels, *op.kernel)
    packed = np.zeros((lanes.groups(view), op.kernel[0], lanes.steps(view), lanes.group * lanes.taps), np.int8)
    for c, row in enumerate(rows):
        lane = c % lanes.group
        byte = lane % lanes.inner * lanes.apart + lane // lanes.inner * lanes.outer
        for tap in range(op.kernel[1]):
            packed[c // lanes.group, :, tap // lanes.taps, byte + tap % lanes.taps] = row[:, tap]
    return packed.reshape(-1)


def constants(view: LayerView, lanes: Lanes) -> Array:
    """Return each channel's bias and scale as struct s16_channel, int32[channels, 4].

    See include/scale16.h. Raise ValueError if sums exceed 32 bits or a scale has no 32-bit factor.
    """
    count, filled = view.op.out_channels, lanes.groups(view) * lanes.group
    bias, factors = np.zeros(filled, np.int64), np.zeros(filled, np.int64)
    if view.has("bias"):
        bias[:count] = view.constant("bias").reshape(-1)
    factors[:count] = scales(view, count)
    sizes = np.abs(weight_rows(view, view.constant("weights")).astype(np.int64)).sum(axis=1) * _LARGEST
    if (sizes + np.abs(bias[:count])).max() > np.iinfo(np.int32).max:
        raise ValueError("sums beyond 32 bits")
    scale = halves(factors)
    if scale[:, 1].any():
        raise ValueError("a scale below 2^-33; this kernel is for larger scales")
    return np.concatenate([bias.view(np.int32).reshape(-1, 2), scale], axis=1)
