"""TRANSPOSE_CONV as convolutions of stride 1: against LiteRT, bit for bit."""

from itertools import product
from typing import Any

import numpy as np
import pytest

from stages.base import StageError
from stages.ir.models.builder import BuildError, ModelBuilder
from stages.quantize.arithmetic import LIMITS
from tests.support.integer import compare, integer_graph


def model(dtype: str, image: tuple[int, ...], weights: np.ndarray, shape: tuple[int, ...], **options: Any) -> bytes:
    b = ModelBuilder()
    low, high = LIMITS[dtype]
    points = (0, 0) if dtype == "int16" else ((low + high) // 3, low + 70)
    x = b.input("x", image, dtype, 0.05, points[0])
    b.output(b.transpose_conv(x, weights, shape=shape, out=(0.11, points[1]), **options))
    return b.build()


@pytest.mark.parametrize(
    ("dtype", "layout"), [*product(("int8", "uint8"), ("NHWC", "NCHW")), ("int16", "NHWC")], ids=str
)
def test_windows_and_strides(dtype: str, layout: str) -> None:
    """Windows smaller than the stride, and outputs larger than the windows cover, too."""
    rng, (low, high) = np.random.default_rng(7), LIMITS[dtype]
    for number in range(20):
        stride, kernel = (tuple(int(n) for n in rng.integers(1, most, 2)) for most in (4, 6))
        size, padding = tuple(int(n) for n in rng.integers(1, 7, 2)), ("same", "valid")[number // 2 % 2]
        spare = [int(rng.integers(0, step)) for step in stride]
        if padding == "same":
            out = tuple(n * step - less for n, step, less in zip(size, stride, spare, strict=True))
        else:
            out = tuple((n - 1) * s + k + more for n, s, k, more in zip(size, stride, kernel, spare, strict=True))
        depth, channels = (1, 3, 16)[number % 3], int(rng.integers(1, 6))
        held = "int8" if dtype == "int16" else dtype
        least, most = LIMITS[held]
        weights = rng.integers(least + (held == "int8"), most + 1, (channels, *kernel, depth)).astype(held)
        scales = [float(np.float32(scale)) for scale in rng.uniform(0.002, 0.02, channels)]
        data = model(
            dtype,
            (2, *size, depth),
            weights,
            (2, *out, channels),
            bias=rng.integers(-3000, 3000, channels).astype("int64" if dtype == "int16" else "int32")
            if number % 4
            else None,
            weight_scale=scales if held == "int8" and number % 3 else scales[0],
            weight_zero_point=0 if held == "int8" else int(rng.integers(0, 256)),
            stride=stride,
            padding=padding,
            activation=("none", "relu", "relu6")[number % 3],
        )
        image = rng.integers(low, high + 1, (2, *size, depth)).astype(dtype)
        assert compare(data, [image], layout).wrong == {}, (number, size, stride, kernel, padding, out)


def kinds(stride: tuple[int, int], kernel: tuple[int, int], depth: int) -> list[str]:
    weights = np.ones((4, *kernel, depth), np.int8)
    shape = (1, 8 * stride[0], 8 * stride[1], 4)
    data = model("int8", (1, 8, 8, depth), weights, shape, weight_scale=0.01, stride=stride)
    return [layer.kind for layer in integer_graph(data).layers]


def test_phases_are_channels_of_one_convolution_where_all_have_as_many_taps() -> None:
    assert kinds((2, 2), (2, 2), 64) == ["conv2d", "depth_to_space"]
    assert kinds((2, 2), (4, 4), 64) == ["conv2d", "depth_to_space", "slice"]
    assert kinds((1, 1), (3, 3), 64)[0] == "conv2d"


def test_phases_are_convolutions_of_their_own_where_much_would_be_multiplied_by_nothing() -> None:
    assert kinds((2, 2), (3, 3), 64)[:5] == ["conv2d"] * 4 + ["concatenation"]
    assert kinds((2, 2), (3, 3), 1)[:2] == ["conv2d", "depth_to_space"]
    data = model(
        "int8", (1, 8, 8, 64), np.ones((4, 3, 3, 64), np.int8), (1, 16, 16, 4), weight_scale=0.1, stride=(2, 2)
    )
    graph = integer_graph(data)
    taps = [np.prod(layer.op.kernel) for layer in graph.layers if layer.op.op == "conv2d"]
    assert sum(taps) == 9


def test_what_does_not_fit_is_refused() -> None:
    weights = np.ones((4, 3, 3, 2), np.int8)
    for image, shape, why in (
        ((1, 8, 8, 2), (1, 20, 16, 4), "whose convolution would not have the shape"),
        ((1, 8, 8, 3), (1, 16, 16, 4), "which do not match"),
        ((1, 8, 8, 2), (1, 16, 16, 5), "which do not match"),
    ):
        with pytest.raises(BuildError, match=why):
            model("int8", image, weights, shape, weight_scale=0.1, stride=(2, 2))
    b = ModelBuilder()
    x = b.input("x", (1, 8, 8, 2), "float32")
    tensors = [b.constant("shape", np.array([1, 16, 16, 4], np.int32)), b.constant("weights", weights, 0.1), x]
    out = b.tensor("y", (1, 16, 16, 4), "float32")
    b.operator("TRANSPOSE_CONV", tensors, [out], "TransposeConvOptions", {"strideH": 2, "strideW": 2, "padding": 0})
    b.output(out)
    with pytest.raises(StageError, match="has float32 data and int8 weights"):
        integer_graph(b.build())
