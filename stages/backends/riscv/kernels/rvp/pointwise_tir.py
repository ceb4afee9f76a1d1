"""TIR of pointwise convolutions with few inputs: one block per layer."""

from collections.abc import Callable
from typing import Any, NamedTuple

from tvm.tirx.script.builder import ir as T

from stages.backends.kernels.kernel import Lowering
from stages.backends.kernels.matrix import depth_of, rows_of
from stages.backends.kernels.tir.block import Block, Function, Operand, accumulator, loop, store
from stages.backends.kernels.tir.fixed_point import output, select, widen
from stages.backends.kernels.tir.words import byte
from stages.backends.riscv.kernels.rvp.base import clip_word
from stages.backends.riscv.kernels.rvp.requantize_tir import half_of, requantize, requantize_once
from stages.ir.graph import LayerView


class Sizes(NamedTuple):
    """Rows, chunks a row, blocks of 4 * lanes channels, lanes a register, row elements of y.

    With two `pixels` per register, each lane computes four channels of its own row.
    """

    rows: int
    chunks: int
    blocks: int
    lanes: int
    width: int
    pixels: int = 1


def product(
    name: str,
    view: LayerView,
    x: Operand,
    sizes: Sizes,
    activation: Callable[[Any, Any, Any, Any, Any], Any],
    function: str,
) -> Block:
    """Multiply all rows of x with all channels.

    `activation(b, row, chunk, lane, k)` returns the factor of byte k of a chunk's weights.
    """
    op, (rows, chunks, blocks, lanes, width, pixels) = view.op, sizes

    def meaning(b: Any) -> None:
        loops = (("block", blocks), ("register", rows // pixels), ("j", 4), ("lane", lanes))
        with loop(*loops) as (block, register, j, lane):
            row, first = (register, lane * 4) if pixels == 1 else (register * pixels + lane, 0)
            store(b.acc, b.params[block, 0, j, lane], 0)
            with loop(("chunk", chunks), ("k", 4)) as (chunk, k):
                weight = byte(b.params[block, 1 + chunk, j, lane], k)
                store(b.acc, b.acc[0] + activation(b, row, chunk, lane, k) * weight, 0)
            multiplier, rounder = (b.params[block, chunks + n, j, lane] for n in (1, 2))
            mark = b.params[block, chunks + 2, 0, lanes - 1]
            zero_point = half_of(b.params[block, chunks + 2, 1 + T.truncdiv(j, 2), lane], T.truncmod(j, 2))
            once = requantize_once(view, b.acc[0], multiplier, zero_point)
            scaled = select(mark == 0, once, requantize(b.acc[0], multiplier, rounder, mark, op.rounding))
            # Register j holds channels 0, 2, 1, 3 of the block in turn.
            channel = block * (4 * lanes) + first + T.truncmod(j, 2) * 2 + T.truncdiv(j, 2)
            store(b.y, output(view, scaled), row, channel)

    operands = (
        x,
        Operand("params", params_shape(sizes), "int32"),
        Operand("y", (rows, width), view.outputs[0].dtype, "w"),
        accumulator(),
    )
    clip = clip_word(view)
    arguments = (rows // pixels, width * pixels, blocks, clip)
    return Block(name, operands, meaning, function, lambda b: [getattr(b, x.name), b.params, b.y, *arguments])


def params_shape(sizes: Sizes) -> tuple[int, ...]:
    """Return the shape of the constants that pointwise_s8.S reads."""
    return sizes.blocks, 3 + sizes.chunks, 4, sizes.lanes


def pointwise(view: LayerView, blocks: int, lanes: int, pixels: int) -> Lowering:
    """Build the layer: all pixels of all images."""
    x, y, depth = view.inputs[0], view.outputs[0], depth_of(view)
    sizes = Sizes(rows_of(view), depth // 4, blocks, lanes, view.op.out_channels, pixels)
    kind = "c" if pixels == 1 else "p" if sizes.chunks == 1 else "two"

    def activation(b: Any, row: Any, chunk: Any, lane: Any, k: Any) -> Any:
        return widen(b.x[row, chunk * 4 + k])

    pixels_of_x = Operand("x", (sizes.rows, depth), x.dtype)
    block = product("image", view, pixels_of_x, sizes, activation, f"rvp_pointwise_s8_{kind}{sizes.chunks}")
    shapes = {operand.name: operand.shape for operand in block.operands}
    with Function("conv2d") as f:
        source = f.input(0, shapes["x"], x.dtype)
        params = f.constant("params", shapes["params"], "int32")
        out = f.output(0, shapes["y"], y.dtype)
        acc = f.scratch("acc", (1,), "int32")
        f.place(block, x=source, params=params, y=out, acc=acc)
    return f.lowering()
