"""Calls of CMSIS-NN for recurrent layers: SVDF and LSTM.

States are zero, as in LiteRT's first inference.
"""

import numpy as np

from stages.delivery.bench.baselines.call import Call
from stages.delivery.bench.baselines.cmsis_nn_arguments import context, dims
from stages.delivery.bench.networks import Network
from stages.ir.arithmetic.multipliers import quantize_multiplier
from stages.ir.graph import LayerView


def svdf(network: Network, view: LayerView) -> Call:
    """Return the call for SVDF with a state of 16 bits."""
    op, x = view.op, view.inputs[0]
    roles = [role for role in ("feature", "time", "bias") if view.has(role)]
    features = len(view.constant("feature"))
    batch, units = view.outputs[0].shape
    shapes = {
        "input_dims": (batch, op.depth, 1, 1),
        "state_dims": (batch, op.memory * features, 1, 1),
        "feature_dims": (features, op.depth, 1, 1),
        "time_dims": (features, op.memory, 1, 1),
        "bias_dims": (units, 1, 1, 1),
        "output_dims": (batch, units, 1, 1),
    }
    zero_points = f"{op.input_zero_point}, {op.output_zero_point}"
    limits = f"{{-32768, 32767}}, {{{op.act_min}, {op.act_max}}}"
    tensors = ("input_dims, x0", "state_dims, state", "feature_dims, feature", "time_dims, time")
    bias = "bias" if view.has("bias") else "0"
    arguments = f"&{', &'.join(tensors)}, &bias_dims, {bias}, &output_dims, output"
    return Call(
        {"x0": network.inputs[x.name], **{role: view.constant(role) for role in roles}},
        [
            *(dims(name, *sizes) for name, sizes in shapes.items()),
            f"static int16_t state[{batch * features * op.memory}];",
            f"const cmsis_nn_svdf_params params = {{{op.rank}, {zero_points}, {limits}}};",
            f"const cmsis_nn_per_tensor_quant_params in = {{{op.feature_multiplier}, {op.feature_shift}}};",
            f"const cmsis_nn_per_tensor_quant_params out = {{{op.multiplier}, {op.shift}}};",
            *context(str(4 * batch * (features + units))),
            f"const cmsis_nn_context sums = {{scratch + {4 * batch * features}, {4 * batch * units}}};",
        ],
        f"status = arm_svdf_state_s16_s8(&context, &sums, &params, &in, &out, {arguments})",
    )


def lstm(network: Network, view: LayerView) -> Call:
    """Return the call for an LSTM.

    Its biases contain the sums of weights times zero points, prepared once.
    """
    op, x = view.op, view.inputs[0]
    batch, steps = (x.shape[1], x.shape[0]) if op.time_major else x.shape[:2]
    weights = {side: view.constant(f"{side}_weights") for side in ("input", "recurrent")}
    sums = {side: array.astype(np.int32).sum(2, dtype=np.int32) for side, array in weights.items()}
    data = {
        "x0": network.inputs[x.name],
        **weights,
        "bias": view.constant("bias"),
        "input_bias": view.constant("bias") - op.input_zero_point * sums["input"],
        "recurrent_bias": -op.state_zero_point * sums["recurrent"],
    }

    def gate(k: int) -> str:
        ahead, back = (
            f"{multiplier}, {shift}, {side} + {k * weights[side][0].size}, {side}_bias + {k * op.units}"
            for side, (multiplier, shift) in (("input", op.input_scales[k]), ("recurrent", op.recurrent_scales[k]))
        )
        return f"{{{ahead}, {back}, bias + {k * op.units}, {'ARM_TANH' if k == 2 else 'ARM_SIGMOID'}}}"

    scales = [*quantize_multiplier(2.0**-15), *quantize_multiplier(2.0 ** (-15 - op.cell_bits))]
    numbers = [int(op.time_major), batch, steps, op.depth, op.units, -op.input_zero_point, *scales]
    numbers += [op.clip or 32767, op.cell_bits - 15, *op.scale, op.output_zero_point]
    cells = batch * op.units
    return Call(
        data,
        [
            f"static int16_t cell[{cells}], first[{cells}], second[{cells}];",
            f"static int8_t hidden[{cells}];",
            f"const cmsis_nn_lstm_params params = {{{', '.join(map(str, numbers))},",
            f"    {', '.join(gate(k) for k in (1, 0, 2, 3))}}};",
            "cmsis_nn_lstm_context buffers = {first, second, cell, hidden};",
        ],
        "status = arm_lstm_unidirectional_s8(x0, output, &params, &buffers)",
    )
