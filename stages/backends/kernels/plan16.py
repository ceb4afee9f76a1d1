"""Plan of a layer on int16 activations in blocks of sums: constants, chunks, scratch."""

from __future__ import annotations

from dataclasses import dataclass

from stages.backends.kernels.eight_bit import weight_rows
from stages.backends.kernels.matrix import columns_of, depth_of, has_windows, run_elements
from stages.backends.kernels.scales16 import halves, scaled, scales
from stages.backends.kernels.structure import Structure
from stages.ir.graph import LayerView
from stages.support.lazy import np, npt

FIELDS = Structure.of_header("fl_products16", __file__, "include/products16_image.h")
SHORT, FINE, LONG = range(3)
_LARGEST = 1 << 15  # of an activation


def up(count: int, unit: int) -> int:
    """Return the least multiple of `unit` that is at least `count`."""
    return -(-count // unit) * unit


@dataclass(frozen=True)
class Tile:
    """Block that a family computes at a time, as declared in its C.

    rows, channels  size of a block of sums
    pair            number of channels whose weights alternate
    step            elements of the depth per step
    paired          panels hold two elements of each row side by side, so runs begin at even elements
    sum_bytes       bytes of a sum
    direct          alignment in bytes at which rows may be read in place
    """

    rows: int
    channels: int
    pair: int
    step: int
    paired: bool
    sum_bytes: int
    direct: int


@dataclass(frozen=True)
class Plan:
    """A layer's constants for a tile. Arrays are by channel, padded to whole blocks."""

    pitch: int  # elements from one run to the next
    depth: int  # elements of a row of the panel
    chunk: int
    mode: int
    weights: npt.NDArray[np.int8]  # [channels, depth]
    bias: npt.NDArray[np.int64]
    scale: npt.NDArray[np.int32]  # [channels, 2]


def plan(view: LayerView, tile: Tile) -> Plan:
    """Return the plan. Raise ValueError if the arithmetic has no exact form."""
    channels, run = columns_of(view), run_elements(view)
    runs, pitch = depth_of(view) // run, up(run, 2) if tile.paired else run
    depth = up(runs * pitch, tile.step)
    rows = weight_rows(view, view.constant("weights")).reshape(channels, runs, run)
    weights = np.zeros((up(channels, tile.channels), depth), np.int8)
    weights[:channels, : runs * pitch] = np.pad(rows, ((0, 0), (0, 0), (0, pitch - run))).reshape(channels, -1)
    bias = np.zeros(len(weights), np.int64)
    if view.has("bias"):
        bias[:channels] = view.constant("bias").reshape(-1)
    factors = np.zeros(len(weights), np.int64)
    factors[:channels] = scales(view, channels)
    scale = halves(factors)

    chunk = _chunk(weights, tile)
    largest = np.abs(weights.astype(np.int64)).sum(axis=1) * _LARGEST + np.abs(bias)
    mode = FINE if scale[:, 1].any() else SHORT
    if chunk < depth or largest.max() > np.iinfo(np.int32).max:
        mode = LONG
        for factor, size in zip(factors[:channels], largest, strict=False):
            ends = scaled(np.array([np.iinfo(np.int32).min, np.iinfo(np.int32).max], np.int64), int(factor))
            beyond = ends[0] <= view.op.act_min and ends[1] >= view.op.act_max
            if factor and size > np.iinfo(np.int32).max and not beyond:
                raise ValueError("sums beyond 32 bits with unclamped results")
    return Plan(pitch, depth, chunk, mode, weights, bias, scale)


def _chunk(weights: npt.NDArray[np.int8], tile: Tile) -> int:
    """Return the largest of equal chunks of the depth whose sums fit 32 bits."""
    sizes = np.abs(weights.astype(np.int64))
    depth = weights.shape[1]
    if tile.sum_bytes > 4:
        return depth
    count = 1
    while True:
        chunk = up(-(-depth // count), tile.step)
        starts = np.arange(0, depth, chunk)
        if np.add.reduceat(sizes, starts, axis=1).max() * _LARGEST <= np.iinfo(np.int32).max:
            return chunk
        count += 1


def direct_rows(view: LayerView, tile: Tile, depth: int) -> int:
    """Return how many rows at a time can be read in place: 0, 1, or the rows of a tile."""
    if has_windows(view) or depth != depth_of(view) or depth * 2 % tile.direct:
        return 0
    return 1 if tile.paired else tile.rows


def scratch_words(tile: Tile, row_plan: Plan) -> int:
    """Return the int32 words of sums, totals and the panel."""
    sums = tile.rows * tile.channels
    return (up(sums * tile.sum_bytes, 8) + sums * 8 + up(tile.rows * row_plan.depth * 2, 8)) // 4
