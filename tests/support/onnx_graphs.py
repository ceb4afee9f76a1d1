"""Small ONNX files for tests."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import onnx
from onnx import helper, numpy_helper, parser

Shapes = Mapping[str, Sequence[int | str]]
Nodes = Sequence[onnx.NodeProto | str]


def node(op: str, inputs: Sequence[str], outputs: Sequence[str], domain: str = "", **attributes: Any) -> onnx.NodeProto:
    """An operator; its name is that of its first result."""
    return helper.make_node(op, inputs, outputs, name=f"{outputs[0]}_node", domain=domain, **attributes)


def parsed(nodes: Nodes) -> list[onnx.NodeProto]:
    """Operators, also those of texts in ONNX' syntax, such as `v = Conv <pads=[1, 1]> (x, w)  y = Relu (v)`."""
    found = []
    for part in [nodes] if isinstance(nodes, str) else nodes:
        if isinstance(part, str):
            graph = parser.parse_graph(f"g () => () {{ {part} }}")
            for one in graph.node:
                one.name = f"{one.output[0]}_node"
            found += graph.node
        else:
            found.append(part)
    return found


def model(
    nodes: Nodes,
    inputs: Shapes,
    outputs: Sequence[str],
    constants: Mapping[str, Any] | None = None,
    *,
    opset: int = 21,
    types: Mapping[str, int] | None = None,
) -> onnx.ModelProto:
    """A graph of these operators; inputs and outputs are float32 where `types` says nothing else."""
    kinds, operators = dict(types or {}), parsed(nodes)
    graph = helper.make_graph(
        operators,
        "graph",
        [helper.make_tensor_value_info(name, kinds.get(name, 1), shape) for name, shape in inputs.items()],
        [helper.make_tensor_value_info(name, kinds.get(name, 1), None) for name in outputs],
        [numpy_helper.from_array(np.asarray(values), name) for name, values in (constants or {}).items()],
    )
    foreign = sorted({"com.microsoft", *(one.domain for one in operators)} - {""})
    imports = [helper.make_opsetid("", opset), *(helper.make_opsetid(domain, 1) for domain in foreign)]
    made = onnx.shape_inference.infer_shapes(helper.make_model(graph, opset_imports=imports, ir_version=8))
    for one in made.graph.output:  # the checker wants a shape, which is not known behind operators of Microsoft's
        one.type.tensor_type.shape.SetInParent()
    return made


def drawn(seed: int, *shape: int) -> Any:
    """float32 numbers between -1 and 1."""
    return np.random.default_rng(seed).uniform(-1, 1, shape).astype(np.float32)
