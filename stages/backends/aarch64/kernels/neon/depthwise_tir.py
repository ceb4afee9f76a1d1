"""TIR of depthwise convolution: one block per channel group of an image."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from stages.backends.kernels.eight_bit import INT8_OFFSET
from stages.backends.kernels.kernel import Lowering
from stages.backends.kernels.tir.block import Block, Function, Operand, accumulator, loop, store
from stages.backends.kernels.tir.fixed_point import output, requantize, widen
from stages.backends.kernels.tir.window import activation
from stages.ir.graph import LayerView


@dataclass(frozen=True)
class Group:
    """`channels` channels that a kernel's `function` computes at a time.

    weight_shape, weight_type  of a group's packed weights
    weight                     (weights, ky, kx, channel) -> the weight in packed order
    structure_bytes            size of the C structure with the layer's constants
    int8_activations           uint8 activations are converted to int8; no zero point is subtracted
    """

    channels: int
    function: str
    weight_shape: tuple[int, ...]
    weight_type: str
    weight: Callable[[Any, Any, Any, Any], Any]
    structure_bytes: int
    int8_activations: bool


def _group(view: LayerView, group: Group) -> Block:
    """Return the block that computes all outputs of a channel group."""
    op, x, y = view.op, view.inputs[0], view.outputs[0]
    _, height, width, _ = x.shape
    _, out_height, out_width, _ = y.shape
    # What is subtracted from every activation
    offset = INT8_OFFSET[x.dtype] if group.int8_activations else op.input_zero_point

    def meaning(b: Any) -> None:
        with loop(("oy", out_height), ("ox", out_width), ("lane", group.channels)) as (oy, ox, lane):
            store(b.acc, b.params[0, lane], 0)
            with loop(("ky", op.kernel[0]), ("kx", op.kernel[1])) as (ky, kx):
                value = activation(view, b.x, (oy, ox), (ky, kx), lane, offset)
                store(b.acc, b.acc[0] + value * widen(group.weight(b.weights, ky, kx, lane)), 0)
            shift = b.params[2, lane] + 31 if op.rounds_once else b.params[2, lane]
            scaled = requantize(b.acc[0], b.params[1, lane], shift, op.rounding)
            store(b.y, output(view, scaled), oy, ox, lane)

    operands = (
        Operand("x", (height, width, group.channels), x.dtype),
        Operand("weights", group.weight_shape, group.weight_type),
        Operand("params", (3, group.channels), "int32"),
        Operand("y", (out_height, out_width, group.channels), y.dtype, "w"),
        Operand("depthwise", (group.structure_bytes,), "int8"),
        accumulator(),
    )
    arguments = lambda b: [b.x, b.weights, b.params, b.y, b.depthwise]  # noqa: E731
    return Block("group", operands, meaning, group.function, arguments)


def depthwise(view: LayerView, group: Group) -> Lowering:
    """Loops over images and channel groups; the last group may overlap the one before it."""
    op, x, y = view.op, view.inputs[0], view.outputs[0]
    whole, left = divmod(op.out_channels, group.channels)
    groups = whole + (1 if left else 0)
    block = _group(view, group)
    with Function("depthwise_conv2d") as f:
        image = f.input(0, x.shape, x.dtype)
        weights = f.constant("weights", (groups, *group.weight_shape), group.weight_type)
        params = f.constant("params", (groups, 3, group.channels), "int32")
        fields = f.constant("depthwise", (group.structure_bytes,), "int8")
        out = f.output(0, y.shape, y.dtype)
        acc = f.scratch("acc", (1,), "int32")

        def place(n: Any, g: Any, channel: Any) -> None:
            constants = {
                "weights": (weights, g, *(0 for _ in group.weight_shape)),
                "params": (params, g, 0, 0),
                "depthwise": fields,
            }
            f.place(block, x=(image, n, 0, 0, channel), y=(out, n, 0, 0, channel), acc=acc, **constants)

        with f.loop(("n", y.shape[0])) as (n,):
            with f.loop(("g", whole)) as (g,):
                place(n, g, g * group.channels)
            if left:
                place(n, whole, op.out_channels - group.channels)
    return f.lowering()
