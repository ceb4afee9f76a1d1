"""Sessions of ONNX Runtime that compute each operator as it stands, of graphs and of parts of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from stages.ir.reference.interpreter import Array
from stages.ir.reference.onnx_products import unsigned_weights
from stages.ir.reference.refusal import RunError

if TYPE_CHECKING:
    import onnx


def session(model: onnx.ModelProto, name: str) -> Any:
    """A session of ONNX Runtime on one thread that computes each operator as it stands. Raises RunError.

    Sums of integers do not saturate (`stages.ir.reference.onnx_products`).
    """
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    options.log_severity_level = 4
    try:
        exact = unsigned_weights(model)
        return onnxruntime.InferenceSession(exact.SerializeToString(), options, providers=["CPUExecutionProvider"])
    except Exception as error:  # its exceptions have no common base but this one
        reason = " ".join(str(error).split())[:300]
        raise RunError(f"ONNX Runtime refuses the model {name}: {reason}") from None


def part_of(model: onnx.ModelProto, goals: Sequence[str], ends: Mapping[str, Array]) -> onnx.ModelProto:
    """The part of a graph that computes `goals` from those of the values `ends` that it needs."""
    import onnx

    graph = model.graph
    makers = {name: node for node in graph.node for name in node.output}
    wanted, needed, seen = list(goals), set[int](), set[str]()
    while wanted:
        name = wanted.pop()
        if name in seen or name in ends or name not in makers:
            continue
        seen.update(makers[name].output)
        needed.add(id(makers[name]))
        wanted += [one for one in makers[name].input if one]
    nodes = [node for node in graph.node if id(node) in needed]
    used = {name for node in nodes for name in node.input} | {*goals}
    inputs = [
        onnx.helper.make_tensor_value_info(name, onnx.helper.np_dtype_to_tensor_dtype(array.dtype), array.shape)
        for name, array in ends.items()
        if name in used
    ]
    outputs = [onnx.helper.make_empty_tensor_value_info(name) for name in goals]
    constants = [one for one in graph.initializer if one.name in used]
    part = onnx.helper.make_graph(nodes, "part", inputs, outputs, constants)
    imports, version = model.opset_import, model.ir_version
    return onnx.helper.make_model(part, opset_imports=imports, ir_version=version)
