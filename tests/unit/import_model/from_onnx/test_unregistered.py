"""Operators that ONNX does not have in the opset of the file, or of a domain that the file imports none of."""

from __future__ import annotations

import numpy as np
import pytest

pytest.importorskip("onnx")


from tests.support.onnx_graphs import model, node
from tests.unit.import_model.from_onnx.test_refused import refused


@pytest.mark.parametrize(
    ("op", "opset", "message"),
    [
        ("FooBar", 17, "operator 0 (FooBar) 'y_node' is in no opset of ONNX\n"),
        ("Gelu", 17, "operator 0 (Gelu) 'y_node' needs opset 20; the file has 17\n"),
        ("Upsample", 13, "operator 0 (Upsample) 'y_node' was removed in opset 10; the file has 13\n"),
    ],
)
def test_operators_that_the_opset_does_not_have(op: str, opset: int, message: str) -> None:
    proto = model([node(op, ["x", "s"], ["y"])], {"x": (1, 3)}, ["y"], {"s": np.ones(2, np.float32)}, opset=opset)
    assert refused(proto).startswith(message)


def test_an_operator_of_a_domain_that_is_not_imported() -> None:
    proto = model([node("Gate", ["x"], ["y"], "com.acme")], {"x": (1, 3)}, ["y"])
    del proto.opset_import[1:]
    text = refused(proto)
    assert "(com.acme.Gate) 'y_node' is in the domain 'com.acme', for which the file imports no opset\n" in text
    del proto.graph.output[0].type.tensor_type.shape.dim[:]
    proto.graph.output[0].type.tensor_type.ClearField("shape")
    assert refused(proto) == text
