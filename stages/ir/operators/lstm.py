"""UNIDIRECTIONAL_SEQUENCE_LSTM, as converted from Keras' LSTM."""

from collections.abc import Sequence
from math import prod
from typing import ClassVar, Literal

from stages.ir.arithmetic.exact import random_weights
from stages.ir.arithmetic.fixed_point import multiply_by_quantized_multiplier, rounding_divide_by_pot, wrap
from stages.ir.arithmetic.multipliers import NoMultiplier, power_of_two
from stages.ir.layers import Array, LayerView
from stages.ir.model_info import FileTensor
from stages.ir.naming import named
from stages.ir.operators.declaration import Legalization, LiteRT, Operator, Quantization, Tensors, Weights
from stages.ir.operators.lstm_layers import LstmLayer, sigmoid
from stages.ir.operators.operation import Operation, Refused, Shape, Table, listed
from stages.ir.operators.single_operator import SingleOperatorBuilder, SingleOperatorModel
from stages.ir.operators.wide_lstm import MOST_SHIFT, WideLstm, wide_lstm
from stages.support.lazy import np

GATES = ("input", "forget", "cell", "output")
# Positions of the file's inputs, of four gates each, in the order of GATES.
INPUT_WEIGHTS, RECURRENT_WEIGHTS, BIASES = (1, 2, 3, 4), (5, 6, 7, 8), (12, 13, 14, 15)
HIDDEN, CELL = 18, 19
# The intermediate tensor with the quantization of the results.
INTERMEDIATES, RESULT = 5, 4

_TABLE = Table(
    "UnidirectionalSequenceLSTMOptions",
    "cell_activation:byte cell_clip:float proj_clip:float time_major:bool asymmetric_quantize_inputs:bool "
    "diagonal_recurrent_tensors:bool",
)
_TANH = 4
_VARIANTS = {
    9: "peepholes",
    10: "peepholes",
    11: "peepholes",
    16: "a projection",
    17: "a projection",
    **dict.fromkeys((20, 21, 22, 23), "layer normalization"),
}
_KERAS = "Keras' LSTM does not have this; import the cell as plain operators."
# Types of weights, biases, hidden state and cell state, by the type of the data.
_TYPES = {
    "int8": ("int8", "int32", "int8", "int16"),
    "int16": ("int8", "int64", "int16", "int16"),
    "float32": ("float32",) * 4,
}
# Valid integer bits of an int16 cell state, whose scale is a power of two: tanh takes 0 to 6.
_CELL_BITS = range(7)


def sizes(operation: Operation) -> tuple[int, int, int, int]:
    """Sequences, steps, inputs of a step, cells. Raises Refused for shapes that do not match."""
    data = operation.input(0)
    if len(data.shape) != 3:
        raise Refused(f"has {named(data)} {listed(data.shape)}; it must have 3 axes")
    major, minor, depth = data.shape
    batch, steps = (minor, major) if operation.options(_TABLE)["time_major"] else (major, minor)
    units = operation.input(INPUT_WEIGHTS[1]).shape[0]
    wanted: dict[int, Shape] = dict.fromkeys(INPUT_WEIGHTS, (units, depth))
    wanted |= dict.fromkeys(RECURRENT_WEIGHTS, (units, units)) | dict.fromkeys(BIASES, (units,))
    for at, shape in wanted.items():
        tensor = operation.input(at)
        if tensor.shape != shape:
            raise Refused(f"has {named(tensor)} {listed(tensor.shape)}; it must be {listed(shape)}")
    for at in (HIDDEN, CELL):
        state = operation.input(at)
        if prod(state.shape) != batch * units:
            raise Refused(f"has the state {named(state)} {listed(state.shape)}; it must hold {listed((batch, units))}")
    return batch, steps, depth, units


def _shapes(operation: Operation) -> list[Shape]:
    _, _, _, units = sizes(operation)
    return [(*operation.input(0).shape[:2], units)]


