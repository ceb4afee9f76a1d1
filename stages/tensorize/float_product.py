"""Find matrix products in float reductions, and choose their register blocks.

A convolution or fully connected layer multiplies rows (pixels) by columns (output channels):

    output[..., row, ..., column] = sum over k of data[..., row, ..., k] * weights[column, k]

Within a block each value of `data` is used for all columns, each value of `weights` for all rows. Depthwise
convolutions and pooling have no such pair of axes.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from stages.ir.arrays import Array
from stages.support.lazy import np, tirx

BLOCKS: tuple[tuple[int, int], ...] = (
    (4, 4), (2, 8), (1, 8), (3, 4), (4, 2), (2, 4), (4, 1), (1, 4), (2, 2), (3, 2), (1, 2), (3, 1), (2, 1), (1, 1)
)  # fmt: skip
"""Rows and columns of a block. Sixteen sums, their operands and the products on their way fit the 32 registers of an
FPU; with more the compiler spills."""


VECTOR_BLOCKS: tuple[tuple[int, int], ...] = ((4, 16), (8, 8), (4, 8), (2, 16), (1, 16), (2, 8), (1, 8), *BLOCKS)
"""The same where vectors hold four columns."""


@dataclass(frozen=True)
class FloatUnit:
    """Float unit of a core: lanes, registers, subnormal numbers, order of operations.

    From Core.float_lanes, Core.float_registers, Core.flushes_subnormals and Core.keeps_order.
    """

    lanes: int = 1
    registers: int = 32
    flushes: bool = False
    keeps_order: bool = False

    @property
    def vectorizes_extremes(self) -> bool:
        """Whether GCC vectorizes fmaxf and fminf: for Neon, not for MVE (eight registers)."""
        return self.registers > 8


SCALAR = FloatUnit()


@dataclass(frozen=True)
class Product:
    """A matrix product in a reduction block.

    row      position of the row axis among the spatial axes; None if there is only one row
    column   position of the column axis
    weights  buffer that the column indexes
    operand  number of the weights among the block's reads
    axis     dimension of the weights that is the column; None if the column is not a plain index
    """

    row: int | None
    column: int
    weights: Any
    operand: int
    axis: int | None


@dataclass(frozen=True)
class Packing:
    """A constant packed in panels: [..., columns, ...] to [columns / width, ..., width].

    `param` is its position among the function's parameters, `axis` the dimension of the columns. Each step of the
    reduction then reads `width` adjacent values through one pointer.
    """

    param: int
    axis: int
    width: int

    def indices(self, *index: Any) -> list[Any]:
        """Return the packed indices of the element at `index`."""
        column = index[self.axis]
        return [column // self.width, *index[: self.axis], *index[self.axis + 1 :], column % self.width]

    def pack(self, array: Array) -> Array:
        """Return the constant as the scheduled function reads it."""
        columns = np.moveaxis(array, self.axis, 0)
        panels = columns.reshape(-1, self.width, *columns.shape[1:])
        return np.ascontiguousarray(np.moveaxis(panels, 1, -1))


def find_product(block: Any) -> Product | None:
    """Return the product that a reduction block (tirx.SBlock) computes, or None."""
    if len(block.reads) != 2:
        return None
    spatial = [v.var for v in block.iter_vars if int(v.iter_type) == tirx.IterVar.DataPar]
    data, weights = (_variables(read.region) for read in block.reads)
    row, column = _last(spatial, data, weights), _last(spatial, weights, data)
    if column is None:
        return None
    axes = [axis for axis, place in enumerate(block.reads[1].region) if place.min.same_as(spatial[column])]
    return Product(row, column, block.reads[1].source, 1, axes[0] if len(axes) == 1 else None)


def product_block(rows: int, columns: int, unit: FloatUnit) -> tuple[int, int]:
    """Return the register block (rows, columns) with the fewest instructions.

    Edges are computed in smaller blocks, so the extents need not be multiples. Vectors of sums take at most half of the
    registers.
    """
    lanes = unit.lanes
    wide = [(h, w) for h, w in VECTOR_BLOCKS if w > lanes and h * w <= lanes * unit.registers // 2]
    blocks = BLOCKS if lanes == 1 else (*wide, *BLOCKS)
    fitting = [block for block in blocks if block[0] <= rows and block[1] <= columns]
    return min(fitting, key=lambda block: _instructions(rows, columns, block, lanes))


def _instructions(rows: int, columns: int, block: tuple[int, int], lanes: int) -> int:
    """Return the instructions of all blocks for one step of the reduction.

    One lane has RISC-V's instructions, several lanes have A64's.
    """
    height, width = block
    return sum(
        # multiplies and adds; loads; a pointer for each row (A64 has one for all) and one for the panel; the branch
        down * across * (2 * h * v + h + v + (h if lanes == 1 else 0) + 2)
        for down, h in _pieces(rows, height)
        for across, w in _pieces(columns, width)
        for v in [w // lanes if w % lanes == 0 else w]
    )


def _pieces(extent: int, size: int) -> list[tuple[int, int]]:
    """Return (number, size) of the blocks along one axis."""
    return [(extent // size, size), (1, extent % size)] if extent % size else [(extent // size, size)]


def _variables(region: Iterable[Any]) -> list[Any]:
    from tvm.tirx.analysis import undefined_vars

    return [variable for place in region for variable in undefined_vars(place.min)]


def _last(spatial: list[Any], inside: list[Any], outside: list[Any]) -> int | None:
    """Return the last axis that occurs in `inside` and not in `outside`."""
    for position in reversed(range(len(spatial))):
        occurs = [any(spatial[position].same_as(variable) for variable in place) for place in (inside, outside)]
        if occurs == [True, False]:
            return position
    return None
