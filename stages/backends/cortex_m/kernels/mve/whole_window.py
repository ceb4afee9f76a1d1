"""Layout of a window that covers its image: channel blocks, tap chunks, tap offsets."""

from __future__ import annotations

from math import prod

from stages.backends.kernels.structure import Structure
from stages.ir.graph import LayerView
from stages.support.lazy import np, npt

BLOCK = 4  # channels
CHUNK = 8  # taps of a vector
FIELDS = Structure.of_header("mve_whole", __file__, "whole.h")  # of whole.h


def chunks_of(view: LayerView) -> int:
    """Return the chunks of taps of the window."""
    return -(-prod(view.op.kernel) // CHUNK)


def block_count(view: LayerView) -> int:
    """Return the channel blocks; the last one may overlap the one before it."""
    return -(-int(view.op.in_channels) // BLOCK)


def offsets(view: LayerView) -> npt.NDArray[np.int64]:
    """Return int64 [taps]: bytes from the first pixel of the window to each tap."""
    op, (_, _, width, channels) = view.op, view.inputs[0].shape
    rows, columns = (np.arange(op.kernel[axis]) * op.dilation[axis] for axis in (0, 1))
    reach: npt.NDArray[np.int64] = (rows[:, None] * width + columns).reshape(-1) * channels
    return reach
