"""Tiles of a direct convolution: neighbouring outputs along an image axis."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from math import gcd
from typing import Any, Literal, NamedTuple

from pydantic import Field

from stages.backends.kernels.kernel import KernelParams
from stages.backends.riscv.kernels.rvp.base import clip_word
from stages.ir.graph import LayerView
from stages.support.messages.stage_error import StageError

# (taps, stride) along the rows of a tile -> most rows, of the functions of direct_s8.S.
MOST_ROWS = {(3, 1): 9, (3, 2): 9, (5, 1): 7, (7, 1): 5}
# A strip by lanes: as many columns as fit, but not so few that copying the columns of two strips twice costs much.
STRIP_BYTES = {1: 2048, 2: 4096}
LEAST_COLUMNS = 8
FEW_ROWS = 4  # of the output, of which a call computes all tiles along columns
GEOMETRY_FIELDS = 19  # int32 fields of the C structure rvp_direct_geometry
Axis = Literal["rows", "columns"]
Expr = Any  # a TIR expression or a Python int


class DirectParams(KernelParams):
    """Tiles of `rows` outputs along an image axis, below or beside each other.

    "" and 0 select the cheapest for the layer.
    """

    axis: Literal["", "rows", "columns"] = ""
    rows: int = Field(default=0, ge=0, le=9)


class Shape(NamedTuple):
    """Shape of a layer along its tiles: taps and stride in rows, the other axis as columns."""

    taps: int
    stride: int
    out_rows: int
    out_columns: int
    kernel_columns: int
    column_stride: int
    column_chunks: int  # chunks of four channels in a pixel
    phases: int = 0  # places in a chunk where windows begin; columns are chunks then and strides bytes. 0: pixels

    @classmethod
    def of(cls, view: LayerView, axis: Axis) -> Shape:
        """Return the shape of a layer for tiles along `axis`."""
        op, out = view.op, view.outputs[0].shape
        row, column = (0, 1) if axis == "rows" else (1, 0)
        chunks, phases = _as_chunks(view)
        if axis == "rows" and phases:
            stride = op.stride[1] * op.in_channels
            return cls(op.kernel[0], op.stride[0], out[1], out[2], chunks, stride, 1, phases)
        return cls(
            op.kernel[row],
            op.stride[row],
            out[1 + row],
            out[1 + column],
            op.kernel[column],
            op.stride[column],
            -(-op.in_channels // 4),
        )

    def slots(self, rows: int) -> int:
        """Image rows that `rows` output rows read."""
        return (rows - 1) * self.stride + self.taps

    def strip_width(self, columns: int) -> int:
        """Return the most image columns that `columns` output columns read."""
        distance = (columns - 1) * self.column_stride
        return (distance + 3) // 4 + self.kernel_columns if self.phases else distance + self.kernel_columns

    def first_byte(self, column: Expr, view: LayerView) -> Expr:
        """Return the first byte of an output column's window; only its place in a chunk counts."""
        return column * self.column_stride + -view.op.padding[1] * view.op.in_channels % 4


