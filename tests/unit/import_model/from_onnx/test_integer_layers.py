"""ConvTranspose, MatMul of two tensors, AveragePool and Softmax between integers, held to ONNX Runtime by layer."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.onnx_networks import FORMS, check

pytest.importorskip("onnx")
pytest.importorskip("onnxruntime")

from stages.base import StageError
from stages.verify.onnx_layers import OnnxLayers
from stages.verify.records import Port
from tests.support.onnx_graphs import drawn, model
from tests.support.onnx_integers import SCALE, SHAPE, TYPES, Net, qdq
from tests.unit.import_model.from_onnx.comparison import compare_layers, graph_of

Shape = tuple[int, ...]


def conv_transpose(
    kind: str, weights: str, shape: Shape, *, channels: bool = False, zero: int = 0, bias: str = "real", **more: Any
) -> Any:
    """Weights (C, O / group, [H,] W), with a scale for each output channel, or one."""
    net = Net(kind)
    x = net.dequantize(net.quantize("x", "q"))
    inputs = [x, net.real_weights("w", shape, weights, 1, channels=channels, zero=zero)]
    units = shape[1] * more.get("group", 1)
    if bias == "int":
        inputs.append(net.real_bias("b", units, "w"))
    elif bias == "real":
        inputs.append(net.number("b", drawn(3, units)))
    net.op("Relu", [net.op("ConvTranspose", inputs, "v", **more)], "r")
    net.quantize("r", "y", 0.03, -128)
    return net.model((2, 6, 15) if len(shape) == 3 else SHAPE)


def product(
    kind: str, shapes: tuple[Shape, Shape], *, constant: int = -1, scale: float = 0.4, qlinear: bool = False
) -> Any:
    """MatMul, with Relu behind it, or QLinearMatMul of two tensors, of which one may be a constant."""
    net, sides = Net(kind), []
    for at, (name, shape) in enumerate(zip("ab", shapes, strict=True)):
        if at == constant:
            side = net.weights(name, shape, kind, 0, channels=False, zero=128 if kind == "uint8" else 4)
            real = name
        else:
            real = net.quantize(f"x{at}", name, 0.02, (5, -9)[at])
            side = [name, f"{name}_s", f"{name}_z"]
        sides.append(side if qlinear else [net.dequantize(real)])
    if qlinear:
        net.op("QLinearMatMul", [*sides[0], *sides[1], *net.quant("y", scale, 3)], "y")
    else:
        net.quantize(net.op("Relu", [net.op("MatMul", [sides[0][0], sides[1][0]], "v")], "r"), "y", scale, -100)
    inputs = {f"x{at}": shape for at, shape in enumerate(shapes) if at != constant}
    return model(net.nodes, inputs, ["y"], net.constants, types={"y": TYPES[kind]})


def gemm(w: bool = False, **options: Any) -> Any:
    """Gemm of two computed matrices, or by weights with a scale for each output and a bias."""
    net = Net("int8")
    inputs = [net.dequantize(net.quantize("x", "q"))]
    if w:
        inputs += [net.real_weights("w", (7, 10), "int8", 0, channels=True), net.real_bias("b", 7, "w")]
    else:
        inputs.append(net.dequantize(net.quantize("z", "r", 0.01, 9)))
    net.quantize(net.op("Gemm", inputs, "v", **options), "y", 0.04, 3)
    return model(net.nodes, {"x": (10, 4), **({} if w else {"z": (10, 7)})}, ["y"], net.constants, types={"y": 3})


def average(kind: str, shape: Shape = SHAPE, **more: Any) -> Any:
    return qdq(kind, "AveragePool", shape, scale=0.017, **more)


def qlinear_average(kind: str, shape: Shape = SHAPE, **more: Any) -> Any:
    net = Net(kind)
    net.quantize("x", "q")
    net.op("QLinearAveragePool", ["q", "q_s", "q_z", *net.quant("y", 0.017, 5)], "y", "com.microsoft", **more)
    return net.model(shape)


def softmax(kind: str, shape: Shape, scale: float = 1 / 256, opset: int = 21, **more: Any) -> Any:
    net = Net(kind)
    x = net.dequantize(net.quantize("x", "q", 0.05, 4))
    net.quantize(net.op("Softmax", [x], "v", **more), "y", scale, -128)
    return net.model(shape, opset=opset)


def qlinear_softmax(kind: str, shape: Shape, scale: float = 0.05, opset: int = 13, **more: Any) -> Any:
    net = Net(kind)
    net.quantize("x", "q", scale, 4)
    inputs = ["q", "q_s", "q_z", *net.quant("y", 1 / 256, -128)]
    net.op("QLinearSoftmax", inputs, "y", "com.microsoft", opset=opset, **more)
    return net.model(shape)


def resize(kind: str, sizes: tuple[float, float], how: str, scale: float = SCALE) -> Any:
    net = Net(kind)
    net.op(
        "Resize",
        [net.dequantize(net.quantize("x", "q", scale)), "", net.number("sizes", [1, 1, *sizes])],
        "v",
        mode="linear",
        coordinate_transformation_mode=how,
    )
    net.quantize("v", "y", scale)
    return net.model()


CASES = {
    "conv transpose": conv_transpose("int8", "int8", (6, 4, 3, 3), bias="int", strides=[2, 2], output_padding=[1, 1]),
    "conv transpose, a scale for each channel": conv_transpose(
        "int8", "int8", (6, 4, 3, 3), channels=True, bias="int", strides=[2, 2], pads=[1, 1, 1, 1]
    ),
    "conv transpose uint8": conv_transpose("uint8", "uint8", (6, 4, 4, 4), zero=121, strides=[2, 2], pads=[1] * 4),
    "conv transpose uint8 of far weights, in groups, dilated": conv_transpose(
        "uint8", "uint8", (6, 2, 3, 2), zero=3, group=3, dilations=[2, 3], strides=[2, 1]
    ),
    "conv transpose uint8 and int8, in groups, a scale for each channel": conv_transpose(
        "uint8", "int8", (6, 2, 3, 2), channels=True, group=2, strides=[2, 3], pads=[0, 1, 1, 0]
    ),
    "conv transpose by channel": conv_transpose("int8", "int8", (6, 1, 3, 3), group=6, strides=[2, 2], bias=""),
    "conv transpose of one axis, two samples": conv_transpose(
        "int8", "int8", (6, 3, 4), channels=True, strides=[2], pads=[1, 0], dilations=[3]
    ),
    "matmul of two": product("int8", ((5, 10), (10, 7))),
    "matmul of two that broadcast": product("uint8", ((2, 1, 5, 10), (3, 10, 7))),
    "matmul by several matrices": product("uint8", ((2, 5, 10), (2, 10, 7)), constant=1),
    "matmul by a matrix of more axes": product("int8", ((1, 2, 5, 10), (1, 1, 10, 7)), constant=1),
    "matmul of a constant": product("int8", ((5, 10), (2, 10, 7)), constant=0),
    "gemm of two": gemm(alpha=1.0, transA=1),
    "gemm, alpha and beta": gemm(w=True, alpha=0.5, beta=2.0, transA=1, transB=1),
    "qlinear matmul of two": product("uint8", ((2, 5, 10), (2, 10, 7)), qlinear=True),
    "qlinear matmul of a constant": product("int8", ((5, 10), (10, 7)), constant=0, qlinear=True),
    "average pool, pads do not count": average("int8", kernel_shape=[3, 3], strides=[2, 2], pads=[1] * 4),
    "average pool, pads count, ceil": average(
        "uint8", kernel_shape=[3, 3], strides=[2, 2], pads=[1] * 4, ceil_mode=1, count_include_pad=1
    ),
    "average pool, uneven pads, dilated": average("int8", kernel_shape=[3, 2], pads=[0, 1, 2, 0], dilations=[2, 1]),
    "average pool of one axis": average("uint8", (2, 3, 15), kernel_shape=[4], strides=[3], pads=[2, 1], ceil_mode=1),
    "qlinear average pool, pads do not count": qlinear_average("uint8", kernel_shape=[3, 3], pads=[1] * 4),
    "qlinear average pool, pads count, ceil": qlinear_average(
        "int8", kernel_shape=[3, 3], strides=[2, 2], pads=[1] * 4, ceil_mode=1, count_include_pad=1
    ),
    "softmax": softmax("int8", (40, 10)),
    "softmax of long rows": softmax("uint8", (2, 2000)),
    "softmax over channels, another scale": softmax("int8", (1, 6, 5, 4), 0.0011, axis=1),
    "softmax over several axes, old": softmax("int8", (2, 3, 4), opset=11),
    "qlinear softmax": qlinear_softmax("uint8", (200, 10)),
    "qlinear softmax of long rows": qlinear_softmax("int8", (4, 2000)),
    "qlinear softmax, shares of 1": qlinear_softmax("int8", (200, 5), 0.3),
    "qlinear softmax over several axes, old": qlinear_softmax("int8", (2, 3, 4), opset=11, axis=1),
    "qlinear softmax, old, of no axis": qlinear_softmax("uint8", (2, 3, 4), opset=11),
    "qlinear softmax over channels": qlinear_softmax("uint8", (1, 6, 5, 4), axis=-3),
}  # fmt: skip


@pytest.mark.parametrize("case", CASES)
def test_every_number_is_onnx_runtimes(case: str, tmp_path: Path) -> None:
    layers = compare_layers(CASES[case], tmp_path)
    assert not any(layer.op.op == "float" for layer in layers.graph.layers)
    assert all(tie.near <= max(6, tie.values / 20) for tie in layers.ties.values()), layers.ties
    if case.startswith("qlinear"):
        assert not layers.ties


@pytest.mark.parametrize("how", ["half_pixel", "asymmetric"])
def test_linear_resize_is_exact_where_float32_is(how: str, tmp_path: Path) -> None:
    """Many sums are halves: with a scale that is a power of two ONNX Runtime's float32 has them, and takes the even."""
    exact = compare_layers(resize("uint8", (2, 4), how, 2.0**-7), tmp_path / "exact")
    (ties,) = exact.ties.values()
    assert ties.near > ties.values / 40 and not ties.differing
    (ties,) = compare_layers(resize("int8", (1, 2), how), tmp_path / "near").ties.values()
    assert ties.differing <= ties.near / 2


