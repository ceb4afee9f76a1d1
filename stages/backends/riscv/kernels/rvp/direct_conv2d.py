"""CONV_2D with wide windows: a tile of rows at a time, with one copy of each pixel."""

from collections.abc import Mapping
from typing import Any, ClassVar

from stages.backends.kernels.eight_bit import why_not_types
from stages.backends.kernels.kernel import Kernel, Lowering
from stages.backends.kernels.tir.block import Block, Function, Operand, accumulator, loop, position, store
from stages.backends.kernels.tir.fixed_point import output, select, widen
from stages.backends.kernels.tir.window import inside, tap
from stages.backends.riscv.kernels.rvp import packing
from stages.backends.riscv.kernels.rvp.base import arithmetic, one_rounding_of, rounds_once
from stages.backends.riscv.kernels.rvp.panels import why_not_arithmetic
from stages.backends.riscv.kernels.rvp.requantize_tir import half_of, requantize, requantize_once
from stages.backends.riscv.kernels.rvp.tiling import GEOMETRY_FIELDS, DirectParams, Tiling, geometry, usable_axes
from stages.backends.targets.spec import Target
from stages.ir.arrays import Array
from stages.ir.graph import LayerView
from stages.support.lazy import T, np

_SAVED_BY_ONCE = 5.2  # instructions for a register of outputs that is rounded once


class DirectConv2d(Kernel):
    """Convolution with 3, 5 or 7 taps along one axis, any along the other, on NHWC int8 images."""

    name = "rvp.direct_s8"
    row_alignment = 1
    estimate_error = 1.25
    ops: ClassVar[frozenset[str]] = frozenset({"conv2d"})
    roundings: ClassVar[frozenset[str]] = frozenset({"double"})
    sources = ("direct_s8.S", "direct.c")
    headers: ClassVar[tuple[str, ...]] = ("direct.h",)
    params = DirectParams

    def why_not_layer(self, view: LayerView, target: Target) -> str:
        return why_not_types(view) or _why_not_shape(view, target) or why_not_arithmetic(view)

    def pack_for(self, view: LayerView, params: DirectParams, target: Target) -> Mapping[str, Array]:
        lanes = target.word_bits // 32
        constants, tiling = arithmetic(view, signed_activations=True), Tiling.of(view, params, lanes)
        weights = constants.weights.reshape(-1, *view.op.kernel, view.op.in_channels).astype(np.int8)
        if tiling.axis == "columns":
            weights = weights.transpose(0, 2, 1, 3)
        phases = [weights]
        if tiling.shape.phases:
            starts = [tiling.shape.first_byte(column, view) % 4 for column in range(tiling.shape.phases)]
            phases = [packing.in_chunks(weights, start, tiling.shape.kernel_columns) for start in starts]
        return {
            "weights": np.stack([packing.direct_weights(phase, target.word_bits) for phase in phases]),
            "params": packing.direct_params(
                constants.bias,
                constants.multiplier,
                constants.rounders,
                one_rounding_of(view, constants),
                target.word_bits,
            ),
            "geometry": np.array(geometry(view, tiling, lanes), np.int32),
        }

    def lower(self, view: LayerView, params: DirectParams, target: Target) -> Lowering:
        """Loops over images and tiles; the remaining rows form a smaller tile."""
        lanes = target.word_bits // 32
        tiling = Tiling.of(view, params, lanes)
        x, y = view.inputs[0], view.outputs[0]
        shape, along_rows = tiling.shape, tiling.axis == "rows"
        rows = tiling.rows
        whole, left = divmod(shape.out_rows, rows)
        if tiling.pixel_tiles:
            rows, whole, left = shape.out_rows, 1, 0
        tiles = {"tile": rows} | ({"tile_rest": left} if left else {})
        blocks = {name: _tile(name, view, tiling, size, lanes) for name, size in tiles.items()}
        operands = {operand.name: operand for operand in blocks["tile"].operands}
        with Function("direct_conv2d") as f:
            image = f.input(0, x.shape, x.dtype)
            buffers = {name: f.constant(name, operands[name].shape, operands[name].dtype) for name in _CONSTANTS}
            out = f.output(0, y.shape, y.dtype)
            buffers["acc"], first = f.scratch("acc", (1,), "int32"), f.scratch("first", (1,), "int32")
            buffers["strip"] = f.scratch("strip", operands["strip"].shape, "int8")

            def place(name: str, n: Any, start: Any) -> None:
                f.set_position("first" + name.removeprefix("tile"), first, start)
                y_at = (out, n, start, 0, 0) if along_rows else (out, n, 0, start, 0)
                f.place(blocks[name], x=(image, n, 0, 0, 0), first=first, y=y_at, **buffers)

            with f.loop(("n", y.shape[0])) as (n,):
                with f.loop(("t", whole)) as (t,):
                    place("tile", n, t * rows)
                if left:
                    place("tile_rest", n, whole * rows)
        return f.lowering()

    def cost(self, view: LayerView, params: DirectParams, target: Target) -> float:
        lanes = target.word_bits // 32
        saved = _SAVED_BY_ONCE * view.outputs[0].elements / (4 * lanes) if rounds_once(view) else 0.0
        return Tiling.of(view, params, lanes).cost(view.op.out_channels, lanes) - saved


