"""TIR of fully connected layers: `dot` of a row with all units, after a copy if needed.

for n in rows:
  copy  row <- x[n] as int8, padded to a multiple of four; offset     arm_dsp_copy_row
  dot   y[n] <- requantize(bias + row * weights)                      arm_dsp_dot_*
"""

from typing import Any

from tvm.tirx.script.builder import ir as T

from stages.backends.cortex_m.kernels.arm_dsp.requantize_tir import requantize
from stages.backends.cortex_m.kernels.arm_dsp.units import FIELDS, PAIRS, copies, fours, layer_form, padded_pairs
from stages.backends.kernels.eight_bit import INT8_OFFSET, weight_zero_point
from stages.backends.kernels.kernel import Lowering
from stages.backends.kernels.tir.block import Block, Function, Operand, accumulator, loop, store
from stages.backends.kernels.tir.fixed_point import output, widen
from stages.backends.kernels.tir.words import byte, half_word
from stages.ir.graph import LayerView


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


def fully_connected(view: LayerView) -> Lowering:
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
