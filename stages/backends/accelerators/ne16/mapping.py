"""Map a tile of a layer to an NE16 job: mode and geometry.

Its arithmetic is in arithmetic.py.

    pixels      1x1 convolutions of any stride, fully connected layers: a product for each pixel
    conv3x3     and depthwise3x3: the engine's own windows of stride 1; of stride 2 a job for each 2x2 outputs
    few         convolutions with small windows: transfers gather them, and the engine reads each window as one pixel
    windows     other convolutions: the core gathers the windows
    pair        the sum of two tensors: transfers interleave 16 bytes of each (extension: not needed)

The core gathers windows column by column, so that overlapping windows share columns. For a 3x3 window of stride 1 over
rows a, b, c the strip of an output row is

    a0 b0 c0 a1 b1 c1 a2 b2 c2 a3 b3 c3 …     a window is 9 of them, the next begins 3 later

Consecutive pixels can be treated as an image of any shape. The shape with the fewest 3x3 subtiles is used. Its rows may
overlap; then some pixels are computed twice, with the same result: 125 pixels are 3 rows of 43, 41 apart.
"""

from dataclasses import dataclass
from functools import lru_cache

from stages.backends.accelerators.accelerator import Strides
from stages.backends.accelerators.ne16.job import NO_PADDING, SUBTILE_KI, SUBTILE_KO, SUBTILE_PIXELS, Mode, Padding
from stages.backends.accelerators.tiles import Tile, extent, reads
from stages.ir.graph import LayerView
from stages.ir.operators.arithmetic import Add
from stages.ir.operators.products import Conv2D, DepthwiseConv2D, FullyConnected

PAIR_CHANNELS = 16
_FEW = 48  # bytes of a window that transfers gather
_NATIVE = (3, 3)


@dataclass(frozen=True)
class Image:
    """Rows and columns of pixels of a job. Distances are in bytes in L1, of input and output.

    The output's distances are those of one byte per value.
    """

    rows: int
    columns: int
    input_pixel: int
    input_row: int
    output_pixel: int
    output_row: int


@dataclass(frozen=True)
class Gather:
    """Windows of output rows, gathered by the core.

    For each row, `columns` of `taps` rows of `channels` bytes each.

    A window is `width` columns. The next one begins `step` columns later; columns in between are not gathered.
    """

    rows: int
    columns: int
    width: int
    step: int
    taps: int
    channels: int

    @property
    def column_bytes(self) -> int:
        """Bytes of one output column's window."""
        return self.taps * self.channels

    @property
    def row_bytes(self) -> int:
        """Bytes of the windows of an output row."""
        return self.columns * self.column_bytes

    @property
    def bytes(self) -> int:
        """Bytes of all windows."""
        return self.rows * self.row_bytes


@dataclass(frozen=True)
class Mapping:
    """A tile: `ki` input channels per pixel, `ko` output channels.

    `gather` is set if the core gathers windows before.
    """

    mode: Mode
    image: Image
    ki: int
    ko: int
    stride: int = 1
    padding: Padding = NO_PADDING
    gather: Gather | None = None


def why_not_mapped(view: LayerView) -> str:
    """Return why no mapping supports the layer's window, '' if one does."""
    op = view.op
    if isinstance(op, Add):
        return _why_not_pair(view)
    if isinstance(op, FullyConnected):
        return ""
    if max(op.dilation) > 1 and op.kernel != (1, 1):
        return f"a dilation of {op.dilation[0]}x{op.dilation[1]}"
    if isinstance(op, Conv2D):
        return f"{op.groups} groups of channels" if op.groups != 1 else ""
    if op.depth_multiplier != 1:
        return f"a depth multiplier of {op.depth_multiplier}"
    if op.kernel != _NATIVE or op.stride not in ((1, 1), (2, 2)):
        window = f"{op.kernel[0]}x{op.kernel[1]}, stride {op.stride[0]}x{op.stride[1]}"
        return f"a depthwise window of {window}; the engine has 3x3, stride 1 or 2"
    if op.stride == (2, 2) and op.out_channels % 2:
        return f"{op.out_channels} channels; stride 2 needs an even number"
    if not _is_padded_by_one(view):
        return f"a depthwise window with padding {'x'.join(map(str, op.padding))}; the engine has 1 at most"
    return ""


