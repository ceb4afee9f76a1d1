"""Run a layer or an integer graph on numpy arrays: the reference for every kernel.

The formulas are in the operators (`compute` in stages.ir.operators). They were written from the arithmetic, not
from the kernels, and tests compare them with LiteRT's reference kernels. Arrays are in logical order (NHWC for images)
for any layout in memory.
"""

from collections.abc import Callable, Mapping, Sequence

import numpy as np

from stages.ir.arrays import Array
from stages.ir.graph import Graph, LayerView, Tensor
from stages.ir.operators.floats import Float
from stages.ir.packed import pack, unpack

FloatFunction = Callable[[LayerView, Sequence[Array]], Array]


def run_layer(view: LayerView, inputs: Sequence[Array], float_function: FloatFunction | None = None) -> Array:
    """Return the output of one layer, in logical order and in the output tensor's dtype.

    Its state is as after a reset.

    inputs          one array per data input, in logical order
    float_function  computes a Float layer

    Raises ValueError for an input of another shape or dtype, and for a Float layer without `float_function`.
    """
    begin = [view.constant("begin")] if "begin" in view.layer.constants else []
    states = [*begin, *(initial(tensor) for tensor in view.states[len(begin) :])]
    return advance_layer(view, inputs, states, float_function)[0]


def advance_layer(
    view: LayerView, inputs: Sequence[Array], states: Sequence[Array], float_function: FloatFunction | None = None
) -> tuple[Array, list[Array]]:
    """Run a layer from `states`; return its output and its new states."""
    layer, out = view.layer, view.outputs[0]
    for tensor, array in zip(view.inputs, inputs, strict=True):
        if array.shape != tensor.shape or str(array.dtype) != tensor.dtype:
            raise ValueError(
                f"layer {layer.name}: input {tensor.name} is {tensor.dtype}{list(tensor.shape)}, "
                f"got {array.dtype}{list(array.shape)}"
            )
    if isinstance(layer.op, Float):
        if float_function is None:
            raise ValueError(f"layer {layer.name}: the integer reference has no float operators ({layer.kind})")
        result, new_states = float_function(view, inputs), list(states)
    else:
        result, new_states = layer.op.advance(view, inputs, states)
    if result.shape != out.shape or str(result.dtype) != out.dtype:
        computed = f"{result.dtype}{list(result.shape)}"
        raise ValueError(f"layer {layer.name}: computed {computed}, expected {out.dtype}{list(out.shape)}")
    return result, new_states


def initial(tensor: Tensor) -> Array:
    """Return the value of a state tensor after a reset."""
    return np.full(tensor.shape, tensor.initial, tensor.dtype)


def run_graph(
    graph: Graph,
    inputs: Sequence[Array] | Mapping[str, Array],
    float_function: FloatFunction | None = None,
    states: Mapping[str, Array] | None = None,
) -> dict[str, Array]:
    """Return all tensors of the graph by name: inputs, constants, state and layer outputs.

    inputs  arrays in logical order, in the order of `graph.inputs` or by name
    states  state tensors of an earlier run; None: after a reset

    Results are in logical order.
    """
    arrays = inputs if isinstance(inputs, Mapping) else dict(zip(graph.inputs, inputs, strict=True))
    values = {name: np.asarray(arrays[name]) for name in graph.inputs}
    for tensor in graph.tensors.values():
        if tensor.constant:
            values[tensor.name] = to_logical(graph.constants[tensor.name], tensor)
        if tensor.state:
            values[tensor.name] = graph.initial_state(tensor.name) if states is None else states[tensor.name]
    for layer in graph.layers:
        operands = [values[name] for name in layer.inputs]
        before = [values[name] if name in values else graph.initial_state(name) for name in layer.state]
        result, after = advance_layer(graph.view(layer), operands, before, float_function)
        values |= {layer.outputs[0]: result, **dict(zip(layer.state, after, strict=True))}
    return values


def to_logical(physical: Array, tensor: Tensor) -> Array:
    """Return an array in memory order (`tensor.layout`, any shape) in logical order."""
    return unpack(physical, tensor.layout, tensor.shape, dtype=tensor.dtype)


def to_physical(logical: Array, tensor: Tensor) -> Array:
    """Return an array in logical order in memory order."""
    return pack(logical, tensor.layout)
