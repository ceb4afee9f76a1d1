"""TIR of depthwise convolution by blocks of four channels: one block per image."""

from typing import Any

from stages.backends.cortex_m.kernels.arm_dsp.base import rounding_suffix
from stages.backends.cortex_m.kernels.arm_dsp.channels import (
    BLOCK,
    FIELDS,
    block_count,
    block_words,
    is_near,
    pairs,
    scale_words,
)
from stages.backends.cortex_m.kernels.arm_dsp.requantize_tir import requantize
from stages.backends.kernels.eight_bit import SUFFIX
from stages.backends.kernels.kernel import Lowering
from stages.backends.kernels.tir.block import Block, Function, Operand, accumulator, loop, store
from stages.backends.kernels.tir.fixed_point import output
from stages.backends.kernels.tir.window import activation
from stages.backends.kernels.tir.words import half_word
from stages.ir.graph import LayerView
from stages.support.lazy import T


def depthwise(view: LayerView) -> Lowering:
    """Return the layer as a loop over images."""
    op, x, y = view.op, view.inputs[0], view.outputs[0]
    channels = x.shape[3]
    _, out_height, out_width, count = y.shape
    planar = y.layout == "NCHW"
    x_shape, y_shape = x.shape[1:], (count, out_height, out_width) if planar else y.shape[1:]
    blocks = (op.depth_multiplier, block_count(view), block_words(view))
    scale_from = BLOCK * (1 + pairs(view))

    def result(b: Any, at: tuple[Any, Any], c: Any, word: Any, lane: int) -> Any:
        """Return the scaled result of a lane. `word` returns a word of the lane's block."""
        store(b.acc, word(lane), 0)
        with loop(("ky", op.kernel[0]), ("kx", op.kernel[1])) as (ky, kx):
            value = activation(view, b.x, at, (ky, kx), c)
            weight = half_word(word(BLOCK + (ky * op.kernel[1] + kx) * 2 + lane % 2), lane // 2)
            store(b.acc, b.acc[0] + value * weight, 0)
        scale = [word(scale_from + number * BLOCK + lane) for number in range(scale_words(view))]
        return output(view, requantize(b.acc[0], scale, op.rounding))

    def meaning(b: Any) -> None:
        ranges = ("oy", out_height), ("ox", out_width), ("group", op.depth_multiplier), ("block", blocks[1])
        with loop(*ranges) as (oy, ox, group, block):
            for lane in range(BLOCK):
                c = T.min(block * BLOCK, channels - BLOCK) + lane
                made = result(b, (oy, ox), c, lambda at: b.blocks[group, block, at], lane)
                number = c * op.depth_multiplier + group
                store(b.y, made, *((number, oy, ox) if planar else (oy, ox, number)))

    operands = (
        Operand("x", x_shape, x.dtype),
        Operand("blocks", blocks, "int32"),
        Operand("outside", (channels,), x.dtype),
        Operand("fields", FIELDS.shape, "int32"),
        Operand("y", y_shape, y.dtype, "w"),
        Operand("taps", (2 * pairs(view) + 1,), "int32", "rw"),
        accumulator(),
    )
    kind = f"{SUFFIX[x.dtype]}_{'near' if is_near(view) else 'apart'}{rounding_suffix(view)}"
    function = f"arm_dsp_depthwise_channels_{kind}"
    image = Block("image", operands, meaning, function, lambda b: [b.x, b.blocks, b.y, b.outside, b.taps, b.fields])
    with Function("depthwise_conv2d") as f:
        source = f.input(0, (x.shape[0], *x_shape), x.dtype)
        given = {op.name: f.constant(op.name, op.shape, op.dtype) for op in operands[1:4]}
        out = f.output(0, (y.shape[0], *y_shape), y.dtype)
        taps, acc = f.scratch("taps", (2 * pairs(view) + 1,), "int32"), f.scratch("acc", (1,), "int32")
        with f.loop(("n", y.shape[0])) as (n,):
            f.place(image, x=(source, n, 0, 0, 0), y=(out, n, 0, 0, 0), taps=taps, acc=acc, **given)
    return f.lowering()
