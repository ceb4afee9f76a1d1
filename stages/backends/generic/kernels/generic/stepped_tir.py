"""TIR of fully connected layers with requantization breakpoints."""

from typing import Any

from tvm.tirx.script.builder import ir as T

from stages.backends.generic.kernels.generic.parameters import STEPPED
from stages.backends.kernels.eight_bit import SUFFIX, weight_zero_point
from stages.backends.kernels.kernel import Lowering
from stages.backends.kernels.tir.block import Block, Function, Operand, accumulator, loop, position, store
from stages.backends.kernels.tir.fixed_point import widen
from stages.ir.graph import LayerView


def stepped(view: LayerView) -> Lowering:
    """Return the layer, one row after the other."""
    op, x, y = view.op, view.inputs[0], view.outputs[0]
    steps_shape, zero_point = view.constant("steps").shape, weight_zero_point(view)

    def meaning(b: Any) -> None:
        with loop(("j", op.units)) as j:
            store(b.acc, b.units[j, 0], 0)
            with loop(("k", op.depth)) as k:
                store(b.acc, b.acc[0] + widen(b.x[k]) * (widen(b.w[j, k]) - zero_point), 0)
            with position("row", b.units[j, 1]) as row:
                store(b.result, b.steps[row, 0] + op.output_zero_point, 0)
                with loop(("step", steps_shape[1] - 1)) as step:
                    store(b.result, b.result[0] + T.Cast("int32", b.acc[0] > b.steps[row, step + 1]), 0)
            store(b.y, T.Cast(y.dtype, b.result[0]), j)

    operands = (
        Operand("x", (op.depth,), x.dtype),
        Operand("w", (op.units, op.depth), "int8"),
        Operand("units", (op.units, 2), "int32"),
        Operand("steps", steps_shape, "int32"),
        Operand("stepped", STEPPED.shape, "int32"),
        Operand("y", (op.units,), y.dtype, "w"),
        accumulator(),
        accumulator("result"),
    )
    function = f"fl_stepped_{SUFFIX[x.dtype]}"
    row = Block("row", operands, meaning, function, lambda b: [b.x, b.w, b.units, b.steps, b.y, b.stepped])
    with Function("stepped_fully_connected") as f:
        inputs = f.input(0, (op.batch, op.depth), x.dtype)
        constants = {
            "w": (f.constant("weights", (op.units, op.depth), "int8"), 0, 0),
            "units": f.constant("units", (op.units, 2), "int32"),
            "steps": f.constant("steps", steps_shape, "int32"),
            "stepped": f.constant("stepped", STEPPED.shape, "int32"),
        }
        out = f.output(0, (op.batch, op.units), y.dtype)
        cells = {name: f.scratch(name, (1,), "int32") for name in ("acc", "result")}
        with f.loop(("n", op.batch)) as (n,):
            f.place(row, x=(inputs, n, 0), y=(out, n, 0), **constants, **cells)
    return f.lowering()
