"""ONNX operators of real numbers: the TFLite file that import makes computes what ONNX Runtime does."""

from typing import Any

import numpy as np
import pytest

pytest.importorskip("onnx")
pytest.importorskip("onnxruntime")

from stages.import_model.onnx import convert
from stages.ir.models.tflite_reader import read
from stages.ir.reference import Reference
from stages.ir.reference.onnx_runtime import OnnxReference
from tests.support.onnx_graphs import drawn, model, node

IMAGE = (1, 6, 9, 7)


def one(
    op: str, shape: tuple[int, ...] = IMAGE, *more: Any, opset: int = 21, results: int = 1, **attributes: Any
) -> Any:
    """A model of one operator on `x`, and on constants `more`; None is an absent input."""
    constants = {f"c{at}": value for at, value in enumerate(more) if value is not None}
    names = ["x", *("" if value is None else f"c{at}" for at, value in enumerate(more))]
    outputs = [f"y{at}" for at in range(results)]
    return model([node(op, names, outputs, **attributes)], {"x": shape}, outputs, constants, opset=opset)


def chain(shape: tuple[int, ...], *nodes: Any, **constants: Any) -> Any:
    return model(nodes, {"x": shape}, ["y"], constants)


def chain_old(shape: tuple[int, ...], *nodes: Any) -> Any:
    return model(nodes, {"x": shape}, ["y"], {}, opset=11)


def ints(*values: int) -> Any:
    return np.array(values, np.int64)


def floats(*values: float) -> Any:
    return np.array(values, np.float32)