def _behind_floats(folder: Path) -> tuple[OnnxLayers, int]:
    """A network with one layer of real numbers between integers, and the number of the tensor behind that."""
    graph, theirs, description = graph_of(qdq("int8", "ReduceL2", axes=[1], opset=13, scale=0.05))
    graph.save(folder)
    (folder / "tensors.json").write_text(json.dumps(description))
    layers = OnnxLayers(folder, folder / "tensors.json", theirs)
    (out,) = graph.layers[-1].outputs
    index = graph.tensors[out].tflite_index
    assert index is not None and any(layer.op.op == "float" for layer in graph.layers)
    return layers, index


@pytest.mark.parametrize(("tolerance", "wrong"), [(1e-3, 0), (1e-9, 1)])
def test_the_graph_goes_on_with_the_firmwares_integers_behind_floats_in_near_ties(
    tolerance: float, wrong: int, tmp_path: Path
) -> None:
    layers, index = _behind_floats(tmp_path)
    inputs = [np.random.default_rng(0).uniform(-3, 3, SHAPE).astype(np.float32)]
    layers.run(inputs)
    right = layers.tensor(index)
    reals = layers.theirs.tensor(layers.info.operators[-1].inputs[0]).reshape(right.shape) / 0.05
    place = np.unravel_index(np.abs(reals - np.floor(reals) - 0.5).argmin(), right.shape)
    firmware = right.copy()
    firmware[place] += 1 if reals[place] > right[place] - 3 else -1
    layers.firmware_has({index: (Port("y", "int8", right.shape), firmware)}, tolerance)
    layers.run(inputs)
    assert int((layers.tensor(index) != firmware).sum()) == wrong
    assert [tie.differing for tie in layers.ties.values()] == [1] * (not wrong)


def test_windows_in_padding_alone_are_refused() -> None:
    with pytest.raises(StageError, match=r"has windows .2, 2. that lie completely in the padding"):
        graph_of(average("int8", (1, 6, 2, 7), kernel_shape=[2, 2], pads=[1, 0, 1, 0], dilations=[3, 1]))


@pytest.mark.parametrize("form", FORMS)
def test_drawn_networks_are_onnx_runtimes(form: str) -> None:
    assert sum(check(seed, form)["layers"] for seed in range(200, 206)) > 30
