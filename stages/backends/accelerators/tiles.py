"""Tiles of a layer (some rows and channels, all columns) and their input regions.

A tensor has rows, columns and channels. With four axes, the rows of all images of a batch are numbered
consecutively. With fewer axes, the last one is channels, and all others together are rows of one column.

    output rows [4, 8) of a 3x3 convolution, stride 1, padding 1     read input rows [3, 9)
    the first rows, [0, 4)                                           read [0, 5), and one row of padding above
"""

from dataclasses import dataclass
from math import prod
from typing import Any

from stages.ir.graph import LayerView, Tensor
from stages.ir.layers import Window
from stages.ir.operators.products import Conv2D, DepthwiseConv2D, FullyConnected


@dataclass(frozen=True, order=True)
class Span:
    """Numbers from `first` up to, but without, `end`."""

    first: int
    end: int

    def __len__(self) -> int:
        return self.end - self.first


@dataclass(frozen=True)
class Granule:
    """Tiles have multiples of these output rows and channels; the last ones have the rest.

    If an engine can only compute a whole layer, the granule is as large as its output.
    """

    rows: int = 1
    channels: int = 1


@dataclass(frozen=True)
class Tile:
    """Rows and channels of a layer's output. A tile has all columns."""

    rows: Span
    channels: Span


@dataclass(frozen=True)
class InputRegion:
    """Input region of a tile: rows inside of the image, and channels.

    A tile that lies in padding alone has no rows.

    `above` and `below` are the rows of padding that its windows reach.
    """

    rows: Span
    channels: Span
    above: int = 0
    below: int = 0


@dataclass(frozen=True)
class Extent:
    """A tensor's rows, columns and channels."""

    rows: int
    columns: int
    channels: int


def extent(tensor: Tensor) -> Extent:
    """Return the tensor as rows of columns of channels."""
    shape = tensor.shape
    if len(shape) == 4:
        return Extent(shape[0] * shape[1], shape[2], shape[3])
    channels = shape[-1] if shape else 1
    return Extent(prod(shape) // max(channels, 1), 1, channels)


def whole(view: LayerView) -> Tile:
    """Return the tile of the whole output."""
    out = extent(view.outputs[0])
    return Tile(Span(0, out.rows), Span(0, out.channels))


def tiles(view: LayerView, rows: int, channels: int) -> list[Tile]:
    """Return the tiles of the output. The last tiles may have fewer rows or channels.

    All tiles of the first channels come first.
    """
    out = extent(view.outputs[0])
    return [
        Tile(Span(row, min(row + rows, out.rows)), Span(channel, min(channel + channels, out.channels)))
        for channel in range(0, out.channels, channels)
        for row in range(0, out.rows, rows)
    ]


def why_not_tiled(view: LayerView) -> str:
    """Return why rows of the layer's output cannot be computed separately, '' if they can."""
    op, out = view.op, extent(view.outputs[0])
    if isinstance(op, Window):
        images = view.inputs[0].shape[0]
        return f"a batch of {images} images with windows" if images != 1 else ""
    for tensor in view.inputs:
        x = extent(tensor)
        if isinstance(op, FullyConnected):
            if op.depth % max(x.columns * x.channels, 1):
                return f"rows of {op.depth} elements, not a multiple of the rows of tensor {tensor.name}"
        elif x != out:
            return f"tensor {tensor.name} differs in shape from the output"
    return ""


def reads(view: LayerView, tile: Tile) -> tuple[InputRegion, ...]:
    """Return the input region of each input, for a layer that can be tiled.

    Convolutions, pools and fully connected layers read their windows. All others read the rows and channels that they
    write.
    """
    return tuple(_read(view, tile, tensor) for tensor in view.inputs)


def _read(view: LayerView, tile: Tile, tensor: Tensor) -> InputRegion:
    op, x = view.op, extent(tensor)
    if isinstance(op, FullyConnected):
        row_depth = op.depth // (x.columns * x.channels)
        return InputRegion(Span(tile.rows.first * row_depth, tile.rows.end * row_depth), Span(0, x.channels))
    if not isinstance(op, Window):
        return InputRegion(tile.rows, tile.channels)
    rows, above, below = _window_rows(op, tile.rows, x.rows)
    outputs, inputs = channel_group(view)
    written = tile.channels
    channels = Span(written.first // outputs * inputs, -(-written.end // outputs) * inputs)
    return InputRegion(rows, channels if inputs else Span(0, x.channels), above, below)


def _window_rows(op: Window, written: Span, height: int) -> tuple[Span, int, int]:
    """Return rows inside of an image with that many rows, and rows of padding above and below."""
    step, pad = op.stride[0], op.padding[0]
    reach = (op.kernel[0] - 1) * getattr(op, "dilation", (1, 1))[0] + 1
    first, end = written.first * step - pad, (written.end - 1) * step - pad + reach
    start = min(max(first, 0), height)
    return Span(start, max(min(end, height), start)), max(-first, 0), max(end - height, 0)


def channel_group(view: LayerView) -> tuple[int, int]:
    """Return how many output channels share how many input channels; (…, 0) for all."""
    op: Any = view.op
    if isinstance(op, DepthwiseConv2D):
        return op.depth_multiplier, 1
    if isinstance(op, Conv2D):
        return (op.out_channels, 0) if op.groups == 1 else (op.out_channels // op.groups, op.in_channels // op.groups)
    return (1, 0) if isinstance(op, FullyConnected) else (1, 1)
