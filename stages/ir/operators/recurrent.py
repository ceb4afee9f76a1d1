"""Recurrent layers of float32 with one state: TFLite's simple RNN, and the GRU of ONNX."""

from collections.abc import Callable, Mapping, Sequence
from math import prod
from typing import Any, ClassVar, Literal

from stages.ir.layers import Array, LayerView, Tensor
from stages.ir.naming import named
from stages.ir.operators.declaration import (
    CUSTOM,
    FLOAT,
    Legalization,
    LiteRT,
    Operator,
    Quantization,
    Tensors,
    Weights,
)
from stages.ir.operators.lstm_layers import LstmLayer, sigmoid
from stages.ir.operators.operation import Operation, Refused, Shape, Table, listed
from stages.support.lazy import np

GRU = f"{CUSTOM}GRU"
RNN = "UNIDIRECTIONAL_SEQUENCE_RNN"
# Positions of the file's inputs: data, weights of the data and of the state, biases, state.
INPUT_WEIGHTS, RECURRENT_WEIGHTS, BIAS, HIDDEN = 1, 2, 3, 4
ACTIVATIONS: Mapping[int, str] = {0: "none", 1: "relu", 4: "tanh"}
_TABLE = Table("SequenceRNNOptions", "time_major:bool cell_activation:byte asymmetric_quantize_inputs:bool")


class RecurrentLayer(LstmLayer):
    """Base of layers with one state, h [batch, units]; h after a step is the step's result."""

    approximate: ClassVar[bool] = True
    gates: int

    def macs_of(self, out: Tensor) -> int:
        """Multiply-accumulates of the gates."""
        return out.elements * self.gates * (self.depth + self.units)

    def advance(self, view: LayerView, inputs: Sequence[Array], states: Sequence[Array]) -> tuple[Array, list[Array]]:
        """Return the results of all steps, and the new state."""
        hidden, results = states[0].reshape(-1, self.units), []
        for x in self.steps(inputs[0]):
            hidden = self.step(view.constant, x, hidden)
            results.append(hidden)
        return np.ascontiguousarray(self.steps(np.stack(results))), [hidden.reshape(states[0].shape)]

    def step(self, constant: Callable[[str], Array], x: Array, hidden: Array) -> Array:
        """Return h after one step. constant: by role."""
        raise NotImplementedError


class FloatRnn(RecurrentLayer):
    """h = activation(bias + x @ input_weights.T + h @ recurrent_weights.T).

    Constants: input_weights [units, depth], recurrent_weights [units, units], bias [units], float32.
    """

    op: Literal["float_rnn"] = "float_rnn"
    alias: ClassVar[str] = "rnn"
    gates: Literal[1] = 1
    activation: Literal["none", "relu", "tanh"]

    def step(self, constant: Callable[[str], Array], x: Array, hidden: Array) -> Array:
        """Return h after one step."""
        total = constant("bias") + x @ constant("input_weights").T + hidden @ constant("recurrent_weights").T
        if self.activation == "relu":
            return np.maximum(total, np.float32(0))
        return np.tanh(total) if self.activation == "tanh" else total


class FloatGru(RecurrentLayer):
    """A GRU of float32.

    With a[k] = input_bias[k] + x @ input_weights[k].T, and b[k] as a[k], of h and the recurrent weights and biases:

      z, r = sigmoid(a[0] + b[0]), sigmoid(a[1] + b[1])
      n    = tanh(a[2] + r * b[2])                              reset_after
      n    = tanh(a[2] + b[2]), b[2] of r * h instead of h      otherwise
      h    = (1 - z) * n + z * h

    Constants: input_weights [3, units, depth], recurrent_weights [3, units, units], biases [3, units], float32.
    """

    op: Literal["float_gru"] = "float_gru"
    alias: ClassVar[str] = "gru"
    gates: Literal[3] = 3
    reset_after: bool

    def step(self, constant: Callable[[str], Array], x: Array, hidden: Array) -> Array:
        """Return h after one step."""

        def ahead(k: int) -> Array:
            return constant("input_bias")[k] + x @ constant("input_weights")[k].T

        def back(k: int, h: Array) -> Array:
            return constant("recurrent_bias")[k] + h @ constant("recurrent_weights")[k].T

        update, reset = (sigmoid(ahead(k) + back(k, hidden)) for k in range(2))
        new = np.tanh(ahead(2) + (reset * back(2, hidden) if self.reset_after else back(2, reset * hidden)))
        return (np.float32(1) - update) * new + update * hidden


