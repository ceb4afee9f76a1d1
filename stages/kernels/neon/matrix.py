"""Convolution and fully connected layers as products of matrices, for NEON's matrix kernels.

Rows are output pixels, the depth is a window, columns are output channels. Columns come in blocks of a width that the
kernel likes, then of four; within a block the depth is cut into chunks, and the columns' chunks lie side by side:

    weights  block, chunk, column of the block, element of the chunk
    params   block, (bias, multiplier, shift), column of the block
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from math import prod
from typing import TYPE_CHECKING, Any, ClassVar

from pydantic import Field

from stages.kernels.eight_bit import INT8_OFFSET, too_deep, why_not_types
from stages.kernels.generic.parameters import taps
from stages.kernels.kernel import KernelParams
from stages.kernels.neon.base import NeonKernel, output_constants

if TYPE_CHECKING:
    import numpy as np

    from stages.graph import LayerView
    from stages.kernels.kernel import Lowering
    from stages.targets.spec import Target

NARROW = 4  # columns of the blocks behind the wide ones
PANEL_BYTES = 16384  # of gathered rows, unless a recipe says how many: what stays in a first-level cache
HALVES, SHIFTS, ONCE = range(3)  # MODE_ of neon_requantize.h
GEMM_FIELDS = ("x_row", "y_row", "depth", "columns", "mode")  # of struct neon_gemm, behind the output's constants
GEMM_BYTES = 64 + 4 * len(GEMM_FIELDS)
# The C structure neon_windows of matrix.h, field by field.
WINDOWS = (
    *("height", "width", "channels", "kernel_height", "kernel_width", "stride_y", "stride_x"),
    *("dilation_y", "dilation_x", "top", "left", "out_width", "fill", "flip", "row", "weight_zero_point"),
)


class GemmParams(KernelParams):
    """`rows` windows are gathered at a time (0: as many as 16 KB hold)."""

    rows: int = Field(default=0, ge=0, le=4096)


@dataclass(frozen=True)
class Columns:
    """`blocks` blocks of `width` columns from column `first`; `used` are wanted in each."""

    first: int
    blocks: int
    width: int
    used: int


@dataclass(frozen=True)
class Format:
    """How a kernel wants its operands.

    width     columns of a block, as long as there are enough
    chunks    bytes of a chunk of the depth, and of those behind the last whole one
    interleaved  rows are interleaved in tiles of eight or four, else they are as they are
    """

    width: int
    chunks: tuple[int, ...]
    interleaved: bool = False

    @property
    def multiple(self) -> int:
        """The depth is filled up to a multiple of this."""
        return self.chunks[-1]

    def columns(self, count: int) -> list[Columns]:
        """The blocks of `count` columns, in order; those of the same kind are one entry."""
        found, first = [], 0
        for width, used in ((self.width, self.width), (NARROW, NARROW), (NARROW, count % NARROW)):
            blocks = (count - first) // used if used else 0
            if blocks:
                found.append(Columns(first, blocks, width, used))
            first += blocks * used
        return found

    def depths(self, depth: int) -> Iterator[tuple[int, int, int]]:
        """(first k, number of chunks, bytes of a chunk) for a depth that is a multiple of `multiple`."""
        first = 0
        for size in self.chunks:
            count = (depth - first) // size
            if count:
                yield first, count, size
            first += count * size


class MatrixKernel(NeonKernel):
    """CONV_2D or FULLY_CONNECTED with `format`."""

    format: ClassVar[Format]
    params = GemmParams

    def why_not_operator(self, view: LayerView) -> str:
        op = view.op
        if bad := why_not_types(view):
            return bad
        if op.op == "conv2d" and op.groups != 1:
            return f"{op.groups} groups; this kernel has one"
        return too_deep(window_depth(view))

    def pack(self, view: LayerView, params: Any) -> Mapping[str, np.ndarray]:
        import numpy as np

        from stages.kernels.neon import packing

        weights = packing.flat_weights(view)
        constants = {
            "weights": packing.weights(weights, self.format, depth(view, self.format)),
            "params": packing.params(view, weights, weight_zero_point(view), self.format),
            "gemm": packing.structure(output_constants(view), [gemm_fields(view, self.format)[f] for f in GEMM_FIELDS]),
        }
        if not native(view, self.format):
            fields = windows_fields(view, self.format)
            constants["windows"] = np.array([fields[name] for name in WINDOWS], np.int32)
        return constants

    def lower(self, view: LayerView, params: GemmParams, target: Target) -> Lowering:
        from stages.kernels.neon.matrix_tir import product_layer

        return product_layer(view, self, rows_at_a_time(view, self.format, params))

    @abstractmethod
    def function(self, view: LayerView) -> str:
        """The C function of the product."""


def window_depth(view: LayerView) -> int:
    """Elements of a window, or of a row."""
    op = view.op
    return int(op.depth if op.op == "fully_connected" else prod(op.kernel) * op.in_channels)


def columns_of(view: LayerView) -> int:
    """Output channels, or units."""
    op = view.op
    return int(op.units if op.op == "fully_connected" else op.out_channels)


def depth(view: LayerView, layout: Format) -> int:
    """The depth with what a row is filled up with."""
    return -(-window_depth(view) // layout.multiple) * layout.multiple


def images(view: LayerView, layout: Format) -> tuple[int, int]:
    """How many products there are, and the rows of each. Rows that are read in place need no border between images."""
    if view.op.op == "fully_connected":
        return 1, int(view.op.batch)
    batch, height, width, _ = view.outputs[0].shape
    return (1, batch * height * width) if native(view, layout) else (batch, height * width)


def weight_zero_point(view: LayerView) -> int:
    """The zero point of the weights as int8."""
    return int(view.op.weight_zero_point - INT8_OFFSET[str(view.constant("weights").dtype)])


def native(view: LayerView, layout: Format) -> bool:
    """Whether rows are read where the input lies: single pixels that need no filling, no other sign and no sum."""
    op = view.op
    pointwise = op.op == "fully_connected" or (op.kernel, op.stride, op.padding) == ((1, 1), (1, 1), (0, 0, 0, 0))
    whole = window_depth(view) % layout.multiple == 0
    return pointwise and whole and view.inputs[0].dtype == "int8" and weight_zero_point(view) == 0


def rows_at_a_time(view: LayerView, layout: Format, params: GemmParams) -> int:
    """Rows of one product: all where nothing has to be copied."""
    rows = images(view, layout)[1]
    if native(view, layout) and not layout.interleaved:
        return rows
    fitting = max(PANEL_BYTES // depth(view, layout) // 8 * 8, 8)
    return min(params.rows or fitting, rows)


def image_shape(view: LayerView) -> tuple[int, int, int]:
    """Height, width and channels of an image; the rows of a fully connected layer are the pixels of one."""
    if view.op.op == "fully_connected":
        return 1, int(view.op.batch), int(view.op.depth)
    _, height, width, channels = view.inputs[0].shape
    return height, width, channels


def windows_fields(view: LayerView, layout: Format) -> dict[str, int]:
    """The fields of neon_windows."""
    op, offset = view.op, INT8_OFFSET[view.inputs[0].dtype]
    height, width, channels = image_shape(view)
    if op.op == "conv2d":
        window = {**taps(op), "out_width": view.outputs[0].shape[2]}
    else:
        ones = ("kernel_height", "kernel_width", "stride_y", "stride_x", "dilation_y", "dilation_x")
        window = {**dict.fromkeys(ones, 1), "top": 0, "left": 0, "out_width": width}
    return {
        "height": height,
        "width": width,
        "channels": channels,
        **window,
        "fill": op.input_zero_point - offset,
        "flip": offset,
        "row": depth(view, layout),
        "weight_zero_point": weight_zero_point(view),
    }


def gemm_fields(view: LayerView, layout: Format) -> dict[str, int]:
    """The fields of neon_gemm behind the output's constants."""
    filled, columns = depth(view, layout), columns_of(view)
    shifts = view.constant("shift")
    double = HALVES if shifts.max() < 0 else SHIFTS
    mode = ONCE if view.op.rounding == "single" else double
    return {"x_row": filled, "y_row": columns, "depth": filled, "columns": columns, "mode": mode}
