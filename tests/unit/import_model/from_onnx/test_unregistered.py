"""Operators that ONNX does not have in the opset of the file, or of a domain that the file imports none of."""

from __future__ import annotations

import numpy as np
import pytest

pytest.importorskip("onnx")


from tests.support.onnx_graphs import model, node
from tests.unit.import_model.from_onnx.test_refused import refused


@pytest.mark.parametrize(
    ("op", "opset", "said"),
    [
        ("FooBar", 17, "operator 0 (FooBar) 'y_node' is in no opset of ONNX\n"),
        ("Gelu", 17, "operator 0 (Gelu) 'y_node' is an operator from opset 20 on; the file has 17\n"),
        ("Upsample", 13, "operator 0 (Upsample) 'y_node' is no operator any more from opset 10 on; the file has 13\n"),
    ],
)
def test_operators_that_the_opset_does_not_have(op: str, opset: int, said: str) -> None:
    made = model([node(op, ["x", "s"], ["y"])], {"x": (1, 3)}, ["y"], {"s": np.ones(2, np.float32)}, opset=opset)
    assert refused(made).startswith(said)


def test_an_operator_of_a_domain_that_is_not_imported() -> None:
    made = model([node("Gate", ["x"], ["y"], "com.acme")], {"x": (1, 3)}, ["y"])
    del made.opset_import[1:]
    text = refused(made)
    assert "(com.acme.Gate) 'y_node' is of the domain 'com.acme', of which the file imports no opset\n" in text
    del made.graph.output[0].type.tensor_type.shape.dim[:]
    made.graph.output[0].type.tensor_type.ClearField("shape")
    assert refused(made) == text
