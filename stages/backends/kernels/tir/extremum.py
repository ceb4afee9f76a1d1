"""TIR of MAXIMUM and MINIMUM."""

from collections.abc import Sequence
from typing import Any

from stages.backends.kernels.kernel import Lowering
from stages.backends.kernels.tir.elementwise import elementwise_layer
from stages.ir.graph import LayerView
from stages.support.lazy import tirx


def extremum(view: LayerView, function: str) -> Lowering:
    """Return the layer as `function(x0, x1, y, count, step0, step1)`; '' for a plain loop."""

    def value(x: Sequence[Any], b: Any) -> Any:
        above = x[0] > x[1] if view.op.is_max else x[0] < x[1]
        return tirx.Select(above, x[0], x[1])

    return elementwise_layer(view, function, value, {})
