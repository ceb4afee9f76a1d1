"""Element-wise functions of one tensor: of 8 bits a table of 256 outputs, else float32."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from stages.operators.declaration import FLOAT, Operator, Table
from stages.operators.layer import LayerOp
from stages.operators.operation import Operation, Shape

if TYPE_CHECKING:
    from stages.graph import LayerView
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

    def compute(self, view: LayerView, *inputs: Array) -> Array:
        from stages.reference.integer.elementwise import activation

        return activation(view, *inputs)


def _table(name: str, table: Table | None = None, version: int = 2) -> Operator:
    return Operator(name, same_shape, table=table, layout="following", layers=(Activation,), version=version)


def _float(name: str, *more: str) -> Operator:
    return Operator(name, same_shape, types=(*FLOAT, *more), quantized=False, layout="following")


OPERATORS = (
    _table("HARD_SWISH", version=1),
    _table("LEAKY_RELU", Table("LeakyReluOptions", "alpha:float")),
    _table("LOGISTIC"),
    _table("RELU"),
    _table("RELU6"),
    _table("RELU_N1_TO_1"),
    _table("TANH"),
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
