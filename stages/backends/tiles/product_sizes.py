"""Sizes of matrix products by tiles: rows, blocks of columns, gathered windows."""

from dataclasses import dataclass

from stages.backends.kernels.eight_bit import INT8_OFFSET
from stages.backends.kernels.matrix import columns_of, depth_of, has_windows, pixels_of, windows_of
from stages.backends.kernels.structure import Structure
from stages.backends.tiles.matrix_product import FIELDS as PRODUCT_FIELDS
from stages.ir.graph import LayerView
from stages.ir.operators.products import Conv2D, FullyConnected

FIELDS = Structure("product", PRODUCT_FIELDS)
GATHERED = Structure.of_header("gathered_windows", __file__, "../kernels/include/gather_windows_image.h")
_GATHERED_BYTES = 2048  # of gathered rows, if a tile takes less


@dataclass(frozen=True)
class Blocks:
    """How a program divides a product.

    height    rows of a tile
    width     columns of a block
    step      elements of the depth per multiply-accumulate
    narrows   the last block may have fewer columns; otherwise it begins earlier and computes some columns again
    """

    height: int
    width: int
    step: int
    narrows: bool

    def of(self, columns: int) -> list[tuple[int, int]]:
        """Return first column and number of columns of each block."""
        if columns % self.width == 0 or self.narrows:
            return [(first, min(self.width, columns - first)) for first in range(0, columns, self.width)]
        return [(min(first, columns - self.width), self.width) for first in range(0, columns, self.width)]

    def columns(self, columns: int) -> int:
        """Return the columns of all blocks."""
        return sum(used for _, used in self.of(columns))


def row_of(view: LayerView, step: int) -> int:
    """Return the elements of a row: the depth, filled up to whole steps."""
    return -(-depth_of(view) // step) * step


def reads_in_place(view: LayerView, step: int) -> bool:
    """Return whether rows are read from the input."""
    return not has_windows(view) and row_of(view, step) == depth_of(view) and view.inputs[0].dtype == "int8"


def images(view: LayerView, step: int) -> tuple[int, int]:
    """Return the number of products and the rows of each."""
    if isinstance(view.op, FullyConnected):
        return 1, int(view.op.batch)
    batch, height, width, _ = view.outputs[0].shape
    return (1, batch * height * width) if reads_in_place(view, step) else (batch, height * width)


def rows_at_a_time(view: LayerView, height: int, step: int) -> int:
    """Return the rows of a call of the product."""
    rows = images(view, step)[1]
    if reads_in_place(view, step):
        return rows
    return min(rows, max(1, _GATHERED_BYTES // row_of(view, step) // height) * height)


def windows_fields(view: LayerView, step: int) -> dict[str, int]:
    """Return the fields of GATHERED."""
    op, offset = view.op, INT8_OFFSET[view.inputs[0].dtype]
    windows = windows_of(view) if isinstance(op, Conv2D) else pixels_of(op.batch, op.depth)
    return windows | {"fill": op.input_zero_point - offset, "flip": offset, "row": row_of(view, step)}


def rounding_of(view: LayerView) -> str:
    """Return how sums are scaled, '' if no program can.

    relu    results below the zero point are clamped, so halves of negative sums need no care
    signed  right shifts of at least 1
    any     all shifts
    once    one rounding; products are shifted by at least 33
    """
    shift = view.constant("shift")[view.constant("multiplier") != 0]
    most = int(shift.max()) if shift.size else -2
    if view.op.rounding == "single":
        return "once" if most <= -2 else ""
    if most <= 0 and view.op.act_min >= view.op.output_zero_point:
        return "relu"
    return "signed" if most <= -1 else "any"


def parts_of(rounding: str) -> int:
    """Return the constants of a channel: bias, multiplier, right shift.

    With "any" also left shift and mask of right shifts.
    """
    return 5 if rounding == "any" else 3


def block_columns(view: LayerView, blocks: Blocks) -> int:
    """Return the columns of all blocks of a layer."""
    return blocks.columns(columns_of(view))
