"""LSTM, GRU and RNN.

Each direction becomes a layer of TFLite, which keeps its state in variables. An ONNX operator begins each run with the
state of its inputs, so variables are written before the layer and read after it.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from stages.import_model.onnx.operators.movement import reversed_along, slice_view
from stages.import_model.onnx.states import assign, read
from stages.import_model.onnx.translation import Node, Translation, Translator
from stages.import_model.onnx.values import Constant, TensorView, plain_order
from stages.ir.arrays import Array
from stages.ir.models.tflite_writer import Tensor
from stages.ir.operators.operation import Refused, listed

INITIAL_STATE = 5  # position of the first state; the second follows
_LENGTHS, _PEEPHOLES = 4, 7
_DIRECTIONS = {"forward": (False,), "reverse": (True,), "bidirectional": (False, True)}
_DEFAULTS = {"LSTM": ("sigmoid", "tanh", "tanh"), "GRU": ("sigmoid", "tanh"), "RNN": ("tanh",)}
_GATES = {"LSTM": 4, "GRU": 3, "RNN": 1}
_FROM_IOFC = [0, 2, 3, 1]  # ONNX' gates of an LSTM in TFLite's order


@dataclass(frozen=True)
class _Direction:
    """One direction of an operator.

    weights [gates, units, depth], recurrent [gates, units, units], biases of both [2, gates, units]; functions are in
    lower case
    """

    weights: Array
    recurrent: Array
    bias: Array
    functions: tuple[str, ...]

    @property
    def total_bias(self) -> Array:
        """Sum of both biases, [gates, units]."""
        return np.asarray(self.bias[0] + self.bias[1])


# Appends a layer: x as [steps, sequences, depth], its states, its name.
Layer = Callable[[Translation, Node, _Direction, Tensor, list[Tensor], str], Tensor]


def _lstm(t: Translation, node: Node, direction: _Direction, x: Tensor, states: list[Tensor], name: str) -> Tensor:
    arrays = (array[_FROM_IOFC] for array in (direction.weights, direction.recurrent, direction.total_bias))
    return t.builder.lstm(x, *arrays, time_major=True, states=(states[0], states[1]), name=name)


def _gru(t: Translation, node: Node, direction: _Direction, x: Tensor, states: list[Tensor], name: str) -> Tensor:
    arrays = direction.weights, direction.recurrent, direction.bias
    reset_after = bool(node.attributes.get("linear_before_reset", 0))
    return t.builder.gru(x, *arrays, reset_after=reset_after, time_major=True, state=states[0], name=name)


def _rnn(t: Translation, node: Node, direction: _Direction, x: Tensor, states: list[Tensor], name: str) -> Tensor:
    arrays = (array[0] for array in (direction.weights, direction.recurrent, direction.total_bias))
    (activation,) = direction.functions
    return t.builder.rnn(x, *arrays, activation=activation, time_major=True, state=states[0], name=name)


def _translator(layer: Layer, states: int) -> Translator:
    """Return the translator of an operator with so many states."""

    def translate(t: Translation, node: Node) -> None:
        x = t.plain(t.computed(node, 0))
        if len(x.shape) != 3:
            raise Refused(f"reads a tensor of shape {listed(x.shape)}; 3 axes are supported")
        directions = _directions(t, node, x.shape)
        results, ends = [], []
        for at, (backwards, direction) in enumerate(zip(_flags(node), directions, strict=True)):
            label = node.outputs[0] or node.name
            label += f"/direction{at}" if len(directions) > 1 else ""
            batch, units = x.shape[1], direction.recurrent.shape[-1]
            kept = []
            for number in range(states):
                variable = t.builder.variable(f"{label}/state{number}", (batch, units), "float32")
                assign(t, variable, _initial(t, node, number, at, (len(directions), batch, units)))
                kept.append(variable)
            rows = reversed_along(t, x, [0], f"{label}/reversed") if backwards else x
            y = TensorView.of(layer(t, node, direction, rows.tensor, kept, label), plain_order(3))
            results.append(reversed_along(t, y, [0], f"{label}/forwards") if backwards else y)
            ends.append(
                [TensorView.of(read(t, variable, f"{label}/end{n}"), (0, 1)) for n, variable in enumerate(kept)]
            )
        _bind(t, node, 0, results, 1)
        for number in range(states):
            _bind(t, node, 1 + number, [end[number] for end in ends], 0)

    return translate


def _flags(node: Node) -> tuple[bool, ...]:
    """Return for each direction whether it runs backwards."""
    name = str(node.attributes.get("direction", "forward")).lower()
    if name not in _DIRECTIONS:
        raise Refused(f"has the direction '{name}'; {', '.join(_DIRECTIONS)} are supported")
    return _DIRECTIONS[name]


def _directions(t: Translation, node: Node, shape: Sequence[int]) -> list[_Direction]:
    """Return the directions.

    Raises Refused for weights of other shapes and for unsupported options.
    """
    flags, gates, depth = _flags(node), _GATES[node.op], shape[2]
    functions = _functions(node, len(flags))
    weights, recurrent = t.constant(node, 1, "its weights"), t.constant(node, 2, "its recurrent weights")
    if recurrent.ndim != 3:
        raise Refused(f"has recurrent weights of shape {listed(recurrent.shape)}; they must have 3 axes")
    units = recurrent.shape[-1]
    bias = t.constant(node, 3, "its bias") if node.has(3) else np.zeros((len(flags), 2 * gates * units), np.float32)
    expected = (
        ("weights", weights, (len(flags), gates * units, depth)),
        ("recurrent weights", recurrent, (len(flags), gates * units, units)),
        ("a bias", bias, (len(flags), 2 * gates * units)),
    )
    for what, array, wanted in expected:
        if array.shape != wanted:
            raise Refused(f"has {what} of shape {listed(array.shape)}; it must be {listed(wanted)}")
    if node.attributes.get("layout"):
        raise Refused("has layout 1 (sequences first), which ONNX Runtime does not have", "Transpose its tensors.")
    if node.attributes.get("clip"):
        raise Refused(f"has clip {node.attributes['clip']:g}, which is not supported")
    if node.attributes.get("input_forget"):
        raise Refused("couples input and forget gate (input_forget), which is not supported")
    if node.op == "LSTM" and node.has(_PEEPHOLES) and t.constant(node, _PEEPHOLES, "its peepholes").any():
        raise Refused("has peepholes, which are not supported")
    steps = shape[0]
    if node.has(_LENGTHS):
        lengths = t.constant_integers(node, _LENGTHS, "the lengths of its sequences")
        if {*lengths} != {steps}:
            raise Refused(f"has sequences of {listed(lengths)} steps; all must have the {steps} steps of the input")
    parts = (
        weights.reshape(-1, gates, units, depth),
        recurrent.reshape(-1, gates, units, units),
        bias.reshape(-1, 2, gates, units),
    )
    return [_Direction(*arrays, functions[at]) for at, arrays in enumerate(zip(*parts, strict=True))]


def _functions(node: Node, count: int) -> list[tuple[str, ...]]:
    """Return the activations of each direction.

    Raises Refused unless they are the defaults, or Relu of an RNN.
    """
    default = _DEFAULTS[node.op]
    values = node.attributes.get("activations", [])
    stated = [name.decode(errors="replace") if isinstance(name, bytes) else str(name) for name in values]
    names = tuple(name.lower() for name in stated) or default * count
    functions = [names[at * len(default) : (at + 1) * len(default)] for at in range(count)]
    allowed = (("tanh",), ("relu",)) if node.op == "RNN" else (default,)
    if len(names) != count * len(default) or not all(entry in allowed for entry in functions):
        raise Refused(
            f"has the activations {', '.join(stated)}; {' or '.join(', '.join(f) for f in allowed)} is supported"
        )
    return functions


def _initial(t: Translation, node: Node, number: int, direction: int, shape: tuple[int, int, int]) -> Tensor:
    """Return the state before the first step, [sequences, units].

    shape: directions, sequences, units. Raises Refused for another one.
    """
    position, name = INITIAL_STATE + number, f"{node.outputs[0] or node.name}/initial{number}_{direction}"
    if not node.has(position):
        return t.builder.constant(name, np.zeros(shape[1:], np.float32))
    value = t.value(node, position)
    state = value.real_values if isinstance(value, Constant) else t.plain(t.computed(node, position))
    if tuple(state.shape) != shape:
        raise Refused(f"has the initial state {listed(state.shape)}; it must be {listed(shape)}")
    if not isinstance(state, TensorView):
        return t.builder.constant(name, np.ascontiguousarray(state[direction]))
    if shape[0] > 1:
        state = slice_view(t, name, state, [slice(direction, direction + 1), slice(None), slice(None)])
    return t.builder.reshape(state.tensor, shape[1:], name=f"{name}/rows")


def _bind(t: Translation, node: Node, number: int, parts: list[TensorView], axis: int) -> None:
    """Bind a result, if it is used. `axis` is the axis of directions."""
    name = node.outputs[number] if number < len(node.outputs) else ""
    if not name or not (t.readers[name] or name in t.outputs):
        return
    shape = (*parts[0].shape[:axis], 1, *parts[0].shape[axis:])
    if len(parts) == 1:
        t.bind(name, TensorView(parts[0].tensor, parts[0].base, shape, parts[0].order))
        return
    tensors = [t.builder.reshape(part.tensor, shape, name=f"{name}/part{at}") for at, part in enumerate(parts)]
    t.bind(name, TensorView.of(t.builder.concatenation(tensors, axis, name=name), plain_order(len(shape))))


TRANSLATORS: dict[str, Translator] = {
    "GRU": _translator(_gru, 1),
    "LSTM": _translator(_lstm, 2),
    "RNN": _translator(_rnn, 1),
}
