"""Simplification rules: functions of the graph and one of its layers.

A rule returns the simpler graph and a description, or None if it does not apply. All values that the caller sees stay
the same, bit for bit.
"""

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from stages.ir.arrays import Array
from stages.ir.graph import Activation, Dequantize, Graph, Layer, LayerView, Move, Pool2D, Quantize, Tensor
from stages.ir.layers.channels import ValueRange
from stages.ir.operators.casting import Cast
from stages.ir.operators.floats import Float
from stages.ir.operators.int32 import IntegerSteps, WideInteger
from stages.lower.simplify.edits import is_private, merged, readers, replaced, without_unread, writer
from stages.lower.simplify.filter_bank_bins import bins
from stages.lower.simplify.rewrites import Rewrite
from stages.lower.simplify.value_ranges import BYTES

Ranges = Mapping[str, ValueRange]
Rule = Callable[[Graph, Ranges, Layer], tuple[Graph, str] | None]

# Operators with a fused activation: their kernels always clamp.
_ACTIVATED = ("conv2d", "depthwise_conv2d", "fully_connected", "add", "sub", "mul", "avg_pool2d", "max_pool2d")
# Operators that add the output's zero point in their last step.
_ADDING = ("conv2d", "depthwise_conv2d", "fully_connected", "add", "sub", "mul")
# Operators that first subtract their inputs' zero points, also from padding.
_READING = (*_ADDING, "mean")


def identity(graph: Graph, ranges: Ranges, layer: Layer) -> tuple[Graph, str] | None:
    """Remove a layer whose output equals its input for all possible inputs."""
    view = graph.view(layer)
    x, out = view.inputs[0], view.outputs[0]
    if len(view.inputs) > 1 or (x.shape, x.dtype) != (out.shape, out.dtype) or not _lie_alike(x, out):
        return None
    if not _copies(view, ranges):
        return None
    graph_without = merged(graph, layer, x.name)
    return None if graph_without is None else (graph_without, "returns its input unchanged")


def _copies(view: LayerView, ranges: Ranges) -> bool:
    op, x = view.op, view.inputs[0]
    if isinstance(op, Move):
        ramp = np.arange(x.elements).reshape(x.shape)
        return op.kind != "layout" and bool((op.compute(view, ramp) == ramp).all())
    if isinstance(op, Pool2D):
        value_range = ranges.get(x.name)
        if value_range is None:
            return False
        return (
            op.kernel == op.stride == (1, 1)
            and value_range.least.min() >= op.act_min
            and value_range.most.max() <= op.act_max
        )
    table = table_of(view)
    if table is None:
        return False
    low, high = _span(ranges[x.name])
    first = _first(x)
    return bool((table[low - first : high - first + 1] == np.arange(low, high + 1)).all())


def clamp(graph: Graph, ranges: Ranges, layer: Layer) -> tuple[Graph, str] | None:
    """Fold a layer that only clamps into the clamp of the layer before it.

    It may also add an integer, if the layer before it adds its zero point last.
    """
    view = graph.view(layer)
    before = writer(graph, layer.inputs[0])
    table = table_of(view)
    if table is None or before is None or not _clamps(before) or not is_private(graph, layer.inputs[0]):
        return None
    x, out = view.inputs[0], view.outputs[0]
    if x.dtype != out.dtype or not _lie_alike(x, out) or layer.wanted is not None:
        return None
    op: Any = before.op
    low, high = _span(ranges[x.name])
    values = table[low - _first(x) : high - _first(x) + 1].astype(np.int64)
    least, most = int(values.min()), int(values.max())
    added = _added(values, low)
    if added is None or (added and (op.op not in _ADDING or not _within(op.output_zero_point + added, out))):
        return None
    changed = {name: int(np.clip(getattr(op, name) + added, least, most)) for name in ("act_min", "act_max")}
    changed["output_zero_point"] = op.output_zero_point + added
    clamped = before.model_copy(update={"op": op.model_copy(update=changed), "outputs": layer.outputs})
    layers = [clamped if other is before else other for other in graph.layers if other is not layer]
    tensors = {name: tensor for name, tensor in graph.tensors.items() if name != x.name}
    changed_graph = Graph(tensors, layers, graph.inputs, graph.outputs, graph.constants)
    which = "zero point and the clamp" if added else "clamp"
    return without_unread(changed_graph), f"is the {which} of the {before.kind} before it"


def _added(values: Array, low: int) -> int | None:
    """Return the integer whose sum with the input, clamped, is the function; None without.

    If several qualify, the one closest to 0.
    """
    inputs = np.arange(low, low + len(values))
    for added in sorted({*(values - inputs).tolist()}, key=abs):
        if (values == (inputs + added).clip(values.min(), values.max())).all():
            return int(added)
    return None


def _within(value: int, tensor: Tensor) -> bool:
    limits = np.iinfo(tensor.dtype)
    return bool(limits.min <= value <= limits.max)


