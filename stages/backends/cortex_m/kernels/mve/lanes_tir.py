"""TIR of depthwise convolution with a channel per lane: a block per channel group."""

from typing import Any

from tvm.tirx.script.builder import ir as T

from stages.backends.cortex_m.kernels.mve.lanes import FIELDS, ChannelGroup, Lanes
from stages.backends.cortex_m.kernels.mve.lines import GROUP
from stages.backends.cortex_m.kernels.mve.requantize_tir import requantize
from stages.backends.kernels.eight_bit import INT8_OFFSET
from stages.backends.kernels.kernel import Lowering
from stages.backends.kernels.tir.block import Block, Function, Operand, accumulator, loop, store
from stages.backends.kernels.tir.fixed_point import output
from stages.backends.kernels.tir.window import activation
from stages.backends.kernels.tir.words import byte


def _block(lanes: Lanes, part: ChannelGroup) -> Block:
    """Return the block that computes all outputs of a channel group."""
    op, x, y = lanes.view.op, lanes.view.inputs[0], lanes.view.outputs[0]
    (_, height, width, _), (_, out_height, out_width, _) = x.shape, y.shape
    repeat, width_of_lanes = lanes.walk.repeat, part.lanes
    channels = part.channels // repeat
    offset = INT8_OFFSET[x.dtype]
    most, quads = part.channels, width_of_lanes // 4

    def meaning(b: Any) -> None:
        with loop(("oy", out_height), ("ox", out_width), ("c", channels)) as (oy, ox, c):
            number = c + (oy * out_width + ox) % repeat * channels if repeat > 1 else c
            group = T.truncdiv(number, width_of_lanes)
            lane = T.truncmod(number, width_of_lanes)
            if most > width_of_lanes and most % width_of_lanes:
                group = T.min(group, part.groups - 1)
                lane = number - T.min(group * width_of_lanes, most - width_of_lanes)
            at = T.truncmod(lane, 4) * 4 + T.truncdiv(lane, 4) if width_of_lanes == GROUP else lane
            store(b.acc, b.constants[group, at], 0)
            with loop(("ky", op.kernel[0]), ("kx", op.kernel[1])) as (ky, kx):
                value = activation(lanes.view, b.x, (oy, ox), (ky, kx), c, offset)
                word = 3 * width_of_lanes + (ky * op.kernel[1] + kx) * quads + T.truncdiv(lane, 4)
                weight = byte(b.constants[group, word], T.truncmod(lane, 4))
                store(b.acc, b.acc[0] + value * weight, 0)
            multiplier, rounder = (b.constants[group, at + n * width_of_lanes] for n in (1, 2))
            store(b.y, output(lanes.view, requantize(b.acc[0], multiplier, rounder, lanes.mode)), oy, ox, c)

    operands = (
        Operand("x", (height, width, channels), x.dtype),
        Operand("constants", (part.groups, part.words(lanes.taps)), "int32"),
        Operand("y", (out_height, out_width, channels), y.dtype, "w"),
        Operand("offsets", (len(lanes.offsets),), "int32"),
        Operand("lines", (lanes.scratch,), "int8", "w"),
        Operand("fields", FIELDS.shape, "int32"),
        accumulator(),
    )
    arguments = lambda b: [b.x, b.constants, b.y, b.offsets, most, b.lines, b.fields]  # noqa: E731
    return Block(part.name, operands, meaning, lanes.function(part), arguments)


def depthwise(lanes: Lanes) -> Lowering:
    """Return the layer as a loop over images."""
    x, y = lanes.view.inputs[0], lanes.view.outputs[0]
    with Function("depthwise_conv2d") as f:
        image = f.input(0, x.shape, x.dtype)
        given = {
            part.name: (
                f.constant(part.name, (part.groups, part.words(lanes.taps)), "int32"),
                f.constant(f"{part.name}_fields", FIELDS.shape, "int32"),
            )
            for part in lanes.parts
        }
        offsets = f.constant("offsets", (len(lanes.offsets),), "int32")
        out = f.output(0, y.shape, y.dtype)
        acc = f.scratch("acc", (1,), "int32")
        lines = f.scratch("lines", (lanes.scratch,), "int8")
        with f.loop(("n", y.shape[0])) as (n,):
            for part in lanes.parts:
                constants, fields = given[part.name]
                f.place(
                    _block(lanes, part),
                    x=(image, n, 0, 0, part.first),
                    y=(out, n, 0, 0, part.first),
                    constants=constants,
                    fields=fields,
                    offsets=offsets,
                    lines=lines,
                    acc=acc,
                )
    return f.lowering()
