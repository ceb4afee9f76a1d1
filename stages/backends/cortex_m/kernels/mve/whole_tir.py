"""TIR of depthwise convolution with a single window position: one block per image."""

from typing import Any

from tvm.tirx.script.builder import ir as T

from stages.backends.cortex_m.kernels.mve.requantize_tir import requantize
from stages.backends.cortex_m.kernels.mve.whole_window import BLOCK, CHUNK, FIELDS, block_count, chunks_of
from stages.backends.kernels.kernel import Lowering
from stages.backends.kernels.tir.block import Block, Operand, accumulator, loop, over_images, store
from stages.backends.kernels.tir.fixed_point import output, widen
from stages.ir.graph import LayerView


def depthwise(view: LayerView, function: str) -> Lowering:
    """Return the layer as a loop over images."""
    op, x, y = view.op, view.inputs[0], view.outputs[0]
    channels, blocks, chunks = op.in_channels, block_count(view), chunks_of(view)

    def meaning(b: Any) -> None:
        with loop(("block", blocks), ("lane", BLOCK)) as (block, lane):
            c = T.min(block * BLOCK, channels - BLOCK) + lane
            store(b.acc, b.params[block, 0, lane], 0)
            with loop(("ky", op.kernel[0]), ("kx", op.kernel[1])) as (ky, kx):
                tap = ky * op.kernel[1] + kx
                weight = widen(b.weights[block, T.truncdiv(tap, CHUNK), lane, T.truncmod(tap, CHUNK)])
                value = widen(b.x[ky * op.dilation[0], kx * op.dilation[1], c])
                store(b.acc, b.acc[0] + value * weight, 0)
            scaled = requantize(b.acc[0], b.params[block, 1, lane], b.params[block, 2, lane], "lowered")
            store(b.y, output(view, scaled), 0, 0, c)

    operands = (
        Operand("x", x.shape[1:], x.dtype),
        Operand("params", (blocks, 3, BLOCK), "int32"),
        Operand("weights", (blocks, chunks, BLOCK, CHUNK), "int8"),
        Operand("offsets", (chunks * CHUNK,), "uint16"),
        Operand("fields", FIELDS.shape, "int32"),
        Operand("y", y.shape[1:], y.dtype, "w"),
        accumulator(),
    )
    arguments = lambda b: [b.x, b.params, b.weights, b.offsets, b.y, b.fields]  # noqa: E731
    image = Block("image", operands, meaning, function, arguments)
    return over_images("depthwise_conv2d", image, x.shape[0])