def zero_point(graph: Graph, ranges: Ranges, layer: Layer) -> tuple[Graph, str] | None:
    """Fold a layer that only adds an integer into the zero points of its readers."""
    view, table = graph.view(layer), table_of(graph.view(layer))
    if table is None or layer.wanted is not None or layer.outputs[0] in graph.outputs:
        return None
    name = next(name for name in layer.inputs if not graph.tensors[name].constant)
    x, out = graph.tensors[name], view.outputs[0]
    (low, high), behind = _span(ranges[name]), readers(graph, out.name)
    values = table[low - _first(x) : high - _first(x) + 1].astype(np.int64)
    added = int(values[0]) - low
    shared = out.alias_of or any(tensor.alias_of == out.name for tensor in graph.tensors.values())
    if x.dtype != out.dtype or not _lie_alike(x, out) or shared or (values != np.arange(low, high + 1) + added).any():
        return None
    layers = list(graph.layers)
    for reader in behind:
        if reader.op.op not in _READING or len(reader.outputs) != 1 or reader.state:
            return None
        moves = [-added if input_name == out.name else 0 for input_name in reader.inputs]
        shifted = reader.op.shifted(graph.view(reader), moves, 0)
        points = (
            ()
            if shifted is None
            else getattr(shifted.op, "zero_points", (getattr(shifted.op, "input_zero_point", None),))
        )
        if shifted is None or shifted.constants or not all(point is not None and _within(point, x) for point in points):
            return None
        inputs = tuple(name if input_name == out.name else input_name for input_name in reader.inputs)
        layers[reader.index] = reader.model_copy(update={"op": shifted.op, "inputs": inputs})
    kinds = " and ".join(dict.fromkeys(reader.kind for reader in behind))
    return without_unread(replace(graph, layers=layers)), f"is another zero point of the {kinds} behind it"


def unbounded(graph: Graph, ranges: Ranges, layer: Layer) -> tuple[Graph, str] | None:
    """Widen a clamp that never acts to the type's limits."""
    op: Any = layer.op
    (out,) = graph.view(layer).outputs
    if not _clamps(layer) or any(name not in ranges for name in (*layer.inputs, out.name)):
        return None
    limits = np.iinfo(out.dtype)
    wide = op.model_copy(update={"act_min": int(limits.min), "act_max": int(limits.max)})
    changed = layer.model_copy(update={"op": wide})
    result_range = wide.value_range(replace(graph.view(layer), layer=changed), [ranges[name] for name in layer.inputs])
    if result_range is None:
        return None
    low, high = _span(result_range)
    bounds = {
        "act_min": int(limits.min) if low >= op.act_min else op.act_min,
        "act_max": int(limits.max) if high <= op.act_max else op.act_max,
    }
    if (bounds["act_min"], bounds["act_max"]) == (op.act_min, op.act_max):
        return None
    freed = layer.model_copy(update={"op": op.model_copy(update=bounds)})
    changed_graph = replace(graph, layers=[freed if other is layer else other for other in graph.layers])
    ends = "at neither end" if low >= op.act_min and high <= op.act_max else "at one end only"
    return changed_graph, f"gives {low} to {high} by itself: its clamp to {op.act_min} and {op.act_max} acts {ends}"


def _clamps(layer: Layer) -> bool:
    """Return whether the layer's kernels clamp by its bounds.

    Kernels of steps have their bounds built in.
    """
    return layer.op.op in _ACTIVATED and getattr(layer.op, "rounding", "") != "steps"


def tables(graph: Graph, ranges: Ranges, layer: Layer) -> tuple[Graph, str] | None:
    """Merge functions of one 8-bit value into one table, also those with a constant operand."""
    view, own_table = graph.view(layer), table_of(graph.view(layer))
    if own_table is None:
        return None
    data = next(name for name in layer.inputs if not graph.tensors[name].constant)
    before = writer(graph, data)
    inner = table_of(graph.view(before)) if before is not None and is_private(graph, data) else None
    if before is not None and inner is not None:
        source = next(name for name in before.inputs if not graph.tensors[name].constant)
        if not _lie_alike(graph.tensors[source], view.outputs[0]):
            return None
        table = own_table[inner.astype(np.int64) - _first(graph.tensors[data])]
        changed_graph = replaced(graph, layer, _activation(layer), (source,), {"table": table})
        return changed_graph, f"is one table with the {before.kind} before it"
    if isinstance(layer.op, Activation) or not _lie_alike(graph.tensors[data], view.outputs[0]):
        return None
    changed_graph = replaced(graph, layer, _activation(layer), (data,), {"table": own_table})
    return changed_graph, "has one number for an operand: a table"


