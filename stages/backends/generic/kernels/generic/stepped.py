"""FULLY_CONNECTED by requantization breakpoints, for scales without a 32-bit multiplier."""

from collections.abc import Mapping
from typing import Any, ClassVar

from stages.backends.generic.kernels.generic.packing import signed_weights
from stages.backends.generic.kernels.generic.parameters import STEPPED
from stages.backends.kernels.eight_bit import (
    SUFFIX,
    centred_weights,
    too_deep,
    weight_rows,
    weight_zero_point,
    why_not_types,
    why_not_weights_order,
)
from stages.backends.kernels.kernel import Kernel, Lowering
from stages.backends.kernels.tir.block import Block, Function, Operand, accumulator, loop, position, store
from stages.backends.kernels.tir.fixed_point import widen
from stages.backends.targets.spec import Target
from stages.ir.arrays import Array
from stages.ir.graph import LayerView
from stages.support.lazy import T, np


class SteppedFullyConnected(Kernel):
    """A row at a time. Eight comparisons find each sum's result among 256."""

    name = "generic.stepped_fully_connected"
    ops: ClassVar[frozenset[str]] = frozenset({"fully_connected"})
    sources = ("stepped.c",)
    roundings: ClassVar[frozenset[str]] = frozenset({"steps"})

    def why_not_layer(self, view: LayerView, target: Target) -> str:
        return why_not_weights_order(view) or why_not_types(view) or too_deep(view.op.depth)

    def pack(self, view: LayerView, params: Any) -> Mapping[str, Array]:
        op = view.op
        weights, weight_zero_point = signed_weights(view)
        bias = view.constant("bias").reshape(-1) if view.has("bias") else 0
        folded = bias - op.input_zero_point * centred_weights(view).sum(axis=1, dtype=np.int64)  # modulo 2^32
        fields = {"units": op.units, "depth": op.depth, "weight_zero_point": weight_zero_point}
        return {
            "weights": weight_rows(view, weights),
            "units": np.stack([folded.astype(np.int32), view.constant("step_rows")], axis=1),
            "steps": view.constant("steps"),
            "stepped": STEPPED.of(fields | {"zero_point": op.output_zero_point}),
        }

    def lower(self, view: LayerView, params: Any, target: Target) -> Lowering:
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

    def cost(self, view: LayerView, params: Any, target: Target) -> float:
        """Return 5 instructions per product, 70 per output."""
        return float(view.op.batch * view.op.units * (5 * view.op.depth + 70))


KERNELS: tuple[type[Kernel], ...] = (SteppedFullyConnected,)
