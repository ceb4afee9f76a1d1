"""READ_VARIABLE and ASSIGN_VARIABLE: copies from and to a state tensor."""

from stages.ir.graph import Tensor
from stages.ir.operators.variables import Assign, Read
from stages.quantize.operator import Operator
from stages.quantize.writer import GraphWriter


def read_variable(operator: Operator, writer: GraphWriter) -> None:
    """READ_VARIABLE: a copy of the state."""
    writer.layer(Read(), [operator.tensor_at(0)], operator.outputs[0])


def assign_variable(operator: Operator, writer: GraphWriter) -> None:
    """ASSIGN_VARIABLE: writes the state; the output is an alias of it."""
    state, value, begin = operator.tensor_at(0), operator.operand(1), operator.constant_at(2)
    if not isinstance(value, Tensor):
        value = writer.constant_tensor(f"{state.name}/value", operator.known(1), state.quant)
    out = operator.outputs[0].model_copy(update={"alias_of": state.name})
    writer.layer(Assign(), [value], out, {} if begin is None else {"begin": begin}, state=[state])


PATTERNS = {"READ_VARIABLE": read_variable, "ASSIGN_VARIABLE": assign_variable}
