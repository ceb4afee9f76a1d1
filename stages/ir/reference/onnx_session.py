"""Sessions of ONNX Runtime without optimizations, for graphs and parts of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from stages.ir.arrays import Array
from stages.ir.reference.onnx_products import unsigned_weights
from stages.ir.reference.refusal import RunError
from stages.support.lazy import onnx


def session(model: onnx.ModelProto, name: str) -> Any:
    """Return a single-threaded session of ONNX Runtime that computes each operator separately.

    Sums of integers do not saturate (`stages.ir.reference.onnx_products`). Raises RunError.
    """
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    options.log_severity_level = 4
    try:
        exact = unsigned_weights(model)
        return onnxruntime.InferenceSession(exact.SerializeToString(), options, providers=["CPUExecutionProvider"])
    except Exception as error:  # its exceptions have no other common base
        reason = " ".join(str(error).split())[:300]
        raise RunError(f"ONNX Runtime refuses the model {name}: {reason}") from None


def part_of(model: onnx.ModelProto, goals: Sequence[str], ends: Mapping[str, Array]) -> onnx.ModelProto:
    """Return the part of a graph that computes `goals` from the values `ends`."""
    graph = model.graph
    makers = {name: node for node in graph.node for name in node.output}
    pending, needed, seen = list(goals), set[int](), set[str]()
    while pending:
        name = pending.pop()
        if name in seen or name in ends or name not in makers:
            continue
        seen.update(makers[name].output)
        needed.add(id(makers[name]))
        pending += [constant for constant in makers[name].input if constant]
    nodes = [node for node in graph.node if id(node) in needed]
    used = {name for node in nodes for name in node.input} | {*goals}
    inputs = [
        onnx.helper.make_tensor_value_info(name, onnx.helper.np_dtype_to_tensor_dtype(array.dtype), array.shape)
        for name, array in ends.items()
        if name in used
    ]
    outputs = [onnx.helper.make_empty_tensor_value_info(name) for name in goals]
    constants = [constant for constant in graph.initializer if constant.name in used]
    part = onnx.helper.make_graph(nodes, "part", inputs, outputs, constants)
    imports, version = model.opset_import, model.ir_version
    return onnx.helper.make_model(part, opset_imports=imports, ir_version=version)
