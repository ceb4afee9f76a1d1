"""TIR of a convolution with few outputs: one block per image."""

from typing import Any

from tvm.tirx.script.builder import ir as T

from stages.backends.kernels.eight_bit import SUFFIX
from stages.backends.kernels.kernel import Lowering
from stages.backends.kernels.matrix import depth_of, run_elements
from stages.backends.kernels.structure import Structure
from stages.backends.kernels.tir.block import Block, Operand, accumulator, loop, over_images, store
from stages.backends.kernels.tir.fixed_point import output, widen
from stages.backends.kernels.tir.window import activation
from stages.backends.riscv.kernels.rvp.requantize_tir import requantize_any
from stages.ir.graph import LayerView


def _image(view: LayerView, lanes: int, load_bytes: int, fields: Structure) -> Block:
    op, x, y = view.op, view.inputs[0], view.outputs[0]
    channels = x.shape[3]
    run = run_elements(view)
    runs, steps = depth_of(view) // run, -(-run // load_bytes)

    def meaning(b: Any) -> None:
        with loop(("oy", y.shape[1]), ("ox", y.shape[2]), ("unit", op.out_channels)) as (oy, ox, unit):
            store(b.acc, b.params[unit, 0, 0], 0)
            with loop(("ky", op.kernel[0]), ("kx", op.kernel[1]), ("c", channels)) as (ky, kx, c):
                value = activation(view, b.x, (oy, ox), (ky, kx), c)
                element = (ky * op.kernel[1] + kx) * channels + c
                weight = b.weights[unit, T.truncdiv(element, run), T.truncmod(element, run)]
                store(b.acc, b.acc[0] + value * widen(weight), 0)
            multiplier = T.bitwise_and(b.params[unit, 1, 0], 0x7FFFFFFF)
            marks = (b.params[unit, n, lanes - 1] for n in (2, 1))
            store(b.y, output(view, requantize_any(b.acc[0], multiplier, b.params[unit, 2, 0], *marks)), oy, ox, unit)

    operands = (
        Operand("x", x.shape[1:], x.dtype),
        Operand("weights", (op.out_channels, runs, steps * load_bytes), "int8"),
        Operand("params", (op.out_channels, 3, lanes), "int32"),
        Operand("y", y.shape[1:], y.dtype, "w"),
        Operand("scratch", (4 * runs * steps * load_bytes,), "int8", "w"),
        Operand("layer", fields.shape, "int32"),
        accumulator(),
    )
    function = f"rvp_few_outputs_{'' if load_bytes == 4 * lanes else 'lanes_'}{SUFFIX[x.dtype]}"
    return Block("image", operands, meaning, function, lambda b: [b.x, b.weights, b.params, b.y, b.scratch, b.layer])


def convolution(view: LayerView, lanes: int, load_bytes: int, fields: Structure) -> Lowering:
    """Loop over images.

    `load_bytes`: bytes per load, a register or one lane of it.
    """
    return over_images("conv2d", _image(view, lanes, load_bytes, fields), view.inputs[0].shape[0])
