"""CONV_2D and FULLY_CONNECTED: rows of int8 times packed weights, two rows and four channels at a time."""

from __future__ import annotations

from math import prod
from typing import TYPE_CHECKING, Any, ClassVar

from pydantic import Field

from stages.kernels.eight_bit import INT8_OFFSET, weight_rows, why_not_sums, why_not_types
from stages.kernels.generic.parameters import taps
from stages.kernels.kernel import KernelParams
from stages.kernels.mve.base import MveKernel, arithmetic

if TYPE_CHECKING:
    from collections.abc import Mapping

    import numpy as np

    from stages.graph import LayerView
    from stages.kernels.kernel import Lowering
    from stages.kernels.mve.base import Arithmetic
    from stages.targets.spec import Target

BLOCK = 4  # output channels of a block
CHUNK = 16  # elements of the depth in a vector
SCRATCH_BYTES = 1024  # of gathered rows, unless two are larger
# The C structure mve_windows of gemm.h, field by field.
WINDOWS = (
    *("height", "width", "channels", "kernel_y", "kernel_x", "stride_y", "stride_x", "dilation_y", "dilation_x"),
    *("top", "left", "out_width", "fill", "flip", "depth", "row", "weight_zero_point"),
)
FIELDS = ("more", "rest", "x_row", "y_row", "zero_point", "low", "high")  # of gemm.S


class GemmParams(KernelParams):
    """`rows` windows are gathered at a time (0: as many as 1 KB holds, and at least two)."""

    rows: int = Field(default=0, ge=0, le=4096)


