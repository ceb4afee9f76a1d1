"""Runs one layer or a whole integer graph on numpy arrays: what every kernel is tested against.

The formulas are the operators' own (`compute` in stages.ir.operators), written from the arithmetic, not from the
kernels, and themselves held against LiteRT's reference kernels by the tests. Arrays are in logical order (NHWC for
images) whatever the layout of a tensor in memory.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import numpy as np

from stages.ir.arithmetic.fixed_point import Array
from stages.ir.graph import Graph, LayerView, Tensor
from stages.ir.graph.packed import pack, unpack

FloatFunction = Callable[[LayerView, Sequence[Array]], Array]


def run_layer(view: LayerView, inputs: Sequence[Array], float_function: FloatFunction | None = None) -> Array:
    """The output of one layer, in logical order and in the output tensor's dtype.

    inputs: one array per data input, in logical order. A Float layer is computed by `float_function`; without one
    it is a ValueError, as is an input of another shape or dtype than its tensor's.
    """
    return advance_layer(view, inputs, [initial(tensor) for tensor in view.states], float_function)[0]


def advance_layer(
    view: LayerView, inputs: Sequence[Array], states: Sequence[Array], float_function: FloatFunction | None = None
) -> tuple[Array, list[Array]]:
    """As `run_layer`, from `states` on; with what the layer's state is afterwards."""
    layer, out = view.layer, view.outputs[0]
    for tensor, array in zip(view.inputs, inputs, strict=True):
        if array.shape != tensor.shape or str(array.dtype) != tensor.dtype:
            raise ValueError(
                f"layer {layer.name}: input {tensor.name} is {tensor.dtype}{list(tensor.shape)}, "
                f"got {array.dtype}{list(array.shape)}"
            )
    if layer.op.op == "float":
        if float_function is None:
            raise ValueError(f"layer {layer.name}: the integer reference has no float operators ({layer.kind})")
        result, kept = float_function(view, inputs), list(states)
    else:
        result, kept = layer.op.advance(view, inputs, states)
    if result.shape != out.shape or str(result.dtype) != out.dtype:
        made = f"{result.dtype}{list(result.shape)}"
        raise ValueError(f"layer {layer.name}: computed {made}, expected {out.dtype}{list(out.shape)}")
    return result, kept


def initial(tensor: Tensor) -> Array:
    """A tensor of state after a reset."""
    return np.full(tensor.shape, tensor.initial, tensor.dtype)


def run_graph(
    graph: Graph,
    inputs: Sequence[Array] | Mapping[str, Array],
    float_function: FloatFunction | None = None,
    states: Mapping[str, Array] | None = None,
) -> dict[str, Array]:
    """All tensors of the graph by name, in logical order: inputs, constants, state and the output of every layer.

    inputs: arrays in logical order, in the order of `graph.inputs` or by name; states: what an earlier run returned,
    None after a reset.
    """
    given = inputs if isinstance(inputs, Mapping) else dict(zip(graph.inputs, inputs, strict=True))
    values = {name: np.asarray(given[name]) for name in graph.inputs}
    for tensor in graph.tensors.values():
        if tensor.constant:
            values[tensor.name] = to_logical(graph.constants[tensor.name], tensor)
        if tensor.state:
            values[tensor.name] = graph.beginning(tensor.name) if states is None else states[tensor.name]
    for layer in graph.layers:
        given_to = [values[name] for name in layer.inputs]
        made, kept = advance_layer(graph.view(layer), given_to, [values[n] for n in layer.state], float_function)
        values |= {layer.outputs[0]: made, **dict(zip(layer.state, kept, strict=True))}
    return values


def to_logical(physical: Array, tensor: Tensor) -> Array:
    """An array as it lies in memory (`tensor.layout`, any shape) in the tensor's logical order."""
    return unpack(physical, tensor.layout, tensor.shape, dtype=tensor.dtype)


def to_physical(logical: Array, tensor: Tensor) -> Array:
    """An array in logical order as it lies in memory."""
    return pack(logical, tensor.layout)
