"""Make ONNX Runtime's integer products exact on every processor.

On x86 without VNNI, ONNX Runtime multiplies uint8 activations by int8 weights with `vpmaddubsw`, which saturates the
sum of two products at 16 bits. Its option `session.x64quantprecision` avoids this, but its optimizations change other
results. So this module changes the model: a weight w with zero point z becomes w + 128 with z + 128, both uint8. Sums
stay equal.
"""

from __future__ import annotations

import numpy as np

from stages.support.lazy import onnx

# Positions of weights and their zero point among an operator's inputs. Activations are input 0, their zero
# point is input 2.
_POSITIONS = {
    ("", "QLinearConv"): (3, 5),
    ("", "QLinearMatMul"): (3, 5),
    ("com.microsoft", "QGemm"): (3, 5),
    ("", "ConvInteger"): (1, 3),
    ("", "MatMulInteger"): (1, 3),
}
_OFFSET, _POINT = "firmline/offset", "firmline/zero_point"


def unsigned_weights(model: onnx.ModelProto) -> onnx.ModelProto:
    """Return the model with uint8 weights where activations are uint8 and weights int8.

    The model itself if there are none. It must not have local functions. Raises errors of `onnx` for an invalid model.
    """
    candidates = [node for node in model.graph.node if _kind(node) in _POSITIONS]
    types = _types(model) if candidates else {}
    mixed = {
        node.output[0]
        for node in candidates
        if _type_of(node, 0, 2, types) == onnx.TensorProto.UINT8
        and _type_of(node, *_POSITIONS[_kind(node)], types) == onnx.TensorProto.INT8
    }
    if not mixed:
        return model
    changed = onnx.ModelProto()
    changed.CopyFrom(model)
    nodes: list[onnx.NodeProto] = []
    for node in changed.graph.node:
        if mixed.intersection(node.output):
            nodes += _unsigned(node)
        nodes.append(node)
    copies = [onnx.NodeProto.FromString(node.SerializeToString()) for node in nodes]
    del changed.graph.node[:]
    changed.graph.node.extend(copies)
    constants = {_OFFSET: np.array(128, np.int32), _POINT: np.array(128, np.uint8)}
    if not {opset.domain for opset in changed.opset_import} & {"", "ai.onnx"}:
        changed.opset_import.append(onnx.helper.make_opsetid("", 17))
    changed.graph.initializer.extend(onnx.numpy_helper.from_array(value, name) for name, value in constants.items())
    return changed


def _kind(node: onnx.NodeProto) -> tuple[str, str]:
    """Return domain and type of an operator."""
    return node.domain.removeprefix("ai.onnx"), node.op_type


def _types(model: onnx.ModelProto) -> dict[str, int]:
    """Return the dtypes of tensors by name, as far as ONNX infers them."""
    graph = onnx.shape_inference.infer_shapes(model).graph
    described = (*graph.input, *graph.value_info, *graph.output)
    types = {info.name: info.type.tensor_type.elem_type for info in described}
    return types | {info.name: info.data_type for info in graph.initializer}


def _type_of(node: onnx.NodeProto, operand: int, point: int, types: dict[str, int]) -> int:
    """Return the dtype of an operand, else of its zero point (which is equal), else 0."""
    names = (node.input[at] for at in (operand, point) if at < len(node.input))
    return next((types[name] for name in names if types.get(name)), 0)


def _unsigned(node: onnx.NodeProto) -> list[onnx.NodeProto]:
    """Change the node to read unsigned weights; return the nodes that compute them."""
    nodes: list[onnx.NodeProto] = []
    weights, point = _POSITIONS[_kind(node)]
    node.input.extend([""] * (point + 1 - len(node.input)))
    for at in (weights, point):
        if not node.input[at]:
            node.input[at] = _POINT
            continue
        wide, moved, narrow = (f"firmline/{node.output[0]}/{at}/{step}" for step in ("wide", "moved", "narrow"))
        nodes += [
            onnx.helper.make_node("Cast", [node.input[at]], [wide], to=onnx.TensorProto.INT32),
            onnx.helper.make_node("Add", [wide, _OFFSET], [moved]),
            onnx.helper.make_node("Cast", [moved], [narrow], to=onnx.TensorProto.UINT8),
        ]
        node.input[at] = narrow
    return nodes
