"""Each class of malformed model with the message that it gets: operator, tensor, value; one to five lines."""

import numpy as np
import pytest

from stages.base import StageError
from stages.import_model.build import build_module
from stages.import_model.normalize import normalized
from stages.ir.models.tflite_reader import read
from tests.support.malformed import (
    Alteration,
    altered,
    binary,
    chain,
    computed,
    constant,
    conv,
    dense,
    depthwise,
    dequantized,
    ends,
    indexed,
    indices,
    joined,
    no_options,
    option,
    other_options,
    pool,
    sparse,
    tensor,
    unary,
)

BIG = 2**30
NAN, INFINITE = float("nan"), float("inf")


def told(data: bytes) -> str:
    """What the user is told of the file."""
    with pytest.raises(StageError) as caught:
        build_module(data, read(data))
    message = str(caught.value)
    assert 1 <= len(message.splitlines()) <= 5
    assert "TVM" not in message and "Traceback" not in message
    return message


def strided(**fields: int) -> bytes:
    shape = (1, 4, 4) if fields else (1, 4, 4, 4)
    return indexed("STRIDED_SLICE", shape, ([0] * 4, [4] * 4, [1] * 4), "StridedSliceOptions", fields)


ADD = binary("ADD", "AddOptions")
TANH = unary("TANH")
LEAKY_RELU = unary("LEAKY_RELU", "LeakyReluOptions")
SOFTMAX = unary("SOFTMAX", "SoftmaxOptions")
SQUEEZE = indexed("SQUEEZE", (4, 4, 4), (), "SqueezeOptions")
MEAN = indexed("MEAN", (1, 4), ([1, 2],), "ReducerOptions")
TRANSPOSE = indexed("TRANSPOSE", (1, 4, 4, 4), ([0, 2, 1, 3],))
RESHAPE = indexed("RESHAPE", (4, 16), ([4, 16],))
PAD = indexed("PAD", (1, 4, 4, 4), ([[0, 0]] * 4,))
SLICE = indexed("SLICE", (1, 2, 4, 4), ([0] * 4, [1, 2, 4, 4]))
SPLIT = indexed("SPLIT", (1, 4, 4, 4), (3,), "SplitOptions", {"numSplits": 1})
SPLIT_V = indexed("SPLIT_V", (1, 4, 4, 4), ([4], 3), "SplitVOptions", {"numSplits": 1})
SPACE_TO_DEPTH = indexed("SPACE_TO_DEPTH", (1, 2, 2, 16), (), "SpaceToDepthOptions", {"blockSize": 2})
RELU = unary("RELU")
DEQUANTIZED = dequantized()
TANH_OF_INT8 = unary("TANH", dtype="int8")