def _check(operation: Operation) -> None:
    """Check that it is the plain form, with matching types and scales."""
    for position, description in _VARIANTS.items():
        if position < len(operation.inputs) and operation.inputs[position] is not None:
            raise Refused(f"has {description}, which Firmline does not support", _KERAS)
    if any(operation.inputs[position] is None for position in (INPUT_WEIGHTS[0], RECURRENT_WEIGHTS[0], BIASES[0])):
        raise Refused("has no input gate (CIFG), which Firmline does not support", _KERAS)
    options, data = operation.options(_TABLE), operation.input(0)
    if options["cell_activation"] != _TANH:
        raise Refused("has an activation other than TANH, the only one that LiteRT has on integers")
    if options["diagonal_recurrent_tensors"]:
        raise Refused("has diagonal recurrent weights, which Firmline does not support", _KERAS)
    weights, bias, hidden, cell = _TYPES[data.dtype]
    expected = dict.fromkeys((*INPUT_WEIGHTS, *RECURRENT_WEIGHTS), (weights, "weights"))
    expected |= dict.fromkeys(BIASES, (bias, "a bias"))
    for position, (dtype, description) in expected.items():
        tensor = operation.input(position)
        if tensor.dtype != dtype:
            raise Refused(
                f"has {description} of {tensor.dtype} in {named(tensor)}; with {data.dtype} data it must be {dtype}"
            )
        if tensor.data is None:
            raise Refused(f"computes {description} {named(tensor)}; it must be a constant")
        if tensor.zero_point.any():
            raise Refused(f"has the zero point {int(tensor.zero_point[0])} in {named(tensor)}; it must be 0")
        if data.dtype != "float32" and position not in BIASES and (tensor.scale.size != 1 or not tensor.scale.all()):
            raise Refused(f"has {tensor.scale.size} scales in {named(tensor)}; it must have one")
    for position, dtype in ((HIDDEN, hidden), (CELL, cell)):
        tensor = operation.input(position)
        if tensor.dtype != dtype:
            raise Refused(f"keeps {tensor.dtype} in {named(tensor)}; with {data.dtype} data it must be {dtype}")
    if data.dtype != "float32":
        _check_quantized(operation)


def _check_quantized(operation: Operation) -> None:
    cell, intermediates = operation.input(CELL), operation.intermediates
    exponent = power_of_two(float(cell.scale[0]))
    if exponent is None or exponent + 15 not in _CELL_BITS:
        scale = f"the scale {float(cell.scale[0]):g} for the cell state {named(cell)}"
        raise Refused(f"has {scale}; it must be a power of two, 2^-15 to 2^-9")
    if operation.input(0).dtype == "int16":
        _check_wide(operation)  # TFLM takes scales from the states
        return
    if len(intermediates) != INTERMEDIATES:
        raise Refused(
            f"has {len(intermediates)} intermediate tensors; LiteRT needs 5, for the quantization of its results"
        )
    result = intermediates[RESULT]
    if result.scale.size != 1 or not result.scale.all():
        raise Refused(f"has no scale for its results in the intermediate tensor {named(result)}")


def _check_wide(operation: Operation) -> None:
    """Check that shifts fit 64 bits (WideLstm's W), and those of M are below 31."""
    try:
        layer = _wide(operation)
    except NoMultiplier as error:
        raise Refused(str(error)) from None
    hidden = operation.input(HIDDEN)
    sides = (
        (operation.input(0), INPUT_WEIGHTS, layer.input_scales),
        (hidden, RECURRENT_WEIGHTS, layer.recurrent_scales),
    )
    for data, positions, scales in sides:
        for at, (_, shift) in zip(positions, scales, strict=True):
            if shift > MOST_SHIFT:
                both = f"{float(data.scale[0]):g} of {named(data)} and {float(operation.input(at).scale[0]):g} of"
                raise Refused(f"has the scales {both} {named(operation.input(at))}; their product must be below 4")
    if layer.scale[1] > 30:
        raise Refused(f"has the scale {float(hidden.scale[0]):g} in {named(hidden)}; it must be above 2^-60")


