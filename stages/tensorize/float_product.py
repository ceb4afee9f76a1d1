"""What a float reduction has of a matrix product, and the register block that suits it.

A convolution and a fully connected layer multiply rows (pixels) by columns (output channels):

    output[..., row, ..., column] = sum over k of data[..., row, ..., k] * weights[column, k]

A value of `data` serves all columns of a block and a value of `weights` all rows, which is what a block is for. A
depthwise convolution or a pooling has no such pair of axes.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterable

    import numpy as np

BLOCKS: tuple[tuple[int, int], ...] = (
    (4, 4), (2, 8), (1, 8), (3, 4), (4, 2), (2, 4), (4, 1), (1, 4), (2, 2), (3, 2), (1, 2), (3, 1), (2, 1), (1, 1)
)  # fmt: skip
"""Rows and columns of a block. Sixteen sums, their operands and the products on their way fit the 32 registers of an
FPU; with more the compiler spills."""


@dataclass(frozen=True)
class Product:
    """Positions of the row's and the column's axis among the spatial axes; `row` is None where there is one row only.

    `weights` is the buffer that the column indexes, as read `operand` of the block. `axis` is its dimension that is the
    column, None when the column enters its indices in another way.
    """

    row: int | None
    column: int
    weights: Any
    operand: int
    axis: int | None


@dataclass(frozen=True)
class Packing:
    """A constant in panels of `width` columns: [..., columns, ...] becomes [columns / width, ..., width].

    `param` is its position among the function's parameters, `axis` the dimension of the columns. A step of the
    reduction then reads `width` neighbours through one pointer, which otherwise were `width` rows of the matrix.
    """

    param: int
    axis: int
    width: int

    def indices(self, *index: Any) -> list[Any]:
        """Where the element with these indices goes."""
        column = index[self.axis]
        return [column // self.width, *index[: self.axis], *index[self.axis + 1 :], column % self.width]

    def pack(self, array: np.ndarray) -> np.ndarray:
        """The constant as the scheduled function reads it."""
        import numpy as np

        columns = np.moveaxis(array, self.axis, 0)
        panels = columns.reshape(-1, self.width, *columns.shape[1:])
        return np.ascontiguousarray(np.moveaxis(panels, 1, -1))


def find_product(block: Any) -> Product | None:
    """The product that a reduction block (tirx.SBlock) computes, or None."""
    from tvm import tirx

    if len(block.reads) != 2:
        return None
    spatial = [v.var for v in block.iter_vars if int(v.iter_type) == tirx.IterVar.DataPar]
    data, weights = (_variables(read.region) for read in block.reads)
    row, column = _last(spatial, data, weights), _last(spatial, weights, data)
    if column is None:
        return None
    axes = [axis for axis, place in enumerate(block.reads[1].region) if place.min.same_as(spatial[column])]
    return Product(row, column, block.reads[1].source, 1, axes[0] if len(axes) == 1 else None)


def product_block(rows: int, columns: int) -> tuple[int, int]:
    """The block with which a product of this size takes the fewest instructions for each step of its reduction.

    What remains at the edges is done in smaller blocks, so the extents need not be multiples.
    """
    fitting = [block for block in BLOCKS if block[0] <= rows and block[1] <= columns]
    return min(fitting, key=lambda block: _instructions(rows, columns, *block))


def _instructions(rows: int, columns: int, height: int, width: int) -> int:
    """Of all blocks, for one step of the reduction, as RISC-V counts them."""
    return sum(
        # multiply and add; loads; a pointer for each row and one for the panel; the branch
        down * across * (2 * h * w + h + w + h + 2)
        for down, h in _pieces(rows, height)
        for across, w in _pieces(columns, width)
    )


def _pieces(extent: int, size: int) -> list[tuple[int, int]]:
    """(how many, how large) of the blocks along one axis."""
    return [(extent // size, size), (1, extent % size)] if extent % size else [(extent // size, size)]


def _variables(region: Iterable[Any]) -> list[Any]:
    from tvm.tirx.analysis import undefined_vars

    return [variable for place in region for variable in undefined_vars(place.min)]


def _last(spatial: list[Any], inside: list[Any], outside: list[Any]) -> int | None:
    """The last of the axes that occurs in `inside` and not in `outside`."""
    for position in reversed(range(len(spatial))):
        occurs = [any(spatial[position].same_as(variable) for variable in place) for place in (inside, outside)]
        if occurs == [True, False]:
            return position
    return None
