"""READ_VARIABLE and ASSIGN_VARIABLE, on the variable tensors that import makes of resource variables."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, ClassVar, Literal

from stages.ir.models.naming import named
from stages.ir.operators.declaration import MOVED, Operator
from stages.ir.operators.layer import LayerOp
from stages.ir.operators.operation import Operation, Refused, Shape, listed

if TYPE_CHECKING:
    from stages.ir.graph import LayerView
    from stages.ir.operators.layer import Array


class Read(LayerOp):
    """A copy of a tensor of state, its only input: what reads the copy may run after the state is written."""

    op: Literal["read_variable"] = "read_variable"
    any_type: ClassVar[bool] = True

    def compute(self, view: LayerView, *inputs: Array) -> Array:
        return inputs[0].copy()


class Assign(LayerOp):
    """Writes its input to its state; the output is the state's memory. Constant `begin`: what it is after a reset."""

    op: Literal["assign_variable"] = "assign_variable"
    any_type: ClassVar[bool] = True
    lasting: ClassVar[bool] = True

    def advance(self, view: LayerView, inputs: Sequence[Array], states: Sequence[Array]) -> tuple[Array, list[Array]]:
        return inputs[0].copy(), [inputs[0].copy()]


def _read(operation: Operation) -> list[Shape]:
    return [operation.input(0).shape]


def _assigned(operation: Operation) -> list[Shape]:
    state = operation.input(0)
    for position in range(1, len(operation.inputs)):
        tensor = operation.input(position)
        if (tensor.shape, tensor.dtype) != (state.shape, state.dtype):
            found, kept = (f"{one.dtype}{listed(one.shape)}" for one in (tensor, state))
            raise Refused(f"writes {found} of {named(tensor)} to the variable {named(state)}, which is {kept}")
    return [state.shape]


def _value(operation: Operation, state: Array) -> Sequence[Array]:
    return [state]


def _new_value(operation: Operation, state: Array, value: Array, begin: Array | None = None) -> Sequence[Array]:
    """What it gives, and what the state is then."""
    return [value, value]


_HOW = "resource variables become tensors that the model keeps"
OPERATORS = (
    Operator(
        "READ_VARIABLE",
        _read,
        types=MOVED,
        state=(0,),
        scales="any",
        layers=(Read,),
        limits=f"{_HOW}; constants at first",
        reference=_value,
        version=1,
    ),
    Operator(
        "ASSIGN_VARIABLE",
        _assigned,
        (2, 3),
        types=MOVED,
        state=(0,),
        scales="any",
        layers=(Assign,),
        limits=f"{_HOW}; shapes stay",
        reference=_new_value,
        version=1,
    ),
)
