"""Gather elements by tables along the axes, and rows by an index tensor. Any element type."""

from collections.abc import Mapping
from math import prod
from typing import Any, ClassVar

from stages.backends.generic.kernels.generic.loops import Loops
from stages.backends.kernels.kernel import Kernel, Lowering
from stages.backends.kernels.tir.block import Block, Function, Operand, loop, store
from stages.backends.kernels.tir.fixed_point import clamp
from stages.backends.kernels.tir.strides import Axis, logical_strides, walk
from stages.backends.targets.spec import Target
from stages.ir.arrays import Array
from stages.ir.graph import LayerView
from stages.support.lazy import T, np


class Pick(Loops):
    """Gather output elements. The table entries of all axes add up to the memory offset."""

    name = "generic.pick"
    ops: ClassVar[frozenset[str]] = frozenset({"pick"})
    element = 8.0

    def pack(self, view: LayerView, params: Any) -> Mapping[str, Array]:
        """Return each table entry as elements of the input's memory."""
        strides = logical_strides(view.inputs[0])
        tables = {f"from{i}": strides[axis] for i, axis in enumerate(view.op.axes)}
        return {key: (view.constant(key) * stride).astype(np.int32) for key, stride in tables.items()}

    def lower(self, view: LayerView, params: Any, target: Target) -> Lowering:
        """Return loops over the output in memory order.

        Adjacent axes without a table become one loop.
        """
        x, y = view.inputs[0], view.outputs[0]
        into, out_of = logical_strides(y), logical_strides(x)
        tables = {axis: f"from{number}" for number, axis in enumerate(view.op.axes)}
        loops: list[tuple[Axis, str]] = [
            (Axis(y.shape[axis], (into[axis], 0)), key) for axis, key in tables.items() if y.shape[axis] > 1
        ]
        plain = [axis for axis in range(len(y.shape)) if axis not in tables]
        loops += [(axis, "") for axis in walk(*([part[axis] for axis in plain] for part in (y.shape, into, out_of)))]
        loops.sort(key=lambda entry: -abs(entry[0].strides[0]))
        # A table of one entry says where the input begins.
        single = [key for axis, key in tables.items() if y.shape[axis] == 1]

        def meaning(b: Any) -> None:
            with loop(*((f"i{depth}", axis.extent) for depth, (axis, _) in enumerate(loops))) as variables:
                at = variables if isinstance(variables, tuple) else (variables,)
                place: Any = 0
                source: Any = 0
                for variable, (axis, key) in zip(at, loops, strict=True):
                    place = place + variable * axis.strides[0]
                    source = source + (getattr(b, key)[variable] if key else variable * axis.strides[1])
                for key in single:
                    source = source + getattr(b, key)[0]
                store(b.y, b.x[source], place)

        sizes = {key: y.shape[axis] for axis, key in tables.items()}
        operands = (
            Operand("x", (prod(x.physical_shape),), x.dtype),
            *(Operand(key, (size,), "int32") for key, size in sizes.items()),
            Operand("y", (prod(y.physical_shape),), y.dtype, "w"),
        )
        with Function(view.layer.kind) as f:
            placed = {"x": f.input(0, (prod(x.physical_shape),), x.dtype)}
            placed |= {key: f.constant(key, (size,), "int32") for key, size in sizes.items()}
            placed["y"] = f.output(0, (prod(y.physical_shape),), y.dtype)
            f.place(Block("pick", operands, meaning), **placed)
        return f.lowering()


class Gather(Loops):
    """Gather rows of a tensor in logical order."""

    name = "generic.gather"
    ops: ClassVar[frozenset[str]] = frozenset({"gather_rows"})
    layouts = ("NHWC",)

    def lower(self, view: LayerView, params: Any, target: Target) -> Lowering:
        """Return y[b, o, r, e] = x[b, o, index of row r, e]. Each row first reads its index."""
        op, (x, indices), y = view.op, view.inputs, view.outputs[0]
        rows, depth = prod(op.sizes), len(op.sizes)
        # In the indices' own type a bound may not exist: 16 bits count 32,767 rows.
        wide: Any = T.int64 if indices.dtype == "int64" else T.int32

        def meaning(b: Any) -> None:
            with loop(("b", op.batch), ("o", op.outer), ("r", op.rows)) as (batch, outer, row):
                place: Any = T.int32(0)
                for number, size in enumerate(op.sizes):
                    index = wide(b.indices[(batch * op.rows + row) * depth + number])
                    if op.negative:
                        index = T.Select(index < wide(0), index + wide(size), index)
                    place = place * size + T.int32(clamp(index, wide(0), wide(size - 1)))
                store(b.row, place, 0)
                with loop(("e", op.inner)) as e:
                    source = ((batch * op.outer + outer) * rows + b.row[0]) * op.inner + e
                    store(b.y, b.x[source], ((batch * op.outer + outer) * op.rows + row) * op.inner + e)

        operands = (
            Operand("x", (x.elements,), x.dtype),
            Operand("indices", (indices.elements,), indices.dtype),
            Operand("row", (1,), "int32", "rw"),
            Operand("y", (y.elements,), y.dtype, "w"),
        )
        with Function("gather") as f:
            placed = {
                "x": f.input(0, (x.elements,), x.dtype),
                "indices": f.input(1, (indices.elements,), indices.dtype),
                "y": f.output(0, (y.elements,), y.dtype),
                "row": f.scratch("row", (1,), "int32"),
            }
            f.place(Block("gather", operands, meaning), **placed)
        return f.lowering()

    def cost(self, view: LayerView, params: Any, target: Target) -> float:
        """Return 5 instructions per element, 20 per index."""
        op = view.op
        return 5.0 * view.outputs[0].elements + 20.0 * op.batch * op.outer * op.rows * len(op.sizes)


KERNELS: tuple[type[Kernel], ...] = (Gather, Pick)