def gru_options(operation: Operation) -> tuple[bool, bool]:
    """Return (time_major, reset_after) of a GRU. Raises Refused for other options."""
    options = operation.flexbuffer
    names = ("reset_after", "time_major")
    if not isinstance(options, dict) or {*options} != {*names}:
        raise Refused(f"has custom options other than {' and '.join(names)}")
    return bool(options["time_major"]), bool(options["reset_after"])


def _sizes(operation: Operation, gates: int, time_major: bool) -> list[Shape]:
    """Return the shape of the result. Raises Refused for shapes that do not match."""
    data = operation.input(0)
    if len(data.shape) != 3:
        raise Refused(f"has {named(data)} {listed(data.shape)}; it must have 3 axes")
    batch, depth = data.shape[1 if time_major else 0], data.shape[2]
    units = operation.input(RECURRENT_WEIGHTS).shape[-1]
    lead, biases = ((gates,), (2, gates, units)) if gates > 1 else ((), (units,))
    shapes = {INPUT_WEIGHTS: (*lead, units, depth), RECURRENT_WEIGHTS: (*lead, units, units), BIAS: biases}
    for at, shape in shapes.items():
        tensor = operation.input(at)
        if tensor.shape != shape:
            raise Refused(f"has {named(tensor)} {listed(tensor.shape)}; it must be {listed(shape)}")
    state = operation.input(HIDDEN)
    if prod(state.shape) != batch * units:
        raise Refused(f"has the state {named(state)} {listed(state.shape)}; it must hold {listed((batch, units))}")
    return [(*data.shape[:2], units)]


def _check(operation: Operation) -> None:
    for at in (INPUT_WEIGHTS, RECURRENT_WEIGHTS, BIAS, HIDDEN):
        tensor = operation.input(at)
        if tensor.dtype != "float32":
            raise Refused(f"has {named(tensor)} of {tensor.dtype}; it must be float32")
        if at != HIDDEN and tensor.data is None:
            raise Refused(f"computes {named(tensor)}; it must be a constant")


def _check_rnn(operation: Operation) -> None:
    _check(operation)
    activation = operation.options(_TABLE)["cell_activation"]
    if activation not in ACTIVATIONS:
        raise Refused(f"has the activation {activation}; {', '.join(ACTIVATIONS.values())} are supported")


def _gru_reference(operation: Operation, *arrays: Any) -> Sequence[Array]:
    """Return the results and the new state."""
    x, weights, recurrent, bias, hidden = arrays
    time_major, reset_after = gru_options(operation)
    _, units, depth = weights.shape
    layer = FloatGru(depth=depth, units=units, time_major=time_major, reset_after=reset_after)
    roles = {"input_weights": weights, "recurrent_weights": recurrent, "input_bias": bias[0], "recurrent_bias": bias[1]}
    state, results = hidden.reshape(-1, units), []
    for row in layer.steps(x):
        state = layer.step(roles.__getitem__, row, state)
        results.append(state)
    return [np.ascontiguousarray(layer.steps(np.stack(results))), state.reshape(hidden.shape)]


_OWN = Weights(own=(INPUT_WEIGHTS, RECURRENT_WEIGHTS, BIAS))
OPERATORS = (
    Operator(
        GRU,
        lambda operation: _sizes(operation, 3, gru_options(operation)[0]),
        Tensors((5, 5), types=FLOAT, state=(HIDDEN,)),
        quantization=Quantization(quantized=False, check=_check),
        weights=_OWN,
        legalization=Legalization((FloatGru,)),
        litert=LiteRT(version=1, reference=_gru_reference),
        limits="3 axes; import converts ONNX' GRU to it",
    ),
    Operator(
        RNN,
        lambda operation: _sizes(operation, 1, bool(operation.options(_TABLE)["time_major"])),
        Tensors((5, 5), types=FLOAT, state=(HIDDEN,)),
        table=_TABLE,
        quantization=Quantization(quantized=False, check=_check_rnn),
        weights=_OWN,
        legalization=Legalization((FloatRnn,)),
        litert=LiteRT(version=1),
        limits="3 axes; activation NONE, RELU or TANH; import converts BIDIRECTIONAL_SEQUENCE_RNN to two",
    ),
)
