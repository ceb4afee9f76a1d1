"""TIR of square roots of int16 activations."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from tvm import tirx
from tvm.tirx.script.builder import ir as T

from stages.backends.generic.kernels.generic.sixteen_tir import elements
from stages.backends.kernels.tir.fixed_point import output, widen

if TYPE_CHECKING:
    from stages.backends.kernels.kernel import Lowering
    from stages.ir.graph import LayerView

_BIGGEST = 65536.0  # beyond every 16-bit value


def wide_sqrt(view: LayerView) -> Lowering:
    """Return the formula of `stages.ir.operators.wide_sqrt.WideSqrt`. The conversion to int32 truncates."""
    op = view.op

    def value(x: Sequence[Any], b: Any) -> Any:
        real = T.Cast("float32", T.max(widen(x[0]), 0)) * T.float32(op.input_scale)
        root = T.sqrt(real) / T.float32(op.output_scale)
        return output(view, T.Cast("int32", tirx.Select(root < T.float32(_BIGGEST), root, T.float32(_BIGGEST))))

    return elements(view, value, ())
