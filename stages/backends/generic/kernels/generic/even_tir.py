"""TIR of ADD, SUB and MUL with halves to the even number."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from tvm.tirx.script.builder import ir as T

from stages.backends.generic.kernels.generic.sixteen_tir import elements
from stages.backends.kernels.tir.fixed_point import output, widen

if TYPE_CHECKING:
    from stages.backends.kernels.kernel import Lowering
    from stages.ir.graph import LayerView


def even(view: LayerView) -> Lowering:
    """Return the formula of `HalfEven`. Half of 2^shift is added, less one if the number before the point is even."""
    op = view.op

    def value(x: Sequence[Any], b: Any) -> Any:
        first, second = ((widen(x[i]) - op.zero_points[i]) * op.times[i] for i in range(2))
        total = {"add": first + second, "sub": first - second, "mul": first * second}[op.named]
        moved = total + (op.parity << op.shift)
        odd = T.bitwise_and(T.shift_right(moved, T.int32(op.shift)), T.int32(1))
        nearest = T.shift_right(moved + ((1 << op.shift - 1) - 1) + odd, T.int32(op.shift))
        return output(view, nearest - op.parity)

    return elements(view, value, ())
