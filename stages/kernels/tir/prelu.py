"""TIR of PRELU by the C of a family."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from stages.kernels.generic.elementwise_tir import _layer
from stages.kernels.tir.block import Operand
from stages.kernels.tir.fixed_point import output, requantize, select, widen

if TYPE_CHECKING:
    from stages.graph import LayerView
    from stages.kernels.kernel import Lowering


def prelu(view: LayerView, function: str, constants: Mapping[str, Operand]) -> Lowering:
    """Around `function(x0, x1, y, count, step0, step1, constants...)`; a step of 0 repeats one value."""
    op = view.op

    def value(x: Sequence[Any], b: Any) -> Any:
        plain, slope = (widen(x[i]) - op.zero_points[i] for i in range(2))
        above = requantize(plain, op.multipliers[0], op.shifts[0], op.rounding)
        below = requantize(plain * slope, op.multipliers[1], op.shifts[1], op.rounding)
        return output(view, select(plain >= 0, above, below))

    return _layer(view, function, value, dict(constants))
