"""TIR of PRELU by a family's C function."""

from collections.abc import Mapping, Sequence
from typing import Any

from stages.backends.kernels.kernel import Lowering
from stages.backends.kernels.tir.block import Operand
from stages.backends.kernels.tir.elementwise import elementwise_layer
from stages.backends.kernels.tir.fixed_point import output
from stages.backends.kernels.tir.rectified import rectified
from stages.ir.graph import LayerView


def prelu(view: LayerView, function: str, constants: Mapping[str, Operand]) -> Lowering:
    """Return the layer as `function(x0, x1, y, count, step0, step1, constants...)`.

    A step of 0 repeats one value.
    """

    def value(x: Sequence[Any], b: Any) -> Any:
        return output(view, rectified(view.op, x))

    return elementwise_layer(view, function, value, dict(constants))
