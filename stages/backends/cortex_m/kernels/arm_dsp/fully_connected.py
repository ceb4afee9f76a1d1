"""FULLY_CONNECTED: dot products over streamed weights.

TIR of fully connected layers: `dot` of a row with all units, after a copy if needed.

for n in rows:
  copy  row <- x[n] as int8, padded to a multiple of four; offset     arm_dsp_copy_row
  dot   y[n] <- requantize(bias + row * weights)                      arm_dsp_dot_*
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from stages.backends.cortex_m.kernels.arm_dsp import packing
from stages.backends.cortex_m.kernels.arm_dsp.base import CLAMP, arithmetic, clamps
from stages.backends.cortex_m.kernels.arm_dsp.requantize_tir import requantize
from stages.backends.kernels.eight_bit import (
    INT8_OFFSET,
    weight_zero_point,
    why_not_sums,
    why_not_types,
    why_not_weights_order,
)
from stages.backends.kernels.kernel import Kernel, Lowering
from stages.backends.kernels.structure import Structure
from stages.backends.kernels.tir.block import Block, Function, Operand, accumulator, loop, store
from stages.backends.kernels.tir.fixed_point import output, widen
from stages.backends.kernels.tir.words import byte, half_word
from stages.backends.targets.spec import Target
from stages.ir.arrays import Array
from stages.ir.graph import LayerView
from stages.support.lazy import T, np

PAIRS = 3  # of units in a block
FIELDS = Structure("arm_dsp_dot_fields", ("fours", *CLAMP))  # of dot.S


def layer_form(view: LayerView) -> packing.Packing:
    """Return the form of the layer's packed weights."""
    constants, units = arithmetic(view), view.op.units
    return packing.form(constants, padded_pairs(view) % units)


