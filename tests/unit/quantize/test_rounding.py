"""Rounding and precision of LiteRT's multipliers: accumulators on halves or close to them."""

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import pytest

from stages.ir.models.builder import ModelBuilder, Tensor
from tests.support.integer import compare, integer_graph

CHANNELS = 48
LIMITS = {"int8": (-128, 127), "uint8": (0, 255)}
Made = tuple[bytes, list[np.ndarray]]


def every(dtype: str) -> np.ndarray:
    low, high = LIMITS[dtype]
    return np.arange(low, high + 1).astype(dtype)


def weighted(op: str, dtype: str, number: int) -> Made:
    """A weighted operator with all 256 inputs and 48 weights: 12,288 sums, on scales that cause ties."""
    rng = np.random.default_rng(number)
    low, high = LIMITS[dtype]
    scale, single = float(np.float32(rng.uniform(0.01, 0.5))), float(np.float32(rng.uniform(0.001, 0.02)))
    many = dtype == "int8" and number % 2 == 1
    options: dict[str, Any] = {
        "weight_scale": [float(np.float32(single * rng.integers(1, 5))) for _ in range(CHANNELS)] if many else single,
        "out": (float(np.float32(scale * single * 2 * rng.integers(10, 70))), int(rng.integers(low, high))),
        "weight_zero_point": 0 if dtype == "int8" else int(rng.integers(100, 150)),
    }
    weights = rng.integers(low, high + 1, CHANNELS).astype(dtype)
    bias = rng.integers(-50, 51, CHANNELS).astype(np.int32)
    shape, of_weights = {
        "conv2d": ((1, 16, 16, 1), (-1, 1, 1, 1)),
        "depthwise_conv2d": ((1, 16, 16, 1), (1, 1, 1, -1)),
        "fully_connected": ((256, 1), (-1, 1)),
    }[op]
    builder = ModelBuilder()
    x = builder.input("x", shape, dtype, scale, int(rng.integers(low, high)))
    builder.output(getattr(builder, op)(x, weights.reshape(of_weights), bias, **options))
    return builder.build(), [every(dtype).reshape(shape)]


def two_operands(name: str, dtype: str, number: int) -> Made:
    """All pairs of values, on scales that cause ties."""
    rng = np.random.default_rng(number)
    low, high = LIMITS[dtype]
    scales = [float(np.float32(rng.uniform(0.01, 1))) for _ in range(2)]
    product = scales[0] * scales[1] * 2 * rng.integers(60, 130)
    step = max(scales) * rng.choice([2, 3, 6]) if name in ("add", "sub") else product
    out = float(np.float32(step)), int(rng.integers(low, high))
    inputs = [every(dtype).reshape(256, 1), every(dtype).reshape(1, 256)]
    if name == "prelu":
        inputs = [np.repeat(inputs[0], 256, axis=1), inputs[1]]
    near = (low + high) // 2 - 9, (low + high) // 2 + 10  # a PRELU has to reach both signs
    builder = ModelBuilder()
    a, b = (
        builder.input(side, x.shape, dtype, scale, int(rng.integers(*(near if name == "prelu" else (low, high)))))
        for side, x, scale in zip("ab", inputs, scales, strict=True)
    )
    made = (
        builder.emit("PRELU", [a, b], a.shape, out, "y") if name == "prelu" else getattr(builder, name)(a, b, out=out)
    )
    builder.output(made)
    return builder.build(), inputs


def near_ties(number: int) -> tuple[float, float]:
    """Two float32 scales whose quotient is a fraction with a small even denominator."""
    rng = np.random.default_rng(number)
    scale = float(np.float32(rng.uniform(0.001, 1)))
    return scale, float(np.float32(scale * 2 * rng.integers(1, 60) / rng.integers(1, 60)))


ONE: dict[str, Callable[[ModelBuilder, Tensor, tuple[float, int]], Tensor]] = {
    "relu": lambda b, x, out: b.relu(x, out=out),
    "leaky_relu": lambda b, x, out: b.leaky_relu(x, 0.3, out=out),
    "quantize": lambda b, x, out: b.quantize(x, x.dtype, out),
    "mean": lambda b, x, out: b.mean(x, (1,), out=out),
}


def one_operand(name: str, dtype: str, number: int) -> Made:
    scale, out_scale = near_ties(number)
    middle = sum(LIMITS[dtype]) // 2
    x = np.repeat(every(dtype)[:, None], 4, axis=1)
    x[::3, 1] = x[::3, 1] // 2
    builder = ModelBuilder()
    builder.output(ONE[name](builder, builder.input("x", x.shape, dtype, scale, middle), (out_scale, middle)))
    return builder.build(), [x]


CASES: dict[str, tuple[int, Callable[[str, int], Made]]] = {
    **{op: (24, partial(weighted, op)) for op in ("conv2d", "depthwise_conv2d", "fully_connected")},
    **{name: (24, partial(two_operands, name)) for name in ("mul", "add", "sub", "prelu")},
    **{name: (60, partial(one_operand, name)) for name in ONE},
}


@pytest.mark.parametrize("dtype", ["int8", "uint8"])
@pytest.mark.parametrize("case", CASES)
def test_halves_are_rounded_as_litert_does(case: str, dtype: str) -> None:
    count, make = CASES[case]
    for number in range(count):
        assert compare(*make(dtype, number)).wrong == {}, number


@pytest.mark.parametrize("dtype", ["int8", "uint8"])
@pytest.mark.parametrize(("name", "bounds"), [("relu6", (0, 6)), ("relu_n1_to_1", (-1, 1))])
def test_bounds_of_fused_activations_are_divided_in_float32(name: str, bounds: tuple[int, int], dtype: str) -> None:
    """6 / scale is almost a half: in double it may round to another integer."""
    low, high = LIMITS[dtype]
    middle, differs = low + 128, 0
    for steps in range(3, 120, 3):
        scale = float(np.float32(bounds[1] / (steps + 0.5)))
        builder = ModelBuilder()
        x = builder.input("x", (1, 256), dtype, 0.5, middle)
        y = builder.constant("y", np.full((1, 1), middle, dtype=dtype), 0.1, middle)
        builder.output(builder.add(x, y, activation=name, out=(scale, middle)))
        assert compare(builder.build(), [every(dtype)[None]]).wrong == {}
        in_double = middle + int(np.floor(bounds[1] / scale + 0.5))
        differs += min(in_double, high) != integer_graph(builder.build()).layers[0].op.act_max
    assert differs > 0
