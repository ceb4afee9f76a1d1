"""TIR of a table of 256 bytes."""

from typing import Any

from tvm.tirx.script.builder import ir as T

from stages.backends.kernels.kernel import Lowering
from stages.backends.kernels.tir.block import Block, Function, Operand, accumulator, loop, store
from stages.backends.kernels.tir.fixed_point import select, widen
from stages.ir.graph import LayerView


def table(view: LayerView, function: str) -> Lowering:
    """Return look-ups of all elements in memory order by a C function of (x, table, y, count).

    The block's TIR adds up 256 entries, with 0 in place of all but the element's: TVM cannot prove two loaded indices
    equal.
    """
    x, y = view.inputs[0], view.outputs[0]
    count = y.elements

    def meaning(b: Any) -> None:
        with loop(("i", count)) as i:
            store(b.acc, 0, 0)
            with loop(("v", 256)) as v:
                is_entry = T.bitwise_and(widen(b.x[i]), 255) == v
                store(b.acc, b.acc[0] + select(is_entry, widen(b.table[v]), 0), 0)
            store(b.y, T.Cast(y.dtype, b.acc[0]), i)

    operands = (
        Operand("x", (count,), x.dtype),
        Operand("table", (256,), y.dtype),
        Operand("y", (count,), y.dtype, "w"),
        accumulator(),
    )
    block = Block("table", operands, meaning, function, lambda b: [b.x, b.table, b.y, count])
    with Function("table") as f:
        source = f.input(0, (count,), x.dtype)
        entries = f.constant("table", (256,), y.dtype)
        out = f.output(0, (count,), y.dtype)
        f.place(block, x=source, table=entries, y=out, acc=f.scratch("acc", (1,), "int32"))
    return f.lowering()
