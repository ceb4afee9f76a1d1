"""TIR of depthwise convolution on RISC-V: one block per image."""

from typing import Any

from tvm.tirx.script.builder import ir as T

from stages.backends.generic.kernels.generic.packing import signed_weights
from stages.backends.kernels.eight_bit import SUFFIX
from stages.backends.kernels.kernel import Lowering
from stages.backends.kernels.structure import Structure
from stages.backends.kernels.tir.block import Block, Function, Operand, accumulator, loop, store
from stages.backends.kernels.tir.fixed_point import output, requantize, widen
from stages.backends.kernels.tir.window import padded
from stages.backends.riscv.kernels.riscv.rectified import is_rectified
from stages.ir.graph import LayerView


def depthwise(view: LayerView, along: int, structure: Structure) -> Lowering:
    """Loop over images around the block of one image.

    Lines run along the rows (1) or down the columns (0).
    """
    x, y, count = view.inputs[0], view.outputs[0], view.op.out_channels
    with Function("depthwise3x3") as f:
        image, out = f.input(0, x.physical_shape, x.dtype), f.output(0, y.physical_shape, y.dtype)
        constants = {
            "w": f.constant("weights", (count, 3, 3), "int8"),
            "channels": f.constant("channels", (count, 3), "int32"),
            "fields": f.constant("fields", structure.shape, "int32"),
        }
        acc = f.scratch("acc", (1,), "int32")
        with f.loop(("n", y.shape[0])) as (n,):
            f.place(_image(view, along, structure), x=(image, n, 0, 0, 0), y=(out, n, 0, 0, 0), acc=acc, **constants)
    return f.lowering()


def _image(view: LayerView, along: int, structure: Structure) -> Block:
    op, x, y = view.op, view.inputs[0], view.outputs[0]
    _, height, width, count = y.shape
    zero_point = signed_weights(view)[1]

    def meaning(b: Any) -> None:
        with loop(("c", count), ("oy", height), ("ox", width)) as (c, oy, ox):
            source = c if op.depth_multiplier == 1 else T.truncdiv(c, op.depth_multiplier)
            store(b.acc, b.channels[c, 0], 0)
            with loop(("ky", 3), ("kx", 3)) as (ky, kx):
                value = padded(
                    op,
                    x.shape[1:3],
                    (oy, ox),
                    (ky, kx),
                    lambda iy, ix: widen(b.x[_at(x, iy, ix, source)]),
                    op.input_zero_point,
                )
                weight = b.w[c, ky, kx] if along == 0 else b.w[c, kx, ky]
                store(b.acc, b.acc[0] + value * (widen(weight) - zero_point), 0)
            scaled = requantize(b.acc[0], b.channels[c, 1], b.channels[c, 2], op.rounding)
            store(b.y, output(view, scaled), *_at(y, oy, ox, c))

    operands = (
        Operand("x", x.physical_shape[1:], x.dtype),
        Operand("w", (count, 3, 3), "int8"),
        Operand("channels", (count, 3), "int32"),
        Operand("fields", structure.shape, "int32"),
        Operand("y", y.physical_shape[1:], y.dtype, "w"),
        accumulator(),
    )
    step = "_stride2" if op.stride[along] == 2 else ""
    rounding = "_rectified" if is_rectified(view) else ""
    function = f"riscv_depthwise3x3{step}{rounding}_{SUFFIX[x.dtype]}"
    return Block("image", operands, meaning, function, lambda b: [b.x, b.w, b.channels, b.y, b.fields])


def _at(tensor: Any, row: Any, column: Any, channel: Any) -> tuple[Any, Any, Any]:
    """Return the indices of an element in the tensor's layout."""
    return (channel, row, column) if tensor.layout == "NCHW" else (row, column, channel)
