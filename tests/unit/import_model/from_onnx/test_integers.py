"""ONNX networks of integers, as DequantizeLinear and QuantizeLinear say them and as QLinear operators do.

Every number of the integer graph is held to ONNX Runtime's, layer by layer.
"""

import json
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("onnx")
pytest.importorskip("onnxruntime")

from stages.base import StageError
from stages.verify.onnx_layers import OnnxLayers
from tests.support.onnx_graphs import drawn
from tests.support.onnx_integers import (
    PADS,
    SCALE,
    SHAPE,
    Net,
    averaged,
    chosen,
    clip_then_relu,
    doubled,
    far_zero_points,
    function,
    gemm_and_one_number,
    joined,
    matrix,
    moved_channels,
    padded_real,
    padded_sum,
    pair,
    qdq,
    qdq_conv,
    qlinear_conv,
    raw,
    raw_clip,
    whole,
)
from tests.unit.import_model.from_onnx.comparison import compare_layers, graph_of

CASES = {
    "qdq conv, a zero point for each channel": moved_channels(-120, 121),
    "conv integer": whole("uint8", "ConvInteger"),
    "matmul integer": whole("int8", "MatMulInteger"),
    "qlinear sigmoid": function("uint8", "QLinearSigmoid"),
    "qlinear leaky relu": function("int8", "QLinearLeakyRelu", alpha=0.2),
    "qdq conv": qdq_conv("int8", "int8", (8, 6, 3, 3), channels=True, pads=[1, 1, 1, 1]),
    "qdq conv uint8": qdq_conv("uint8", "uint8", (8, 6, 3, 3), channels=False, zero=121, strides=[2, 2]),
    "qdq conv uint8 and int8": qdq_conv("uint8", "int8", (8, 6, 3, 3), channels=True, pads=[1, 0, 2, 1]),
    "qdq conv, bias in real numbers": qdq_conv("int8", "int8", (8, 6, 1, 1), channels=True, bias="real"),
    "qdq depthwise": qdq_conv("int8", "int8", (6, 1, 3, 3), channels=True, group=6, bias=""),
    "qdq depthwise uint8": qdq_conv("uint8", "uint8", (6, 1, 3, 3), channels=False, zero=99, group=6, pads=[1] * 4),
    "qdq groups": qdq_conv("int8", "int8", (4, 3, 3, 3), channels=False, group=2),
    "qlinear conv": qlinear_conv("int8", "int8", (8, 6, 3, 3), channels=True, pads=[1, 1, 1, 1]),
    "qlinear conv uint8": qlinear_conv("uint8", "uint8", (8, 6, 3, 3), channels=False, zero=121),
    "qlinear conv uint8 and int8": qlinear_conv("uint8", "int8", (16, 6, 3, 3), channels=True, strides=[2, 2]),
    "qlinear depthwise": qlinear_conv("uint8", "int8", (12, 1, 3, 3), channels=True, group=6),
    "qdq gemm": matrix("int8", "Gemm"),
    "qdq gemm and one number": gemm_and_one_number(channels=False),
    "qdq gemm, a scale for each channel and one number": gemm_and_one_number(channels=True),
    "qgemm": matrix("uint8", "QGemm"),
    "qdq gemm, zero points from end to end": far_zero_points("Gemm"),
    "qlinear matmul, zero points from end to end": far_zero_points("QLinearMatMul"),
    "qlinear matmul": matrix("int8", "QLinearMatMul"),
    "qdq add": pair("Add", "int8", False),
    "qdq sub": pair("Sub", "int8", False),
    "qdq mul": pair("Mul", "uint8", False),
    "qdq add of itself": doubled("Add", False),
    "qdq square": doubled("Mul", False),
    "qlinear add of itself": doubled("Add", True),
    "qlinear square": doubled("Mul", True),
    "qlinear add": pair("Add", "int8", True),
    "qlinear add uint8": pair("Add", "uint8", True),
    "qlinear mul uint8": pair("Mul", "uint8", True),
    "qlinear add, every second a half": pair("Add", "int8", True, (0.03, 0.03, 0.06)),
    "qlinear mul uint8, many halves": pair("Mul", "uint8", True, (0.25, 0.5, 1.0)),
    "qdq sub uint8, many halves": pair("Sub", "uint8", False, (0.25, 0.5, 1.0)),
    "qdq concat": joined("int8", False),
    "qlinear concat": joined("uint8", True),
    "qdq where": chosen("int8", False),
    "qdq where, by a mask": chosen("uint8", False, mask=True),
    "qlinear where": chosen("uint8", True),
    "qlinear where, a constant": chosen("int8", True, constant=True),
    "qlinear global average pool": averaged("uint8"),
    "qdq global average pool": qdq("int8", "GlobalAveragePool", scale=0.007),
    "qdq average pool": qdq("int8", "AveragePool", kernel_shape=[3, 3], strides=[2, 2], scale=0.03),
    "pad of integers with 0": raw("int8", "Pad", constants=[PADS]),
    "pad of integers with their zero point": raw("int8", "Pad", -7, [PADS]),
    "pad behind a qlinear operator": padded_sum(),
    "pad of real numbers with 0": padded_real(0),
    "pad of real numbers with another one": padded_real(SCALE * 5),
    "pad of real numbers with one between": padded_real(0.033, scale=0.011),
    "relu of integers": raw("int8", "Relu"),
    "abs of integers": raw("int8", "Abs"),
    "clip of integers": raw_clip("int8"),
    "max of integers over an axis": raw("uint8", "ReduceMax", constants=[(1,)]),
    "qdq mean": qdq("int8", "ReduceMean", keepdims=0, scale=0.004),
    "qdq max pool": qdq("uint8", "MaxPool", kernel_shape=[3, 3], pads=[1, 1, 1, 1], scale=SCALE),
    "qdq sigmoid": qdq("int8", "Sigmoid", scale=1 / 200),
    "qdq tanh": qdq("uint8", "Tanh", scale=1 / 100),
    "qdq hard swish": qdq("int8", "HardSwish", scale=0.021),
    "qdq leaky relu": qdq("int8", "LeakyRelu", alpha=0.1, scale=0.02),
    "qdq elu, then relu": qdq("int8", "Elu", after="Relu", scale=0.02),
    "qdq relu": qdq("uint8", "Relu", scale=0.011),
    "qdq clip, then relu": clip_then_relu(),
    "qdq transpose": qdq("int8", "Transpose", perm=[0, 2, 3, 1], scale=0.013),
}  # fmt: skip


