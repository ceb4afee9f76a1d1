"""Operand formats of NEON's matrix kernels.

Columns form blocks of the kernel's width, then of four. Within a block the depth is divided into chunks, and the chunks
of the columns lie side by side:

    weights  block, chunk, column of the block, element of the chunk
    params   block, (bias, multiplier, shift), column of the block
"""

from collections.abc import Iterator
from dataclasses import dataclass

from stages.backends.kernels.eight_bit import INT8_OFFSET, weight_zero_point
from stages.backends.kernels.matrix import columns_of, depth_of, has_windows, pixels_of, windows_of
from stages.backends.kernels.structure import Structure
from stages.ir.graph import LayerView
from stages.ir.operators.products import Conv2D, FullyConnected

NARROW = 4  # columns of the blocks behind the wide ones
GEMM_BYTES = 64 + 4 * 5  # of struct neon_gemm: the output's constants and gemm_fields
GATHERED = Structure.of_header("neon_windows", __file__, "matrix.h")  # of matrix.h


@dataclass(frozen=True)
class Columns:
    """`blocks` blocks of `width` columns from column `first`, with `used` real columns in each."""

    first: int
    blocks: int
    width: int
    used: int


@dataclass(frozen=True)
class Format:
    """Operand format of a kernel.

    width        columns of a block, while enough columns remain
    chunks       bytes of a depth chunk, and of chunks after the last full one
    interleave   C function that interleaves rows by chunks, in tiles of eight or four; '': rows are read in place
    """

    width: int
    chunks: tuple[int, ...]
    interleave: str = ""

    @property
    def multiple(self) -> int:
        """Multiple to which the depth is padded."""
        return self.chunks[-1]

    def columns(self, count: int) -> list[Columns]:
        """Return the blocks of `count` columns in order, equal ones as one entry."""
        entries, first = [], 0
        for width, used in ((self.width, self.width), (NARROW, NARROW), (NARROW, count % NARROW)):
            blocks = (count - first) // used if used else 0
            if blocks:
                entries.append(Columns(first, blocks, width, used))
            first += blocks * used
        return entries

    def depths(self, depth: int) -> Iterator[tuple[int, int, int]]:
        """Return (first k, number of chunks, bytes of a chunk) for a depth multiple of `multiple`."""
        first = 0
        for size in self.chunks:
            count = (depth - first) // size
            if count:
                yield first, count, size
            first += count * size


def depth(view: LayerView, layout: Format) -> int:
    """Return the depth with row padding."""
    return -(-depth_of(view) // layout.multiple) * layout.multiple


def images(view: LayerView, layout: Format) -> tuple[int, int]:
    """Return the number of products and the rows of each.

    If rows are read in place, all images form one product.
    """
    if isinstance(view.op, FullyConnected):
        return 1, int(view.op.batch)
    batch, height, width, _ = view.outputs[0].shape
    return (1, batch * height * width) if native(view, layout) else (batch, height * width)


def native(view: LayerView, layout: Format) -> bool:
    """Return whether rows are read from the input in place.

    True for single pixels without padding, sign change or weight zero point.
    """
    whole = depth_of(view) % layout.multiple == 0
    return not has_windows(view) and whole and view.inputs[0].dtype == "int8" and weight_zero_point(view) == 0


def windows_fields(view: LayerView, layout: Format) -> dict[str, int]:
    """Return the fields of neon_windows."""
    op, offset = view.op, INT8_OFFSET[view.inputs[0].dtype]
    windows = windows_of(view) if isinstance(op, Conv2D) else pixels_of(op.batch, op.depth)
    return windows | {
        "fill": op.input_zero_point - offset,
        "flip": offset,
        "row": depth(view, layout),
        "weight_zero_point": weight_zero_point(view),
    }


def gemm_fields(view: LayerView, layout: Format, mode: int) -> list[int]:
    """Return the last fields of neon_gemm: x_row, y_row, depth, columns, mode."""
    filled, columns = depth(view, layout), columns_of(view)
    return [filled, columns, filled, columns, mode]
