"""TIR of depthwise convolution: one block per group of input channels and one for the rest."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tvm.tirx.script.builder import ir as T

from stages.backends.cortex_m.kernels.mve import band
from stages.backends.cortex_m.kernels.mve.lines import GROUP
from stages.backends.cortex_m.kernels.mve.requantize_tir import requantize
from stages.backends.cortex_m.kernels.mve.strips import CHUNK, FIELDS, Strips
from stages.backends.kernels.eight_bit import INT8_OFFSET
from stages.backends.kernels.kernel import Lowering
from stages.backends.kernels.tir.block import Block, Function, Operand, accumulator, loop, store
from stages.backends.kernels.tir.fixed_point import output, widen
from stages.backends.kernels.tir.window import activation
from stages.backends.kernels.tir.words import byte
from stages.ir.graph import LayerView

if TYPE_CHECKING:
    from stages.backends.cortex_m.kernels.mve.rounding import Mode


def _group(strips: Strips, function: str, mode: Mode, name: str, channels: int) -> Block:
    """Return the block that computes all outputs of `channels` input channels."""
    view = strips.view
    op, x, y = view.op, view.inputs[0], view.outputs[0]
    _, height, width, _ = x.shape
    _, out_height, out_width, _ = y.shape
    offset, parts, multiplier = INT8_OFFSET[x.dtype], strips.parts, op.depth_multiplier

    def meaning(b: Any) -> None:
        loops = (("oy", out_height), ("ox", out_width), ("lane", channels), ("j", multiplier))
        with loop(*loops) as (oy, ox, lane, j):
            store(b.acc, b.params[j, lane, 0], 0)
            with loop(("ky", op.kernel[0]), ("kx", op.kernel[1])) as (ky, kx):
                value = activation(view, b.x, (oy, ox), (ky, kx), lane, offset)
                weight: Any = 0
                for part in range(parts):
                    weight = weight + widen(b.weights[j, lane, part, strips.tap(ky, kx)])
                store(b.acc, b.acc[0] + value * weight, 0)
            scaled = requantize(b.acc[0], b.params[j, lane, 1], b.params[j, lane, 2], mode)
            store(b.y, output(view, scaled), oy, ox, lane * multiplier + j)

    operands = (
        Operand("x", (height, width, channels), x.dtype),
        Operand("params", (multiplier, strips.lanes, 3), "int32"),
        Operand("weights", (multiplier, strips.lanes, parts, strips.taps), "int8"),
        Operand("rotations", (strips.kernel[0], strips.chunks * CHUNK), "uint8"),
        Operand("y", (out_height, out_width, channels * multiplier), y.dtype, "w"),
        Operand("strips", (strips.strip_bytes + strips.rotated_bytes,), "int8", "w"),
        Operand("fields", FIELDS.shape, "int32"),
        accumulator(),
    )
    arguments = lambda b: [b.x, b.params, b.weights, b.rotations, b.y, channels, b.strips, b.fields]  # noqa: E731
    return Block(name, operands, meaning, function, arguments)


def depthwise(strips: Strips, function: str, mode: Mode) -> Lowering:
    """Return the layer as loops over images and channel groups."""
    view = strips.view
    op, x, y = view.op, view.inputs[0], view.outputs[0]
    whole, left = divmod(op.in_channels, GROUP)
    groups, multiplier, parts = -(-op.in_channels // GROUP), op.depth_multiplier, strips.parts
    with Function("depthwise_conv2d") as f:
        image = f.input(0, x.shape, x.dtype)
        params = f.constant("params", (groups, multiplier, strips.lanes, 3), "int32")
        weights = f.constant("weights", (groups, multiplier, strips.lanes, parts, strips.taps), "int8")
        rotations = f.constant("rotations", (strips.kernel[0], strips.chunks * CHUNK), "uint8")
        fields = f.constant("fields", FIELDS.shape, "int32")
        out = f.output(0, y.shape, y.dtype)
        acc = f.scratch("acc", (1,), "int32")
        scratch = f.scratch("strips", (strips.strip_bytes + strips.rotated_bytes,), "int8")

        def place(block: Block, n: Any, g: Any) -> None:
            channel = g * GROUP
            places: dict[str, Any] = {"x": (image, n, 0, 0, channel), "y": (out, n, 0, 0, channel * multiplier)}
            places |= {"params": (params, g, 0, 0, 0), "weights": (weights, g, 0, 0, 0, 0)}
            f.place(block, **places, rotations=rotations, strips=scratch, fields=fields, acc=acc)

        with f.loop(("n", y.shape[0])) as (n,):
            if whole:
                block = _group(strips, function, mode, "group", GROUP)
                with f.loop(("g", whole)) as (g,):
                    place(block, n, g)
            if left:
                place(_group(strips, function, mode, "group_rest", left), n, whole)
    return f.lowering()


def depthwise_band(view: LayerView) -> Lowering:
    """Compute a band of few rows of an NHWC image by one block per image."""
    x, y = view.inputs[0], view.outputs[0]
    _, rows, columns, channels = y.shape

    def meaning(b: Any) -> None:
        with loop(("c", channels), ("row", rows), ("column", columns)) as (c, row, column):
            store(b.acc, b.constants[c, 3], 0)
            with loop(("ky", 3), ("kx", 3)) as (ky, kx):
                at = ky * 3 + kx
                weight = byte(b.constants[c, T.truncdiv(at, 4)], T.truncmod(at, 4))
                store(b.acc, b.acc[0] + activation(view, b.x, (row, column), (ky, kx), c, 0) * weight, 0)
            scaled = requantize(b.acc[0], b.constants[c, 4], b.constants[c, 5], "exact")
            store(b.y, output(view, scaled), row, column, c)

    operands = (
        Operand("x", x.shape[1:], x.dtype),
        Operand("constants", (channels, band.WORDS), "int32"),
        Operand("places", (band.HEAD + -(-rows * columns // 8) * 8,), "int16"),
        Operand("fields", band.FIELDS.shape, "int32"),
        Operand("y", y.shape[1:], y.dtype, "w"),
        Operand("strips", (band.strip_bytes(view),), "int8", "w"),
        accumulator(),
    )
    arguments = lambda b: [b.x, b.constants, b.y, b.places, b.strips, b.fields]  # noqa: E731
    block = Block("band", operands, meaning, band.function(view), arguments)
    with Function("depthwise_conv2d") as f:
        image, out = f.input(0, x.shape, x.dtype), f.output(0, y.shape, y.dtype)
        given = {operand.name: f.constant(operand.name, operand.shape, operand.dtype) for operand in operands[1:4]}
        given |= {operand.name: f.scratch(operand.name, operand.shape, operand.dtype) for operand in operands[5:]}
        with f.loop(("n", y.shape[0])) as (n,):
            f.place(block, x=(image, n, 0, 0, 0), y=(out, n, 0, 0, 0), **given)
    return f.lowering()
