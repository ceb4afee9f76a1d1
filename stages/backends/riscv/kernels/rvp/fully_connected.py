"""FULLY_CONNECTED of one row: dot products along the depth.

TIR of fully connected layers of one row, lanes along the depth: one block for all units.

Weights lie in groups of units (packing.rows_weights): groups of eight in a loop, then the rest.
"""

from collections.abc import Mapping
from typing import Any, ClassVar

from stages.backends.kernels.eight_bit import SUFFIX, weight_zero_point, why_not_nhwc, why_not_sums, why_not_types
from stages.backends.kernels.kernel import Kernel, Lowering
from stages.backends.kernels.tir.block import Block, Function, Operand, accumulator, loop, store
from stages.backends.kernels.tir.fixed_point import output, widen
from stages.backends.riscv.kernels.rvp import packing
from stages.backends.riscv.kernels.rvp.base import arithmetic, clip_word
from stages.backends.riscv.kernels.rvp.packing import unit_groups
from stages.backends.riscv.kernels.rvp.requantize_tir import requantize
from stages.backends.targets.spec import Target
from stages.ir.arrays import Array
from stages.ir.graph import LayerView
from stages.support.lazy import np


class FullyConnectedRows(Kernel):
    """A row of x times all units, eight, four or fewer at a time, without a panel.

    The row is read in place. Weights are padded along the depth to whole registers, never along the units.
    """

    name = "rvp.dot_rows_s8"
    estimate_error = 1.25
    ops: ClassVar[frozenset[str]] = frozenset({"fully_connected"})
    sources = ("dot_rows.S",)

    def why_not_layer(self, view: LayerView, target: Target) -> str:
        if view.op.batch > 1:
            return f"{view.op.batch} rows; this kernel supports one"
        shape = why_not_types(view) or why_not_nhwc(view)
        return shape or why_not_sums(view.op.depth, lambda: arithmetic(view, signed_activations=False))

    def pack_for(self, view: LayerView, params: Any, target: Target) -> Mapping[str, Array]:
        constants, bits = arithmetic(view, signed_activations=False), target.word_bits
        return {
            "weights": packing.rows_weights(constants.weights.astype(np.int8), constants.weight_zero_point, bits),
            "params": packing.rows_params(constants.bias, constants.multiplier, constants.rounders, bits),
        }

    def lower(self, view: LayerView, params: Any, target: Target) -> Lowering:
        """Return the fully connected layer."""
        lanes = target.word_bits // 32
        dot = _dot(view, lanes)
        shapes = {operand.name: (operand.shape, operand.dtype) for operand in dot.operands}
        with Function("fully_connected") as f:
            x = f.input(0, *shapes["x"])
            constants = {name: f.constant(name, *shapes[name]) for name in ("weights", "params")}
            out = f.output(0, *shapes["y"])
            f.place(dot, x=x, y=out, acc=f.scratch("acc", *shapes["acc"]), **constants)
        return f.lowering()

    def cost(self, view: LayerView, params: Any, target: Target) -> float:
        """Return the instructions, from counts.

        A group of n units takes 1 + 2 n per register of x, 3 more per eight registers, 19 + n around. Four units are
        requantized in 23 (RV32: 27). A zero point of the weights adds 4 per register of x.
        """
        op, register = view.op, target.word_bits // 8
        steps = -(-op.depth // register)
        products = sum(steps * (1 + 2 * n + 3 / 8) + 19 + n for n in unit_groups(op.units))
        quads = -(-op.units // 4) * (23 if register == 8 else 27)
        return float(products + quads + (4 * steps if op.weight_zero_point else 0) + 90)


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
