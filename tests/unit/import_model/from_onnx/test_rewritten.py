"""ONNX files that import rewrites before it translates them: local functions in line, float16 as float32."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import TensorProto, helper, numpy_helper

from stages.base import StageError
from stages.import_model.onnx import convert
from tests.support.onnx_graphs import drawn, model, node
from tests.unit.import_model.from_onnx.comparison import graph_of

X = drawn(7, 1, 3, 6, 6)
WEIGHTS = {"w": drawn(1, 3, 3, 3, 3), "b": drawn(2, 3)}


def refers(to_node: onnx.NodeProto, attribute: str, name: str) -> onnx.NodeProto:
    """The operator with an attribute (a float) that is the attribute `name` of the function around it."""
    to_node.attribute.add(name=attribute, ref_attr_name=name, type=onnx.AttributeProto.FLOAT)
    return to_node


def function(name: str, nodes: Sequence[onnx.NodeProto], inputs: str = "a", outputs: str = "z", **more: Any) -> Any:
    """A function of the domain `pkg.torch`; other domains of its operators are imported."""
    opset = more.pop("opset", 21)
    domains = {operator.domain for operator in nodes} - {""}
    imports = [helper.make_opsetid("", opset), *(helper.make_opsetid(domain, 1) for domain in sorted(domains))]
    return helper.make_function("pkg.torch", name, inputs.split(), outputs.split(), nodes, imports, **more)


def call(name: str, inputs: str = "a", outputs: str = "z", **attributes: Any) -> onnx.NodeProto:
    return helper.make_node(name, inputs.split(), outputs.split(), domain="pkg.torch", **attributes)


LEAKY = function("Leaky", [refers(node("LeakyRelu", ["a"], ["z"]), "alpha", "slope")], attributes=["slope"])
DEFAULT = function(
    "Default",
    [refers(node("LeakyRelu", ["a"], ["z"]), "alpha", "slope")],
    attribute_protos=[helper.make_attribute("slope", 0.75)],
)
OUTER = function("Outer", [refers(call("Default"), "slope", "p")], attributes=["p"])
CONV = function("Block", [node("Conv", ["a", "k", "c"], ["s"], pads=[1] * 4), node("Relu", ["s"], ["z"])], "a k c")
TWICE = function("Twice", [call("Block", "a k c", "s"), call("Block", "s k c", "z")], "a k c")
OLD = function("Old", [node("Unsqueeze", ["a"], ["s"], axes=[0]), node("Squeeze", ["s"], ["z"], axes=[0])], opset=11)
PASSING = function("Passing", [node("Neg", ["a"], ["n"])], outputs="a n n")


def branches(then: onnx.NodeProto) -> onnx.NodeProto:
    """An If whose condition is true."""
    ends = [helper.make_tensor_value_info("t", TensorProto.FLOAT, None)]
    graphs = [helper.make_graph([operator], "g", [], ends) for operator in (then, node("Neg", ["x"], ["t"]))]
    return node("If", ["yes"], ["z"], then_branch=graphs[0], else_branch=graphs[1])


FUNCTIONS: dict[str, tuple[list[onnx.NodeProto], list[Any]]] = {
    "one": ([call("Block", "x w b", "y")], [CONV]),
    "unused": ([node("Neg", ["x"], ["y"])], [CONV]),
    "nested": ([call("Twice", "x w b", "s"), node("Relu", ["s"], ["y"])], [TWICE, CONV]),
    "attribute": ([call("Leaky", "x", "s", slope=0.5), call("Leaky", "s", "y", slope=0.25)], [LEAKY]),
    "default": ([call("Default", "x", "s"), call("Default", "s", "y", slope=0.25)], [DEFAULT]),
    "default of an inner one": ([call("Outer", "x", "s"), call("Outer", "s", "y", p=0.25)], [OUTER, DEFAULT]),
    "of another opset": ([call("Old", "x", "s"), node("Relu", ["s"], ["y"])], [OLD]),
    "results that are inputs": ([call("Passing", "x", "s n m"), node("Sum", ["s", "n", "m"], ["y"])], [PASSING]),
    "in a branch": ([branches(call("Default", "x", "t")), node("Relu", ["z"], ["y"])], [DEFAULT]),
}


def network(name: str) -> onnx.ModelProto:
    nodes, functions = FUNCTIONS[name]
    proto = model(nodes, {"x": X.shape}, ["y"], WEIGHTS | {"yes": np.array(True)})
    proto.functions.extend(functions)
    if "pkg.torch" not in {entry.domain for entry in proto.opset_import}:
        proto.opset_import.append(helper.make_opsetid("pkg.torch", 1))
    return proto


@pytest.mark.parametrize("name", FUNCTIONS)
def test_local_functions(name: str) -> None:
    """Results are those of ONNX Runtime on the file itself, and verify finds every layer in the rewritten one."""
    proto = network(name)
    if name not in ("results that are inputs", "of another opset"):  # which ONNX Runtime does not take
        expected = onnxruntime.InferenceSession(proto.SerializeToString()).run(None, {"x": X})[0]
    else:
        expected = np.maximum(X, 0) if "opset" in name else -X
    _, theirs, _ = graph_of(proto)
    np.testing.assert_allclose(theirs.run([X])[0], expected, atol=1e-5)
    assert theirs.computed()


def half(values: Any) -> Any:
    return np.asarray(values, np.float16)


@pytest.mark.parametrize("kind", [TensorProto.FLOAT16, TensorProto.BFLOAT16])
@pytest.mark.parametrize("opset", [13, 21])
def test_float16_is_computed_in_float32(kind: int, opset: int) -> None:
    nodes = [
        helper.make_node("Constant", [], ["two"], value=helper.make_tensor("t", kind, [], [2.0])),
        helper.make_node("ConstantOfShape", ["four"], ["c"], value=helper.make_tensor("t", kind, [1], [0.5])),
        node("Conv", ["x", "w", "b"], ["s"]),
        node("Mul", ["s", "two"], ["m"]),
        node("Cast", ["m"], ["f"], to=TensorProto.FLOAT),
        node("Softmax", ["f"], ["p"], axis=-1),
        node("Cast", ["p"], ["h"], to=kind),
        node("Add", ["h", "c"], ["y"]),
    ]
    constants = [
        helper.make_tensor(constant, kind, values.shape, values.ravel()) for constant, values in WEIGHTS.items()
    ]
    graph = helper.make_graph(
        nodes,
        "half",
        [helper.make_tensor_value_info("x", kind, X.shape)],
        [helper.make_tensor_value_info("y", kind, (1, 3, 4, 4))],
        [*constants, numpy_helper.from_array(np.array([4]), "four")],
    )
    proto = helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=8)
    _, theirs, _ = graph_of(proto)
    assert {tensor.dtype for tensor in (*theirs.inputs, *theirs.outputs)} == {"float32"}
    result = theirs.run([half(X).astype(np.float32)])[0]
    if kind == TensorProto.FLOAT16:
        expected = onnxruntime.InferenceSession(proto.SerializeToString()).run(None, {"x": half(X)})[0]
        np.testing.assert_allclose(result, expected, atol=2e-3)
    assert result.std() > 0.1


def test_a_float16_constant_of_another_size_is_refused() -> None:
    proto = model([node("Add", ["x", "c"], ["y"])], {"x": (4,)}, ["y"], {"c": half([1, 2, 3, 4])})
    proto.graph.initializer[0].raw_data = b"\0\0\0"
    with pytest.raises(
        StageError, match=r"net.onnx is corrupt: the constant 'c' \[4\] has a byte count that does not match"
    ):
        convert(proto.SerializeToString(), "net.onnx", {}, "nchw")
