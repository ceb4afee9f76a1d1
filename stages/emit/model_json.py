"""The description of the emitted sources: model.json."""

from collections.abc import Callable, Mapping
from typing import Any

from stages.emit.blob import PORTS
from stages.emit.model import Model
from stages.ir.graph import Layer, Tensor


def model_json(
    model: Model, context: Mapping[str, Any], name: str, flags: Callable[[str], tuple[str, ...]]
) -> dict[str, Any]:
    """Return the content of model.json. `context` has the variables of the templates.

    flags: returns the additional compiler flags of a file in src/.
    """
    graph = model.graph

    def entry(path: str) -> Any:
        return {"path": path, "flags": list(flags(path))} if flags(path) else path

    state = {"state": _state(model, context)} if model.state_offsets else {}
    calls: dict[str, Any] = {}
    if model.plan.groups:
        calls["calls"] = _calls(model)
        calls["rows_cost"] = sum(group.schedule().overhead for group in model.plan.groups)
    if context["sample_rate"]:
        calls["sample_rate"] = context["sample_rate"]
    if context["pushed"]:
        calls["input_rows"] = context["pushed"]["rows"]
    if context["emitted"]:
        calls["output_rows"] = context["emitted"]["rows"]
    return {
        "name": name,
        "prefix": context["prefix"],
        "target": model.plan.target,
        "arena_bytes": model.placed.arena_bytes,
        "arena_lower_bound": model.placed.arena_lower_bound,
        "weights_bytes": model.placed.weights_bytes,
        "blocks": [_block(part, block) for part in ("arenas", "weights") for block in context[part]],
        "inputs": [_port(graph.tensors[n]) for n in graph.inputs],
        "outputs": [_port(graph.tensors[n]) for n in graph.outputs],
        "layers": [_layer(model, layer) for layer in graph.layers],
        "traces": [_trace(model, graph.tensors[t["tensor"]], t) for t in context["traces"]],
        "arena": model.arena_rows(),
        "constants": _constants(model),
        "warnings": list(model.placed.warnings),
        **state,
        **calls,
        "sources": {
            "c": [entry(path) for path in context["c"]],
            "assembly": [entry(path) for path in context["assembly"]],
            "trace": ["model_trace.c"],
        },
    }


def _block(part: str, block: dict[str, Any]) -> dict[str, Any]:
    return {
        "part": {"arenas": "arena", "weights": "weights"}[part],
        "region": block["region"],
        "bytes": block["bytes"],
        "symbol": block["symbol"],
        "section_macro": f"{block['macro']}_SECTION",
        "loaded_from": block["loaded_from"],
        "rules": block["rules"],
    }


def _constants(model: Model) -> list[dict[str, Any]]:
    """Return the address of each constant, by block and offset.

    Constants with equal bytes share an address.
    """
    readers: dict[str, list[int]] = {}
    for index, keys in model.constants_of.items():
        for key in dict.fromkeys(keys):
            readers.setdefault(key, []).append(index)
    return [
        {"name": key, "layers": readers[key], "region": weights.region, "offset": offset, "bytes": weights.sizes[key]}
        for weights in model.placed.weights
        for key, offset in sorted(weights.offsets.items(), key=lambda item: item[1])
        if key != PORTS
    ]


def _state(model: Model, context: Mapping[str, Any]) -> dict[str, Any]:
    tensors = [_port(model.graph.tensors[name]) | {"offset": offset} for name, offset in model.state_offsets.items()]
    return {"symbol": context["state"][0]["symbol"], "bytes": model.state.bytes, "tensors": tensors}


def _port(tensor: Tensor) -> dict[str, Any]:
    return {
        "name": tensor.name,
        "dtype": tensor.dtype,
        "shape": list(tensor.shape),
        "bytes": tensor.bytes,
        "scale": tensor.quant.scale[0] if tensor.quant else None,
        "zero_point": tensor.zero_point if tensor.quant else None,
    }


def _layer(model: Model, layer: Layer) -> dict[str, Any]:
    entry, tensors = model.plan.layers[layer.index], model.graph.tensors
    source, out = tensors[layer.inputs[0]] if layer.inputs else None, tensors[layer.outputs[0]]
    function = model.functions.get(layer.index)
    return {
        "index": layer.index,
        "name": layer.name,
        "op": layer.kind,
        "shape_in": list(source.shape) if source else [],
        "shape_out": list(out.shape),
        "macs": model.graph.macs(layer),
        "cost": entry.cost,
        "kernel": entry.kernel,
        "layout": _layouts(layer, source, out),
        "function": function.name if function else "",
    }


def _layouts(layer: Layer, source: Tensor | None, out: Tensor) -> str:
    """Return the layout `NHWC`, or `NHWC->NCHW` if the layer changes it."""
    before, after = _layout(source) if source else "", _layout(out)
    return after if before == after or not before else f"{before}->{after}"


def _layout(tensor: Tensor) -> str:
    return tensor.layout or ("NHWC" if len(tensor.shape) == 4 else "")


def _calls(model: Model) -> list[list[int]]:
    """Return the calls in order: [layer], or with [layer, trace bytes] for layers by rows.

    [-1, 0] is a row of the input that the caller passes.
    """
    calls: list[list[int]] = []
    starts = {group.first: group for group in model.plan.groups}
    for layer in model.graph.layers:
        if model.plan.layers[layer.index].rows is None:
            calls.append([layer.index])
        if layer.index not in starts:
            continue
        group = starts[layer.index]
        row_bytes = {-1: 0}
        for row_layer in group.layers:
            is_traced = model.graph.tensors[row_layer.output].tflite_index is not None
            row_bytes[row_layer.index] = group.tensors[row_layer.output].row_bytes * is_traced
        if group.sums is not None:
            row_bytes[group.sums.index] = 0
        calls += [[firing.layer, firing.rows * row_bytes[firing.layer]] for firing in group.schedule().firings]
        if group.sums is not None:
            out = model.graph.tensors[group.sums.output]
            calls.append([group.sums.index, out.bytes * (out.tflite_index is not None)])
    return calls


def _trace(model: Model, tensor: Tensor, trace: dict[str, Any]) -> dict[str, Any]:
    layout = next((group.layouts.get(tensor.name) for group in model.plan.groups if tensor.name in group.layouts), None)
    return {
        "layer": trace["layer"],
        "tensor": tensor.name,
        "tflite_index": tensor.tflite_index,
        "dtype": tensor.dtype,
        "added": tensor.added,
        "channels": tensor.channels,
        "shape": list(tensor.shape),
        "layout": layout or tensor.layout,
        "bytes": tensor.bytes,
    }
