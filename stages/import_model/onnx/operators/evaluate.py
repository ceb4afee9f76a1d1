"""Evaluate single operators of the file with ONNX Runtime."""

from collections.abc import Sequence

import onnx

from stages.import_model.onnx.translation import Node, Translation
from stages.ir.arrays import Array
from stages.ir.operators.operation import Refused
from stages.ir.reference.onnx_session import session

Subgraph = tuple[list[onnx.NodeProto], list[onnx.TensorProto]]


def part(t: Translation, node: Node, x: str, y: str, at: int = 0) -> Subgraph:
    """Return the file's operators that compute the first result of `node`, named `y`.

    x: the name of input `at`. The constants that these operators read are included. Raises Refused if another input is
    computed.
    """
    names = {node.inputs[at]: x, node.outputs[0]: y}
    nodes, constants = [], []
    for member in node.parts or (node,):
        for place, name in enumerate(member.inputs):
            if name and name not in names:
                names[name] = f"{y}/{len(names)}"
                constants.append(onnx.numpy_helper.from_array(t.constant(member, place, "its constants"), names[name]))
        for name in member.outputs:
            names.setdefault(name, f"{y}/{len(names)}" if name else "")
        nodes.append(
            member.copied([names.get(name, "") for name in member.inputs], [names[name] for name in member.outputs])
        )
    return nodes, constants


def run(t: Translation, node: Node, parts: Sequence[Subgraph], x: Array) -> Array:
    """Return the value `y` that operators compute from `x`.

    ONNX Runtime computes it, with the file's opsets. Raises Refused if it fails.
    """
    helper = onnx.helper
    ends = helper.make_tensor_value_info("x", helper.np_dtype_to_tensor_dtype(x.dtype), x.shape), onnx.ValueInfoProto()
    ends[1].name = "y"
    nodes, constants = ([item for subgraph in parts for item in subgraph[which]] for which in (0, 1))
    graph = helper.make_graph(nodes, "evaluated", ends[:1], ends[1:], constants)
    model = helper.make_model(graph, opset_imports=t.model.opset_import, ir_version=t.model.ir_version)
    try:
        result: Array = session(model, node.name).run(None, {"x": x})[0]
    except Exception as error:  # its exceptions have no other common base
        reason = " ".join(str(error).split())[-200:]
        raise Refused(f"is not computed by ONNX Runtime on {x.dtype}: {reason}") from error
    return result


def evaluated(t: Translation, node: Node, x: Array) -> Array:
    """Return the first result of `node` for the first input `x`. Raises Refused."""
    return run(t, node, [part(t, node, "x", "y")], x)
