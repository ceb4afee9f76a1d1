"""The bytes of a tile in a tensor: runs of one length at a constant stride.

NHWC, all channels       1 run of rows * columns * channels
NHWC, some channels      a run for each pixel
NCHW, NCHW16c            a run for each plane, or each block of channels
"""

from dataclasses import dataclass

from stages.backends.accelerators.tiles import InputRegion, Tile, extent
from stages.ir.graph import Tensor
from stages.ir.layers.tensor import ITEM_BYTES
from stages.ir.tensor_layout import Layout


@dataclass(frozen=True)
class Runs:
    """`count` runs of `bytes` each, the first at `offset`, `stride` bytes apart."""

    offset: int
    count: int
    bytes: int
    stride: int

    @property
    def total(self) -> int:
        """Bytes of all runs."""
        return self.count * self.bytes


def why_not_cut(tensor: Tensor) -> str:
    """Return why the tensor cannot be cut by rows and channels, '' if it can."""
    if len(tensor.shape) != 4 or tensor.layout in ("", "NHWC") or (_block(tensor.layout) and tensor.shape[0] == 1):
        return ""
    return f"tensor {tensor.name} is {tensor.layout}, of which no tiles can be cut"


def runs(tensor: Tensor, part: InputRegion | Tile) -> Runs:
    """Return the runs of some rows and channels.

    Channels of a blocked layout are whole blocks, except for the last.
    """
    shape, item = extent(tensor), ITEM_BYTES[tensor.dtype]
    row = shape.columns * item
    rows, channels = len(part.rows), len(part.channels)
    block = _block(tensor.layout) if len(tensor.shape) == 4 else 0
    if block:
        first, end = part.channels.first // block, -(-part.channels.end // block)
        plane = shape.rows * row * block
        count, length = end - first, rows * row * block
        offset = first * plane + part.rows.first * row * block
        return (
            Runs(offset, 1, count * length, count * length) if length == plane else Runs(offset, count, length, plane)
        )
    pixel = shape.channels * item
    offset = part.rows.first * shape.columns * pixel + part.channels.first * item
    if channels == shape.channels:
        length = rows * shape.columns * pixel
        return Runs(offset, 1, length, length)
    return Runs(offset, rows * shape.columns, channels * item, pixel)


def stride(tensor: Tensor, part: InputRegion | Tile, *, resident: bool) -> int:
    """Return the bytes from run to run in L1, for a resident tensor or a part's buffer.

    A run is the channels of a pixel, or the rows of a block of channels.
    """
    shape, item = extent(tensor), ITEM_BYTES[tensor.dtype]
    block = _block(tensor.layout) if len(tensor.shape) == 4 else 0
    if block:
        return (shape.rows if resident else len(part.rows)) * shape.columns * block * item
    return (shape.channels if resident else len(part.channels)) * item


def block_of(tensor: Tensor) -> int:
    """Return the channels of a block of a tensor: 16 in NCHW16c, 1 for other layouts."""
    return (_block(tensor.layout) if len(tensor.shape) == 4 else 0) or 1


def _block(layout: str) -> int:
    """Return the channels of a block: 16 for NCHW16c, 1 for NCHW, 0 for other layouts."""
    parts = Layout(layout).parts
    letters = "".join(part.axis for part in parts if not part.size)
    if letters != "NCHW" or Layout(layout).bits:
        return 0
    sizes = [part for part in parts if part.size]
    if not sizes:
        return 1
    return sizes[0].size if len(sizes) == 1 and sizes[0].axis == "C" and parts[-1] == sizes[0] else 0