def _wide(operation: Operation) -> WideLstm:
    _, _, depth, units = sizes(operation)
    scales = [float(operation.input(at).scale[0]) for at in (0, HIDDEN, CELL)]
    weights = [[float(operation.input(at).scale[0]) for at in side] for side in (INPUT_WEIGHTS, RECURRENT_WEIGHTS)]
    options = operation.options(_TABLE)
    return wide_lstm(
        (units, depth),
        (scales[0], scales[1], scales[2]),
        (weights[0], weights[1]),
        options["cell_clip"],
        time_major=options["time_major"],
    )


class Lstm(LstmLayer):
    """An LSTM of int8. h is the hidden state, int8[batch, units], c the cell state, int16.

    For each step, with c [batch, units]:

      g[k]  = clamp(clamp(M(bias[k] + (x - input_zero_point) @ input_weights[k].T, input_scales[k]))
                    + M((h - state_zero_point) @ recurrent_weights[k].T, recurrent_scales[k])), in Q3.12
      c     = clamp(R(c * sigmoid(g[1]), 15) + R(sigmoid(g[0]) * tanh(g[2]), 15 + cell_bits)), within clip, if not 0
      h = y = clamp(M(sigmoid(g[3]) * tanh(c), scale) + output_zero_point)

    R divides by a power of two, halves away from zero; sigmoid and tanh are those of stages.ir.arithmetic.sigmoid16, c
    has `cell_bits` bits before the point; all clamps but the last are int16's. Gates k are input, forget, cell and
    output; scales are (multiplier, shift).
    Constants: input_weights int8[4, units, depth], recurrent_weights int8[4, units, units], bias int32[4, units].
    """

    op: Literal["lstm"] = "lstm"
    input_zero_point: int
    state_zero_point: int
    output_zero_point: int
    input_scales: tuple[tuple[int, int], ...]
    recurrent_scales: tuple[tuple[int, int], ...]
    scale: tuple[int, int]
    cell_bits: int
    clip: int = 0

    def advance(self, view: LayerView, inputs: Sequence[Array], states: Sequence[Array]) -> tuple[Array, list[Array]]:
        """Return the results of all steps, and the new states."""
        shape = (-1, self.units)
        hidden, cell = states[0].reshape(shape).astype(np.int64), states[1].reshape(shape).astype(np.int64)
        results = []
        for x in self.steps(inputs[0].astype(np.int64)):
            hidden, cell = self._step(view, x, hidden, cell)
            results.append(hidden)
        new_states: list[Array] = [
            value.astype(state.dtype).reshape(state.shape) for value, state in zip((hidden, cell), states, strict=True)
        ]
        return np.ascontiguousarray(self.steps(np.stack(results).astype(np.int8))), new_states

    def _step(self, view: LayerView, x: Array, hidden: Array, cell: Array) -> tuple[Array, Array]:
        from stages.ir.arithmetic.sigmoid16 import HIGH, LOW, logistic16, tanh16

        def scaled(sums: Array, scale: tuple[int, int]) -> Array:
            return multiply_by_quantized_multiplier(wrap(sums), *scale, "double")

        gates = []
        for k in range(4):
            weights, recurrent = (view.constant(f"{part}_weights")[k] for part in ("input", "recurrent"))
            ahead = (x - self.input_zero_point) @ weights.T.astype(np.int64) + view.constant("bias")[k]
            back = (hidden - self.state_zero_point) @ recurrent.T.astype(np.int64)
            first = np.clip(scaled(ahead, self.input_scales[k]), LOW, HIGH)
            gates.append(np.clip(first + scaled(back, self.recurrent_scales[k]), LOW, HIGH))
        entering = rounding_divide_by_pot(logistic16(gates[0]) * tanh16(gates[2], 3), 15 + self.cell_bits)
        cell = np.clip(rounding_divide_by_pot(cell * logistic16(gates[1]), 15) + entering, LOW, HIGH)
        cell = np.clip(cell, -self.clip, self.clip) if self.clip else cell
        result = scaled(logistic16(gates[3]) * tanh16(cell, self.cell_bits), self.scale)
        return np.clip(result + self.output_zero_point, -128, 127), cell


