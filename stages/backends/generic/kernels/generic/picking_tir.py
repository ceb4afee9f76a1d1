"""TIR of gathered elements (by tables) and rows (by indices)."""

from math import prod
from typing import Any

from tvm.tirx.script.builder import ir as T

from stages.backends.kernels.kernel import Lowering
from stages.backends.kernels.tir.block import Block, Function, Operand, loop, store
from stages.backends.kernels.tir.fixed_point import clamp
from stages.backends.kernels.tir.strides import Axis, logical_strides, walk
from stages.ir.graph import LayerView


def pick(view: LayerView) -> Lowering:
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


def gather(view: LayerView) -> Lowering:
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
