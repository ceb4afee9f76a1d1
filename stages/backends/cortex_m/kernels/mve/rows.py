"""Rows and column blocks of layers that are matrix products."""

from dataclasses import dataclass

from stages.backends.cortex_m.kernels.mve.base import arithmetic
from stages.backends.kernels.eight_bit import INT8_OFFSET, weight_zero_point
from stages.backends.kernels.matrix import (
    WINDOWS,
    columns_of,
    depth_of,
    has_windows,
    pixels_of,
    rows_of,
    run_elements,
    windows_of,
)
from stages.backends.kernels.structure import Structure
from stages.ir.graph import LayerView
from stages.ir.operators.products import Conv2D, FullyConnected

BLOCK = 4  # output channels of a block
SCRATCH_BYTES = 1024  # of gathered rows, unless those of a tile are larger
CHUNK = 16  # elements of the depth in a vector
MOST_COLUMN = 65535 // 8  # bytes of a strip's column: eight of them are offsets of 16 bits
GATHERED = Structure(  # of gemm.h
    "mve_windows", (*WINDOWS, "pixel", "line", "neighbours", "fill", "flip", "depth", "row", "weight_zero_point")
)
_OUTPUT = ("x_row", "y_row", "zero_point", "low", "high")
BLOCK_FIELDS = Structure("mve_gemm_fields", ("more", "rest", *_OUTPUT))  # of product_program.py


@dataclass(frozen=True)
class Columns:
    """Division of a group's output channels: blocks of four at `starts`, then single columns.

    The last block overlaps the one before where that is cheaper than single columns.
    """

    starts: tuple[int, ...]
    singles: int

    @property
    def whole(self) -> int:
        """Number of blocks that start at a multiple of `BLOCK`."""
        return sum(1 for start in self.starts if start % BLOCK == 0)


def columns_in_group(view: LayerView) -> int:
    """Return the output channels of a group."""
    return columns_of(view) // groups_of(view)


def groups_of(view: LayerView) -> int:
    """Return the number of groups; 1 for a fully connected layer."""
    return int(view.op.groups) if isinstance(view.op, Conv2D) else 1


def columns(view: LayerView) -> Columns:
    """Return the cheapest division of columns.

    With a tile of two rows a block takes 16 instructions per chunk and 27 overhead; a column of four rows takes 10 and
    26.
    """
    count = columns_in_group(view)
    whole, left = divmod(count, BLOCK)
    starts = tuple(range(0, whole * BLOCK, BLOCK))
    if left and whole and column_cost(view, left) > block_cost(view, 1):
        return Columns((*starts, count - BLOCK), 0)
    return Columns(starts, left)


