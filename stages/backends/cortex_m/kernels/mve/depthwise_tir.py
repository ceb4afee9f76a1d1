"""TIR of depthwise convolution: a block per channel group of an image, and the rest."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tvm.tirx.script.builder import ir as T

from stages.backends.cortex_m.kernels.mve.lines import FIELDS, GROUP, group_count, lines
from stages.backends.cortex_m.kernels.mve.requantize_tir import requantize
from stages.backends.kernels.eight_bit import INT8_OFFSET
from stages.backends.kernels.kernel import Lowering
from stages.backends.kernels.tir.block import Block, Function, Operand, accumulator, loop, store
from stages.backends.kernels.tir.fixed_point import output
from stages.backends.kernels.tir.window import activation
from stages.backends.kernels.tir.words import byte
from stages.ir.graph import LayerView

if TYPE_CHECKING:
    from stages.backends.cortex_m.kernels.mve.rounding import Mode


def _words(view: LayerView) -> int:
    """Words of a group's constants."""
    return int(view.op.kernel[0] * view.op.kernel[1]) * (GROUP // 4) + 3 * GROUP


def _group(view: LayerView, function: str, mode: Mode, name: str, channels: int) -> Block:
    """Return the block that computes all outputs of `channels` channels."""
    op, x, y = view.op, view.inputs[0], view.outputs[0]
    _, height, width, _ = x.shape
    _, out_height, out_width, _ = y.shape
    offset = INT8_OFFSET[x.dtype]
    words = _words(view)
    behind = words - 3 * GROUP
    span, pitch = lines(view)

    def meaning(b: Any) -> None:
        with loop(("oy", out_height), ("ox", out_width), ("lane", channels)) as (oy, ox, lane):
            # Vector j has channels j, j + 4, j + 8, j + 12.
            at = behind + T.truncmod(lane, 4) * 4 + T.truncdiv(lane, 4)
            store(b.acc, b.constants[at], 0)
            with loop(("ky", op.kernel[0]), ("kx", op.kernel[1])) as (ky, kx):
                value = activation(view, b.x, (oy, ox), (ky, kx), lane, offset)
                first = (ky * op.kernel[1] + kx) * (GROUP // 4) + T.truncdiv(lane, 4)
                weight = byte(b.constants[first], T.truncmod(lane, 4))
                store(b.acc, b.acc[0] + value * weight, 0)
            scaled = requantize(b.acc[0], b.constants[at + GROUP], b.constants[at + 2 * GROUP], mode)
            store(b.y, output(view, scaled), oy, ox, lane)

    operands = (
        Operand("x", (height, width, channels), x.dtype),
        Operand("constants", (words,), "int32"),
        Operand("y", (out_height, out_width, channels), y.dtype, "w"),
        Operand("lines", (span * pitch,), "int8", "w"),
        Operand("fields", FIELDS.shape, "int32"),
        accumulator(),
    )
    arguments = lambda b: [b.x, b.constants, b.y, channels, b.lines, b.fields]  # noqa: E731
    return Block(name, operands, meaning, function, arguments)


def depthwise(view: LayerView, function: str, mode: Mode) -> Lowering:
    """Return the layer as a loop over channel groups."""
    x, y = view.inputs[0], view.outputs[0]
    whole, left = divmod(view.op.out_channels, GROUP)
    span, pitch = lines(view)
    with Function("depthwise_conv2d") as f:
        image = f.input(0, x.shape, x.dtype)
        constants = f.constant("constants", (group_count(view), _words(view)), "int32")
        fields = f.constant("fields", FIELDS.shape, "int32")
        out = f.output(0, y.shape, y.dtype)
        acc = f.scratch("acc", (1,), "int32")
        scratch = f.scratch("lines", (span * pitch,), "int8")

        def place(block: Block, n: Any, g: Any) -> None:
            channel = g * GROUP
            places = {"x": (image, n, 0, 0, channel), "y": (out, n, 0, 0, channel), "constants": (constants, g, 0)}
            f.place(block, lines=scratch, fields=fields, acc=acc, **places)

        with f.loop(("n", y.shape[0])) as (n,):
            if whole:
                block = _group(view, function, mode, "group", GROUP)
                with f.loop(("g", whole)) as (g,):
                    place(block, n, g)
            if left:
                place(_group(view, function, mode, "group_rest", left), n, whole)
    return f.lowering()
