"""TIR of depthwise convolution, a block for each group of input channels of an image, and one for those left over."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from stages.kernels.eight_bit import INT8_OFFSET
from stages.kernels.mve.lines import GROUP, parts_of
from stages.kernels.mve.requantize_tir import requantize
from stages.kernels.mve.strips import CHUNK, FIELDS, chunks_of, rotated_bytes, strip_bytes, taps_of
from stages.kernels.tir.block import Block, Function, Operand, accumulator, loop, store
from stages.kernels.tir.fixed_point import output, widen
from stages.kernels.tir.window import padded

if TYPE_CHECKING:
    from stages.graph import LayerView
    from stages.kernels.kernel import Lowering
    from stages.kernels.mve.rounding import Mode


def _group(view: LayerView, function: str, mode: Mode, name: str, channels: int) -> Block:
    """All outputs of `channels` input channels."""
    op, x, y = view.op, view.inputs[0], view.outputs[0]
    _, height, width, _ = x.shape
    _, out_height, out_width, _ = y.shape
    offset, parts, multiplier = INT8_OFFSET[x.dtype], parts_of(view), op.depth_multiplier

    def meaning(b: Any) -> None:
        loops = (("oy", out_height), ("ox", out_width), ("lane", channels), ("j", multiplier))
        with loop(*loops) as (oy, ox, lane, j):
            store(b.acc, b.params[j, lane, 0], 0)
            with loop(("ky", op.kernel[0]), ("kx", op.kernel[1])) as (ky, kx):
                value = padded(
                    op,
                    (height, width),
                    (oy, ox),
                    (ky, kx),
                    lambda iy, ix: widen(b.x[iy, ix, lane]) - offset,
                    op.input_zero_point - offset,
                )
                weight: Any = 0
                for part in range(parts):
                    weight = weight + widen(b.weights[j, lane, part, ky * op.kernel[1] + kx])
                store(b.acc, b.acc[0] + value * weight, 0)
            scaled = requantize(b.acc[0], b.params[j, lane, 1], b.params[j, lane, 2], mode)
            store(b.y, output(view, scaled), oy, ox, lane * multiplier + j)

    operands = (
        Operand("x", (height, width, channels), x.dtype),
        Operand("params", (multiplier, GROUP, 3), "int32"),
        Operand("weights", (multiplier, GROUP, parts, taps_of(view)), "int8"),
        Operand("rotations", (op.kernel[0], chunks_of(view) * CHUNK), "uint8"),
        Operand("y", (out_height, out_width, channels * multiplier), y.dtype, "w"),
        Operand("strips", (strip_bytes(view) + rotated_bytes(view),), "int8", "w"),
        Operand("fields", FIELDS.shape, "int32"),
        accumulator(),
    )
    arguments = lambda b: [b.x, b.params, b.weights, b.rotations, b.y, channels, b.strips, b.fields]  # noqa: E731
    return Block(name, operands, meaning, function, arguments)


def depthwise(view: LayerView, function: str, mode: Mode) -> Lowering:
    op, x, y = view.op, view.inputs[0], view.outputs[0]
    whole, left = divmod(op.in_channels, GROUP)
    groups, multiplier, parts = -(-op.in_channels // GROUP), op.depth_multiplier, parts_of(view)
    with Function("depthwise_conv2d") as f:
        image = f.input(0, x.shape, x.dtype)
        params = f.constant("params", (groups, multiplier, GROUP, 3), "int32")
        weights = f.constant("weights", (groups, multiplier, GROUP, parts, taps_of(view)), "int8")
        rotations = f.constant("rotations", (op.kernel[0], chunks_of(view) * CHUNK), "uint8")
        fields = f.constant("fields", FIELDS.shape, "int32")
        out = f.output(0, y.shape, y.dtype)
        acc = f.scratch("acc", (1,), "int32")
        strips = f.scratch("strips", (strip_bytes(view) + rotated_bytes(view),), "int8")

        def place(block: Block, n: Any, g: Any) -> None:
            channel = g * GROUP
            places: dict[str, Any] = {"x": (image, n, 0, 0, channel), "y": (out, n, 0, 0, channel * multiplier)}
            places |= {"params": (params, g, 0, 0, 0), "weights": (weights, g, 0, 0, 0, 0)}
            f.place(block, **places, rotations=rotations, strips=strips, fields=fields, acc=acc)

        with f.loop(("n", y.shape[0])) as (n,):
            if whole:
                block = _group(view, function, mode, "group", GROUP)
                with f.loop(("g", whole)) as (g,):
                    place(block, n, g)
            if left:
                place(_group(view, function, mode, "group_rest", left), n, whole)
    return f.lowering()
