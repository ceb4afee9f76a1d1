"""UNIDIRECTIONAL_SEQUENCE_LSTM of int16 as in TFLM; LiteRT's kernel lacks int16."""

from collections.abc import Sequence
from typing import Literal

from stages.ir.arithmetic.fixed_point import multiply_by_quantized_multiplier, scale_by_half
from stages.ir.arithmetic.multipliers import Fixed, power_of_two, quantize_multiplier
from stages.ir.layers import Array, LayerView
from stages.ir.operators.interpolated import interpolate
from stages.ir.operators.lstm_layers import LstmLayer
from stages.support.lazy import np

_HALF = 1 << 30  # the multiplier of a power of two
MOST_SHIFT = 14  # of the rounding `wide`


class WideLstm(LstmLayer):
    """As Lstm (stages.ir.operators.lstm), with h and y int16 and without zero points.

    For each step:

      g[k]  = clamp(clamp(W(bias[k] + x @ input_weights[k].T, input_scales[k]))
                    + clamp(W(h @ recurrent_weights[k].T, recurrent_scales[k])))
      c     = clamp(clamp(M(c * sigmoid(g[1]), 2^30, -14)) + clamp(M(sigmoid(g[0]) * tanh(g[2]), entering)))
      h = y = clamp(M(sigmoid(g[3]) * tanh(c), scale))

    W rounds as `wide`, sums have 64 bits; sigmoid and tanh are those of stages.ir.operators.interpolated, of gates with
    the multiplier 3, of c with `cell_scaling`. Constants: weights as in Lstm, bias int64[4, units], table int32[256].
    """

    op: Literal["wide_lstm"] = "wide_lstm"
    input_scales: tuple[tuple[int, int], ...]
    recurrent_scales: tuple[tuple[int, int], ...]
    scale: tuple[int, int]
    entering: tuple[int, int]
    cell_scaling: tuple[int, int]
    clip: int = 0

    def advance(self, view: LayerView, inputs: Sequence[Array], states: Sequence[Array]) -> tuple[Array, list[Array]]:
        """Return the results of all steps, and the new states."""
        roles = ("input_weights", "recurrent_weights", "bias", "table")
        return self.sequence(inputs[0], states, [view.constant(role) for role in roles])

    def sequence(self, data: Array, states: Sequence[Array], constants: Sequence[Array]) -> tuple[Array, list[Array]]:
        """Results and new states from data, states, and the constants in order."""
        hidden, cell = (state.reshape(-1, self.units).astype(np.int64) for state in states)
        results = []
        for x in self.steps(data.astype(np.int64)):
            hidden, cell = self._step(x, hidden, cell, constants)
            results.append(hidden)
        new_states = [
            value.astype(np.int16).reshape(state.shape) for value, state in zip((hidden, cell), states, strict=True)
        ]
        return np.ascontiguousarray(self.steps(np.stack(results).astype(np.int16))), new_states

    def _step(self, x: Array, hidden: Array, cell: Array, constants: Sequence[Array]) -> tuple[Array, Array]:
        weights, recurrent, bias, table = (array.astype(np.int64) for array in constants)

        def clamped(values: Array) -> Array:
            return np.clip(values, -(1 << 15), (1 << 15) - 1)

        def scaled(product: Array, fixed: Fixed) -> Array:
            return clamped(multiply_by_quantized_multiplier(product, *fixed, "double"))

        gates = []
        for k in range(4):
            ahead = scale_by_half(x @ weights[k].T + bias[k], *self.input_scales[k])
            back = scale_by_half(hidden @ recurrent[k].T, *self.recurrent_scales[k])
            function: Literal["logistic", "tanh"] = "tanh" if k == 2 else "logistic"
            gates.append(interpolate(table, clamped(clamped(ahead) + clamped(back)), 3, 0, function))
        entering = scaled(gates[0] * gates[2], self.entering)
        cell = clamped(scaled(cell * gates[1], (_HALF, -14)) + entering)
        cell = np.clip(cell, -self.clip, self.clip) if self.clip else cell
        product = gates[3] * interpolate(table, cell, *self.cell_scaling, "tanh")
        return scaled(product, self.scale), cell


def wide_lstm(
    shape: tuple[int, int],
    scales: tuple[float, float, float],
    weights: tuple[Sequence[float], Sequence[float]],
    clip: float,
    *,
    time_major: bool,
) -> WideLstm:
    """Create the layer.

    shape: cells, numbers of a step; scales: of data, hidden and cell state; weights: scales of input and recurrent
    weights, by gate. Products of two scales are float32, quotients doubles (TFLM's lstm_eval_common.cc).
    """
    units, depth = shape
    data, hidden, cell = scales

    def fixed(side: Sequence[float], scale: float) -> tuple[Fixed, ...]:
        """Multiplier and shift of each gate."""
        return tuple(
            quantize_multiplier(float(np.float32(scale) * np.float32(weight_scale)) * 4096.0) for weight_scale in side
        )

    exponent = power_of_two(cell) or 0
    up = exponent + 12  # shift of tanh's input, in which 1.0 is 3 * 4096
    return WideLstm(
        depth=depth,
        units=units,
        time_major=time_major,
        input_scales=fixed(weights[0], data),
        recurrent_scales=fixed(weights[1], hidden),
        scale=quantize_multiplier(2.0**-30 / hidden),
        entering=quantize_multiplier(2.0**-30 / cell),
        cell_scaling=(3 << up, 0) if up > 0 else (3, -up),
        clip=int(min(clip / cell, 32767.0)) if clip > 0 else 0,
    )
