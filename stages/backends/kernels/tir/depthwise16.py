"""TIR of depthwise convolutions on int16 activations: one block per image."""

from typing import Any

from tvm.tirx.script.builder import ir as T

from stages.backends.kernels.kernel import Lowering
from stages.backends.kernels.lanes16 import FIELDS, Lanes
from stages.backends.kernels.tir.block import Block, Function, Operand, loop, store
from stages.backends.kernels.tir.fixed_point import clamp, widen
from stages.backends.kernels.tir.products16 import scaled16, wide_bias, within32
from stages.backends.kernels.tir.window import padded
from stages.ir.graph import LayerView

Expr = Any  # a TIR expression or a Python int


def depthwise16(view: LayerView, lanes: Lanes, function: str, *, panel: bool) -> Lowering:
    """Return the loop over images around the block of one image.

    With `panel` the C function gets scratch for the elements of a window.
    """
    op, x, y = view.op, view.inputs[0], view.outputs[0]
    groups, steps = lanes.groups(view), lanes.steps(view)
    kernel, word = tuple(op.kernel), lanes.group * lanes.taps

    def weight(b: Any, c: Expr, ky: Expr, kx: Expr) -> Expr:
        lane = T.truncmod(c, lanes.group)
        byte = T.truncmod(lane, lanes.inner) * lanes.apart + T.truncdiv(lane, lanes.inner) * lanes.outer
        step = (T.truncdiv(c, lanes.group) * kernel[0] + ky) * steps + T.truncdiv(kx, lanes.taps)
        return widen(b.w[step * word + byte + T.truncmod(kx, lanes.taps)])

    def meaning(b: Any) -> None:
        with loop(*zip(("oy", "ox", "c"), y.shape[1:], strict=True)) as (oy, ox, c):
            store(b.acc, wide_bias(b, c), 0)
            with loop(("ky", kernel[0]), ("kx", kernel[1])) as (ky, kx):
                value = padded(op, x.shape[1:3], (oy, ox), (ky, kx), lambda iy, ix: widen(b.x[iy, ix, c]), 0)
                store(b.acc, b.acc[0] + T.Cast("int64", value * weight(b, c, ky, kx)), 0)
            value = scaled16(within32(b.acc[0]), b.channels[c, 2], b.channels[c, 3])
            store(b.y, T.Cast("int16", clamp(value, op.act_min, op.act_max)), oy, ox, c)

    constants = (
        Operand("w", (groups * kernel[0] * steps * word,), "int8"),
        Operand("channels", (groups * lanes.group, 4), "int32"),
        Operand("fields", FIELDS.shape, "int32"),
    )
    scratch = [Operand("acc", (1,), "int64", "rw")]
    if panel:
        scratch.insert(0, Operand("panel", (kernel[0] * kernel[1] * groups * lanes.group,), "int16", "rw"))
    operands = (Operand("x", x.shape[1:], "int16"), *constants, Operand("y", y.shape[1:], "int16", "w"), *scratch)
    arguments = lambda b: [b.x, b.w, b.channels, b.y, *([b.panel] if panel else []), b.fields]  # noqa: E731
    block = Block("image", operands, meaning, function, arguments)
    with Function("depthwise_conv2d") as f:
        source = f.input(0, x.shape, "int16")
        buffers = {c.name: f.constant("weights" if c.name == "w" else c.name, c.shape, c.dtype) for c in constants}
        out = f.output(0, y.shape, "int16")
        buffers |= {operand.name: f.scratch(operand.name, operand.shape, operand.dtype) for operand in scratch}
        with f.loop(("n", y.shape[0])) as (n,):
            f.place(block, x=(source, n, 0, 0, 0), y=(out, n, 0, 0, 0), **buffers)
    return f.lowering()
