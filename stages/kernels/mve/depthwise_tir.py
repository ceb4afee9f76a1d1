"""TIR of depthwise convolution: a block for each group of channels of an image, and one for the channels left over."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tvm.tirx.script.builder import ir as T

from stages.kernels.eight_bit import INT8_OFFSET
from stages.kernels.mve.depthwise import FIELDS, GROUP, DepthwiseKernel, group_count, lines, parts_of
from stages.kernels.mve.requantize_tir import byte, requantize
from stages.kernels.tir.block import Block, Function, Operand, accumulator, loop, store
from stages.kernels.tir.fixed_point import clamp, select, widen
from stages.kernels.tir.window import inside, tap

if TYPE_CHECKING:
    from stages.graph import LayerView
    from stages.kernels.kernel import Lowering


def _words(view: LayerView) -> int:
    """Words of a group's constants."""
    return int(view.op.kernel[0] * view.op.kernel[1]) * parts_of(view) * (GROUP // 4) + 3 * GROUP


def _group(view: LayerView, kernel: DepthwiseKernel, name: str, channels: int) -> Block:
    """All outputs of `channels` channels."""
    op, x, y = view.op, view.inputs[0], view.outputs[0]
    _, height, width, _ = x.shape
    _, out_height, out_width, _ = y.shape
    offset, mode = INT8_OFFSET[x.dtype], kernel.arithmetic(view).mode
    behind = _words(view) - 3 * GROUP
    span, pitch = lines(view)
    parts = parts_of(view)

    def meaning(b: Any) -> None:
        with loop(("oy", out_height), ("ox", out_width), ("lane", channels)) as (oy, ox, lane):
            # Vector j has channels j, j + 4, j + 8, j + 12.
            at = behind + T.truncmod(lane, 4) * 4 + T.truncdiv(lane, 4)
            store(b.acc, b.constants[at], 0)
            with loop(("ky", op.kernel[0]), ("kx", op.kernel[1])) as (ky, kx):
                iy = tap(oy, ky, op.stride[0], op.dilation[0], op.padding[0])
                ix = tap(ox, kx, op.stride[1], op.dilation[1], op.padding[1])
                filled = op.input_zero_point - offset
                value = select(inside(iy, height, ix, width), widen(b.x[iy, ix, lane]) - offset, filled)
                first = (ky * op.kernel[1] + kx) * parts * (GROUP // 4) + T.truncdiv(lane, 4)
                weight: Any = 0
                for part in range(parts):
                    weight = weight + byte(b.constants[first + part * (GROUP // 4)], T.truncmod(lane, 4))
                store(b.acc, b.acc[0] + value * weight, 0)
            scaled = requantize(b.acc[0], b.constants[at + GROUP], b.constants[at + 2 * GROUP], mode)
            store(b.y, T.Cast(y.dtype, clamp(scaled + op.output_zero_point, op.act_min, op.act_max)), oy, ox, lane)

    operands = (
        Operand("x", (height, width, channels), x.dtype),
        Operand("constants", (_words(view),), "int32"),
        Operand("y", (out_height, out_width, channels), y.dtype, "w"),
        Operand("lines", (span * pitch,), "int8", "w"),
        Operand("fields", (len(FIELDS),), "int32"),
        accumulator(),
    )
    arguments = lambda b: [b.x, b.constants, b.y, channels, b.lines, b.fields]  # noqa: E731
    return Block(name, operands, meaning, kernel.function(view), arguments)


def depthwise(view: LayerView, kernel: DepthwiseKernel) -> Lowering:
    x, y = view.inputs[0], view.outputs[0]
    whole, left = divmod(view.op.out_channels, GROUP)
    span, pitch = lines(view)
    with Function("depthwise_conv2d") as f:
        image = f.input(0, x.shape, x.dtype)
        constants = f.constant("constants", (group_count(view), _words(view)), "int32")
        fields = f.constant("fields", (len(FIELDS),), "int32")
        out = f.output(0, y.shape, y.dtype)
        acc = f.scratch("acc", (1,), "int32")
        scratch = f.scratch("lines", (span * pitch,), "int8")

        def place(block: Block, n: Any, g: Any) -> None:
            channel = g * GROUP
            places = {"x": (image, n, 0, 0, channel), "y": (out, n, 0, 0, channel), "constants": (constants, g, 0)}
            f.place(block, lines=scratch, fields=fields, acc=acc, **places)

        with f.loop(("n", y.shape[0])) as (n,):
            if whole:
                block = _group(view, kernel, "group", GROUP)
                with f.loop(("g", whole)) as (g,):
                    place(block, n, g)
            if left:
                place(_group(view, kernel, "group_rest", left), n, whole)
    return f.lowering()