def _as_chunks(view: LayerView) -> tuple[int, int]:
    """Return the chunks of a window row and the phases for rows read in place; else 0, 0.

    Used only if there are no more chunks than pixels and weights are stored twice at most.
    """
    op, width = view.op, view.inputs[0].shape[2]
    channels = op.in_channels
    step = op.stride[1] * channels
    phases = 4 // gcd(4, step)
    if channels >= 4 or width * channels % 4 or phases > 2:
        return 0, 0
    before = -op.padding[1] * channels % 4
    farthest = max((before + column * step) % 4 for column in range(phases))
    chunks = -(-(farthest + op.kernel[1] * channels) // 4)
    return (chunks, phases) if chunks <= op.kernel[1] else (0, 0)


@dataclass(frozen=True)
class Tiling:
    """Tiles of at most `rows` rows along an axis."""

    axis: Axis
    rows: int
    shape: Shape
    pixel_tiles: int = 0  # tiles along columns that one call computes, 0 if it computes a tile

    @classmethod
    def of(cls, view: LayerView, params: DirectParams, lanes: int) -> Tiling:
        """Return the cheapest tiling that the parameters allow.

        Raises StageError for an axis without a function.
        """
        possible = [
            cls(axis, rows, shape, _pixel_tiles(view, axis, shape, rows, lanes))
            for axis, most in usable_axes(view)
            if params.axis in ("", axis)
            for shape in [Shape.of(view, axis)]
            for rows in _sizes(params.rows, min(most, shape.out_rows))
        ]
        if not possible:
            height, width = view.op.kernel
            size = f"a window of {height}x{width}"
            raise StageError(f"rvp.direct_s8 has no tiles along the {params.axis} for {size}; set axis to ''")
        return min(possible, key=lambda tiling: tiling.cost(view.op.out_channels, lanes))

    def tiles(self) -> list[int]:
        """Sizes of the tiles that cover the output: complete ones, then the remainder."""
        whole, left = divmod(self.shape.out_rows, self.rows)
        return [self.rows] * whole + ([left] if left else [])

    def strip_columns(self, lanes: int) -> int:
        """Output columns per strip; all strips have about the same width."""
        if self.pixel_tiles:
            return self.shape.out_columns
        column = self.shape.column_chunks * self.shape.slots(self.rows) * 4 * lanes
        room = STRIP_BYTES[lanes] // column - self.shape.kernel_columns
        fitting = (room * 4 if self.shape.phases else room) // self.shape.column_stride + 1
        strips = -(-self.shape.out_columns // max(fitting, LEAST_COLUMNS))
        return -(-self.shape.out_columns // strips)

    def strip_bytes(self, lanes: int) -> int:
        """Bytes that direct.c writes into its strip."""
        width = self.shape.strip_width(self.strip_columns(lanes))
        return width * self.shape.column_chunks * self.shape.slots(self.rows) * 4 * lanes

    def cost(self, out_channels: int, lanes: int) -> float:
        """Return instructions of copies and half blocks (loads, products, 11 a row, 33 more)."""
        shape, columns = self.shape, self.strip_columns(lanes)
        strips = -(-shape.out_columns // columns)
        copies = strips * shape.strip_width(columns) * shape.column_chunks * (3 + 1 / lanes)
        total = 0.0
        for rows in self.tiles():
            slots = shape.slots(rows)
            total += self._products(rows, out_channels // (2 * lanes))
            if self.pixel_tiles:
                total += 180 + shape.strip_width(columns) * self._line_cost(slots, lanes)
            else:
                alone = self.axis == "columns" and shape.out_columns <= FEW_ROWS  # few pixels at a time
                total += slots * (copies + (120 if alone else 40) * strips) + 100 * strips
        return total

    def _line_cost(self, slots: int, lanes: int) -> float:
        """Return the instructions that copy a line of pixels to a strip."""
        chunks = self.shape.column_chunks
        return (
            40 + (2 + 1.5 * lanes) * slots if chunks == 1 else 70 + -(-chunks // lanes) * (20 + (3 + 2 * lanes) * slots)
        )

    def _products(self, rows: int, halves: int) -> float:
        """Return the instructions of a tile without copies."""
        shape = self.shape
        chunks = shape.kernel_columns * shape.column_chunks
        half = chunks * (shape.slots(rows) + 2 * shape.taps * (1 + rows) + 3 / 4) + 11 * rows + 33
        return shape.out_columns * (halves * half + 25)


def _pixel_tiles(view: LayerView, axis: Axis, shape: Shape, rows: int, lanes: int) -> int:
    """Return the tiles along columns that one call computes.

    All of a few rows, if all are equal.
    """
    channels = view.op.in_channels
    usable = channels == 3 or channels % (4 * lanes) == 0
    few = axis == "columns" and shape.out_columns <= FEW_ROWS and rows > 1 and not shape.out_rows % rows
    return shape.out_rows // rows if usable and few else 0


def _sizes(wanted: int, most: int) -> Iterable[int]:
    """Return the tile sizes to choose from: any up to `most`, or the requested size."""
    return [min(wanted, most)] if wanted else range(1, most + 1)


def usable_axes(view: LayerView) -> Iterator[tuple[Axis, int]]:
    """Return the image axes that tiles can follow, with the possible rows of each."""
    names: tuple[Axis, ...] = ("rows", "columns")
    for axis, taps, stride in zip(names, view.op.kernel, view.op.stride, strict=True):
        if (taps, stride) in MOST_ROWS:
            yield axis, MOST_ROWS[taps, stride]


def geometry(view: LayerView, tiling: Tiling, lanes: int) -> tuple[int, ...]:
    """Return the fields of rvp_direct_geometry, in order."""
    op, x, y = view.op, view.inputs[0].shape, view.outputs[0].shape
    shape, sizes = tiling.shape, x[1:3]
    steps, out_steps = (x[2] * x[3], x[3]), (y[2] * y[3], y[3])
    padding, channels = tuple(op.padding[:2]), op.in_channels
    if tiling.axis == "columns":
        sizes, steps, out_steps, padding = sizes[::-1], steps[::-1], out_steps[::-1], padding[::-1]
    if shape.phases:
        sizes, steps, padding = (x[1], x[2] * channels // 4), (steps[0], 4), (padding[0], padding[1] * channels)
        channels = 4
    window = (shape.kernel_columns, shape.column_stride, 2 if shape.phases else 0, max(shape.phases, 1))
    tail = (
        tiling.strip_columns(lanes),
        op.out_channels // (4 * lanes),
        op.input_zero_point,
        clip_word(view),
        tiling.pixel_tiles,
    )
    return (*sizes, *steps, channels, shape.out_columns, *out_steps, *padding, *window, *tail)