class _Gemm(MveKernel):
    sources = ("gemm.S", "windows.c")
    headers: ClassVar[tuple[str, ...]] = ("gemm.h",)
    params = GemmParams

    def why_not_operator(self, view: LayerView) -> str:
        if bad := why_not_types(view):
            return bad
        if view.op.op == "conv2d" and view.op.groups != 1:
            return f"{view.op.groups} groups; this kernel has one"
        if columns_of(view) < BLOCK:
            return f"{columns_of(view)} output channels; this kernel computes {BLOCK} at a time"
        return why_not_sums(depth_of(view), lambda: layer_arithmetic(view))

    def pack(self, view: LayerView, params: Any) -> Mapping[str, np.ndarray]:
        import numpy as np

        made, starts = layer_arithmetic(view), block_starts(columns_of(view))
        padded = np.pad(made.weights.astype(np.int8), ((0, 0), (0, -depth_of(view) % CHUNK)))
        blocks = np.stack([padded[first : first + BLOCK] for first in starts])
        values = fields(view)
        constants = {
            "weights": np.ascontiguousarray(blocks.reshape(len(starts), BLOCK, -1, CHUNK).transpose(0, 2, 1, 3)),
            "params": np.stack([made.params[:, first : first + BLOCK] for first in starts]).astype(np.int32),
            "fields": np.array([values[name] for name in FIELDS], np.int32),
        }
        if gathers(view):
            geometry = windows_fields(view)
            constants["windows"] = np.array([geometry[name] for name in WINDOWS], np.int32)
        return constants  # type: ignore[return-value]  # the stubs of np.stack say object

    def lower(self, view: LayerView, params: GemmParams, target: Target) -> Lowering:
        from stages.kernels.mve.gemm_tir import gemm

        return gemm(view, rows_at_a_time(view, params))

    def cost(self, view: LayerView, params: GemmParams, target: Target) -> float:
        """A tile of two rows: 16 instructions for a chunk, 27 around; of a gathered row 3 for 16 bytes, 8 for each run,
        50 around; as counted.
        """
        rows, depth = rows_of(view), depth_of(view)
        blocks = len(block_starts(columns_of(view)))
        tiles = blocks * (rows // 2 * (16 * -(-depth // CHUNK) + 27) + rows % 2 * (10 * -(-depth // CHUNK) + 22))
        gathered = 0.0
        if gathers(view):
            runs = 1 if view.op.op == "fully_connected" else depth // run_elements(view)
            gathered = rows * (depth * 3 / CHUNK + runs * 8 + 50)
        return tiles + rows // 2 * 20 + gathered + 100


class Conv2d(_Gemm):
    """Pointwise layers read their rows in place; windows are gathered into scratch, about 1 KB at a time."""

    name = "mve.gemm_s8"
    ops: ClassVar[frozenset[str]] = frozenset({"conv2d"})


class FullyConnected(_Gemm):
    """Rows of x times all units; a single row streams its weights through, four units at once."""

    name = "mve.dot_s8"
    ops: ClassVar[frozenset[str]] = frozenset({"fully_connected"})


def layer_arithmetic(view: LayerView) -> Arithmetic:
    """The layer's constants with weights as [channels, (ky, kx, input channel)]."""
    import numpy as np

    return arithmetic(view, weight_rows(view, view.constant("weights").astype(np.int64)))


def depth_of(view: LayerView) -> int:
    """Elements of a window, or of a row."""
    op = view.op
    return int(op.depth if op.op == "fully_connected" else prod(op.kernel) * op.in_channels)


def columns_of(view: LayerView) -> int:
    """Output channels, or units."""
    op = view.op
    return int(op.units if op.op == "fully_connected" else op.out_channels)


def rows_of(view: LayerView) -> int:
    """Output pixels of all images."""
    return view.outputs[0].elements // columns_of(view)


def block_starts(columns: int) -> list[int]:
    """The first channel of each block; the last block overlaps the one before where channels are left over."""
    return [*range(0, columns - BLOCK + 1, BLOCK), *([columns - BLOCK] if columns % BLOCK else [])]


def has_windows(view: LayerView) -> bool:
    """Whether the layer is more than a plain product of matrices."""
    op = view.op
    return bool(op.op == "conv2d" and (op.kernel, op.stride, op.padding) != ((1, 1), (1, 1), (0, 0, 0, 0)))


def gathers(view: LayerView) -> bool:
    """Whether rows are copied before they are multiplied: windows, another sign, sums for the weights' zero point."""
    return has_windows(view) or view.inputs[0].dtype == "uint8" or offset_weights(view) != 0


def offset_weights(view: LayerView) -> int:
    """The zero point of the weights as int8."""
    return int(view.op.weight_zero_point - INT8_OFFSET[str(view.constant("weights").dtype)])


def row_bytes(view: LayerView) -> int:
    """From a row to the next: gathered rows are padded to whole chunks."""
    depth = depth_of(view)
    return -(-depth // CHUNK) * CHUNK if gathers(view) else depth


def images(view: LayerView) -> tuple[int, int]:
    """How many products there are, and the rows of each. Rows that are read in place need no border between images."""
    if not has_windows(view):
        return 1, rows_of(view)
    batch, height, width, _ = view.outputs[0].shape
    return batch, height * width


def rows_at_a_time(view: LayerView, params: GemmParams) -> int:
    """Rows of one product: all where nothing has to be copied."""
    rows = images(view)[1]
    if not gathers(view):
        return rows
    fitting = max(SCRATCH_BYTES // row_bytes(view) // 2 * 2, 2)
    return min(params.rows or fitting, rows)


def image_shape(view: LayerView) -> tuple[int, int, int]:
    """Height, width and channels of what windows are gathered from; rows that are copied as they are make one line."""
    if not has_windows(view):
        return 1, rows_of(view), depth_of(view)
    _, height, width, channels = view.inputs[0].shape
    return height, width, channels


def run_elements(view: LayerView) -> int:
    """Elements of a window that are neighbours in the image: a row of it, or one tap of a dilated one."""
    op = view.op
    return int(op.in_channels * (op.kernel[1] if op.dilation[1] == 1 else 1))


def windows_fields(view: LayerView) -> dict[str, int]:
    """The fields of mve_windows."""
    op, offset = view.op, INT8_OFFSET[view.inputs[0].dtype]
    height, width, channels = image_shape(view)
    if has_windows(view):
        window, out_width = list(taps(op).values()), view.outputs[0].shape[2]
    else:
        window, out_width = [1, 1, 1, 1, 1, 1, 0, 0], width
    values = (
        *(height, width, channels, *window, out_width),
        *(op.input_zero_point - offset, offset, depth_of(view), row_bytes(view), offset_weights(view)),
    )
    return dict(zip(WINDOWS, values, strict=True))


def fields(view: LayerView) -> dict[str, int]:
    """The fields of gemm.S."""
    op, row = view.op, row_bytes(view)
    return {
        "more": max(row // CHUNK - 1, 0),
        "rest": row % CHUNK,
        "x_row": row,
        "y_row": columns_of(view),
        "zero_point": op.output_zero_point,
        "low": op.act_min,
        "high": op.act_max,
    }


def function(view: LayerView) -> str:
    """Which function of gemm.S multiplies the layer."""
    row = row_bytes(view)
    depth = "short" if row < CHUNK else "rest" if row % CHUNK else "whole"
    offsets = "_offsets" if offset_weights(view) else ""
    return f"mve_gemm_{layer_arithmetic(view).mode}_{depth}{offsets}"