def _why_not_shape(view: LayerView, target: Target) -> str:
    op, x, y = view.op, view.inputs[0], view.outputs[0]
    block = 4 * (target.word_bits // 32)
    if x.dtype != "int8" or op.weight_zero_point:
        return "the tensors are uint8; this kernel supports int8"
    if op.groups != 1:
        return f"{op.groups} groups; this kernel supports one"
    if not list(usable_axes(view)):
        return f"a window of {op.kernel[0]}x{op.kernel[1]}; one axis needs 3, 5 or 7 taps with stride 1, or 3 with 2"
    if op.dilation != (1, 1):
        return "the window is dilated"
    if op.out_channels % block:
        return f"{op.out_channels} output channels are not a multiple of {block}"
    if "NCHW" in (x.layout, y.layout):
        return "a tensor is NCHW; this kernel reads and writes NHWC"
    return ""


def _tile(name: str, view: LayerView, tiling: Tiling, rows: int, lanes: int) -> Block:
    """Return the block of `rows` output rows, or columns where tiles run along columns.

    It begins at row first[0]. All tiles of a few rows are one block.
    """
    op, x, dtype = view.op, view.inputs[0], view.outputs[0].dtype
    shape, along_rows = tiling.shape, tiling.axis == "rows"
    row_axis, column_axis = (0, 1) if along_rows else (1, 0)
    tile_rows = tiling.rows if tiling.pixel_tiles else rows
    blocks, depth = op.out_channels // (4 * lanes), op.in_channels

    def place(column: Any, u: Any, c: Any) -> tuple[Any, Any, Any]:
        """Return phase, chunk and byte of a weight."""
        if shape.phases:
            byte = T.truncmod(shape.first_byte(column, view), 4) + u * depth + c
            return T.truncmod(column, shape.phases), T.truncdiv(byte, 4), T.truncmod(byte, 4)
        return 0, u * shape.column_chunks + T.truncdiv(c, 4), T.truncmod(c, 4)

    def meaning(b: Any) -> None:
        loops = (
            ("row", rows),
            ("column", shape.out_columns),
            ("block", blocks),
            ("half", 2),
            ("j", 2),
            ("lane", lanes),
        )
        with position("start", b.first[0]) as start, loop(*loops) as (row, column, block, half, j, lane):
            store(b.acc, b.params[block * 2 + half, 0, j, lane], 0)
            window = (("u", op.kernel[column_axis]), ("c", depth), ("t", shape.taps))
            with loop(*window) as (u, c, t):
                at_row = tap(start + row, t, shape.stride, 1, op.padding[row_axis])
                at_column = tap(column, u, op.stride[column_axis], 1, op.padding[column_axis])
                iy, ix = (at_row, at_column) if along_rows else (at_column, at_row)
                value = select(inside(iy, x.shape[1], ix, x.shape[2]), widen(b.x[iy, ix, c]), op.input_zero_point)
                phase, chunk, k = place(column, u, c)
                weight = b.weights[phase, block * 2 + half, chunk, t, j, lane, k]
                store(b.acc, b.acc[0] + value * widen(weight), 0)
            mark = b.params[block * 2 + half, 2, 0, lanes - 1]
            multiplier, rounder = (b.params[block * 2 + half, n, j, lane] for n in (1, 2))
            once = requantize_once(view, b.acc[0], multiplier, half_of(b.params[block * 2 + half, 2, 1, lane], j))
            scaled = select(mark == 0, once, requantize(b.acc[0], multiplier, rounder, mark, op.rounding))
            channel = block * (4 * lanes) + lane * 4 + j * 2 + half
            store(b.y, output(view, scaled), *((row, column, channel) if along_rows else (column, row, channel)))

    out = (rows, shape.out_columns) if along_rows else (shape.out_columns, rows)
    chunks = shape.kernel_columns * shape.column_chunks
    operands = (
        Operand("x", x.shape[1:], x.dtype),
        Operand("first", (1,), "int32"),
        Operand("weights", (max(shape.phases, 1), 2 * blocks, chunks, shape.taps, 2, lanes, 4), "int8"),
        Operand("params", (2 * blocks, 3, 2, lanes), "int32"),
        Operand("y", (*out, op.out_channels), dtype, "w"),
        Operand("strip", (tiling.strip_bytes(lanes),), "int8", "w"),
        Operand("geometry", (GEOMETRY_FIELDS,), "int32"),
        accumulator(),
    )
    function = f"rvp_direct_{'pixels_' if tiling.pixel_tiles else ''}t{shape.taps}s{shape.stride}_r{tile_rows}"

    def arguments(b: Any) -> list[Any]:
        first = [] if tiling.pixel_tiles else [b.first[0]]
        return [b.x, *first, b.weights, b.params, b.y, b.strip, b.geometry]

    return Block(name, operands, meaning, function, arguments)


_CONSTANTS = ("weights", "params", "geometry")