def floats(graph: Graph, ranges: Ranges, layer: Layer) -> tuple[Graph, str] | None:
    """Merge DEQUANTIZE and QUANTIZE into one table."""
    before = writer(graph, layer.inputs[0])
    if not isinstance(layer.op, Quantize) or before is None or not isinstance(before.op, Dequantize):
        return None
    x, out = graph.tensors[before.inputs[0]], graph.tensors[layer.outputs[0]]
    if not {x.dtype, out.dtype} <= {*BYTES} or not _lie_alike(x, out):
        return None
    numbers = before.op.compute(graph.view(before), np.arange(256) + _first(x))
    table = layer.op.compute(graph.view(layer), numbers)
    changed_graph = replaced(graph, layer, _activation(layer), (x.name,), {"table": table})
    return changed_graph, "is one table with the dequantize before it"


def steps(graph: Graph, ranges: Ranges, layer: Layer) -> tuple[Graph, str] | None:
    """Merge consecutive int32 arithmetic with constants, and its casts."""
    before, own = writer(graph, layer.inputs[0]), _steps_of(graph, layer)
    inner = None if before is None else _steps_of(graph, before)
    if before is None or own is None or inner is None or not own + inner:
        return None
    source, between, out = (graph.tensors[name] for name in (before.inputs[0], layer.inputs[0], layer.outputs[0]))
    if between.dtype != "int32" or not is_private(graph, between.name) or out.alias_of or not _lie_alike(source, out):
        return None
    changed_graph = replaced(graph, layer, IntegerSteps(steps=inner + own), (source.name,), {})
    return changed_graph, f"is merged into the {before.kind} before it"


def _steps_of(graph: Graph, layer: Layer) -> tuple[tuple[str, int], ...] | None:
    """Return the steps on one input, () for a cast; None for other layers and types."""
    op = layer.op
    types = {graph.tensors[name].dtype for name in (*layer.inputs, *layer.outputs)}
    if (
        len(layer.inputs) != 1
        or not types <= {"int8", "uint8", "int16", "int32"}
        or graph.tensors[layer.inputs[0]].constant
    ):
        return None
    if isinstance(op, Cast):
        return ()
    if isinstance(op, WideInteger) and op.value is not None:
        return ((op.named, op.value),)
    return op.steps if isinstance(op, IntegerSteps) else None


def _activation(layer: Layer) -> Activation:
    return layer.op if isinstance(layer.op, Activation) else Activation(function="requantize")


def movement(graph: Graph, ranges: Ranges, layer: Layer) -> tuple[Graph, str] | None:
    """Merge two consecutive movements of the same kind."""
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
    changed_graph = replaced(graph, layer, op.model_copy(update={"params": params}), (x.name,), {})
    return changed_graph, f"is one {op.kind} with the one before it"


def duplicate(graph: Graph, ranges: Ranges, layer: Layer) -> tuple[Graph, str] | None:
    """Remove a layer that computes the same as an earlier one."""
    (out,) = (graph.tensors[name] for name in layer.outputs)
    for other in graph.layers[: layer.index]:
        if (other.op, other.inputs) != (layer.op, layer.inputs) or other.state or isinstance(layer.op, Float):
            continue
        if any(name in between.state for name in layer.inputs for between in graph.layers[other.index : layer.index]):
            continue  # the state that both read was written in between
        twin = graph.tensors[other.outputs[0]]
        alike = (twin.shape, twin.dtype, twin.layout, twin.quant) == (out.shape, out.dtype, out.layout, out.quant)
        if alike and _same_constants(graph, layer, other) and out.name not in graph.outputs:
            changed_graph = merged(graph, layer, twin.name)
            return None if changed_graph is None else (changed_graph, "is computed already")
    return None


def _same_constants(graph: Graph, first: Layer, second: Layer) -> bool:
    if first.constants.keys() != second.constants.keys():
        return False
    pairs = ((graph.constants[name], graph.constants[second.constants[role]]) for role, name in first.constants.items())
    return all(a.dtype == b.dtype and np.array_equal(a, b) for a, b in pairs)


def table_of(view: LayerView) -> Array | None:
    """Return the layer's 256 outputs from the least 8-bit input on; None without a table.

    None if the output does not depend on one 8-bit value alone. One of two operands may be a constant of one value.
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
    table: Array = view.op.compute(view, *inputs).astype(out.dtype)
    return table


def _first(tensor: Tensor) -> int:
    return int(np.iinfo(tensor.dtype).min)


def _span(ranges: ValueRange) -> tuple[int, int]:
    return int(ranges.least.min()), int(ranges.most.max())


def _lie_alike(x: Tensor, y: Tensor) -> bool:
    return x.lies_as(y.layout or _rows(y))


def _rows(tensor: Tensor) -> str:
    """Return the layout of the logical axis order."""
    return "NHWC" if len(tensor.shape) == 4 else ""


RULES: Mapping[str, Rule] = {
    "identity": identity,
    "clamp": clamp,
    "zero_point": zero_point,
    "tables": tables,
    "floats": floats,
    "movement": movement,
    "steps": steps,
    "duplicate": duplicate,
    "unbounded": unbounded,
    "bins": bins,
}


def rewritten(layer: Layer, rule: str, what: str) -> Rewrite:
    """Return the description of a rule's change."""
    return Rewrite(rule=rule, layers=(layer.name,), what=f"{layer.kind} {what}")
