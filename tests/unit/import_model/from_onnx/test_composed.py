"""ONNX operators that TFLite does not have, or has in another form: composed of its own, and tables of integers."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("onnx")
pytest.importorskip("onnxruntime")

import onnx

from stages.import_model.onnx import convert
from stages.ir.models.tflite_reader import read
from tests.support.onnx_graphs import drawn, model, node
from tests.support.onnx_integers import Net, qdq
from tests.unit.import_model.from_onnx.comparison import compare_layers
from tests.unit.import_model.from_onnx.test_float import IMAGE, chain, floats, ints, judged, one

FUNCTIONS: dict[str, dict[str, float]] = {
    "Celu": {"alpha": 0.7},
    "Ceil": {},
    "Elu": {"alpha": 0.5},
    "Erf": {},
    "Mish": {},
    "Reciprocal": {},
    "Round": {},
    "Selu": {},
    "Shrink": {"lambd": 0.4, "bias": 0.1},
    "Sign": {},
    "Softplus": {},
    "Softsign": {},
    "ThresholdedRelu": {"alpha": 0.3},
}
HALF, ROOT = np.float32(0.5), np.float32(2**0.5)


def behind_a_convolution(last: Any, **constants: Any) -> Any:
    """The operator where images lie as NHWC."""
    return chain(IMAGE, "c = Conv (x, k)", last, k=drawn(1, 8, 6, 3, 3), **constants)


def without_shape(proto: Any) -> Any:
    """The network whose output has no shape, which onnx does not infer for all operators."""
    proto.graph.output[0].type.tensor_type.ClearField("shape")
    return proto


def top(*outputs: str, **attributes: int) -> Any:
    nodes = [node("TopK", ["x", "k"], ["v", "i"], **attributes)]
    return model(nodes, {"x": IMAGE}, outputs, {"k": ints(1)}, types={"i": 7})


def gelu(*nodes: Any) -> Any:
    constants = {"root": ROOT, "inverse": 1 / ROOT, "one": np.float32(1), "half": HALF, "two": np.float32(2)}
    return model(nodes, {"x": IMAGE}, ["y"], constants)


ERF = node("Erf", ["d"], ["e"]), node("Add", ["one", "e"], ["a"])
GELUS = {
    "torch": gelu("d = Div (x, root)", *ERF, "m = Mul (x, a)  y = Mul (m, half)"),
    "half first": gelu("h = Mul (x, half)  d = Mul (x, inverse)", *ERF, "y = Mul (h, a)"),
    "half in between": gelu("d = Mul (inverse, x)", *ERF, "m = Mul (half, a)  y = Mul (m, x)"),
    "halved by a division": gelu("d = Div (x, root)", *ERF, "m = Mul (a, x)  y = Div (m, two)"),
}
PADS = ints(0, 0, 2, 3, 0, 0, 1, 4)
CASES = {
    **{name.lower(): one(name, **attributes) for name, attributes in FUNCTIONS.items()},
    **{f"gelu, {name}": proto for name, proto in GELUS.items()},
    "swish": one("Swish", opset=24, alpha=0.7),
    "upper triangle": one("Trilu", IMAGE, np.int64(1)),
    "mean and variance": one("MeanVarianceNormalization"),
    "erf of another scale": gelu("d = Mul (x, half)", *ERF, "m = Mul (x, a)  y = Mul (m, half)"),
    "erf that is read twice": gelu(
        *(node("Div", ["x", "root"], ["d"]), *ERF, node("Mul", ["x", "a"], ["m"]), node("Mul", ["m", "half"], ["g"])),
        "y = Add (g, e)",
    ),
    "cube": one("Pow", IMAGE, floats(3)),
    "square by an integer": one("Pow", IMAGE, ints(2)),
    "powers by channel": chain(IMAGE, "a = Abs (x)  y = Pow (a, c)", c=drawn(1, 6, 1, 1) + 2),
    "max of three": one("Max", IMAGE, drawn(1, 6, 1, 1), floats(0.1)),
    "sum of three": one("Sum", IMAGE, drawn(1, 6, 1, 1), floats(0.1)),
    "mean of three": one("Mean", IMAGE, drawn(1, 6, 1, 1), floats(0.1)),
    "cut to integers": chain(IMAGE, "a = Mul (x, c)  b = Cast <to=6> (a)  y = Cast <to=1> (b)", c=floats(7)),
    "xor": chain(
        IMAGE, "a = Less (x, c)  b = Greater (x, d)  t = Xor (a, b)  y = Cast <to=1> (t)", c=floats(0.3), d=floats(-0.2)
    ),
    "flipped": one("Slice", IMAGE, ints(-1), ints(-(2**62)), ints(3), ints(-1)),
    "cut backwards": behind_a_convolution(
        "y = Slice (c, s, e, a, t)", s=ints(-1, 6), e=ints(-99, 1), a=ints(3, 2), t=ints(-2, -1)
    ),
    "gather any": one("Gather", IMAGE, ints(3, 0, 0, 5), axis=1),
    "gather by two axes": one("Gather", IMAGE, np.array([[3, 0], [1, -1]]), axis=2),
    "expand": one("Expand", (1, 6, 1, 7), ints(2, 1, 9, 1)),
    "expand to more axes": one("Expand", (6, 1), ints(2, 1, 3)),
    "tile": behind_a_convolution("y = Tile (c, i)", i=ints(1, 3, 2, 2)),
    **{f"pad {mode}": one("Pad", IMAGE, PADS, mode=mode) for mode in ("reflect", "edge", "wrap")},
    "pad images": behind_a_convolution('y = Pad <mode="reflect"> (c, p)', p=PADS),
    "pixel shuffle": one("DepthToSpace", (2, 12, 3, 5), blocksize=2, mode="CRD"),
    "top one": top("v", "i", axis=1),
    "place of the smallest": top("i", axis=2, largest=0),
    "cumulative from behind": one("CumSum", IMAGE, np.int64(1), reverse=1),
    "cumulative of those before": one("CumSum", IMAGE, np.int64(-1), exclusive=1),
    "sum of absolute values": one("ReduceL1", IMAGE, ints(1)),
    "length": one("ReduceL2", IMAGE, ints(1, 2), keepdims=0),
    "sum of squares": one("ReduceSumSquare", IMAGE, ints(-1)),
    "log of sum of powers, axes dropped": one("ReduceLogSumExp", IMAGE, ints(1, 3), keepdims=0),
    "product": one("ReduceProd", IMAGE, ints(1)),
    "log of a sum": chain(IMAGE, "v = Abs (x)  y = ReduceLogSum (v, a)", a=ints(2)),
    "unit length": one("LpNormalization", axis=1),
    "shares": one("LpNormalization", axis=3, p=1),
    "groups": without_shape(
        behind_a_convolution("y = GroupNormalization <num_groups=2> (c, s, b)", s=drawn(1, 8), b=drawn(2, 8))
    ),
    "root mean square": one("RMSNormalization", (2, 5, 8), drawn(1, 8), opset=23),
    "einsum of heads": model(
        'y = Einsum <equation="bqhd,bkhd->bhqk"> (x, z)', {"x": (2, 5, 2, 4), "z": (2, 3, 2, 4)}, ["y"]
    ),
    "einsum whose axes move": one("Einsum", (3, 4, 5), drawn(1, 5, 7), equation="abc, cd -> adb"),
    "einsum of all by all": one("Einsum", (3,), drawn(1, 4), equation="i,j->ij"),
}


@pytest.mark.parametrize("layout", ["nchw", "nhwc"])
@pytest.mark.parametrize("case", CASES)
def test_real_numbers(case: str, layout: str) -> None:
    theirs, ours = judged(CASES[case], layout)
    inputs = [3 * drawn(7 + at, *tensor.shape) for at, tensor in enumerate(ours.inputs)]
    expected = theirs.run(inputs)
    for got, wanted in zip(ours.run(inputs), expected, strict=True):
        np.testing.assert_allclose(got, wanted, rtol=1e-5, atol=4e-6)
    for index, wanted in theirs.computed().items():
        np.testing.assert_allclose(ours.tensor(index), wanted, rtol=1e-5, atol=4e-6)


@pytest.mark.parametrize("op", FUNCTIONS)
def test_special_numbers(op: str) -> None:
    """Around zero, at halves, and far out, where nothing may overflow on the way."""
    line = floats(0, -0.0, 1e-30, -1e-30, 0.5, 1.5, -2.5, 90, -90, 300, -300)[None]
    if op == "Reciprocal":
        line = line[:, 4:]
    theirs, ours = judged(one(op, line.shape, **FUNCTIONS[op]))
    (wanted,) = theirs.run([line])
    np.testing.assert_allclose(ours.run([line])[0], wanted, rtol=1e-5, atol=4e-7)


@pytest.mark.parametrize("p", [1, 2])
def test_rows_of_zeros_have_no_length(p: int) -> None:
    """Nor have rows whose squares are 0 in float32; those of ONNX Runtime are zeros then."""
    rows = np.outer(floats(0, 1e-25, 1e-30, 1e-20, 1), floats(1, -2, 0, 0.5))
    theirs, ours = judged(one("LpNormalization", rows.shape, axis=1, p=p))
    (wanted,) = theirs.run([rows])
    assert not wanted[0].any()
    np.testing.assert_allclose(ours.run([rows])[0], wanted, rtol=1e-5, atol=4e-7)


def test_deviations_that_are_small_beside_the_mean() -> None:
    """Each channel has a mean a thousand times its deviation; where that is none, ONNX Runtime divides 0 by 0."""
    channels = floats(1000, 100, -10, 1, 1e-6, 4).reshape(1, 6, 1, 1)
    x = channels * (1 + drawn(3, *IMAGE) * floats(1e-3, 1e-3, 1e-3, 1e-3, 1e-3, 0).reshape(1, 6, 1, 1))
    theirs, ours = judged(one("MeanVarianceNormalization"))
    (wanted,), (got,) = theirs.run([x]), ours.run([x])
    np.testing.assert_allclose(got[:, :5], wanted[:, :5], atol=1e-3)
    assert np.isnan(wanted[:, 5]).all()
    assert not got[:, 5].any()


def test_gelu_is_one_operator_and_others_are_not() -> None:
    def made(proto: Any) -> list[str]:
        return [
            operator.op for operator in read(convert(proto.SerializeToString(), "n", {}, "nhwc").data, "n").operators
        ]

    assert all(made(proto) == ["GELU"] for proto in GELUS.values())
    assert all("EXP" in made(CASES[name]) for name in ("erf of another scale", "erf that is read twice"))


def quantized_gelu(name: str, kind: str, opset: int) -> Any:
    """quantize, dequantize, the operators of a Gelu, quantize."""
    proto, net = GELUS[name], Net(kind)
    net.constants |= {tensor.name: onnx.numpy_helper.to_array(tensor) for tensor in proto.graph.initializer}
    real = net.dequantize(net.quantize("x", "q"))
    names = {"x": real, "y": "v"}
    for part in proto.graph.node:
        net.op(part.op_type, [names.get(read, read) for read in part.input], names.get(part.output[0], part.output[0]))
    net.quantize("v", "y", 0.015, -90)
    return net.model(opset=opset)


def by_a_number(kind: str, op: str, number: Any, *, first: bool = False) -> Any:
    """quantize, dequantize, one operator with one real number on the other side, Relu, quantize."""
    net = Net(kind)
    x = net.dequantize(net.quantize("x", "q", 0.02, 9))
    names = [x, net.number("c", number)]
    net.op("Relu", [net.op(op, names[::-1] if first else names, "v")], "r")
    net.quantize("r", "y", 0.03, -100)
    return net.model()


def moved(kind: str, op: str, *more: Any, shape: tuple[int, ...] = IMAGE, **attributes: Any) -> Any:
    """What is dequantized is moved, and quantized as it was, behind a convolution too."""
    net = Net(kind)
    real = net.dequantize(net.quantize("x", "q"))
    names = [net.number(f"c{at}", value, np.asarray(value).dtype) for at, value in enumerate(more)]
    net.op(op, [real, *names], "v", **attributes)
    net.nodes.append(node("QuantizeLinear", ["v", "q_s", "q_z"], ["y"]))
    return net.model(shape)


INTEGERS = {
    **{f"{name} {kind}": qdq(kind, name, **FUNCTIONS[name]) for name in FUNCTIONS for kind in ("int8", "uint8")},
    "divided by a number": by_a_number("uint8", "Div", 0.7),
    "a number divided": by_a_number("int8", "Div", [[0.7]], first=True),
    "a number less it": by_a_number("uint8", "Sub", 1.0, first=True),
    "times a number": by_a_number("int8", "Mul", -1.3),
    "and a number": by_a_number("int8", "Add", [0.2]),
    "cubed": by_a_number("uint8", "Pow", 3.0),
    "at least a number": by_a_number("int8", "Max", 0.31),
    "expanded": moved("int8", "Expand", ints(1, 6, 2, 7), shape=(1, 6, 1, 7)),
    "tiled": moved("uint8", "Tile", ints(1, 2, 1, 2)),
    "gathered": moved("int8", "Gather", ints(5, 0, 0), axis=1),
    "reversed": moved("uint8", "Slice", ints(-1), ints(-99), ints(2), ints(-1)),
    "reflected": moved("int8", "Pad", PADS, mode="reflect"),
    "edges repeated": moved("uint8", "Pad", PADS, mode="edge"),
    "shuffled": moved("int8", "DepthToSpace", shape=(1, 8, 3, 4), blocksize=2, mode="CRD"),
}


OLD = {
    **{f"gelu, {name}": quantized_gelu(name, "int8", 17) for name in GELUS},
    "gelu uint8": quantized_gelu("torch", "uint8", 13),
    "gelu of an opset that has it": quantized_gelu("half first", "uint8", 21),
    "tanh, then relu": qdq("uint8", "Tanh", after="Relu", opset=10),
    "sigmoid, then clip": qdq("uint8", "Sigmoid", after="Clip", opset=10, bounds={"min": 0.0, "max": 6.0}),
}


@pytest.mark.parametrize("case", OLD)
def test_tables_are_of_the_operators_of_the_file(case: str, tmp_path: Path) -> None:
    """Opsets that lack what would do as well: Gelu is of opset 20, Clip with bounds as inputs of 11."""
    layers = compare_layers(OLD[case], tmp_path)
    assert not layers.ties and not any(layer.op.op == "float" for layer in layers.graph.layers)


@pytest.mark.parametrize("case", INTEGERS)
def test_integers_are_onnx_runtimes(case: str, tmp_path: Path) -> None:
    layers = compare_layers(INTEGERS[case], tmp_path)
    assert not layers.ties and not any(layer.op.op == "float" for layer in layers.graph.layers)
