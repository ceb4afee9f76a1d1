"""Comparisons, logic, SELECT, CAST, ARG_MAX, ARG_MIN and CUMSUM: one layer each."""

from stages.ir.graph import Tensor
from stages.ir.operators.along_axis import ArgExtreme, Cumsum
from stages.ir.operators.casting import Cast
from stages.ir.operators.choices import Comparison, Logic, Select, is_scaled
from stages.quantize.arithmetic import quantize_multiplier
from stages.quantize.operator import Operator
from stages.quantize.patterns.operand import operands
from stages.quantize.patterns.shapes import reshaped
from stages.quantize.writer import GraphWriter


def comparison(operator: Operator, writer: GraphWriter) -> None:
    """Comparisons. Real multipliers of scaled operands are their scales (comparisons.cc)."""
    inputs, kind = operands(operator, writer), operator.call.op.lower()
    if not is_scaled(kind, inputs[0].dtype):
        writer.layer(Comparison(op=kind), inputs, operator.outputs[0])  # type: ignore[arg-type]
        return
    fixed = [quantize_multiplier(tensor.scale) for tensor in inputs]
    op = Comparison(
        op=kind,  # type: ignore[arg-type]
        zero_points=(inputs[0].zero_point, inputs[1].zero_point),
        multipliers=(fixed[0][0], fixed[1][0]),
        shifts=(fixed[0][1], fixed[1][1]),
    )
    writer.layer(op, inputs, operator.outputs[0])


def logic(operator: Operator, writer: GraphWriter) -> None:
    """LOGICAL_AND, LOGICAL_OR, LOGICAL_NOT."""
    op = Logic(op=operator.call.op.lower())  # type: ignore[arg-type]
    writer.layer(op, operands(operator, writer), operator.outputs[0])


def select(operator: Operator, writer: GraphWriter) -> None:
    """SELECT and SELECT_V2; SELECT may have one condition for each index of the first axis."""
    condition, *both = operands(operator, writer)
    out = operator.outputs[0]
    if operator.call.op == "SELECT" and condition.shape not in (out.shape, (), (1,)):
        condition = reshaped(writer, condition, (*condition.shape, *(1,) * (len(out.shape) - 1)))
    writer.layer(Select(), [condition, *both], out)


def cast(operator: Operator, writer: GraphWriter) -> None:
    """CAST. Between int32 and uint32 the bits stay: the output is an alias of the input."""
    (source,), out = operands(operator, writer), operator.outputs[0]
    writer.layer(Cast(), [source], out, alias={source.dtype, out.dtype} == {"int32", "uint32"} and not source.constant)


def arg_extreme(operator: Operator, writer: GraphWriter) -> None:
    """ARG_MAX and ARG_MIN of the raw integers."""
    source, axis = _along(operator, writer)
    op = ArgExtreme(op=operator.call.op.lower(), axis=axis)  # type: ignore[arg-type]
    writer.layer(op, [source], operator.outputs[0])


def cumsum(operator: Operator, writer: GraphWriter) -> None:
    """Append CUMSUM."""
    source, axis = _along(operator, writer)
    options = operator.options
    op = Cumsum(axis=axis, exclusive=bool(options["exclusive"]), reverse=bool(options["reverse"]))
    writer.layer(op, [source], operator.outputs[0])


def _along(operator: Operator, writer: GraphWriter) -> tuple[Tensor, int]:
    """The input, and the axis in the second input, counted from the front."""
    (source,) = operands(operator, writer, 1)
    return source, int(operator.known(1).reshape(-1)[0]) % len(source.shape)


PATTERNS = {
    "ARG_MAX": arg_extreme,
    "ARG_MIN": arg_extreme,
    "CAST": cast,
    "CUMSUM": cumsum,
    "LOGICAL_AND": logic,
    "LOGICAL_NOT": logic,
    "LOGICAL_OR": logic,
    "SELECT": select,
    "SELECT_V2": select,
    **dict.fromkeys(("EQUAL", "GREATER", "GREATER_EQUAL", "LESS", "LESS_EQUAL", "NOT_EQUAL"), comparison),
}
