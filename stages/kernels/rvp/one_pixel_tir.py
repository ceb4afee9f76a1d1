"""TIR of a convolution whose output is one pixel: a block for each image."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tvm.tirx.script.builder import ir as T

from stages.kernels.eight_bit import lies_planar, weight_zero_point
from stages.kernels.rvp.packing import unit_groups
from stages.kernels.rvp.requantize_tir import requantize
from stages.kernels.tir.block import Block, Function, Operand, accumulator, loop, store
from stages.kernels.tir.fixed_point import output, widen

if TYPE_CHECKING:
    from stages.graph import LayerView
    from stages.kernels.kernel import Lowering
    from stages.kernels.rvp.gathered_rows import Rows
    from stages.kernels.structure import Structure

Expr = Any  # a TIR expression or a Python int


def _image(view: LayerView, rows: Rows, lanes: int, fields: Structure) -> Block:
    op, x, y = view.op, view.inputs[0], view.outputs[0]
    planar, register, zero_point = lies_planar(x), 4 * lanes, weight_zero_point(view)
    channels, quads = op.in_channels // rows.products, -(-rows.units // 4)

    def activation(b: Any, ky: Expr, kx: Expr, c: Expr) -> Expr:
        row, column = ky * op.dilation[0] - op.padding[0], kx * op.dilation[1] - op.padding[1]
        return widen(b.x[c, row, column] if planar else b.x[row, column, c])

    def unit(b: Any, product: Expr, first: Expr, units: int, number: Expr) -> None:
        """Unit `number` of the group of `units` that begins at unit `first` of a product."""
        own = first + number
        quad, j = T.truncdiv(own, 4), T.truncmod(own, 4)
        store(b.acc, b.params[product, quad, 0, j], 0)
        with loop(("ky", op.kernel[0]), ("kx", op.kernel[1]), ("c", channels)) as (ky, kx, c):
            tap = ky * op.kernel[1] + kx
            element = c * (op.kernel[0] * op.kernel[1]) + tap if planar else tap * channels + c
            step, k = T.truncdiv(element, register), T.truncmod(element, register)
            start = first * (rows.steps(register) * register)
            weight = widen(b.weights[product, start + (step * units + number) * register + k]) - zero_point
            store(b.acc, b.acc[0] + activation(b, ky, kx, product * channels + c) * weight, 0)
        multiplier, rounder = b.params[product, quad, 1, j], b.params[product, quad, 2, j]
        mark = b.params[product, quad, 2, lanes - 1]
        scaled = requantize(b.acc[0], multiplier, rounder, mark, op.rounding)
        store(b.y, output(view, scaled), product * rows.units + own)

    def meaning(b: Any) -> None:
        groups = unit_groups(rows.units)
        with loop(("product", rows.products)) as product:
            if eights := groups.count(8):
                with loop(("eight", eights), ("number", 8)) as (eight, number):
                    unit(b, product, eight * 8, 8, number)
            first = eights * 8
            for size in groups[eights:]:
                with loop(("number", size)) as number:
                    unit(b, product, first, size, number)
                first += size

    operands = (
        Operand("x", x.physical_shape[1:] if planar else x.shape[1:], x.dtype),
        Operand("weights", (rows.products, rows.weight_bytes(register)), "int8"),
        Operand("params", (rows.products, quads, 3, 4), "int32"),
        Operand("y", (op.out_channels,), y.dtype, "w"),
        Operand("scratch", (rows.steps(register) * register + rows.units,), "int8", "w"),
        Operand("layer", fields.shape, "int32"),
        accumulator(),
    )
    function = f"rvp_gathered_rows_{'u8' if x.dtype == 'uint8' else 's8'}{'s' if op.rounding == 'single' else ''}"
    return Block("image", operands, meaning, function, lambda b: [b.x, b.weights, b.params, b.y, b.scratch, b.layer])


def convolution(view: LayerView, rows: Rows, lanes: int, fields: Structure) -> Lowering:
    """The loop over images."""
    block = _image(view, rows, lanes, fields)
    made = {operand.name: (operand.shape, operand.dtype) for operand in block.operands}
    batch = view.inputs[0].shape[0]
    with Function("conv2d") as f:
        image = f.input(0, (batch, *made["x"][0]), made["x"][1])
        given = {key: f.constant(key, *made[key]) for key in ("weights", "params", "layer")}
        out = f.output(0, (batch, *made["y"][0]), made["y"][1])
        given |= {key: f.scratch(key, *made[key]) for key in ("acc", "scratch")}
        with f.loop(("n", batch)) as (n,):
            f.place(block, x=(image, n, 0, 0, 0), y=(out, n, 0), **given)
    return f.lowering()
