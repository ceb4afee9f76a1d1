"""If with a condition that is known: the branch that is taken stands in its place; other control flow is refused."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import helper, numpy_helper
from onnx.reference import ReferenceEvaluator

from stages.base import StageError
from stages.import_model.onnx import convert
from stages.ir.reference.interpreter import Reference
from stages.ir.reference.onnx_runtime import OnnxReference
from tests.support.onnx_graphs import Nodes, model, node, parsed

X = np.array([[-3.0, -0.5, 0.0, 2.5]], np.float32)
YES, NO = np.array(True), np.array([False])


def branch(nodes: Nodes, out: str | Sequence[str], constants: Mapping[str, Any] | None = None) -> onnx.GraphProto:
    outs = [out] if isinstance(out, str) else out
    ends = [helper.make_tensor_value_info(name, 1, None) for name in outs]
    tensors = [
        numpy_helper.from_array(np.asarray(values, np.float32), name) for name, values in (constants or {}).items()
    ]
    return helper.make_graph(parsed(nodes), "branch", [], ends, tensors)


def either(condition: str, out: str | Sequence[str], then: onnx.GraphProto, other: onnx.GraphProto) -> onnx.NodeProto:
    outs = [out] if isinstance(out, str) else out
    return node("If", [condition], outs, then_branch=then, else_branch=other)


DOUBLED = branch("r = Mul (x, k)  o = Relu (r)", "o", {"k": 2})
NEGATED = branch("r = Mul (x, k)", "r", {"k": -1})
BOTH = branch("r = Mul (x, k)  o = Relu (r)", ["r", "o"], {"k": 2})
AROUND = ["v = Sigmoid (x)  z = Mul (v, three)"]
SHAPED = ["s = Shape (x)  n = Gather (s, one)  c = Equal (n, four)"]
# The shape behind a Pad by amounts that operators compute of constants, as torch writes them.
PADDED = [
    node("ConstantOfShape", ["two"], ["zeros"], value=helper.make_tensor("v", 7, [1], [0])),
    "flat = Concat <axis=0> (zeros, amounts)  rows = Reshape (flat, pairs)",
    "columns = Transpose <perm=[1, 0]> (rows)  pads = Reshape (columns, minus)  p = Pad (x, pads)",
    "s = Shape (p)  n = Gather (s, one)  c = Equal (n, five)",
]
PADS = {"two": [2], "amounts": [0, 1], "pairs": [2, 2], "minus": [-1], "one": 1, "five": 5}
NESTED = branch([either("no", "i", DOUBLED, branch("p = Add (x, z)", "p"))], "i")
NETWORKS = {
    "taken": ([either("yes", "y", DOUBLED, NEGATED)], {}),
    "other": ([either("no", "y", DOUBLED, NEGATED)], {}),
    "around": ([*AROUND, either("yes", "w", DOUBLED, NEGATED), "y = Add (w, z)"], {"three": np.float32(3)}),
    "shape": ([*SHAPED, either("c", "y", DOUBLED, NEGATED)], {"one": np.array(1), "four": np.array(4)}),
    "shape behind computed amounts": ([*PADDED, either("c", "y", DOUBLED, NEGATED)], PADS),
    "nested": ([*AROUND, either("yes", "y", NESTED, NEGATED)], {"three": np.float32(3)}),
    "passed": (
        [*AROUND, either("yes", "w", branch("q = Identity (z)", "q"), NEGATED), "y = Relu (w)"],
        {"three": np.float32(3)},
    ),
    "twice": (
        [
            either("yes", ["a", "b", "d"], branch("r = Neg (x)", ["r", "r", "k"], {"k": [1.5]}), NEGATED),
            "e = Mul (a, d)  f = Relu (b)  y = Sub (e, f)",
        ],
        {},
    ),
    "first result unused": (
        [either("yes", ["", "w"], BOTH, branch(BOTH.node, ["o", "r"], {"k": -1})), "y = Neg (w)"],
        {},
    ),
}


def network(name: str) -> onnx.ModelProto:
    nodes, constants = NETWORKS[name]
    return model(nodes, {"x": (1, 4)}, ["y"], {"yes": YES, "no": NO, **constants})


@pytest.mark.parametrize("name", NETWORKS)
def test_the_branch_that_is_taken(name: str) -> None:
    proto = network(name)
    (wanted,) = ReferenceEvaluator(proto).run(None, {"x": X})
    converted = convert(proto.SerializeToString(), "net.onnx", {}, "nchw")
    np.testing.assert_allclose(Reference(converted.data).run([X])[0], wanted, rtol=1e-6)
    # All tensors of the file are in the oracle's graph.
    oracle = OnnxReference(converted.data, converted.original, converted.names)
    np.testing.assert_allclose(oracle.run([X])[0], wanted, rtol=1e-6)


def test_a_shape_that_the_recipe_gives_decides() -> None:
    nodes, constants = NETWORKS["shape"]
    proto = model(nodes, {"x": (1, "n")}, ["y"], constants)
    for size in (4, 5):
        x = np.arange(size, dtype=np.float32).reshape(1, size) - 2
        converted = convert(proto.SerializeToString(), "net.onnx", {"x": (1, size)}, "nchw")
        (wanted,) = ReferenceEvaluator(proto).run(None, {"x": x})
        np.testing.assert_allclose(Reference(converted.data).run([x])[0], wanted, rtol=1e-6)


def loop() -> onnx.NodeProto:
    """Two steps, each of which reads `x` from around the loop: its own inputs are constants."""
    ends = [helper.make_tensor_value_info("i", 7, ()), helper.make_tensor_value_info("go", 9, ())]
    body = helper.make_graph(
        parsed("on = Identity (go)  r = Relu (x)"),
        "body",
        ends,
        [helper.make_tensor_value_info("on", 9, ()), helper.make_tensor_value_info("r", 1, (1, 4))],
    )
    return node("Loop", ["two", "yes"], ["y"], body=body)


@pytest.mark.parametrize(
    ("nodes", "what", "hint"),
    [
        (["m = ReduceMax (x)  c = Cast <to=9> (m)", either("c", "y", DOUBLED, NEGATED)], r"2 \(If\)", "Where"),
        ([either("yes", ["y", "z"], DOUBLED, NEGATED)], r"0 \(If\)", "Where"),
        ([loop()], r"0 \(Loop\)", "torch.onnx.export"),
    ],
)
def test_what_is_not_known_is_refused(nodes: Nodes, what: str, hint: str) -> None:
    proto = model(nodes, {"x": (1, 4)}, ["y"], {"yes": YES, "two": np.array(2)})
    with pytest.raises(StageError, match=f"operator {what} 'y_node' is not supported") as refused:
        convert(proto.SerializeToString(), "net.onnx", {}, "nchw")
    assert hint in refused.value.hint
