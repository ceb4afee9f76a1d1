"""READ_VARIABLE and ASSIGN_VARIABLE on state tensors, made from resource variables."""

from collections.abc import Sequence
from typing import ClassVar, Literal

from stages.ir.layers import Array, LayerOp, LayerView
from stages.ir.naming import named
from stages.ir.operators.declaration import MOVED, Legalization, LiteRT, Operator, Quantization, Tensors
from stages.ir.operators.operation import Operation, Refused, Shape, listed


class Read(LayerOp):
    """A copy of a state tensor, which stays valid after the state is written."""

    op: Literal["read_variable"] = "read_variable"
    any_type: ClassVar[bool] = True

    def compute(self, view: LayerView, *inputs: Array) -> Array:
        """Copy the state."""
        return inputs[0].copy()


class Slide(LayerOp):
    """Move the rows of a window that the next run keeps, within the state.

    axis    axis of time
    source  first of the rows that stay, target: where they go
    rows    their number

    The output is an alias of the moved rows. A concatenation with the same state then writes the new rows. Constant
    `begin`: the initial value of the whole window.
    """

    op: Literal["slide"] = "slide"
    any_type: ClassVar[bool] = True
    axis: int
    source: int
    target: int
    rows: int

    def advance(self, view: LayerView, inputs: Sequence[Array], states: Sequence[Array]) -> tuple[Array, list[Array]]:
        """Return the moved rows and the new state."""
        before = (slice(None),) * self.axis
        state = states[0].copy()
        kept = states[0][(*before, slice(self.source, self.source + self.rows))].copy()
        state[(*before, slice(self.target, self.target + self.rows))] = kept
        return kept, [state]


class Assign(LayerOp):
    """Writes its input to the state; the output is an alias of the state.

    Constant `begin`: the initial value.
    """

    op: Literal["assign_variable"] = "assign_variable"
    any_type: ClassVar[bool] = True

    def advance(self, view: LayerView, inputs: Sequence[Array], states: Sequence[Array]) -> tuple[Array, list[Array]]:
        """Return the output and the new state."""
        return inputs[0].copy(), [inputs[0].copy()]


def _read(operation: Operation) -> list[Shape]:
    return [operation.input(0).shape]


def _assigned(operation: Operation) -> list[Shape]:
    state = operation.input(0)
    for position in range(1, len(operation.inputs)):
        tensor = operation.input(position)
        if (tensor.shape, tensor.dtype) != (state.shape, state.dtype):
            value_type, state_type = (
                f"{tensor_type.dtype}{listed(tensor_type.shape)}" for tensor_type in (tensor, state)
            )
            raise Refused(
                f"writes {value_type} of {named(tensor)} to the variable {named(state)}, which is {state_type}"
            )
    return [state.shape]


def _value(operation: Operation, state: Array) -> Sequence[Array]:
    return [state]


def _new_value(operation: Operation, state: Array, value: Array, begin: Array | None = None) -> Sequence[Array]:
    """Output and new state."""
    return [value, value]


_STATE = "resource variables become state tensors"
OPERATORS = (
    Operator(
        "READ_VARIABLE",
        _read,
        Tensors(types=MOVED, state=(0,)),
        quantization=Quantization(scales="any"),
        legalization=Legalization((Read,)),
        litert=LiteRT(version=1, reference=_value),
        limits=f"{_STATE}; initial values are constants",
    ),
    Operator(
        "ASSIGN_VARIABLE",
        _assigned,
        Tensors((2, 3), types=MOVED, state=(0,)),
        quantization=Quantization(scales="any"),
        legalization=Legalization((Assign, Slide)),
        litert=LiteRT(version=1, reference=_new_value),
        limits=f"{_STATE}; shapes are fixed",
    ),
)