@pytest.mark.parametrize("case", CASES)
def test_every_number_is_onnx_runtimes(case: str, tmp_path: Path) -> None:
    layers = compare_layers(CASES[case], tmp_path)
    assert all(tie.near <= max(6, tie.values / 20) for tie in layers.ties.values()), layers.ties
    if case.startswith("qlinear") or case == "qgemm":
        assert sum(tie.differing for tie in layers.ties.values()) == 0


@pytest.mark.parametrize("layout", ["planar depthwise", "NCHW"])
def test_in_other_layouts(layout: str, tmp_path: Path) -> None:
    compare_layers(CASES["qlinear depthwise"], tmp_path, layout)


def test_channels_without_an_exact_multiplier_differ_in_near_ties_alone(tmp_path: Path) -> None:
    """256 channels on 864 products: a few have steps that contradict each other."""
    net = Net("int8")
    q = net.quantize("x", "q", 0.05)
    w = net.weights("w", (256, 96, 3, 3), "int8", 0, channels=True)
    net.op("QLinearConv", [q, "q_s", "q_z", *w, *net.quant("y", 0.4, 5)], "y")
    layers = compare_layers(net.model((1, 96, 12, 12)), tmp_path, runs=1)
    conv = next(layer for layer in layers.graph.layers if layer.kind == "conv2d")
    assert conv.op.rounding == "single"
    assert sum(tie.differing for tie in layers.ties.values()) < 10


def test_sums_that_are_scaled_beyond_int32_are_refused() -> None:
    net = Net("int8")
    q = net.quantize("x", "q")
    w = net.weights("w", (8, 6, 3, 3), "int8", 0, channels=True)
    net.op("QLinearConv", [q, "q_s", "q_z", *w, *net.quant("y", 1e-8, 5)], "y")
    with pytest.raises(StageError, match=r"would scale its sums to \S+, beyond int32; check the scales of its tensors"):
        graph_of(net.model())


def test_a_multiplier_that_is_off_is_found(tmp_path: Path) -> None:
    """Half a percent in one channel: values differ that are no near ties."""
    graph, theirs, description = graph_of(CASES["qdq conv"])
    layer = next(layer for layer in graph.layers if layer.kind == "conv2d")
    graph.constants[layer.constants["multiplier"]][0] -= graph.constants[layer.constants["multiplier"]][0] // 200
    graph.save(tmp_path)
    (tmp_path / "tensors.json").write_text(json.dumps(description))
    layers = OnnxLayers(tmp_path, tmp_path / "tensors.json", theirs)
    with pytest.raises(StageError, match=r"layer 2 \(conv2d\) 'y' differs from ONNX Runtime .* on the same inputs"):
        layers.run([np.random.default_rng(0).uniform(-3, 3, SHAPE).astype(np.float32)])


def test_zero_points_that_leave_no_int8_are_refused() -> None:
    with pytest.raises(
        StageError, match="has weights that leave int8 when the zero point of each channel is subtracted"
    ):
        graph_of(moved_channels(-127, 128))


def test_real_numbers_that_onnx_does_not_have_may_move_before_integers(tmp_path: Path) -> None:
    """A ConvTranspose between integers is a TRANSPOSE_CONV and a slice of real numbers."""
    net = Net("int8")
    x = net.dequantize(net.quantize("x", "q"))
    net.number("w", drawn(1, 6, 4, 3, 3))
    sizes = {"strides": [2, 2], "pads": [1, 1, 1, 1], "output_padding": [1, 1]}
    net.quantize(net.op("ConvTranspose", [x, "w"], "v", **sizes), "y", 0.05, 3)
    compare_layers(net.model(), tmp_path)
