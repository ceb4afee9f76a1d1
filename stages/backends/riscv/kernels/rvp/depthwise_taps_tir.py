"""TIR of depthwise convolution output by output: one block per image."""

from math import prod
from typing import Any

from tvm.tirx.script.builder import ir as T

from stages.backends.kernels.eight_bit import INT8_OFFSET
from stages.backends.kernels.kernel import Lowering
from stages.backends.kernels.structure import Structure
from stages.backends.kernels.tir.block import Block, Operand, accumulator, loop, over_images, store
from stages.backends.kernels.tir.fixed_point import output
from stages.backends.kernels.tir.window import activation
from stages.backends.kernels.tir.words import byte
from stages.backends.riscv.kernels.rvp.requantize_tir import requantize_any
from stages.backends.riscv.kernels.rvp.strips import group_channels
from stages.ir.graph import LayerView


def _image(view: LayerView, lanes: int, fields: Structure) -> Block:
    """All outputs of an image.

    Channel lane * 4 + j of a group has its constants in params[group, :, j, lane].
    """
    op, x, y = view.op, view.inputs[0], view.outputs[0]
    offset, quads = INT8_OFFSET[x.dtype], -(-prod(op.kernel) // 4)
    groups = group_channels(op.out_channels, lanes)
    size = len(groups[0])

    def meaning(b: Any) -> None:
        loops = (("oy", y.shape[1]), ("ox", y.shape[2]), ("group", len(groups)), ("within", size))
        with loop(*loops) as (oy, ox, group, within):
            channel = T.min(group * (4 * lanes), op.out_channels - size) + within
            lane, j = T.truncdiv(within, 4), T.truncmod(within, 4)
            store(b.acc, b.params[group, 0, j, lane], 0)
            with loop(("ky", op.kernel[0]), ("kx", op.kernel[1])) as (ky, kx):
                value = activation(view, b.x, (oy, ox), (ky, kx), channel, offset)
                tap = ky * op.kernel[1] + kx
                weight = byte(b.params[group, 3 + T.truncdiv(tap, 4), j, lane], T.truncmod(tap, 4))
                store(b.acc, b.acc[0] + value * weight, 0)
            marks = [b.params[group, 2, register, lanes - 1] for register in (0, 1)]
            multiplier, rounder = (b.params[group, n, j, lane] for n in (1, 2))
            scaled = requantize_any(b.acc[0], multiplier, rounder, *marks)
            store(b.y, output(view, scaled), oy, ox, channel)

    operands = (
        Operand("x", x.shape[1:], x.dtype),
        Operand("params", (len(groups), 3 + quads, 4, lanes), "int32"),
        Operand("y", y.shape[1:], y.dtype, "w"),
        Operand("scratch", (scratch_bytes(view, lanes),), "int8", "w"),
        Operand("taps", fields.shape, "int32"),
        accumulator(),
    )
    return Block("image", operands, meaning, "rvp_depthwise_taps", lambda b: [b.x, b.params, b.y, b.scratch, b.taps])


def scratch_bytes(view: LayerView, lanes: int) -> int:
    """Return the scratch for one pixel and an address per tap, in whole quads."""
    register = 4 * lanes
    return -(-view.op.out_channels // register) * register + -(-prod(view.op.kernel) // 4) * 4 * register


def depthwise(view: LayerView, lanes: int, fields: Structure) -> Lowering:
    """Return the layer as a loop over images."""
    return over_images("depthwise_conv2d", _image(view, lanes, fields), view.inputs[0].shape[0])