def fours(view: LayerView) -> int:
    """Groups of four elements of the depth."""
    return -(-int(view.op.depth) // 4)


def padded_pairs(view: LayerView) -> np.ndarray:
    """Return [pairs, 2]: the units of each pair; `units` pads an odd number."""
    return np.arange(view.op.units + view.op.units % 2).reshape(-1, 2)


def copies(view: LayerView) -> bool:
    """Return whether rows of x are copied before multiplication."""
    return view.inputs[0].dtype == "uint8" or view.op.depth % 4 != 0 or weight_zero_point(view) != 0


class FullyConnected(Kernel):
    """A row of x times all units, six at once, row by row for batches.

    x is read in place. Rows are copied into scratch if they are uint8, not a multiple of four long, or if the weights
    have a zero point.
    """

    name = "arm_dsp.dot_s8"
    estimate_error = 1.25
    ops: ClassVar[frozenset[str]] = frozenset({"fully_connected"})
    sources = ("dot.S", "rows.c")

    def why_not_layer(self, view: LayerView, target: Target) -> str:
        shape = why_not_types(view) or why_not_weights_order(view)
        return shape or why_not_sums(view.op.depth, lambda: arithmetic(view))

    def pack(self, view: LayerView, params: Any) -> Mapping[str, Array]:
        constants, how, pairs = arithmetic(view), layer_form(view), padded_pairs(view)
        steps = packing.depth_steps_of_fours(view.op.depth)
        words = packing.weight_words(with_padding(constants.weights, 0), steps, pairs, how)
        bias = packing.bias_words(with_padding(constants.bias, 0), pairs, how)
        weights = words.reshape(len(pairs), -1, 2)  # of each four
        scale = packing.scale_words(with_padding(constants.scale.scale, 0), pairs)
        parts = []
        for first in range(0, len(pairs), PAIRS):
            block = slice(first, first + PAIRS)
            parts += [bias[block], weights[block].transpose(1, 0, 2), scale[block]]
        blocks = np.concatenate([part.reshape(-1) for part in parts])
        return {"blocks": blocks.astype(np.int32), "fields": FIELDS.of({"fours": fours(view), **clamps(view)})}

    def lower(self, view: LayerView, params: Any, target: Target) -> Lowering:
        """Build the layer: the rows of a batch one after the other."""
        op, x, y = view.op, view.inputs[0], view.outputs[0]
        words = block_words(view, len(padded_pairs(view)))
        dot, copied = _dot(view, words), copies(view)
        with Function("fully_connected") as f:
            inputs = f.input(0, (op.batch, op.depth), x.dtype)
            blocks = f.constant("blocks", (words,), "int32")
            fields = f.constant("fields", FIELDS.shape, "int32")
            out = f.output(0, (op.batch, op.units), y.dtype)
            acc = f.scratch("acc", (1,), "int32")
            row = f.scratch("row", (fours(view) * 4,), "int8") if copied else None
            offset = f.scratch("offset", (1,), "int32") if copied else None
            with f.loop(("n", op.batch)) as (n,):
                constants = {"blocks": blocks, "fields": fields, "y": (out, n, 0), "acc": acc}
                if copied:
                    copy = _copy(view)
                    f.place(copy, x=(inputs, n, 0), row=row, offset=offset, acc=acc)
                    f.place(dot, x=row, offset=offset, **constants)
                else:
                    f.place(dot, x=(inputs, n, 0), **constants)
        return f.lowering()

    def cost(self, view: LayerView, params: Any, target: Target) -> float:
        """Return the instructions.

        6.5 (bytes: 9) per four elements of a pair, 3.2 more per block, 7 per copied element.
        """
        op, pairs = view.op, len(padded_pairs(view))
        four = 6.5 if layer_form(view) == "ab" else 9
        blocks, copied = -(-pairs // PAIRS), 7 * op.depth if copies(view) else 0
        return float(op.batch * (pairs * (fours(view) * four + 10) + blocks * (fours(view) * 3.2 + 20) + copied + 70))


def with_padding(values: Array, fill: int) -> Array:
    """Append a padding unit to `values`."""
    return np.concatenate([values, np.full((1, *values.shape[1:]), fill, values.dtype)])


def _copy(view: LayerView) -> Block:
    depth, dtype, zero_point = view.op.depth, view.inputs[0].dtype, weight_zero_point(view)
    flipped = INT8_OFFSET[dtype]

    def meaning(b: Any) -> None:
        store(b.acc, 0, 0)
        with loop(("k", depth)) as k:
            value = widen(b.x[k]) - flipped if flipped else widen(b.x[k])
            store(b.row, T.Cast("int8", value), k)
            store(b.acc, b.acc[0] + value, 0)
        for k in range(depth, fours(view) * 4):
            store(b.row, T.int8(0), k)
        store(b.offset, b.acc[0] * (0 - zero_point), 0)

    operands = (
        Operand("x", (depth,), dtype),
        Operand("row", (fours(view) * 4,), "int8", "w"),
        Operand("offset", (1,), "int32", "w"),
        accumulator(),
    )
    arguments = lambda b: [b.row, b.offset, b.x, depth, flipped, zero_point]  # noqa: E731
    return Block("copy", operands, meaning, "arm_dsp_copy_row", arguments)


def block_words(view: LayerView, pairs: int) -> int:
    """Words of a block of `pairs` pairs: biases, weights, scales."""
    return pairs * (2 + 2 * fours(view) + 4)


def _dot(view: LayerView, words: int) -> Block:
    op, dtype, form = view.op, view.outputs[0].dtype, layer_form(view)
    copied = copies(view)

    def weight(word: Any, number: int, channel: int) -> Any:
        if form == "bytes":
            return byte(word, 2 * number + channel)
        a = byte(word, 2 * number)
        return T.shift_right(half_word(word, number) - a, 8) if channel else a

    def unit(b: Any, first: Any, pairs: int, pair: Any, channel: int, number: Any) -> None:
        """Compute a unit of the block of `pairs` pairs that starts at word `first`."""
        bias = b.blocks[first + pair * 2 + channel]
        if form == "ab" and channel:
            bias = T.shift_right(bias - b.blocks[first + pair * 2], 8)
        store(b.acc, bias + b.offset[0] if copied else bias, 0)
        with loop(("four", fours(view))) as four:
            for odd in range(2):
                word = b.blocks[first + pairs * 2 + (four * pairs + pair) * 2 + odd]
                products = [widen(b.x[four * 4 + odd + 2 * i]) * weight(word, i, channel) for i in range(2)]
                store(b.acc, b.acc[0] + products[0] + products[1], 0)
        at = first + block_words(view, pairs) - pairs * 4 + pair * 4 + channel
        scaled = requantize(b.acc[0], [b.blocks[at], b.blocks[at + 2]], op.rounding)
        store(b.y, output(view, scaled), number)

    def meaning(b: Any) -> None:
        units, size = 2 * PAIRS, block_words(view, PAIRS)
        whole, left = divmod(op.units, units)
        if whole:
            with loop(("block", whole), ("pair", PAIRS)) as (block, pair):
                for channel in range(2):
                    unit(b, block * size, PAIRS, pair, channel, block * units + pair * 2 + channel)
        for number in range(left):
            unit(b, whole * size, -(-left // 2), number // 2, number % 2, whole * units + number)

    operands = (
        Operand("x", (fours(view) * 4,), "int8"),
        Operand("blocks", (words,), "int32"),
        Operand("y", (op.units,), dtype, "w"),
        Operand("fields", FIELDS.shape, "int32"),
        *((Operand("offset", (1,), "int32"),) if copied else ()),
        accumulator(),
    )

    def arguments(b: Any) -> list[Any]:
        return [b.x, b.blocks, b.y, op.units, b.fields, b.offset[0] if copied else 0]

    return Block("dot", operands, meaning, f"arm_dsp_dot_{form}_{op.rounding}", arguments)