def mapping(view: LayerView, tile: Tile, strides: Strides) -> Mapping:
    """Return the mapping of a tile with these distances between input and output pixels."""
    op = view.op
    if isinstance(op, Add):
        return _pair(view, tile)
    if isinstance(op, FullyConnected) or (op.kernel == (1, 1) and not any(op.padding)):
        return _pixels(view, tile, strides)
    if by_transfers(view):
        count, ki = len(tile.rows) * extent(view.outputs[0]).columns, window_bytes(view)
        return Mapping("conv1x1", _spread(count, ki, strides.output), ki, len(tile.channels))
    if isinstance(op, DepthwiseConv2D) or _is_native(view):
        return _native(view, tile, strides)
    return _windows(view, tile, strides)


def by_transfers(view: LayerView) -> bool:
    """Return whether transfers gather the layer's windows.

    True for small windows if the engine then needs fewer cycles than with its native windows.
    """
    op = view.op
    if not isinstance(op, Conv2D) or (op.kernel == (1, 1) and not any(op.padding)) or window_bytes(view) > _FEW:
        return False
    if op.kernel != _NATIVE or op.stride not in ((1, 1), (2, 2)) or not _is_padded_by_one(view):
        return True
    out, ko = extent(view.outputs[0]), min(SUBTILE_KO, extent(view.outputs[0]).channels)
    subtiles = _subtiles(out.rows, out.columns) if op.stride == (1, 1) else -(-out.rows // 2) * -(-out.columns // 2)
    gathered = -(-out.rows * out.columns // SUBTILE_PIXELS**2) * (input_tiles(window_bytes(view)) * (33 + ko) + 60)
    return gathered < subtiles * (input_tiles(op.in_channels) * (45 + 8 * ko) + 60)


def window_bytes(view: LayerView) -> int:
    """Return the bytes of one window."""
    return int(view.op.kernel[0] * view.op.kernel[1] * view.op.in_channels)


def _pixels(view: LayerView, tile: Tile, strides: Strides) -> Mapping:
    op, out, x = view.op, extent(view.outputs[0]), extent(view.inputs[0])
    ko, rows, columns = len(tile.channels), len(tile.rows), out.columns
    if isinstance(op, FullyConnected):
        image = _spread(rows * columns, op.depth, strides.output)
        return Mapping("conv1x1", image, op.depth, ko)
    pixel = strides.inputs[0] * op.stride[1]
    row = strides.inputs[0] * x.columns * op.stride[0]
    if row == pixel * columns:
        image = _spread(rows * columns, pixel, strides.output)
    else:
        image = Image(rows, columns, pixel, row, strides.output, strides.output * columns)
    return Mapping("conv1x1", image, op.in_channels, ko)


def _native(view: LayerView, tile: Tile, strides: Strides) -> Mapping:
    op, columns, x = view.op, extent(view.outputs[0]).columns, extent(view.inputs[0])
    mode: Mode = "depthwise3x3" if isinstance(op, DepthwiseConv2D) else "conv3x3"
    (part,) = reads(view, tile)
    step = strides.inputs[0]
    image = Image(len(tile.rows), columns, step, step * x.columns, strides.output, strides.output * columns)
    padding = Padding(part.above, _right(view), part.below, op.padding[1])
    ko = len(tile.channels)
    ki = ko if mode == "depthwise3x3" else op.in_channels
    return Mapping(mode, image, ki, ko, op.stride[0], padding)


def _windows(view: LayerView, tile: Tile, strides: Strides) -> Mapping:
    op, columns = view.op, extent(view.outputs[0]).columns
    gather = _gather(view, len(tile.rows))
    pixel = gather.step * gather.column_bytes
    image = Image(gather.rows, columns, pixel, gather.row_bytes, strides.output, strides.output * columns)
    return Mapping("conv1x1", image, op.kernel[1] * gather.column_bytes, len(tile.channels), gather=gather)


def _gather(view: LayerView, rows: int) -> Gather:
    op, columns = view.op, extent(view.outputs[0]).columns
    step = min(op.stride[1], op.kernel[1])
    return Gather(
        rows=rows,
        columns=(columns - 1) * step + op.kernel[1],
        width=op.kernel[1],
        step=step,
        taps=op.kernel[0],
        channels=op.in_channels,
    )


def _pair(view: LayerView, tile: Tile) -> Mapping:
    """Return the mapping of all channels of rows, in pieces of 16.

    `ki` is the number of input channels of one tensor.
    """
    out = extent(view.outputs[0])
    pieces = len(tile.rows) * out.columns * out.channels // PAIR_CHANNELS
    image = _spread(pieces, PAIR_CHANNELS, PAIR_CHANNELS)
    return Mapping("conv1x1", image, PAIR_CHANNELS, PAIR_CHANNELS)


def side_by_side(single: Mapping) -> Mapping:
    """Return a pair's mapping if pieces of both tensors are interleaved."""
    image, twice = single.image, 2 * single.image.input_pixel
    row = image.input_row * 2
    doubled = Image(image.rows, image.columns, twice, row, image.output_pixel, image.output_row)
    return Mapping(single.mode, doubled, 2 * single.ki, single.ko)


def pair_rows(view: LayerView) -> int:
    """Return how many rows of a pair make whole pieces, 0 if not even all rows do."""
    out = extent(view.outputs[0])
    row = out.columns * out.channels
    row_count = next((n for n in (1, 2, 4, 8, 16) if row * n % PAIR_CHANNELS == 0), 0)
    return row_count if out.rows % row_count == 0 else 0


def _why_not_pair(view: LayerView) -> str:
    out = view.outputs[0]
    if any(tensor.shape != out.shape for tensor in view.inputs):
        return "tensors of different shapes"
    if not pair_rows(view):
        return f"{out.elements} elements, not a multiple of {PAIR_CHANNELS}"
    return ""


def _is_native(view: LayerView) -> bool:
    op = view.op
    if op.kernel != _NATIVE or op.stride not in ((1, 1), (2, 2)) or not _is_padded_by_one(view):
        return False
    return op.stride == (1, 1) or (op.out_channels % 2 == 0 and _blocks_pay(view))


def _blocks_pay(view: LayerView) -> bool:
    """Return whether 2x2 blocks cost no more than gathered windows.

    Either the core or the engine waits.
    """
    op, out = view.op, extent(view.outputs[0])
    gather = _gather(view, out.rows)
    tiles = [min(SUBTILE_KO, out.channels - first) for first in range(0, out.channels, SUBTILE_KO)]
    ki, gathered = input_tiles(op.in_channels), input_tiles(op.kernel[1] * gather.column_bytes)
    blocks = -(-out.rows // 2) * -(-out.columns // 2) * sum(ki * (45 + 8 * ko) + 60 for ko in tiles)
    windows = _subtiles(out.rows, out.columns) * sum(gathered * (33 + ko) + 60 for ko in tiles)
    return blocks <= max(windows, gather_instructions(gather))


def _is_padded_by_one(view: LayerView) -> bool:
    """Return whether padding is at most 1 on each side.

    Two rows of padding at the bottom may need a split, and no common padding has them.
    """
    op = view.op
    top, left, _, _ = op.padding
    return max(top, left, _right(view), _bottom(view)) <= 1


def _right(view: LayerView) -> int:
    """Return the columns of padding that the last window reaches."""
    return _after(view, 1)


def _bottom(view: LayerView) -> int:
    return _after(view, 0)


def _after(view: LayerView, axis: int) -> int:
    op = view.op
    last = (view.outputs[0].shape[1 + axis] - 1) * op.stride[axis] - op.padding[axis]
    return int(max(last + op.kernel[axis] - view.inputs[0].shape[1 + axis], 0))


def _spread(pixels: int, input_pixel: int, output_pixel: int) -> Image:
    rows, columns, apart = spread(pixels)
    return Image(rows, columns, input_pixel, input_pixel * apart, output_pixel, output_pixel * apart)


@lru_cache(maxsize=4096)
def spread(pixels: int) -> tuple[int, int, int]:
    """Return rows, columns and row distance that cover a number of pixels exactly.

    The number of subtiles is minimal.
    """
    best = (1, pixels, pixels)
    least = _subtiles(1, pixels)
    for rows in range(2, min(pixels, 8 * SUBTILE_PIXELS) + 1):
        # (rows - 1) * apart + columns = pixels with apart <= columns
        apart = pixels // rows
        for step in range(apart, max(apart - 2 * SUBTILE_PIXELS, 0), -1):
            columns = pixels - (rows - 1) * step
            if _subtiles(rows, columns) < least:
                best, least = (rows, columns, step), _subtiles(rows, columns)
    return best


def _subtiles(rows: int, columns: int) -> int:
    return -(-rows // SUBTILE_PIXELS) * -(-columns // SUBTILE_PIXELS)


def input_tiles(ki: int) -> int:
    """Return the blocks of 16 input channels."""
    return -(-ki // SUBTILE_KI)


def gather_instructions(gather: Gather) -> float:
    """Return the core's instructions for gathering.

    It copies words if channels are whole words, else bytes: one run of columns for each row of a window.
    """
    element_cost = 0.75 if gather.channels % 4 == 0 else 2.75
    return gather.bytes * element_cost + gather.rows * gather.taps * 30