def block_cost(view: LayerView, blocks: int) -> float:
    """Return the instructions of the blocks of all rows, from counts."""
    rows, chunks = rows_of(view), -(-depth_of(view) // CHUNK)
    if is_short(view):
        return blocks * (rows * (18 if arithmetic(view).mode == "exact" else 21) + 15) + 30
    return blocks * (rows // 2 * (16 * chunks + 27) + rows % 2 * (10 * chunks + 22)) + rows // 2 * 20


def column_cost(view: LayerView, singles: int) -> float:
    """Return the instructions of the single columns of all rows, from counts."""
    rows, depth = rows_of(view), depth_of(view)
    chunks, rest = depth // CHUNK, 8 if depth % CHUNK else 0
    quads = rows // 4 * (10 * chunks + 28 + 2 * rest)
    return singles * (quads + rows % 4 * (3.5 * chunks + 26 + rest) + 25)


def gathers(view: LayerView) -> bool:
    """Return whether rows are copied before multiplication.

    For windows, a sign change, or sums for the weights' zero point.
    """
    return has_windows(view) or view.inputs[0].dtype == "uint8" or weight_zero_point(view) != 0


def slides(view: LayerView) -> bool:
    """Return whether overlapping windows are gathered into one strip, where that is cheaper."""
    op = view.op
    overlap = has_windows(view) and op.dilation[1] == 1 and op.stride[1] < op.kernel[1]
    if not overlap or depth_of(view) // op.kernel[1] > MOST_COLUMN:
        return False
    return strip_cost(view, strip_rows(view)) < 1.1 * gather_cost(view)


def strip_rows(view: LayerView) -> int:
    """Return how many windows of a strip fit into the scratch of `gathered_rows`."""
    depth, (_, kernel_x), step = padded_depth(view), view.op.kernel, view.op.stride[1]
    fitting = (gathered_rows(view) - 1) * depth // (depth_of(view) // kernel_x * step) + 1
    return min(fitting // _rows_of_a_tile(view) * _rows_of_a_tile(view), int(view.outputs[0].shape[2]))


def gathered_rows(view: LayerView) -> int:
    """Return the rows gathered at a time."""
    least = _rows_of_a_tile(view)
    return max(SCRATCH_BYTES // padded_depth(view) // least * least, least)


def _rows_of_a_tile(view: LayerView) -> int:
    return 4 if columns(view).singles else 2


def gather_cost(view: LayerView) -> float:
    """Return the instructions to gather the rows of a group one by one, from counts.

    3 per 16 bytes, 8 per run, 50 per row.
    """
    rows, depth, groups = rows_of(view), depth_of(view), groups_of(view)
    runs = 1 if isinstance(view.op, FullyConnected) else depth * groups // run_elements(view)
    return float(rows * (depth * 3 / CHUNK + runs * 8 + 50))


def strip_cost(view: LayerView, tile: int) -> float:
    """Return the instructions for strips of `tile` rows of a group, from counts.

    3 per 16 bytes of a column and 8 overhead; 6 per 8 bytes with few channels. 250 per strip and 60 per line of it (few
    channels: 130).
    """
    (kernel_y, kernel_x), step = view.op.kernel, view.op.stride[1]
    groups, rows = groups_of(view), rows_of(view)
    channels = view.op.in_channels // groups
    few = groups == 1 and channels <= 8
    pixel = channels * 6 / 8 if few else 8 + channels * 3 / CHUNK
    strips = rows / tile
    columns_copied = rows * step + strips * (kernel_x - step)
    return float(columns_copied * kernel_y * pixel + strips * (250 + (130 if few else 60) * kernel_y))


def padded_depth(view: LayerView) -> int:
    """Return the bytes of a gathered row, rounded up to whole chunks."""
    return -(-depth_of(view) // CHUNK) * CHUNK


def row_bytes(view: LayerView) -> int:
    """Return the bytes between rows.

    In a strip rows overlap; other gathered rows are padded to whole chunks.
    """
    depth = depth_of(view)
    if slides(view):
        return depth // view.op.kernel[1] * view.op.stride[1]
    return -(-depth // CHUNK) * CHUNK if gathers(view) else depth * groups_of(view)


def images(view: LayerView) -> tuple[int, int]:
    """Return the number of products and the rows of each.

    If rows are read in place, all images form one product.
    """
    if not has_windows(view):
        return 1, rows_of(view)
    batch, height, width, _ = view.outputs[0].shape
    return batch, height * width


def windows_fields(view: LayerView) -> dict[str, int]:
    """Return the fields of mve_windows."""
    op, offset = view.op, INT8_OFFSET[view.inputs[0].dtype]
    windows = windows_of(view) if has_windows(view) else pixels_of(rows_of(view), depth_of(view) * groups_of(view))
    return windows | {
        "channels": windows["channels"] // groups_of(view),
        "pixel": windows["channels"],
        "line": windows["width"] * windows["channels"],
        "neighbours": int(groups_of(view) == 1 and windows["dilation_x"] == 1),
        "fill": op.input_zero_point - offset,
        "flip": offset,
        "depth": depth_of(view),
        "row": row_bytes(view),
        "weight_zero_point": weight_zero_point(view),
    }


def is_short(view: LayerView) -> bool:
    """Return whether programs `_plain` can: one chunk, and the full int8 output range."""
    op, constants = view.op, arithmetic(view)
    plain = view.outputs[0].dtype == "int8" and (op.act_min, op.act_max) == (-128, 127)
    fits = multiplied(view) <= CHUNK and weight_zero_point(view) == 0
    return plain and fits and constants.mode in ("exact", "lowered")


def block_fields(view: LayerView) -> dict[str, int]:
    """Return the fields of product_program.py."""
    chunks, rest = divmod(multiplied(view), CHUNK)
    op = view.op
    return {
        "more": max(chunks - 1, 0),
        "rest": rest,
        "x_row": row_bytes(view),
        "y_row": columns_of(view),
        "zero_point": op.output_zero_point,
        "low": op.act_min,
        "high": op.act_max,
    }


def multiplied(view: LayerView) -> int:
    """Return the bytes of a row that are multiplied; padding meets weights of 0."""
    return padded_depth(view) if gathers(view) else depth_of(view)


def product_function(view: LayerView, width: int) -> str:
    """Return the function of product_program.py that multiplies blocks of `width` columns."""
    row = multiplied(view)
    depth = "short" if row < CHUNK else "rest" if row % CHUNK else "whole"
    kind = "_plain" if width == BLOCK and is_short(view) else "_offsets" if weight_zero_point(view) else ""
    return f"mve_gemm_{width}_{arithmetic(view).mode}_{depth}{kind}"


def product_functions(view: LayerView) -> list[str]:
    """Return the functions that multiply the layer."""
    split = columns(view)
    widths = [BLOCK] * bool(split.starts) + [1] * bool(split.singles)
    return [product_function(view, width) for width in widths]
