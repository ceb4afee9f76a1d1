"""Softmax of ONNX Runtime by rows: maximum, sum of exponentials (a table), quotients."""

from collections.abc import Callable, Sequence
from typing import Any, ClassVar

from stages.backends.generic.kernels.generic.loops import Loops8
from stages.backends.kernels.kernel import Kernel, Lowering
from stages.backends.kernels.tir.block import Block, Operand, accumulator, loop, position, store
from stages.backends.kernels.tir.fixed_point import int64, maximum, output, select, widen
from stages.backends.kernels.tir.last_axis import along_rows, leading_zeros, row_operands, row_steps
from stages.backends.targets.spec import Target
from stages.ir.graph import LayerView
from stages.ir.operators.onnx_softmax import MOST_SHIFT
from stages.support.lazy import T


class NearestSoftmax(Loops8):
    """ONNX Runtime's softmax in 64-bit integers."""

    name = "generic.nearest_softmax"
    ops: ClassVar[frozenset[str]] = frozenset({"nearest_softmax"})
    element = 35.0
    row = 500

    def lower(self, view: LayerView, params: Any, target: Target) -> Lowering:
        """Return softmax with sums of up to 2^32 exponentials."""
        op = view.op

        def meaning(b: Any, for_row: Callable[[Callable[[Any, Any], None]], None]) -> None:
            store(b.total, T.int64(0), 0)
            for_row(lambda i, d: store(b.total, b.total[0] + int64(b.exp[d]), 0))
            leading_zeros(b.more, T.shift_right(b.total[0], T.int64(31)))
            store(b.more, 32 - b.more[0], 0)
            store(b.factor, T.truncdiv(T.int64(op.factor), T.shift_right(b.total[0], int64(b.more[0]))), 0)
            store(b.shift, int64(T.min(b.more[0] + op.shift, MOST_SHIFT)), 0)

            def share(i: Any, d: Any) -> None:
                half = T.shift_left(T.int64(1), b.shift[0] - T.int64(1))
                nearest = T.shift_right(int64(b.exp[d]) * b.factor[0] + half, b.shift[0])
                least, most = (T.int64(bound - op.output_zero_point) for bound in (op.act_min, op.act_max))
                within = T.min(T.max(nearest, least), most)
                store(b.y, output(view, T.Cast("int32", within)), i * row_steps(view)[2])

            for_row(share)

        cells = [("total", "int64"), ("more", "int32"), ("factor", "int64"), ("shift", "int64")]
        return _rows(view, "int32", cells, meaning)


class FloatSoftmax(Loops8):
    """ONNX Runtime's softmax in float32. Cores without an FPU compute it in software."""

    name = "generic.float_softmax"
    ops: ClassVar[frozenset[str]] = frozenset({"float_softmax"})

    def lower(self, view: LayerView, params: Any, target: Target) -> Lowering:
        """Return softmax in float32.

        No sum has a product as a term, so a compiler cannot fuse them.
        """
        op = view.op

        def meaning(b: Any, for_row: Callable[[Callable[[Any, Any], None]], None]) -> None:
            store(b.total, T.float32(0), 0)
            for_row(lambda i, d: store(b.total, b.total[0] + b.exp[d], 0))

            def share(i: Any, d: Any) -> None:
                store(b.share, b.exp[d] * T.float32(op.factor) / b.total[0], 0)
                store(b.whole, T.Cast("int32", b.share[0]), 0)
                rest = b.share[0] - T.Cast("float32", b.whole[0])
                is_odd = T.bitwise_and(b.whole[0], T.int32(1))
                even = select(rest == T.float32(0.5), is_odd, 0)
                nearest = b.whole[0] + select(rest > T.float32(0.5), 1, even)
                store(b.y, output(view, nearest), i * row_steps(view)[2])

            for_row(share)

        return _rows(view, "float32", [("total", "float32"), ("share", "float32"), ("whole", "int32")], meaning)

    def cost(self, view: LayerView, params: Any, target: Target) -> float:
        """Return 60 instructions per element with an FPU, 500 without."""
        return (60.0 if target.fpu else 500.0) * view.outputs[0].elements


KERNELS: tuple[type[Kernel], ...] = (NearestSoftmax, FloatSoftmax)


def _rows(
    view: LayerView,
    kind: str,
    cells: Sequence[tuple[str, str]],
    formula: Callable[[Any, Callable[[Callable[[Any, Any], None]], None]], None],
) -> Lowering:
    """Return `formula(block, each)` for each row.

    `each(body)` is a loop of `body(index, distance from the maximum)`.
    """
    count, x_step, _ = row_steps(view)

    def meaning(b: Any) -> None:
        def for_row(body: Callable[[Any, Any], None]) -> None:
            with loop(("i", count)) as i, position("d", b.top[0] - widen(b.x[i * x_step])) as d:
                body(i, d)

        store(b.top, -128 if view.inputs[0].dtype == "int8" else 0, 0)
        with loop(("i", count)) as i:
            store(b.top, maximum(widen(b.x[i * x_step]), b.top[0]), 0)
        formula(b, for_row)

    source, target = row_operands(view)
    scratch = [accumulator("top"), *(Operand(name, (1,), dtype, "rw") for name, dtype in cells)]
    row = Block("row", (source, Operand("exp", (256,), kind), target, *scratch), meaning)
    return along_rows(view, row, ("exp", (256,), kind))
