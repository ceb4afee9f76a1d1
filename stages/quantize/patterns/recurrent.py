"""UNIDIRECTIONAL_SEQUENCE_RNN and GRU in float32."""

from typing import Any

from stages.ir.operators.recurrent import BIAS, GRU, HIDDEN, INPUT_WEIGHTS, RECURRENT_WEIGHTS, RNN, FloatGru, FloatRnn
from stages.quantize.operator import Operator
from stages.quantize.writer import GraphWriter


def rnn(operator: Operator, writer: GraphWriter) -> None:
    """UNIDIRECTIONAL_SEQUENCE_RNN."""
    weights, recurrent, bias = (operator.known(at) for at in (INPUT_WEIGHTS, RECURRENT_WEIGHTS, BIAS))
    units, depth = weights.shape
    activation = operator.options["fusedActivationFunction"].lower()
    op = FloatRnn(depth=depth, units=units, time_major=bool(operator.options["timeMajor"]), activation=activation)
    _layer(operator, writer, op, {"input_weights": weights, "recurrent_weights": recurrent, "bias": bias})


def gru(operator: Operator, writer: GraphWriter) -> None:
    """Append a float GRU over a sequence."""
    weights, recurrent, bias = (operator.known(at) for at in (INPUT_WEIGHTS, RECURRENT_WEIGHTS, BIAS))
    _, units, depth = weights.shape
    options = operator.flexbuffer
    op = FloatGru(
        depth=depth, units=units, time_major=bool(options["time_major"]), reset_after=bool(options["reset_after"])
    )
    constants = {"input_weights": weights, "recurrent_weights": recurrent}
    _layer(operator, writer, op, {**constants, "input_bias": bias[0], "recurrent_bias": bias[1]})


def _layer(operator: Operator, writer: GraphWriter, op: Any, constants: dict[str, Any]) -> None:
    writer.layer(op, [operator.tensor_at(0)], operator.outputs[0], constants, state=[operator.tensor_at(HIDDEN)])


PATTERNS = {RNN: rnn, GRU: gru}