CASES = {
    "conv": one("Conv", IMAGE, drawn(1, 8, 6, 3, 3), drawn(2, 8), pads=[1, 1, 1, 1]),
    "conv strided, pads that SAME is not": one("Conv", IMAGE, drawn(1, 8, 6, 3, 3), pads=[1, 0, 2, 1], strides=[2, 3]),
    "conv in groups": one("Conv", IMAGE, drawn(1, 4, 3, 3, 3), group=2),
    "conv depthwise": one("Conv", IMAGE, drawn(1, 12, 1, 3, 3), drawn(2, 12), group=6, dilations=[2, 1]),
    "conv SAME_LOWER": one("Conv", IMAGE, drawn(1, 4, 6, 2, 2), auto_pad="SAME_LOWER"),
    "conv SAME_UPPER": one("Conv", IMAGE, drawn(1, 4, 6, 3, 2), auto_pad="SAME_UPPER", strides=[2, 2]),
    "conv of one axis": one("Conv", (1, 4, 16), drawn(1, 6, 4, 5), drawn(2, 6), pads=[1, 3], strides=[2]),
    "max pool": one("MaxPool", kernel_shape=[3, 2], strides=[2, 2], pads=[1, 0, 1, 1]),
    "max pool ceil": one("MaxPool", kernel_shape=[2, 2], strides=[2, 2], ceil_mode=1),
    "max pool of one axis": one("MaxPool", (1, 4, 15), kernel_shape=[3], strides=[2]),
    "average pool": one("AveragePool", kernel_shape=[3, 3], strides=[2, 2]),
    "average pool, pads count": one("AveragePool", kernel_shape=[3, 3], pads=[1, 1, 1, 1], count_include_pad=1),
    "average pool, pads do not, strided": one(
        "AveragePool", (1, 3, 8, 8), kernel_shape=[3, 3], strides=[2, 2], pads=[1, 1, 1, 1]
    ),
    "average pool, pads count, ceil": one(
        *("AveragePool", (1, 3, 8, 8)),
        kernel_shape=[3, 2],
        strides=[2, 3],
        pads=[1, 0, 0, 1],
        ceil_mode=1,
        count_include_pad=1,
    ),
    "average pool, dilated": one("AveragePool", kernel_shape=[3, 3], pads=[1, 0, 2, 1], dilations=[2, 1]),
    "global average pool": one("GlobalAveragePool"),
    "global max pool": one("GlobalMaxPool"),
    "mean, axes dropped": one("ReduceMean", IMAGE, ints(2, 3), keepdims=0),
    "mean, old": one("ReduceMean", IMAGE, axes=[1], keepdims=0, opset=13),
    "sum": one("ReduceSum", IMAGE, ints(-1)),
    "gemm": one("Gemm", (3, 10), drawn(1, 10, 5), drawn(2, 5), alpha=0.5, beta=2.0),
    "gemm transposed": one("Gemm", (3, 10), drawn(1, 5, 10), transB=1),
    "gemm, a bias for each row": one("Gemm", (3, 10), drawn(1, 10, 5), drawn(2, 3, 1), beta=2.0),
    "gemm, a bias for each number, transposed": one(
        *("Gemm", (10, 3), drawn(1, 5, 10), drawn(2, 3, 5)), transA=1, transB=1, alpha=0.5, beta=2.0
    ),
    "gemm of three computed": model(
        "v = Gemm <transA=1, alpha=0.5, beta=2.0> (x, z, c)  y = Relu (v)",
        {"x": (10, 3), "z": (10, 5), "c": (5,)},
        ["y"],
    ),
    "gemm of a constant": model(
        "y = Gemm <alpha=0.5> (a, x, c)", {"x": (10, 5)}, ["y"], {"a": drawn(1, 3, 10), "c": drawn(2, 3, 1)}
    ),
    "one hot of indices from the end, in front": chain(
        (2, 5, 3),
        "i = Cast <to=6> (x)  y = OneHot <axis=-4> (i, depth, values)",
        depth=np.array(4, np.int32),
        values=floats(0, 1),
    ),
    "softmax over all axes from one on, old": one("Softmax", (2, 4, 6), axis=-2, opset=11),
    "layer normalization before it was ONNX'": one("LayerNormalization", (2, 4, 8), drawn(1, 8), drawn(2, 8), opset=11),
    "simplified layer normalization": one("SimplifiedLayerNormalization", (2, 4, 8), drawn(1, 8), opset=13),
    "gelu of ONNX Runtime's": chain_old((2, 4, 8), "y = com.microsoft.Gelu (x)"),
    "quick gelu": chain_old((2, 4, 8), "y = com.microsoft.QuickGelu <alpha=1.3> (x)"),
    "matmul": one("MatMul", (2, 5, 10), drawn(1, 10, 4)),
    "matmul of two computed matrices": model("y = MatMul (x, z)", {"x": (2, 3, 5, 4), "z": (2, 3, 4, 6)}, ["y"]),
    "matmul that broadcasts": model("y = MatMul (x, z)", {"x": (2, 3, 5, 4), "z": (4, 6)}, ["y"]),
    "matmul of what is transposed": chain((2, 5, 4), "t = Transpose <perm=[0, 2, 1]> (x)  y = MatMul (t, x)"),
    "matmul by a constant of several matrices": one("MatMul", (2, 5, 4), drawn(1, 2, 4, 3)),
    "matmul of a constant": model("y = MatMul (c, x)", {"x": (2, 5, 4)}, ["y"], {"c": drawn(1, 3, 5)}),
    "conv transpose": one("ConvTranspose", IMAGE, drawn(1, 6, 4, 3, 3), drawn(2, 4), strides=[2, 2]),
    "conv transpose, pads and output padding": one(
        *("ConvTranspose", IMAGE, drawn(1, 6, 4, 3, 3), drawn(2, 4)),
        strides=[2, 2],
        pads=[1, 1, 1, 1],
        output_padding=[1, 1],
    ),
    "conv transpose, pads that differ": one(
        "ConvTranspose", IMAGE, drawn(1, 6, 4, 3, 5), strides=[1, 3], pads=[0, 2, 1, 1], output_padding=[0, 2]
    ),
    "conv transpose, window smaller than its stride": one("ConvTranspose", IMAGE, drawn(1, 6, 2, 1, 2), strides=[2, 3]),
    "conv transpose, zeros behind": one(
        "ConvTranspose", IMAGE, drawn(1, 6, 2, 2, 2), drawn(2, 2), strides=[3, 3], output_padding=[2, 1]
    ),
    "conv transpose SAME_UPPER": one(
        "ConvTranspose", IMAGE, drawn(1, 6, 2, 3, 4), strides=[2, 2], auto_pad="SAME_UPPER"
    ),
    "conv transpose to a size beyond on one axis, SAME_UPPER": one(
        *("ConvTranspose", IMAGE, drawn(1, 6, 2, 1, 3), drawn(2, 2)),
        strides=[3, 1],
        output_shape=[27, 7],
        auto_pad="SAME_UPPER",
    ),
    "conv transpose SAME_UPPER, window smaller than its stride": one(
        "ConvTranspose", IMAGE, drawn(1, 6, 2, 1, 2), drawn(2, 2), strides=[2, 3], auto_pad="SAME_UPPER"
    ),
    "conv transpose, dilated": one(
        *("ConvTranspose", IMAGE, drawn(1, 6, 4, 3, 2), drawn(2, 4)),
        strides=[2, 1],
        dilations=[2, 3],
        pads=[1, 0, 2, 1],
    ),
    "conv transpose in groups": one(
        "ConvTranspose", IMAGE, drawn(1, 6, 4, 3, 3), drawn(2, 12), group=3, strides=[2, 2]
    ),
    "conv transpose by channel": one("ConvTranspose", IMAGE, drawn(1, 6, 1, 3, 3), group=6, strides=[2, 2]),
    "conv transpose of one axis, dilated, in groups": one(
        "ConvTranspose", (1, 4, 15), drawn(1, 4, 3, 4), drawn(2, 6), strides=[2], pads=[1, 0], dilations=[3], group=2
    ),
    "gelu": one("Gelu"),
    "gelu by tanh": one("Gelu", approximate="tanh"),
    "arg max": model("y = ArgMax <axis=-1> (x)", {"x": (3, 7)}, ["y"], types={"y": 7}),
    "relu": one("Relu"),
    "clip": one("Clip", IMAGE, floats(-0.25).reshape(()), floats(0.5).reshape(())),
    "clip to six": one("Clip", IMAGE, floats(0).reshape(()), floats(6).reshape(())),
    "clip, old": one("Clip", min=-0.5, opset=9),
    "leaky relu": one("LeakyRelu", alpha=0.3),
    "prelu": one("PRelu", IMAGE, drawn(1, 6, 1, 1)),
    "elu": one("Elu"),
    "sigmoid": one("Sigmoid"),
    "hard sigmoid": one("HardSigmoid", alpha=0.3, beta=0.4),
    "hard swish": one("HardSwish"),
    "tanh": one("Tanh"),
    "add a channel's constant": one("Add", IMAGE, drawn(1, 6, 1, 1)),
    "sub from a scalar": model("y = Sub (c, x)", {"x": IMAGE}, ["y"], {"c": floats(2).reshape(())}),
    "mul two images": model("y = Mul (x, z)", {"x": IMAGE, "z": (9, 1)}, ["y"]),
    "div": one("Div", IMAGE, floats(3)),
    "max": one("Max", IMAGE, drawn(1, 7)),
    "pow": one("Pow", IMAGE, floats(2).reshape(())),
    "batch normalization": one("BatchNormalization", IMAGE, *(np.abs(drawn(at, 6)) + 0.1 for at in range(4))),
    "layer normalization": one("LayerNormalization", (2, 5, 8), drawn(1, 8), drawn(2, 8)),
    "layer normalization without a bias": one("LayerNormalization", (2, 5, 8), drawn(1, 8), epsilon=0.01),
    "layer normalization of images": chain(
        IMAGE,
        "v = Conv (x, w)  y = LayerNormalization <axis=1> (v, s, b)",
        w=drawn(1, 4, 6, 3, 3),
        s=drawn(2, 4, 7, 5),
        b=drawn(3, 4, 7, 5),
    ),
    "instance normalization": one("InstanceNormalization", IMAGE, drawn(1, 6), drawn(2, 6)),
    "softmax over channels": one("Softmax", axis=1),
    "softmax over rows": one("Softmax", axis=2),
    "softmax, old": one("Softmax", (2, 8), opset=11),
    "log softmax": one("LogSoftmax", (2, 8)),
    "transpose": one("Transpose", perm=[0, 2, 3, 1]),
    "reshape that mixes axes": chain(
        IMAGE,
        "r = Relu (x)  p = GlobalAveragePool (r)  v = Conv (r, w)  y = Reshape (v, s)",
        w=drawn(1, 4, 6, 1, 1),
        s=ints(0, 2, -1),
    ),
    "flatten after images": chain(
        IMAGE, "v = Conv (x, w)  f = Flatten (v)  y = Gemm (f, g)", w=drawn(1, 4, 6, 3, 3), g=drawn(2, 140, 3)
    ),
    "matmul of rows whose axes moved": chain(
        (1, 8, 4), "r = Transpose <perm=[1, 0, 2]> (x)  y = MatMul (r, g)", g=drawn(2, 4, 3)
    ),
    "matmul of a vector": one("MatMul", (10,), drawn(1, 10, 4)),
    "matmul and a scalar": chain((3, 10), "v = MatMul (x, g)  y = Add (s, v)", g=drawn(1, 10, 4), s=floats(2)[0]),
    "matmul and a constant of more axes": chain(
        (3, 10), "v = MatMul (x, g)  a = Add (v, b)  y = Softmax <axis=1> (a)", g=drawn(1, 10, 4), b=drawn(2, 1, 1, 4)
    ),
    "matmul and a constant of each row": chain(
        (4, 10), "v = MatMul (x, g)  y = Add (v, b)", g=drawn(1, 10, 4), b=drawn(2, 4, 1)
    ),
    "gemm and one number": one("Gemm", (3, 10), drawn(1, 10, 5), drawn(2, 1, 1)),
    "a shape that is computed": chain(
        IMAGE,
        "v = Conv (x, w)  s = Shape (v)  n = Gather (s, zero)  u = Unsqueeze (n, zeros)",
        "to = Concat <axis=0> (u, rest)  y = Reshape (v, to)",
        w=drawn(1, 4, 6, 3, 3),
        zero=np.array(0, np.int64),
        zeros=ints(0),
        rest=ints(-1),
    ),
    "channels last and back": chain(
        IMAGE,
        "t = Transpose <perm=[0, 2, 3, 1]> (x)  m = Mul (t, c)  b = Transpose <perm=[0, 3, 1, 2]> (m)",
        "y = Conv (b, w)",
        c=drawn(1, 6),
        w=drawn(2, 4, 6, 3, 3),
    ),
    "squeeze and unsqueeze": chain(
        (1, 6, 1, 7), "s = Squeeze (x, two)  y = Unsqueeze (s, axes)", two=ints(2), axes=ints(0, 3)
    ),
    "concat": model(
        "v = Conv (x, w)  y = Concat <axis=1> (v, x, c)",
        {"x": IMAGE},
        ["y"],
        {"w": drawn(1, 4, 6, 1, 1), "c": drawn(2, 1, 2, 9, 7)},
    ),
    "split": one("Split", IMAGE, ints(1, 2, 3), axis=1, results=3),
    "split evenly": one("Split", axis=1, num_outputs=2, results=2),
    "slice": one("Slice", IMAGE, ints(1, -4), ints(5, 1000), ints(1, 3), ints(2, 1)),
    "gather one": one("Gather", IMAGE, np.array(2, np.int64), axis=1),
    "pad": one("Pad", IMAGE, ints(0, 1, 2, 0, 0, 0, 1, 3)),
    "pad with a value": one("Pad", IMAGE, ints(0, 0, 1, 1, 0, 0, 1, 1), floats(1.5).reshape(())),
    "resize linear": one("Resize", IMAGE, None, None, ints(1, 6, 18, 14), mode="linear"),
    "resize linear, align corners": one(
        *("Resize", IMAGE, None, floats(1, 1, 2, 3)), mode="linear", coordinate_transformation_mode="align_corners"
    ),
    "resize nearest, align corners": one(
        *("Resize", IMAGE, None, None, ints(1, 6, 20, 11)),
        mode="nearest",
        coordinate_transformation_mode="align_corners",
        nearest_mode="round_prefer_ceil",
    ),
    "resize by scales of two axes": one("Resize", IMAGE, None, floats(2, 3), mode="linear", axes=[2, 3]),
    "resize, aspect kept": one(
        *("Resize", IMAGE, None, None, ints(18, 18)), mode="linear", axes=[2, 3], keep_aspect_ratio_policy="not_larger"
    ),
    "resize by scales that give the sizes in float32": one(
        *("Resize", (1, 2, 10, 10), None, floats(1, 1, 0.7, 0.7)), mode="linear"
    ),
    "resize nearest by scales": one(
        *("Resize", (1, 2, 5, 5), None, floats(1, 1, 1.5, 1.5)),
        mode="nearest",
        coordinate_transformation_mode="asymmetric",
        nearest_mode="floor",
    ),
    "resize to one pixel": one(
        *("Resize", (1, 2, 5, 8), None, None, ints(1, 2, 1, 1)),
        mode="linear",
        coordinate_transformation_mode="pytorch_half_pixel",
    ),
    "resize, old": one("Resize", IMAGE, floats(1, 1, 2, 3), mode="linear", opset=10),
    "upsample": one("Upsample", IMAGE, mode="nearest", scales=[1.0, 1.0, 2.0, 2.0], opset=7),
    "depth to space": one("DepthToSpace", (1, 8, 3, 3), blocksize=2),
    "a bound that is known behind the operator": chain(
        IMAGE,
        "v = Conv (x, w)  low = Constant <value_float=0.0> ()  high = Constant <value_float=6.0> ()",
        "y = Clip (v, low, high)",
        w=drawn(1, 4, 6, 3, 3) * 9,
    ),
    **{
        f"{op} of images and what broadcasts": chain(
            IMAGE,
            "v = Conv (x, w)  a = Floor (v)",
            node(op, ["a", "c"], ["t"]),
            "y = Cast <to=1> (t)",
            w=drawn(1, 4, 6, 3, 3),
            c=floats(-1, 0, 1, 2).reshape(4, 1, 1),
        )
        for op in ("Equal", "Greater", "GreaterOrEqual", "Less", "LessOrEqual")
    },
    **{
        f"{op} of truths": chain(
            IMAGE,
            "a = Less (x, c)  f = Relu (x)  b = Cast <to=9> (f)",
            node(op, ["a", "b"], ["t"]),
            "n = Not (t)  y = Cast <to=1> (n)",
            c=floats(0.3),
        )
        for op in ("And", "Or")
    },
    "where": chain(
        IMAGE,
        "a = MaxPool <kernel_shape=[3, 3], pads=[1, 1, 1, 1]> (x)  t = Greater (a, c)",
        "y = Where (t, a, b)",
        b=drawn(3, 6, 1, 7),
        c=floats(0.5),
    ),
    "where, by a mask": chain(IMAGE, "y = Where (t, x, b)", t=drawn(3, 9, 7) > 0, b=floats(0)),
    "where, of two constants and a truth that is given": model(
        "y = Where (t, a, b)", {"t": (3, 1)}, ["y"], {"a": drawn(1, 2, 3, 4), "b": drawn(2, 4)}, types={"t": 9}
    ),
    "two results of one tensor": model(
        "y = Conv (x, w)  z = Relu (y)", {"x": IMAGE}, ["y", "z"], {"w": drawn(1, 4, 6, 3, 3)}
    ),
    "results that are constants": model(
        "y = Relu (x)  z = Add (a, b)  s = Shape (x)",
        {"x": IMAGE},
        ["z", "y", "s"],
        {"a": drawn(1, 1, 2, 2, 3), "b": drawn(2, 3)},
        types={"s": 7},
    ),
}


