"""ONNX Runtime's sums are exact on every processor: int8 weights of uint8 activations do not saturate."""

from typing import Any

import numpy as np
import pytest

pytest.importorskip("onnx")
pytest.importorskip("onnxruntime")

import onnx

from stages.ir.reference.onnx_products import unsigned_weights
from stages.ir.reference.onnx_session import session
from tests.support.onnx_graphs import model as graph_of
from tests.support.onnx_graphs import node

DEPTH = 36
X = np.full((3, DEPTH), 255, np.uint8)
# Pairs of neighbours go beyond 16 bits, both ways.
W = np.where(np.arange(5) % 2, 127, -128).astype(np.int8) * np.ones((DEPTH, 1), np.int8)
ONE, X_ZERO, W_ZERO = np.float32(1), np.uint8(7), np.int8(-3)
SUMS = (X.astype(np.int64) - X_ZERO) @ (W.astype(np.int64) - W_ZERO)
SCALE = np.float32(2.0**-14)
SCALED = np.clip(np.rint(SUMS * float(SCALE)) + 128, 0, 255)


def model(op: str, x: np.ndarray, constants: dict[str, Any], inputs: list[str], out: int, domain: str = "") -> Any:
    types = {"x": onnx.TensorProto.UINT8, "y": out}
    made = graph_of([node(op, inputs, ["y"], domain)], {"x": x.shape}, ["y"], constants, types=types)
    if domain:  # without ONNX's own operators a file need not import them
        del made.opset_import[0]
    return made


def scaled(weights: np.ndarray) -> dict[str, Any]:
    scales = {"xs": ONE, "ws": ONE, "ys": np.float32(2.0**14)}
    return {**scales, "xz": X_ZERO, "w": weights, "wz": W_ZERO, "yz": np.uint8(128)}


IMAGE = np.ascontiguousarray(X.T).reshape(1, DEPTH, 3, 1)
FILTERS = np.ascontiguousarray(W.T).reshape(5, DEPTH, 1, 1)
OF_IMAGE = ["x", "xs", "xz", "w", "ws", "wz", "ys", "yz"]
WHOLE = {"w": W, "xz": X_ZERO, "wz": W_ZERO}
CASES = {
    "QLinearConv": (
        model("QLinearConv", IMAGE, scaled(FILTERS), OF_IMAGE, onnx.TensorProto.UINT8),
        IMAGE,
        SCALED.T.reshape(1, 5, 3, 1),
    ),
    "QLinearMatMul": (model("QLinearMatMul", X, scaled(W), OF_IMAGE, onnx.TensorProto.UINT8), X, SCALED),
    "QGemm": (
        model("QGemm", X, scaled(W), [*OF_IMAGE[:6], "", "ys", "yz"], onnx.TensorProto.UINT8, "com.microsoft"),
        X,
        SCALED,
    ),
    "ConvInteger": (
        model("ConvInteger", IMAGE, {**WHOLE, "w": FILTERS}, ["x", "w", "xz", "wz"], onnx.TensorProto.INT32),
        IMAGE,
        SUMS.T.reshape(1, 5, 3, 1),
    ),
    "MatMulInteger": (model("MatMulInteger", X, WHOLE, ["x", "w", "xz", "wz"], onnx.TensorProto.INT32), X, SUMS),
    "no zero point of the weights": (
        model("MatMulInteger", X, WHOLE, ["x", "w", "xz"], onnx.TensorProto.INT32),
        X,
        (X.astype(np.int64) - X_ZERO) @ W.astype(np.int64),
    ),
    "no zero points": (
        model("MatMulInteger", X, WHOLE, ["x", "w"], onnx.TensorProto.INT32),
        X,
        X.astype(np.int64) @ W.astype(np.int64),
    ),
}


@pytest.mark.parametrize("case", CASES)
def test_sums_do_not_saturate(case: str) -> None:
    made, x, wanted = CASES[case]
    np.testing.assert_array_equal(session(made, case).run(None, {"x": x})[0], wanted)


@pytest.mark.parametrize("case", CASES)
def test_weights_of_uint8_are_unsigned(case: str) -> None:
    """Where the processor has VNNI nothing saturates, so the test above fails on others only."""
    made, _, _ = CASES[case]
    assert unsigned_weights(made).graph.node[-1].input != made.graph.node[-1].input
