"""TIR of fully connected layers of one row, lanes along the depth: one block for all units.

Weights lie in groups of units (packing.rows_weights): groups of eight in a loop, then the rest.
"""

from typing import Any

from stages.backends.kernels.eight_bit import SUFFIX, weight_zero_point
from stages.backends.kernels.kernel import Lowering
from stages.backends.kernels.tir.block import Block, Function, Operand, accumulator, loop, store
from stages.backends.kernels.tir.fixed_point import output, widen
from stages.backends.riscv.kernels.rvp.base import clip_word
from stages.backends.riscv.kernels.rvp.packing import unit_groups
from stages.backends.riscv.kernels.rvp.requantize_tir import requantize
from stages.ir.graph import LayerView

Expr = Any  # a TIR expression or a Python int
_GROUP = 8  # units of the largest groups


def _dot(view: LayerView, lanes: int) -> Block:
    op, x, y = view.op, view.inputs[0], view.outputs[0]
    register = 4 * lanes
    steps, quads = -(-op.depth // register), -(-op.units // 4)
    zero_point = weight_zero_point(view)

    def unit(b: Any, start: Expr, units: int, number: Expr, quad: Expr, j: Expr) -> None:
        """Compute unit `number` of a group of `units` at weight `start`; it is unit `j` of `quad`."""

        def add_products(step: Expr, elements: int) -> None:
            with loop(("k", elements)) as k:
                weight = widen(b.weights[start + (step * units + number) * register + k]) - zero_point
                store(b.acc, b.acc[0] + widen(b.x[0, step * register + k]) * weight, 0)

        store(b.acc, b.params[quad, 0, j], 0)
        if full_steps := op.depth // register:
            with loop(("step", full_steps)) as step:
                add_products(step, register)
        if remainder := op.depth % register:
            add_products(full_steps, remainder)
        multiplier, rounder, mark = b.params[quad, 1, j], b.params[quad, 2, j], b.params[quad, 2, lanes - 1]
        scaled = requantize(b.acc[0], multiplier, rounder, mark, op.rounding)
        store(b.y, output(view, scaled), 0, quad * 4 + j)

    def meaning(b: Any) -> None:
        bytes_of_unit = steps * register
        eights = op.units // _GROUP
        if eights:
            with loop(("eight", eights), ("quad", 2), ("j", 4)) as (eight, quad, j):
                unit(b, eight * (_GROUP * bytes_of_unit), _GROUP, quad * 4 + j, eight * 2 + quad, j)
        first = eights * _GROUP
        for size in unit_groups(op.units)[eights:]:
            with loop(("j", size)) as j:
                unit(b, first * bytes_of_unit, size, j, first // 4, j)
            first += size

    operands = (
        Operand("x", (1, op.depth), x.dtype),
        Operand("weights", (op.units * steps * register,), "int8"),
        Operand("params", (quads, 3, 4), "int32"),
        Operand("y", (1, op.units), y.dtype, "w"),
        accumulator(),
    )
    suffix = f"{SUFFIX[x.dtype]}{'s' if op.rounds_once else ''}"
    clip = clip_word(view)

    def arguments(b: Any) -> list[Any]:
        return [b.x, b.weights, b.params, b.y, steps, op.units, clip, zero_point]

    return Block("dot", operands, meaning, f"rvp_dot_rows_{suffix}", arguments)


def fully_connected(view: LayerView, lanes: int) -> Lowering:
    """Return the fully connected layer."""
    dot = _dot(view, lanes)
    shapes = {operand.name: (operand.shape, operand.dtype) for operand in dot.operands}
    with Function("fully_connected") as f:
        x = f.input(0, *shapes["x"])
        constants = {name: f.constant(name, *shapes[name]) for name in ("weights", "params")}
        out = f.output(0, *shapes["y"])
        f.place(dot, x=x, y=out, acc=f.scratch("acc", *shapes["acc"]), **constants)
    return f.lowering()