class FloatLstm(LstmLayer):
    """As Lstm in float32, without scales; `clip` bounds the cell state, 0 for none."""

    op: Literal["float_lstm"] = "float_lstm"
    approximate: ClassVar[bool] = True
    clip: float = 0.0

    def advance(self, view: LayerView, inputs: Sequence[Array], states: Sequence[Array]) -> tuple[Array, list[Array]]:
        """Return the results of all steps, and the new states."""
        hidden, cell = (state.reshape(-1, self.units) for state in states)
        results = []
        for x in self.steps(inputs[0]):
            i, f, g, o = (
                view.constant("bias")[k]
                + x @ view.constant("input_weights")[k].T
                + hidden @ view.constant("recurrent_weights")[k].T
                for k in range(4)
            )
            cell = sigmoid(f) * cell + sigmoid(i) * np.tanh(g)
            cell = np.clip(cell, -self.clip, self.clip) if self.clip else cell
            hidden = sigmoid(o) * np.tanh(cell)
            results.append(hidden)
        new_states = [results[-1].reshape(states[0].shape), cell.reshape(states[1].shape)]
        return np.ascontiguousarray(self.steps(np.stack(results))), new_states


def _reference(operation: Operation, *arrays: Array | None) -> Sequence[Array]:
    """Results and new states with int16 data."""
    from stages.ir.arithmetic.sigmoid16 import sigmoid_table

    def present(positions: Sequence[int]) -> list[Array]:
        return [array for array in (arrays[at] for at in positions) if array is not None]

    constants = [np.stack(present(side)) for side in (INPUT_WEIGHTS, RECURRENT_WEIGHTS, BIASES)]
    results, states = _wide(operation).sequence(present([0])[0], present([HIDDEN, CELL]), [*constants, sigmoid_table()])
    return [results, *states]


def _model(model: SingleOperatorBuilder, x: FileTensor) -> FileTensor:
    """Weights for which gates use their range without saturation; shape[0] is the steps."""
    spec, depth = model.spec, x.shape[-1]
    units = spec.out_channels or 1
    low, high = model.range(model.quant) if model.quant else (-1.0, 1.0)
    sizes_and_ranges = {"weights": (depth, max(-low, high)), "recurrent": (units, 1.0)}
    scales, parts = [], []
    for name, (size, real) in sizes_and_ranges.items():
        scales.append(float(np.float32(6 / (127 * real * size**0.5))))
        weights = random_weights(spec.seed, name, (4 * units, size), None, 8).reshape(4, units, size)
        parts.append(weights if model.quantized else (weights * np.float32(scales[-1])).astype(np.float32))
    bias = model.bias(4 * units, np.full(4 * units, scales[0] * (model.quant[0] if model.quant else 1))).reshape(
        4, units
    )
    weight_scales = (scales[0], scales[1]) if model.quantized else None
    return model.builder.lstm(
        x, parts[0], parts[1], bias, scales=weight_scales, out=model.output(-1.0, 1.0), name=spec.op
    )


OPERATORS = (
    Operator(
        "UNIDIRECTIONAL_SEQUENCE_LSTM",
        _shapes,
        Tensors(
            (20, 24), types=("int8", "int16", "float32"), optional=(1, 5, 9, 10, 11, 12, 16, 17), state=(HIDDEN, CELL)
        ),
        table=_TABLE,
        quantization=Quantization(check=_check),
        weights=Weights(own=(*INPUT_WEIGHTS, *RECURRENT_WEIGHTS, *BIASES, 9, 10, 11, 16, 17, 20, 21, 22, 23)),
        legalization=Legalization((Lstm, WideLstm, FloatLstm)),
        litert=LiteRT(version=3, misjudged={0: ("int16",)}, reference=_reference),
        model=SingleOperatorModel(_model, frozenset({"out_channels", "output"}), ("out_channels",)),
        limits="3 axes; four gates, no peepholes, projection or layer normalization; integers: the cell state is int16 "
        "with a power-of-two scale; int16 data are computed as in TFLM, since LiteRT lacks them; "
        "import converts BIDIRECTIONAL_SEQUENCE_LSTM to two",
    ),
)
