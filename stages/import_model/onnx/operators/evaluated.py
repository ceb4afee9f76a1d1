"""One operator by itself, as ONNX Runtime computes it."""

from __future__ import annotations

import onnx

from stages.import_model.onnx.translation import Node, Translation
from stages.import_model.onnx.values import Array
from stages.operators.operation import Refused


def constants(t: Translation, node: Node) -> tuple[list[str], list[onnx.TensorProto]]:
    """What an operator reads behind its first input: names for it, empty where it is absent, and the constants."""
    names = [f"constant{at}" if node.has(at) else "" for at in range(1, len(node.inputs))]
    stored = [
        onnx.numpy_helper.from_array(t.stored(node, at, "its constants"), name)
        for at, name in enumerate(names, 1)
        if name
    ]
    return names, stored


def evaluated(t: Translation, node: Node, x: Array) -> Array:
    """The first result of `node` where its first input is `x`; its others are constants.

    Refused where ONNX Runtime does not compute it.
    """
    from stages.reference.onnx_runtime import session

    helper = onnx.helper
    names, stored = constants(t, node)
    made = node.copied(["x", *names], ["y"])
    ends = [
        helper.make_tensor_value_info("x", helper.np_dtype_to_tensor_dtype(x.dtype), x.shape),
        onnx.ValueInfoProto(),
    ]
    ends[1].name = "y"
    graph = helper.make_graph([made], "evaluated", ends[:1], ends[1:], stored)
    model = helper.make_model(graph, opset_imports=t.model.opset_import, ir_version=t.model.ir_version)
    try:
        found: Array = session(model, node.name).run(None, {"x": x})[0]
    except Exception as error:  # its exceptions have no common base but this one
        reason = " ".join(str(error).split())[-200:]
        raise Refused(f"is not computed by ONNX Runtime on {x.dtype}: {reason}") from error
    return found