def judged(proto: Any, layout: str = "nchw") -> tuple[OnnxReference, Reference]:
    """ONNX Runtime, and LiteRT on the file that import makes."""
    data = proto.SerializeToString()
    converted = convert(data, "net.onnx", {}, layout)
    return OnnxReference(converted.data, data, converted.names), Reference(converted.data)


@pytest.mark.parametrize("layout", ["nchw", "nhwc"])
@pytest.mark.parametrize("case", CASES)
def test_operators_give_what_onnx_runtime_gives(case: str, layout: str) -> None:
    theirs, ours = judged(CASES[case], layout)
    inputs = [drawn(7 + at, *tensor.shape) for at, tensor in enumerate(ours.inputs)]
    inputs = [array > 0 if tensor.dtype == "bool" else array for array, tensor in zip(inputs, ours.inputs, strict=True)]
    expected = theirs.run(inputs)
    for tensor, got, wanted in zip(ours.outputs, ours.run(inputs), expected, strict=True):
        np.testing.assert_allclose(got, wanted, rtol=1e-5, atol=2e-6, err_msg=tensor.name)
    for index, wanted in theirs.computed().items():
        np.testing.assert_allclose(ours.tensor(index), wanted, rtol=1e-5, atol=2e-6)


def test_images_are_transposed_once_at_the_entry_and_not_at_all_where_the_recipe_says_nhwc() -> None:
    proto = CASES["flatten after images"]
    operators = {
        layout: [
            operator.op for operator in read(convert(proto.SerializeToString(), "n", {}, layout).data, "n").operators
        ]
        for layout in ("nchw", "nhwc")
    }
    assert operators == {"nchw": ["TRANSPOSE", "CONV_2D", "FULLY_CONNECTED"], "nhwc": ["CONV_2D", "FULLY_CONNECTED"]}


def test_activations_are_fused_and_one_channel_needs_no_transpose() -> None:
    proto = chain(
        (1, 1, 8, 8), "v = Conv (x, w)  r = Relu (v)  y = MaxPool <kernel_shape=[2, 2]> (r)", w=drawn(1, 4, 1, 3, 3)
    )
    info = read(convert(proto.SerializeToString(), "n", {}, "nchw").data, "n")
    assert [operator.op for operator in info.operators] == ["RESHAPE", "CONV_2D", "MAX_POOL_2D", "TRANSPOSE"]
