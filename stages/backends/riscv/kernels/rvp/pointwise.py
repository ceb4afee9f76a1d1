"""CONV_2D of single pixels with four or eight input channels.

The constants of a channel block stay in registers.
"""

from collections.abc import Callable, Mapping
from typing import Any, ClassVar, NamedTuple

from stages.backends.kernels.eight_bit import why_not_nhwc, why_not_types
from stages.backends.kernels.kernel import Kernel, Lowering
from stages.backends.kernels.matrix import depth_of, has_windows, rows_of
from stages.backends.kernels.tir.block import Block, Function, Operand, accumulator, loop, store
from stages.backends.kernels.tir.fixed_point import output, select, widen
from stages.backends.kernels.tir.words import byte
from stages.backends.riscv.kernels.rvp import packing
from stages.backends.riscv.kernels.rvp.base import arithmetic, clip_word, is_bounded, one_rounding_of, rounds_once
from stages.backends.riscv.kernels.rvp.panels import why_not_arithmetic
from stages.backends.riscv.kernels.rvp.requantize_tir import half_of, requantize, requantize_once
from stages.backends.targets.spec import Target
from stages.ir.arrays import Array
from stages.ir.graph import LayerView
from stages.support.lazy import T, np

_DEPTHS = (4, 8)  # channels of a pixel: one chunk, or two
MOST_CHUNKS = 3  # of a row whose weights stay in registers


class Pointwise(Kernel):
    """Pointwise convolution with few inputs that reads pixels in place instead of panels.

    With four outputs and rows of an even number of pixels, the lanes of RV64 compute two neighbouring pixels.
    """

    name = "rvp.pointwise_s8"
    row_alignment = 1
    estimate_error = 1.25
    ops: ClassVar[frozenset[str]] = frozenset({"conv2d"})
    roundings: ClassVar[frozenset[str]] = frozenset({"double"})
    sources = ("pointwise_s8.S",)
    headers: ClassVar[tuple[str, ...]] = ("pointwise.h",)

    def why_not_layer(self, view: LayerView, target: Target) -> str:
        return why_not_types(view) or why_not_shape(view, target) or why_not_arithmetic(view)

    def pack_for(self, view: LayerView, params: Any, target: Target) -> Mapping[str, Array]:
        pixels = _pixels(view, target)
        params = packed(view, depth_of(view), target.word_bits // pixels, _blocks(view, target))
        if pixels == 2:
            params = params.repeat(2, axis=-1)
            params[:, -1, 0, 0] &= 0x7FFFFFFF  # the mark of a wide block is in the upper lane only
        return {"params": params}

    def lower(self, view: LayerView, params: Any, target: Target) -> Lowering:
        return pointwise(view, _blocks(view, target), target.word_bits // 32, _pixels(view, target))

    def cost(self, view: LayerView, params: Any, target: Target) -> float:
        """Return the instructions per block and pixel, plus 50 per block."""
        chunks, lanes, pixels = depth_of(view) // 4, target.word_bits // 32, _pixels(view, target)
        # the chunks into every lane, or of two pixels
        read = chunks if lanes == 1 else 3 * chunks - 2 if pixels == 2 else chunks + 1
        turns = rows_of(view) // pixels
        return float(_blocks(view, target) * (turns * (block_instructions(view, chunks) + read) + 50) + 60)


def block_instructions(view: LayerView, chunks: int) -> int:
    """Return the instructions of pointwise_s8.S per block and pixel (four output registers).

    Reading the pixel is not included.
    """
    late = chunks == MOST_CHUNKS  # rounders from the frame
    saved = 4 + 2 * late if rounds_once(view) else 0
    return 23 + 4 * chunks + 4 * late + (4 if is_bounded(view) else 0) - saved


def packed(view: LayerView, run: int, word_bits: int, blocks: int) -> Array:
    """Return params of pointwise_s8.S: int32 [blocks, 3 + chunks, 4, lanes].

    Each run of `run` elements starts a new chunk.
    """
    layer_constants = arithmetic(view, signed_activations=True)
    constants = (
        layer_constants.bias,
        layer_constants.multiplier,
        layer_constants.rounders,
        one_rounding_of(view, layer_constants),
    )
    weights = layer_constants.weights.astype(np.int8).reshape(view.op.out_channels, -1)
    return packing.pointwise_params(weights, run, *constants, word_bits, blocks)


def _pixels(view: LayerView, target: Target) -> int:
    """Return how many pixels' outputs share a register.

    Pairs need rows that begin at a multiple of 8 bytes.
    """
    y = view.outputs[0]
    return 2 if (target.word_bits, view.op.out_channels, y.shape[2] % 2) == (64, 4, 0) else 1


def _blocks(view: LayerView, target: Target) -> int:
    return int(view.op.out_channels // (target.word_bits // 8 // _pixels(view, target)))


def why_not_shape(view: LayerView, target: Target) -> str:
    """Return why the kernel cannot read such pixels, '' if it can."""
    op, x = view.op, view.inputs[0]
    block = target.word_bits // 8 // _pixels(view, target)
    if x.dtype != "int8" or op.weight_zero_point:
        return "the tensors are uint8; this kernel supports int8"
    if op.groups != 1:
        return f"{op.groups} groups; this kernel supports one"
    if has_windows(view):
        return "a window; this kernel supports single pixels"
    if op.in_channels not in _DEPTHS:
        return f"{op.in_channels} input channels; this kernel supports 4 and 8"
    if op.out_channels % block:
        return f"{op.out_channels} output channels are not a multiple of {block}"
    return why_not_nhwc(view)


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
