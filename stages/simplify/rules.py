"""Layers that need not be there, each by a rule of its own: a function of the graph and one of its layers.

A rule gives the graph without the work, and in words what that was; None where it is not for the layer. Every value
that the caller sees is the same, bit for bit.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np

from stages.arithmetic.fixed_point import Array
from stages.graph import Activation, Graph, Layer, LayerView, Move, Pool2D, Tensor
from stages.operators.channels import Reach
from stages.simplify.edits import is_private, merged, replaced, without_unread, writer
from stages.simplify.reach import BYTES
from stages.simplify.rewrites import Rewrite

Reaches = Mapping[str, Reach]
Rule = Callable[[Graph, Reaches, Layer], tuple[Graph, str] | None]

# TFLite has activations in them: whatever their bounds, kernels clamp.
_ACTIVATED = ("conv2d", "depthwise_conv2d", "fully_connected", "add", "sub", "mul", "avg_pool2d", "max_pool2d")


def identity(graph: Graph, reach: Reaches, layer: Layer) -> tuple[Graph, str] | None:
    """A layer that gives what it gets, for all that it can get."""
    view = graph.view(layer)
    x, out = view.inputs[0], view.outputs[0]
    if len(view.inputs) > 1 or (x.shape, x.dtype) != (out.shape, out.dtype) or not _lie_alike(x, out):
        return None
    if not _copies(view, reach):
        return None
    made = merged(graph, layer, x.name)
    return None if made is None else (made, "gives what it gets")


def _copies(view: LayerView, reach: Reaches) -> bool:
    op, x = view.op, view.inputs[0]
    if isinstance(op, Move):
        ramp = np.arange(x.elements).reshape(x.shape)
        return op.kind != "layout" and bool((op.compute(view, ramp) == ramp).all())
    if isinstance(op, Pool2D):
        own = reach.get(x.name)
        if own is None:
            return False
        return op.kernel == op.stride == (1, 1) and own.least.min() >= op.act_min and own.most.max() <= op.act_max
    table = table_of(view)
    if table is None:
        return False
    low, high = _span(reach[x.name])
    first = _first(x)
    return bool((table[low - first : high - first + 1] == np.arange(low, high + 1)).all())


def clamp(graph: Graph, reach: Reaches, layer: Layer) -> tuple[Graph, str] | None:
    """A function that only clamps what it can get is the clamp of the layer before it."""
    view = graph.view(layer)
    before = writer(graph, layer.inputs[0])
    table = table_of(view)
    if table is None or before is None or not _clamps(before) or not is_private(graph, layer.inputs[0]):
        return None
    x, out = view.inputs[0], view.outputs[0]
    if x.dtype != out.dtype or not _lie_alike(x, out) or layer.wanted is not None:
        return None
    (low, high), first = _span(reach[x.name]), _first(x)
    own = table[low - first : high - first + 1].astype(np.int64)
    least, most = int(own.min()), int(own.max())
    if not (own == np.arange(low, high + 1).clip(least, most)).all():
        return None
    bounds = {name: int(np.clip(getattr(before.op, name), least, most)) for name in ("act_min", "act_max")}
    clamped = before.model_copy(update={"op": before.op.model_copy(update=bounds), "outputs": layer.outputs})
    layers = [clamped if other is before else other for other in graph.layers if other is not layer]
    tensors = {name: tensor for name, tensor in graph.tensors.items() if name != x.name}
    made = Graph(tensors, layers, graph.inputs, graph.outputs, graph.constants)
    return without_unread(made), f"is the clamp of the {before.kind} before it"


def _clamps(layer: Layer) -> bool:
    """Whether its kernels clamp; those of steps have the bounds in them."""
    return layer.op.op in _ACTIVATED and getattr(layer.op, "rounding", "") != "steps"


def tables(graph: Graph, reach: Reaches, layer: Layer) -> tuple[Graph, str] | None:
    """Functions of one 8-bit number after each other are one, and so is a sum with, or a product by, one number."""
    view, own = graph.view(layer), table_of(graph.view(layer))
    if own is None:
        return None
    data = next(name for name in layer.inputs if not graph.tensors[name].constant)
    before = writer(graph, data)
    inner = table_of(graph.view(before)) if before is not None and is_private(graph, data) else None
    if before is not None and inner is not None:
        source = next(name for name in before.inputs if not graph.tensors[name].constant)
        if not _lie_alike(graph.tensors[source], view.outputs[0]):
            return None
        table = own[inner.astype(np.int64) - _first(graph.tensors[data])]
        made = replaced(graph, layer, _activation(layer), (source,), {"table": table})
        return made, f"is one table with the {before.kind} before it"
    if isinstance(layer.op, Activation) or not _lie_alike(graph.tensors[data], view.outputs[0]):
        return None
    made = replaced(graph, layer, _activation(layer), (data,), {"table": own})
    return made, "has one number for an operand: a table"


def _activation(layer: Layer) -> Activation:
    return layer.op if isinstance(layer.op, Activation) else Activation(function="requantize")


def movement(graph: Graph, reach: Reaches, layer: Layer) -> tuple[Graph, str] | None:
    """Two movements of the same kind after each other are one."""
    op, before = layer.op, writer(graph, layer.inputs[0])
    if not isinstance(op, Move) or before is None or not isinstance(before.op, Move):
        return None
    x, inner, out = (graph.tensors[name] for name in (before.inputs[0], layer.inputs[0], layer.outputs[0]))
    if any(not tensor.lies_as(_rows(tensor)) for tensor in (x, inner, out)) or inner.name in graph.outputs:
        return None
    kinds = (before.op.kind, op.kind)
    if kinds == ("transpose", "transpose"):
        params = {"permutation": [before.op.params["permutation"][axis] for axis in op.params["permutation"]]}
    elif kinds == ("pad", "pad") and before.op.params["value"] == op.params["value"] and is_private(graph, inner.name):
        params = {
            side: [a + b for a, b in zip(before.op.params[side], op.params[side], strict=True)]
            for side in ("before", "after")
        } | {"value": op.params["value"]}
    elif {*kinds} <= {"reshape", "squeeze"}:
        params = {}
    else:
        return None
    made = replaced(graph, layer, op.model_copy(update={"params": params}), (x.name,), {})
    return made, f"is one {op.kind} with the one before it"


def duplicate(graph: Graph, reach: Reaches, layer: Layer) -> tuple[Graph, str] | None:
    """A layer that computes what one before it has computed."""
    (out,) = (graph.tensors[name] for name in layer.outputs)
    for other in graph.layers[: layer.index]:
        if (other.op, other.inputs) != (layer.op, layer.inputs) or other.state or layer.op.op == "float":
            continue
        twin = graph.tensors[other.outputs[0]]
        alike = (twin.shape, twin.dtype, twin.layout, twin.quant) == (out.shape, out.dtype, out.layout, out.quant)
        if alike and _same_constants(graph, layer, other) and out.name not in graph.outputs:
            made = merged(graph, layer, twin.name)
            return None if made is None else (made, "is computed already")
    return None


def _same_constants(graph: Graph, one: Layer, other: Layer) -> bool:
    if one.constants.keys() != other.constants.keys():
        return False
    pairs = ((graph.constants[name], graph.constants[other.constants[role]]) for role, name in one.constants.items())
    return all(a.dtype == b.dtype and np.array_equal(a, b) for a, b in pairs)


def table_of(view: LayerView) -> Array | None:
    """A layer as 256 outputs, for each value of its 8-bit input from the least; None where it is no such function.

    Of two operands one may be a constant of one number.
    """
    data = [tensor for tensor in view.inputs if not tensor.constant]
    (out,) = view.outputs
    if len(data) != 1 or not {data[0].dtype, out.dtype} <= {*BYTES} or data[0].shape != out.shape:
        return None
    if isinstance(view.op, Activation):
        return view.constant("table")
    if not view.op.by_element:
        return None
    inputs = []
    for tensor in view.inputs:
        values = view.arrays[tensor.name] if tensor.constant else np.arange(256) + _first(tensor)
        if tensor.constant and len(np.unique(values)) != 1:
            return None
        inputs.append(values.reshape(-1)[:1] if tensor.constant else values)
    table: Array = view.op.compute(view, *inputs)
    return table


def _first(tensor: Tensor) -> int:
    return int(np.iinfo(tensor.dtype).min)


def _span(reach: Reach) -> tuple[int, int]:
    return int(reach.least.min()), int(reach.most.max())


def _lie_alike(one: Tensor, other: Tensor) -> bool:
    return one.lies_as(other.layout or _rows(other))


def _rows(tensor: Tensor) -> str:
    """The order of the logical axes."""
    return "NHWC" if len(tensor.shape) == 4 else ""


RULES: Mapping[str, Rule] = {
    "identity": identity,
    "clamp": clamp,
    "tables": tables,
    "movement": movement,
    "duplicate": duplicate,
}


def rewritten(layer: Layer, rule: str, what: str) -> Rewrite:
    return Rewrite(rule=rule, layers=(layer.name,), what=f"{layer.kind} {what}")
