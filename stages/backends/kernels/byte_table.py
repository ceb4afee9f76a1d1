"""Functions of one 8-bit value by table: activations, and QUANTIZE between 8-bit types."""

from collections.abc import Mapping
from typing import Any, ClassVar

from stages.backends.kernels.eight_bit import not_eight_bit, same_bytes
from stages.backends.kernels.kernel import Kernel, Lowering
from stages.backends.kernels.tir.block import Block, Function, Operand, accumulator, loop, store
from stages.backends.kernels.tir.fixed_point import select, widen
from stages.backends.targets.spec import Target
from stages.ir.arrays import Array
from stages.ir.graph import LayerView
from stages.support.lazy import T, np


class ByteTable(Kernel):
    """Look up each element in a table of 256 bytes.

    Input and output may each be int8 or uint8.

    function  `void f(const void *x, const void *table, void *y, int32_t count)`; y may be x
    """

    function: ClassVar[str]
    ops: ClassVar[frozenset[str]] = frozenset({"activation", "requantize"})
    in_place = True

    def why_not_layer(self, view: LayerView, target: Target) -> str:
        if bad := not_eight_bit(view, same=False):
            return bad
        return "" if same_bytes(view.inputs[0], view.outputs[0]) else "output in another order than the input"

    def pack(self, view: LayerView, params: Any) -> Mapping[str, Array]:
        """The table, indexed by the bits of the input: int8's entry -1 is entry 255."""
        values = np.arange(256).astype(np.uint8).view(view.inputs[0].dtype)
        return {"table": np.ascontiguousarray(view.op.compute(view, values).astype(view.outputs[0].dtype))}

    def lower(self, view: LayerView, params: Any, target: Target) -> Lowering:
        """Return look-ups of all elements in memory order by a C function of (x, table, y, count).

        The block's TIR adds up 256 entries, with 0 in place of all but the element's: TVM cannot prove two loaded
        indices equal.
        """
        function = self.function
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
