"""Operators of the file by themselves, as ONNX Runtime computes them."""

from __future__ import annotations

from collections.abc import Sequence

import onnx

from stages.import_model.onnx.translation import Node, Translation
from stages.import_model.onnx.values import Array
from stages.ir.operators.operation import Refused

Part = tuple[list[onnx.NodeProto], list[onnx.TensorProto]]


def part(t: Translation, node: Node, x: str, y: str, at: int = 0) -> Part:
    """The operators of the file that give the first result of `node`, called `y`, of its input `at`, called `x`.

    With what else they read: constants. Refused for a computed tensor among these.
    """
    names = {node.inputs[at]: x, node.outputs[0]: y}
    nodes, constants = [], []
    for one in node.parts or (node,):
        for place, name in enumerate(one.inputs):
            if name and name not in names:
                names[name] = f"{y}/{len(names)}"
                constants.append(onnx.numpy_helper.from_array(t.stored(one, place, "its constants"), names[name]))
        for name in one.outputs:
            names.setdefault(name, f"{y}/{len(names)}" if name else "")
        nodes.append(one.copied([names.get(name, "") for name in one.inputs], [names[name] for name in one.outputs]))
    return nodes, constants


def run(t: Translation, node: Node, parts: Sequence[Part], x: Array) -> Array:
    """The value `y` of operators that read `x`, as ONNX Runtime computes it, by the opsets of the file.

    Refused where ONNX Runtime does not.
    """
    from stages.ir.reference.onnx_session import session

    helper = onnx.helper
    ends = helper.make_tensor_value_info("x", helper.np_dtype_to_tensor_dtype(x.dtype), x.shape), onnx.ValueInfoProto()
    ends[1].name = "y"
    nodes, constants = ([one for piece in parts for one in piece[which]] for which in (0, 1))
    graph = helper.make_graph(nodes, "evaluated", ends[:1], ends[1:], constants)
    model = helper.make_model(graph, opset_imports=t.model.opset_import, ir_version=t.model.ir_version)
    try:
        found: Array = session(model, node.name).run(None, {"x": x})[0]
    except Exception as error:  # its exceptions have no common base but this one
        reason = " ".join(str(error).split())[-200:]
        raise Refused(f"is not computed by ONNX Runtime on {x.dtype}: {reason}") from error
    return found


def evaluated(t: Translation, node: Node, x: Array) -> Array:
    """The first result of `node` where its first input is `x`; its others are constants. Raises Refused."""
    return run(t, node, [part(t, node, "x", "y")], x)
