"""UNIDIRECTIONAL_SEQUENCE_LSTM in integers and in float32."""

from collections.abc import Sequence

import numpy as np

from stages.ir.arithmetic.multipliers import power_of_two
from stages.ir.arithmetic.sigmoid16 import sigmoid_table
from stages.ir.arrays import Array
from stages.ir.operators.lstm import BIASES, CELL, HIDDEN, INPUT_WEIGHTS, RECURRENT_WEIGHTS, RESULT, FloatLstm, Lstm
from stages.ir.operators.lstm_layers import LstmLayer
from stages.ir.operators.wide_lstm import wide_lstm
from stages.quantize.arithmetic import Fixed, float32_product, float32_ratio, quantize_multiplier
from stages.quantize.operator import Operator
from stages.quantize.writer import GraphWriter

_GATE_SCALE = 2.0**-12  # scale of the gates before their activations


def lstm(operator: Operator, writer: GraphWriter) -> None:
    """LSTM. Real multipliers are float32 expressions, that of the results is a double."""
    x, hidden, cell, out = (*(operator.tensor_at(at) for at in (0, HIDDEN, CELL)), operator.outputs[0])
    weights, recurrent, bias = (_stacked(operator, at) for at in (INPUT_WEIGHTS, RECURRENT_WEIGHTS, BIASES))
    constants = {"input_weights": weights, "recurrent_weights": recurrent, "bias": bias}
    _, units, depth = weights.shape
    time_major, clip = bool(operator.options["timeMajor"]), float(operator.options["cellClip"])
    op: LstmLayer
    if x.dtype == "float32":
        op = FloatLstm(depth=depth, units=units, time_major=time_major, clip=max(clip, 0.0))
    elif x.dtype == "int16":
        sides = [[operator.scale_at(at) for at in side] for side in (INPUT_WEIGHTS, RECURRENT_WEIGHTS)]
        tensor_scales = (x.scale, hidden.scale, cell.scale)
        op = wide_lstm((units, depth), tensor_scales, (sides[0], sides[1]), clip, time_major=time_major)
        constants["table"] = sigmoid_table()
    else:
        hidden_quant = operator.intermediates[RESULT]
        op = Lstm(
            depth=depth,
            units=units,
            time_major=time_major,
            input_zero_point=x.zero_point,
            state_zero_point=hidden.zero_point,
            output_zero_point=int(hidden_quant["zero_points"][0]),
            input_scales=_scales(operator, INPUT_WEIGHTS, x.scale),
            recurrent_scales=_scales(operator, RECURRENT_WEIGHTS, hidden.scale),
            scale=quantize_multiplier(float(np.float32(2.0**-30 / hidden_quant["scales"][0]))),
            cell_bits=15 + (power_of_two(cell.scale) or 0),
            clip=int(min(float32_ratio(clip, cell.scale), 32767.0)) if clip > 0 else 0,
        )
    writer.layer(op, [x], out, constants, state=[hidden, cell])


def _stacked(operator: Operator, positions: Sequence[int]) -> Array:
    return np.stack([operator.known(at) for at in positions])


def _scales(operator: Operator, positions: Sequence[int], scale: float) -> tuple[Fixed, ...]:
    products = (float32_product(operator.scale_at(at), scale) for at in positions)
    return tuple(quantize_multiplier(float32_ratio(product, _GATE_SCALE)) for product in products)


PATTERNS = {"UNIDIRECTIONAL_SEQUENCE_LSTM": lstm}