COUNTS: list[tuple[bytes, Alteration, str]] = [
    (conv(), indices("inputs", []), "operator 0 (CONV_2D) has 0 inputs; it takes 3\n  nothing -> 'y'"),
    (conv(), indices("inputs", [0]), "operator 0 (CONV_2D) has 1 input; it takes 3\n  'x' -> 'y'"),
    (conv(), indices("inputs", [-1, 1, 2]), "lacks its input 0"),
    (dense(), indices("inputs", [0]), "(FULLY_CONNECTED) has 1 input; it takes 2 to 3"),
    (dense(), indices("inputs", [0, 1, 2, 2]), "has 4 inputs; it takes 2 to 3"),
    (conv(), indices("outputs", []), "nothing computes the output tensor 3 'y'"),
    (ADD, indices("inputs", [0, 1, 0]), "(ADD) has 3 inputs; it takes 2"),
    (TANH, indices("inputs", [0, 0]), "(TANH) has 2 inputs; it takes 1"),
    (pool(), indices("inputs", []), "(AVERAGE_POOL_2D) has 0 inputs; it takes 1"),
    (joined(), indices("inputs", []), "(CONCATENATION) has 0 inputs; it takes 1 or more"),
    (strided(), indices("inputs", [0, 1, 2]), "(STRIDED_SLICE) has 3 inputs; it takes 4"),
]
OPTIONS: list[tuple[bytes, Alteration, str]] = [
    (conv(), no_options, "operator 0 (CONV_2D) has no options; it needs Conv2DOptions"),
    (conv(), other_options("Pool2DOptions"), "has Pool2DOptions as its options; it needs Conv2DOptions"),
    (ADD, other_options("MulOptions"), "has MulOptions as its options; it needs AddOptions"),
    (ADD, option("fusedActivationFunction", 77), "has the unknown fused activation 77"),
    (conv(), option("fusedActivationFunction", 4), "has the fused activation TANH"),
    (joined(), option("fusedActivationFunction", 1), "(CONCATENATION) has the fused activation RELU"),
    (conv(), option("padding", 2), "has the padding 2; supported: 0 (SAME) and 1 (VALID)"),
    (LEAKY_RELU, option("alpha", INFINITE), "has alpha inf; it must be a finite number"),
    (SOFTMAX, option("beta", -1.0), "has beta -1; it must not be negative"),
    (SQUEEZE, option("squeezeDims", [0] * 9), "has 9 numbers in squeeze_dims; at most 8 are supported"),
    (dense(), option("weightsFormat", 1), "has weights 'w' in the unsupported format 1 (shuffled)"),
]
WINDOWS: list[tuple[bytes, Alteration, str]] = [
    (pool(), option("filterHeight", BIG), f"has a window of {BIG}x2; LiteRT's maximum is 65536"),
    (pool(), option("filterWidth", 0), "has a window of 2x0; both must be at least 1"),
    (pool(), option("strideH", -2), "has a stride of -2x2; both must be at least 1"),
    (pool(), option("strideH", 2**31 - 1),
     "has a window of 2, a stride of 2147483647 and a dilation of 1: beyond 32 bits"),
    (conv(), option("strideW", BIG), f"has a stride of 1x{BIG}; LiteRT's maximum is 32767"),
    (conv(), option("dilationHFactor", BIG), f"has a dilation of {BIG}x1; LiteRT's maximum is 32767"),
    (conv(), option("strideW", 2), "gives int8[1, 6, 3, 8], but the file declares int8[1, 6, 6, 8] in 'y'"),
    (conv(), tensor("x", shape=(1, 2, 6, 4)), "gives int8[1, 2, 6, 8], but the file declares int8[1, 6, 6, 8] in 'y'"),
    (conv(), tensor("x", shape=(6, 6, 4)), "has the input 'x' [6, 6, 4]; it must have 4 axes"),
    (conv(), tensor("x", shape=(1, 6, 6, 5)),
     "has 5 channels in 'x', which is not a multiple of the 4 in 'w' [8, 3, 3, 4]"),
    (conv(), constant("b", [0] * 9), "has the bias 'b' [9], which does not fit 8 outputs"),
    (conv(), constant("w", np.ones((8, 9, 4)), "int8"), "has weights 'w' [8, 9, 4]; they must have 4 axes"),
    (depthwise(), option("depthMultiplier", 3),
     "has 4 channels in 'x' and a depth multiplier of 3, but 4 filters in 'w'"),
    (depthwise(), option("padding", 1), "gives int8[1, 4, 4, 4], but the file declares int8[1, 6, 6, 4] in 'y'"),
    (dense(), tensor("x", shape=(1, 13)),
     "cannot split the input 'x' [1, 13] into rows of 12, the depth of 'w' [5, 12]"),
    (dense(), constant("b", [0] * 4), "has the bias 'b' [4], which does not fit 5 outputs"),
    (dense(), tensor("y", shape=(5, 2)), "gives int8[2, 5], but the file declares int8[5, 2] in 'y'"),
]  # fmt: skip
SHAPES: list[tuple[bytes, Alteration, str]] = [
    (ADD, tensor("z", shape=(2,)), "cannot broadcast 'x' [1, 4, 4, 3] and 'z' [2]"),
    (TANH, tensor("y", shape=(1, 4, 4, 4)), "gives float32[1, 4, 4, 3], but the file declares float32[1, 4, 4, 4]"),
    (MEAN, constant("n0", [1, 7]), "has the axis 7, which is out of range for the shape [1, 4, 4, 4]"),
    (MEAN, constant("n0", [1, -3]), "has the axes [1, -3]; one occurs twice"),
    (MEAN, computed("n0"), "takes the axes from 'n0', a computed tensor"),
    (MEAN, tensor("n0", type="FLOAT32"), "takes the axes from 'n0', which is float32 and not int32 or int64"),
    (TRANSPOSE, constant("n0", [0, 1, 1, 3]), "has the axes [0, 1, 1, 3]; one occurs twice"),
    (TRANSPOSE, constant("n0", [0, 1, 2]), "has the order of the axes [0, 1, 2]: 3 numbers, but 4 are needed"),
    (RESHAPE, constant("n0", [4, 17]), "cannot reshape 'x' [1, 4, 4, 4], 64 elements, to [4, 17]"),
    (RESHAPE, constant("n0", [-1, -1]), "has the shape [-1, -1]; one size may be -1"),
    (RESHAPE, constant("n0", [2, 32]), "gives float32[2, 32], but the file declares float32[4, 16] in 'y'"),
    (SQUEEZE, option("squeezeDims", [1]), "removes axis 1 of 'x' [1, 4, 4, 4], whose size is not 1"),
    (PAD, constant("n0", [[0, 0]] * 3), "has padding of shape [3, 2], but 'x' has 4 axes"),
    (PAD, constant("n0", [[0, 0], [-1, 0], [0, 0], [0, 0]]), "pads axis 1 of 'x' by -1 and 0"),
    (SLICE, constant("n0", [0, 3, 0, 0]), "takes 2 from 3 on, beyond axis 1 of 'x' [1, 4, 4, 4]"),
    (SLICE, constant("n0", [[0]] * 4), "operator 0 (SLICE) has the begin of shape [4, 1], which is not a list"),
    (strided(), constant("n2", [1, 1, 0, 1]), "has the stride 0 along axis 2; it must not be 0"),
    (strided(), constant("n0", [0, 4, 0, 0]), "takes nothing from 4 to 4 along axis 1"),
    (strided(shrinkAxisMask=2), constant("n0", [0, 4, 0, 0]), "takes element 4 beyond axis 1 of 'x' [1, 4, 4, 4]"),
    (strided(), option("ellipsisMask", 1), "has an ellipsis, a new axis, or an end relative to the begin"),
    (SPLIT, option("numSplits", -1), "has 1 outputs, but its num_splits is -1"),
    (SPLIT, constant("n0", 4), "has the axis 4, which is out of range for the shape [1, 4, 4, 4]"),
    (SPLIT_V, option("numSplits", 2), "has 1 outputs, but its num_splits is 2"),
    (SPLIT_V, constant("n0", [5]), "cannot split axis 3 of 'x' [1, 4, 4, 4] into [5]"),
    (joined(), option("axis", 1), "cannot join 'x' [1, 4, 3] and 'z' [1, 4, 2] along axis 1"),
    (joined(), option("axis", BIG), f"has the axis {BIG}, which is out of range for the shape [1, 4, 3]"),
    (SPACE_TO_DEPTH, option("blockSize", 3), "has blocks of 3x3, which do not divide an image of 4x4"),
    (SPACE_TO_DEPTH, option("blockSize", 0), "has blocks of 0x0"),
    (indexed("DEPTH_TO_SPACE", (1, 8, 8, 1), (), "DepthToSpaceOptions", {"blockSize": 2}), option("blockSize", BIG),
     f"has blocks of {BIG}x{BIG}; 4 channels are not a multiple of {BIG * BIG}"),
    (indexed("EXPAND_DIMS", (1, 1, 4, 4, 4), (0,)), constant("n0", 9),
     "has the axis 9, which is out of range for the shape [1, 4, 4, 4]"),
    (indexed("RESIZE_BILINEAR", (1, 8, 8, 4), ([8, 8],), "ResizeBilinearOptions"), constant("n0", [0, 8]),
     "resizes 'x' to 0x8; sizes are from 1 to 65536"),
    (indexed("RESIZE_BILINEAR", (1, 8, 8, 4), ([8, 8],), "ResizeBilinearOptions", {"alignCorners": True}),
     option("halfPixelCenters", True), "has both align_corners and half_pixel_centers; only one may be set"),
    (RELU, tensor("x", shape=(1,) * 9), "has 9 axes in 'x'; at most 8 are supported"),
    (RELU, tensor("x", shape=(1, 0, 4)), "has the dynamic shape [1, 0, 4] in 'x'"),
    (conv(), tensor("w", shape=(0, 3, 3, 4), type="STRING"), "has the shape [0, 3, 3, 4] in 'w', a constant without"),
    (RELU, tensor("x", shape=(BIG, BIG, BIG, 4)), "2 GB or more"),
]  # fmt: skip
CONSTANTS: list[tuple[bytes, Alteration, str]] = [
    (
        conv("float32"),
        constant("b", [0, 1, INFINITE, 0, 0, -INFINITE, 0, 0], "float32"),
        "operator 0 (CONV_2D) reads inf at [2] of the constant 'b'; it must hold finite numbers (2 of 8 are not)",
    ),
    (dense("float32"), constant("w", np.full((5, 12), NAN), "float32"), "reads nan at [0, 0] of the constant 'w'"),
]
TYPES: list[tuple[bytes, Alteration, str]] = [
    (
        unary("HARD_SWISH"),
        tensor("x", type="INT16"),
        "has the type int16 in 'x'; supported: int8, uint8, float32\n  'x' -> 'y'\nExport with int8",
    ),
    (unary("SIN"), tensor("x", type="FLOAT16"), "has the type float16 in 'x'; supported: float32"),
    (ADD, tensor("z", type="UINT8"), "mixes int8 in 'x' and uint8 in 'z'"),
    (RELU, tensor("y", type="INT8"), "mixes float32 in 'x' and int8 in 'y'"),
    (conv(), tensor("w", type="INT4"), "tensor 1 (w) of int4[8, 3, 3, 4] needs 144 bytes and has 288"),
    (RELU, tensor("x", type="INT4"), "has the type int4 in 'x'; supported: int8, uint8, float32"),
    (DEQUANTIZED, tensor("x", type="INT2"), "reads int2 in 'x', which is computed; only constants may be int2"),
    (conv(), tensor("w", type="UINT8"), "has int8 data and uint8 weights in 'w'"),
    (conv(), tensor("b", type="FLOAT32"), "has a bias of float32 in 'b'; with int8 data it is int32"),
    (conv(), computed("w"), "has computed weights 'w'; they must be constant"),
    (conv(), computed("b"), "has a computed bias 'b'; it must be constant"),
    (conv(), sparse("w"), "reads 'w', a sparse tensor: not supported"),
    (DEQUANTIZED, tensor("x", type="INT16", quantization=None), "tensor 0 'x' is int16 but has no quantization"),
    (DEQUANTIZED, tensor("y", type="INT8"), "cannot convert int8 in 'x' to int8 in 'y'"),
    (DEQUANTIZED, tensor("x", type="FLOAT16"), "reads float16 in 'x', which is computed"),
    (RELU, tensor("x", isVariable=True), "reads the variable tensor 'x' at an input that is not a state"),
]
QUANTIZATION: list[tuple[bytes, Alteration, str]] = [
    (TANH_OF_INT8, tensor("x", scale=[NAN]), "tensor 0 (x) has the scale nan"),
    (TANH_OF_INT8, tensor("x", scale=[-1.0]), "tensor 0 (x) has the scale -1"),
    (TANH_OF_INT8, tensor("x", scale=[0.0]), "tensor 0 'x' is int8 but has a scale of 0"),
    (TANH_OF_INT8, tensor("x", zeroPoint=[1, 2]), "tensor 0 (x) has 1 scales and 2 zero points"),
    (conv(), tensor("w", scale=[3e38]),
     "has scales that exceed 32 bits: 0.5 x 3e+38 / 0.5 (input x weights / output) is 3e+38"),
    (conv(), tensor("w", zeroPoint=[300]), "has the zero point 300 in 'w', outside of int8"),
    (conv(), tensor("b", zeroPoint=[5]), "has the zero point 5 in 'b'; it must be 0"),
    (conv(), tensor("b", zeroPoint=[2**40]), f"has the zero point {2**40} in 'b', outside of int32"),
    (conv(), tensor("b", quantization=None), "has a bias 'b' without a scale"),
    (conv(), tensor("w", scale=[0.1] * 3, axis=1), "has weights 'w' with scales along axis 1; it takes them along 0"),
    (conv(), tensor("x", scale=[0.1] * 4, axis=3), "has 4 scales in 'x'; it takes one per tensor"),
    (ADD, tensor("z", scale=[0.1] * 3, axis=0), "has 3 scales in 'z'; it takes one per tensor"),
    (pool(), tensor("y", scale=[0.75]),
     "but 'x' has scale 0.5 and zero point 3 and 'y' has scale 0.75 and zero point 0"),
    (joined(), tensor("z", quantization=None), "tensor 1 'z' is int8 but has no quantization"),
]  # fmt: skip
GRAPHS: list[tuple[bytes, Alteration, str]] = [
    (chain(), ends("inputs", [0, 0]), "the graph lists its input tensor 0 'x' twice"),
    (chain(), ends("inputs", []), "operator 0 (TANH) reads tensor 0 'x', which nothing writes"),
    (chain(), ends("outputs", []), "the graph has no outputs"),
    (chain(), indices("inputs", [2]), "operator 0 (TANH) reads tensor 2 'y', which operator 1 (NEG) writes later"),
    (chain(), indices("outputs", [2], 0), "reads tensor 1 'a', which nothing writes"),
    (chain(), indices("outputs", [1], 1), "operator 1 (NEG) overwrites tensor 1 'a', a result of operator 0 (TANH)"),
    (chain(), indices("outputs", [0], 1), "operator 1 (NEG) overwrites tensor 0 'x', an input of the graph"),
    (chain(), indices("inputs", [77]), "tensor 77 of 3 among the inputs of operator 0 (TANH)"),
    (conv(), indices("outputs", [1]), "operator 0 (CONV_2D) overwrites tensor 1 'w', a constant"),
    (chain(), lambda model, graph: graph.operators.clear(), "nothing computes the output tensor 2 'y'"),
]

ALL = COUNTS + OPTIONS + WINDOWS + SHAPES + CONSTANTS + TYPES + QUANTIZATION + GRAPHS


@pytest.mark.parametrize(
    ("data", "alteration", "message"), ALL, ids=[f"{n}: {case[2][:60]}" for n, case in enumerate(ALL)]
)
def test_message(data: bytes, alteration: Alteration, message: str) -> None:
    assert message in told(altered(data, alteration))


@pytest.mark.parametrize(("data", "alteration", "message"), COUNTS)
def test_counts_are_checked_before_the_graph_is_rewritten(data: bytes, alteration: Alteration, message: str) -> None:
    with pytest.raises(StageError) as caught:
        normalized(altered(data, alteration), "net")
    assert message in str(caught.value)


def test_the_models_that_are_altered_are_sound() -> None:
    for data in {case[0] for case in ALL}:
        build_module(data, read(data))
        build_module(altered(data), read(altered(data)))
