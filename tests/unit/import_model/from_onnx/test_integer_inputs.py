"""ONNX files whose inputs are integers: token ids that a Gather looks up, bytes of images that a Cast makes float32."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from onnx import TensorProto

from stages.ir.models.index_ranges import index_ranges
from tests.support.onnx_graphs import drawn, model, node
from tests.unit.import_model.from_onnx.comparison import compare_layers, graph_of

I32, I64, U8, I8 = TensorProto.INT32, TensorProto.INT64, TensorProto.UINT8, TensorProto.INT8
TABLE = {"t": drawn(1, 20, 8)}
BYTES = {"q": np.arange(160).reshape(20, 8).astype(np.uint8), "s": np.float32(0.1), "z": np.array(7, np.uint8)}
IMAGE = {"w": drawn(2, 4, 3, 3, 3), "k": np.float32(255)}
DEQUANTIZED = node("DequantizeLinear", ["q", "s", "z"], ["t"])
EMBED = ["e = Gather (t, i)  y = ReduceMean <axes=[1]> (e)"]
SCALED = ["a = Cast <to=1> (x)  b = Div (a, k)  y = Conv (b, w)"]
QUANTIZED = ["q = QuantizeLinear (x, s, z)  a = Cast <to=1> (q)  y = Neg (a)"]

# Operators, inputs, their types, constants, and what the first input may hold.
Case = tuple[list[Any], dict[str, Any], dict[str, int], dict[str, Any], Any]
NETWORKS: dict[str, Case] = {
    "int64 ids": (EMBED, {"i": (1, 6)}, {"i": I64}, TABLE, (-20, 19)),
    "one id": (["e = Gather (t, i)  y = Neg (e)"], {"i": ()}, {"i": I64}, TABLE, (-20, 19)),
    "ids of a dequantized table": ([DEQUANTIZED, *EMBED], {"i": (2, 3)}, {"i": I64}, BYTES, (-20, 19)),
    "ids that are moved": (
        ["j = Add (i, one)  k = Transpose (j)  y = Gather <axis=-1> (t, k)"],
        {"i": (2, 3)},
        {"i": I64},
        TABLE | {"one": np.array(1)},
        (-9, 6),
    ),
    "ids that are cast": (
        [node("Cast", ["i"], ["j"], to=I64), "y = Gather (t, j)"],
        {"i": (5,)},
        {"i": I32},
        TABLE,
        (-20, 19),
    ),
    "places of the largest": (
        ["j = ArgMax <axis=1, keepdims=0> (x)  y = Gather <axis=1> (x, j)"],
        {"x": (1, 5, 3)},
        {},
        {},
        None,
    ),
    "bytes": (SCALED, {"x": (1, 3, 8, 8)}, {"x": U8}, IMAGE, None),
    "bytes, channels last": (
        ["x = Transpose <perm=[0, 3, 1, 2]> (x0)", *SCALED],
        {"x0": (1, 8, 8, 3)},
        {"x0": U8},
        IMAGE,
        None,
    ),
    "bytes that are dequantized as well": (
        ["a = Cast <to=1> (x)  d = DequantizeLinear (x, s, z)  y = Add (a, d)"],
        {"x": (2, 5)},
        {"x": U8},
        {"s": np.float32(0.5), "z": BYTES["z"]},
        None,
    ),
    "integers of a QuantizeLinear": (QUANTIZED, {"x": (2, 5)}, {}, {"s": np.float32(0.25), "z": BYTES["z"]}, None),
}


def network(name: str) -> Any:
    nodes, inputs, types, constants, _ = NETWORKS[name]
    return model(nodes, inputs, ["y"], constants, opset=13, types=types)


@pytest.mark.parametrize("name", NETWORKS)
def test_as_onnx_runtime(name: str, tmp_path: Path) -> None:
    proto, limits = network(name), NETWORKS[name][-1]
    compare_layers(proto, tmp_path / "graph")
    _, theirs, description = graph_of(proto)
    rules = {number: operator.get("rule") or {} for number, operator in enumerate(description["operators"])}
    assert index_ranges(theirs.info, rules).get(theirs.inputs[0].index) == limits
