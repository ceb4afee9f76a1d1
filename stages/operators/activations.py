"""Element-wise functions of one tensor: of 8 bits a table of 256 outputs, else float32."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import inf
from typing import TYPE_CHECKING, Literal

from stages.operators.declaration import FLOAT, OneOperatorModel, Operator, Table
from stages.operators.layer import LayerOp, Shifted
from stages.operators.operation import Operation, Shape

if TYPE_CHECKING:
    from stages.graph import LayerView
    from stages.models.operators import OneOperator
    from stages.models.tflite_writer import Tensor as FileTensor
    from stages.operators.layer import Array


def same_shape(operation: Operation) -> list[Shape]:
    """The output is as large as the input."""
    return [operation.input(0).shape]


class Activation(LayerOp):
    """An element-wise function of one 8-bit tensor: constant `table`, 256 outputs, index q (uint8) or q + 128 (int8).

    `function` is logistic, tanh, hard_swish, relu, relu6, leaky_relu, or requantize (an input of a concatenation with
    another scale); the table, of the output's type, is exact by construction, since it is computed with the
    reference's own arithmetic for each of the 256 inputs.
    """

    op: Literal["activation"] = "activation"
    function: str

    @property
    def named(self) -> str:
        return self.function

    @classmethod
    def names(cls) -> frozenset[str]:
        functions = (operator.kind for operator in OPERATORS if cls in operator.layers)
        return super().names() | {"requantize", *functions}

    def shifted(self, view: LayerView, inputs: Sequence[int], output: int) -> Shifted | None:
        """The entries of the table are in the order of the input's values, whatever integers those are."""
        if not output:
            return Shifted(self)
        import numpy as np

        moved = view.constant("table").astype(np.int64) + output
        return Shifted(self, {"table": moved.astype(np.uint8 if output > 0 else np.int8)})

    def compute(self, view: LayerView, *inputs: Array) -> Array:
        import numpy as np

        (x,) = inputs
        return view.constant("table")[x.astype(np.int64) - int(np.iinfo(x.dtype).min)]


def _table(name: str, model: OneOperatorModel | None = None, table: Table | None = None, version: int = 2) -> Operator:
    layers = (Activation,)
    return Operator(name, same_shape, table=table, layout="following", layers=layers, model=model, version=version)


def _float(name: str, *more: str) -> Operator:
    return Operator(name, same_shape, types=(*FLOAT, *more), quantized=False, layout="following")


def _clamped_model(low: Callable[[float, float], float], most: float = inf, *options: str) -> OneOperatorModel:
    """The output's range: from `low(the input's lowest, alpha)` to the input's highest, or `most`."""

    def build(one: OneOperator, x: FileTensor) -> FileTensor:
        spec, given = one.spec, {"alpha": one.spec.alpha} if "alpha" in options else {}
        out = None
        if one.quant:
            lowest, highest = one.range(one.quant)
            out = one.output(low(lowest, spec.alpha), min(highest, most))
        method: Callable[..., FileTensor] = getattr(one.builder, spec.op)
        return method(x, **given, out=out)

    return OneOperatorModel(build, frozenset({"output", *options}))


def unary_model() -> OneOperatorModel:
    """No options: LiteRT demands the output's quantization, or there is none."""

    def build(one: OneOperator, x: FileTensor) -> FileTensor:
        method: Callable[..., FileTensor] = getattr(one.builder, one.spec.op)
        return method(x)

    return OneOperatorModel(build)


OPERATORS = (
    _table("HARD_SWISH", _clamped_model(lambda low, alpha: -0.375), version=1),  # at x = -1.5; never above its input
    _table(
        "LEAKY_RELU",
        _clamped_model(lambda low, alpha: min(0.0, alpha * low), inf, "alpha"),
        Table("LeakyReluOptions", "alpha:float"),
    ),
    _table("LOGISTIC", unary_model()),
    _table("RELU", _clamped_model(lambda low, alpha: 0.0)),
    _table("RELU6", _clamped_model(lambda low, alpha: 0.0, 6.0)),
    _table("RELU_N1_TO_1"),
    _table("TANH", unary_model()),
    _float("ABS", "int32"),
    _float("COS"),
    _float("ELU"),
    _float("EXP"),
    _float("FLOOR"),
    _float("LOG"),
    _float("NEG", "int32", "int64"),
    _float("RSQRT"),
    _float("SIN"),
    _float("SQRT"),
    _float("SQUARE"),
)
