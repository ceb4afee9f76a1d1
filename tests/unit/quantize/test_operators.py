"""Every operator, drawn at random, against LiteRT: the graph's constants and the numpy reference at once, bit for bit.

Scales are drawn so that ties and near-ties of the rounding occur; zero points and activations over their whole range.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from stages.models.builder import ModelBuilder, Tensor
from tests.support.integer import LAYOUTS, Comparison, compare

LIMITS = {"int8": (-128, 127), "uint8": (0, 255)}
ACTIVATIONS = ("none", "relu", "relu6", "relu_n1_to_1")
some = settings(max_examples=30)


@dataclass
class Draw:
    """A source of random models: `data` draws what matters, `rng` fills weights and inputs."""

    data: st.DataObject
    dtype: str
    layout: str
    rng: np.random.Generator

    def integer(self, low: int, high: int) -> int:
        return self.data.draw(st.integers(low, high))

    def choice(self, *options: object) -> object:
        return self.data.draw(st.sampled_from(options))

    def scale(self, around: float = 0.05) -> float:
        """A float32 scale; ratios of such numbers often have small denominators, and so make ties."""
        return float(np.float32(around * self.integer(1, 12) / self.integer(1, 12)))

    def zero_point(self) -> int:
        return self.integer(*LIMITS[self.dtype])

    def quant(self, around: float = 0.05) -> tuple[float, int]:
        return self.scale(around), self.zero_point()

    def shape(self) -> tuple[int, int, int, int]:
        return self.integer(1, 2), self.integer(1, 9), self.integer(1, 9), self.integer(1, 7)

    def values(self, shape: tuple[int, ...], dtype: str = "") -> np.ndarray:
        low, high = LIMITS[dtype or self.dtype]
        return self.rng.integers(low, high + 1, shape).astype(dtype or self.dtype)

    def run(self, builder: ModelBuilder, outputs: Tensor | list[Tensor], *shapes: tuple[int, ...]) -> Comparison:
        """Builds and compares on random inputs of these shapes."""
        builder.output(*(outputs if isinstance(outputs, list) else [outputs]))
        found = compare(builder.build(), [self.values(shape) for shape in shapes], self.layout)
        assert found.wrong == {}
        assert found.checked > len(shapes)
        return found


@pytest.fixture(params=["int8", "uint8"])
def dtype(request: pytest.FixtureRequest) -> str:
    return str(request.param)


def draw(data: st.DataObject, dtype: str) -> Draw:
    layout = data.draw(st.sampled_from(sorted(LAYOUTS)))
    return Draw(data, dtype, layout, np.random.default_rng(data.draw(st.integers(0, 2**32 - 1))))


def window(d: Draw, shape: tuple[int, ...]) -> dict[str, object]:
    """Kernel, stride, dilation and padding that fit `shape`."""
    padding = d.choice("same", "valid")
    dilation = (d.integer(1, 2), d.integer(1, 2))
    extent = [min(3, (shape[1 + i] - 1) // dilation[i] + 1) for i in (0, 1)]
    kernel = tuple(d.integer(1, extent[i] if padding == "valid" else 4) for i in (0, 1))
    return {
        "kernel": kernel,
        "stride": (d.integer(1, 3), d.integer(1, 3)),
        "dilation": dilation,
        "padding": padding,
    }


def weights(d: Draw, shape: tuple[int, ...], channels: int) -> dict[str, object]:
    """Weights, bias, scales: int8 per channel or per tensor, uint8 per tensor with a zero point."""
    many = d.dtype == "int8" and d.choice(True, False)
    return {
        "weights": d.values(shape),
        "bias": d.rng.integers(-4000, 4001, channels).astype(np.int32),
        "weight_scale": [d.scale(0.01) for _ in range(channels)] if many else d.scale(0.01),
        "weight_zero_point": d.zero_point() if d.dtype == "uint8" else 0,
        "activation": d.choice(*ACTIVATIONS),
    }


@some
@given(data=st.data())
def test_conv2d(dtype: str, data: st.DataObject) -> None:
    d, groups = draw(data, dtype), 1
    shape = d.shape()
    if d.choice(True, False):
        groups = d.integer(1, 3)
        shape = (*shape[:3], shape[3] * groups)
    channels = groups * d.integer(1, 6)
    w = window(d, shape)
    kernel = w.pop("kernel")
    options = weights(d, (channels, *kernel, shape[3] // groups), channels)
    builder = ModelBuilder()
    x = builder.input("x", shape, dtype, *d.quant())
    y = builder.conv2d(x, options.pop("weights"), options.pop("bias"), out=d.quant(0.2), **w, **options)
    d.run(builder, y, shape)


@some
@given(data=st.data())
def test_depthwise_conv2d(dtype: str, data: st.DataObject) -> None:
    d = draw(data, dtype)
    shape = d.shape()
    channels = shape[3] * d.integer(1, 3)
    w = window(d, shape)
    options = weights(d, (1, *w.pop("kernel"), channels), channels)
    if w["dilation"] != (1, 1):
        w["stride"] = (1, 1)
    builder = ModelBuilder()
    x = builder.input("x", shape, dtype, *d.quant())
    y = builder.depthwise_conv2d(x, options.pop("weights"), options.pop("bias"), out=d.quant(0.1), **w, **options)
    d.run(builder, y, shape)


@some
@given(data=st.data())
def test_fully_connected(dtype: str, data: st.DataObject) -> None:
    d = draw(data, dtype)
    rows, depth, units = d.integer(1, 5), d.integer(1, 40), d.integer(1, 9)
    keep = bool(d.choice(True, False))
    shape = (2, rows, depth) if keep else (rows, depth)
    options = weights(d, (units, depth), units)
    bias = options.pop("bias") if d.choice(True, False) else None
    if bias is None:
        options.pop("bias")
    builder = ModelBuilder()
    x = builder.input("x", shape, dtype, *d.quant())
    y = builder.fully_connected(x, options.pop("weights"), bias, out=d.quant(0.2), keep_num_dims=keep, **options)
    d.run(builder, y, shape)


@some
@given(data=st.data())
@pytest.mark.parametrize("name", ["add", "sub", "mul"])
def test_two_operands(name: str, dtype: str, data: st.DataObject) -> None:
    d = draw(data, dtype)
    shape = d.shape()
    other = tuple(size if d.choice(True, False) else 1 for size in shape)
    other = other[d.integer(0, 3) :]
    builder = ModelBuilder()
    a = builder.input("a", shape, dtype, *d.quant())
    shapes = [shape]
    if d.choice(True, False):
        b = builder.constant("b", d.values(other), *d.quant())
    else:
        other = (1,) * (4 - len(other)) + other
        b = builder.input("b", other, dtype, *d.quant())
        shapes.append(other)
    operands = (a, b) if d.choice(True, False) else (b, a)
    y = getattr(builder, name)(*operands, activation=d.choice(*ACTIVATIONS), out=d.quant())
    d.run(builder, y, *shapes)


@some
@given(data=st.data())
def test_prelu_behind_a_pool_that_decides_its_layout(dtype: str, data: st.DataObject) -> None:
    d = draw(data, dtype)
    shape = d.shape()
    slopes = tuple(size if d.choice(True, False) else 1 for size in shape)
    builder = ModelBuilder()
    x = builder.max_pool2d(builder.input("x", shape, dtype, *d.quant()), (1, 1))
    shapes = [shape]
    if d.choice(True, False):
        alpha = builder.constant("alpha", d.values(slopes[d.integer(0, 3) :]), *d.quant())
    else:
        alpha = builder.input("alpha", slopes, dtype, *d.quant())
        shapes.append(slopes)
    d.run(builder, builder.emit("PRELU", [x, alpha], shape, d.quant(), "prelu"), *shapes)


@some
@given(data=st.data())
@pytest.mark.parametrize("name", ["avg_pool2d", "max_pool2d"])
def test_pools(name: str, dtype: str, data: st.DataObject) -> None:
    d = draw(data, dtype)
    shape = d.shape()
    w = window(d, shape)
    del w["dilation"]
    w["kernel"] = tuple(min(k, s) for k, s in zip(w["kernel"], shape[1:3], strict=True))
    builder = ModelBuilder()
    x = builder.input("x", shape, dtype, *d.quant())
    d.run(builder, getattr(builder, name)(x, activation=d.choice(*ACTIVATIONS), **w), shape)


@some
@given(data=st.data())
@pytest.mark.parametrize("name", ["relu", "relu6", "relu_n1_to_1", "leaky_relu", "hard_swish", "logistic", "tanh"])
def test_activations_on_all_256_values(name: str, dtype: str, data: st.DataObject) -> None:
    d = draw(data, dtype)
    builder = ModelBuilder()
    x = builder.input("x", (1, 256), dtype, *d.quant())
    options = {} if name in ("logistic", "tanh") else {"out": d.quant(0.1)}
    if name == "leaky_relu":
        options["alpha"] = d.choice(-1.0, -0.5, 0.25, d.data.draw(st.floats(-1, 1.5, width=32)))
    if name == "relu_n1_to_1":
        y = builder.tensor("y", (1, 256), dtype, *options["out"])
        builder.operator("RELU_N1_TO_1", [x], [y])
    else:
        y = getattr(builder, name)(x, **options)
    builder.output(y)
    low, high = LIMITS[dtype]
    every = np.arange(low, high + 1).astype(dtype)[None]
    assert compare(builder.build(), [every]).wrong == {}


@pytest.mark.parametrize(("scale", "out"), [
    (0.05, 20.0), (0.05, 600.0), (13.0, 9e4), (1e-7, 1e-7), (1e-8, 3e-6), (2e-5, 0.02),
])  # fmt: skip
def test_hard_swish_that_shifts_by_16_and_more(scale: float, out: float, dtype: str) -> None:
    """LiteRT divides integers of 16 bits by 2^16 then, and gives 1 or -1."""
    low, high = LIMITS[dtype]
    builder = ModelBuilder()
    x = builder.input("x", (1, 256), dtype, float(np.float32(scale)), low + 90)
    builder.output(builder.hard_swish(x, out=(float(np.float32(out)), low + 128)))
    assert compare(builder.build(), [np.arange(low, high + 1).astype(dtype)[None]]).wrong == {}


@some
@given(data=st.data())
def test_mean(dtype: str, data: st.DataObject) -> None:
    d = draw(data, dtype)
    shape = d.shape()
    axes = d.choice((1, 2), (2, 1), (3,), (1,), (1, 2, 3), (0, 2), (-1, -2))
    builder = ModelBuilder()
    x = builder.input("x", shape, dtype, *d.quant())
    out = d.choice(None, d.quant(0.02))
    d.run(builder, builder.mean(x, axes, keep_dims=bool(d.choice(True, False)), out=out), shape)


@some
@given(data=st.data())
def test_softmax(dtype: str, data: st.DataObject) -> None:
    d = draw(data, dtype)
    # A flat row whose exponentials sum to 512 or more makes LiteRT's reference abort; 300 elements cannot.
    shape = (d.integer(1, 3), d.integer(1, 300))
    builder = ModelBuilder()
    x = builder.input("x", shape, dtype, *d.quant(d.choice(0.001, 0.05, 0.3)))
    d.run(builder, builder.softmax(x, float(np.float32(d.choice(1.0, 0.25, 3.0)))), shape)


@some
@given(data=st.data())
def test_l2_normalization(dtype: str, data: st.DataObject) -> None:
    d = draw(data, dtype)
    shape = (d.integer(1, 3), d.integer(1, 200))
    zero_point = d.zero_point()
    builder = ModelBuilder()
    x = builder.input("x", shape, dtype, d.scale(), zero_point)
    y = builder.tensor("y", shape, dtype, 1 / 128, 0 if dtype == "int8" else 128)
    fields = {"fusedActivationFunction": 0}
    builder.operator("L2_NORMALIZATION", [x], [y], "L2NormOptions", fields, version=2 if dtype == "int8" else 1)
    builder.output(y)
    # Near the zero point too: small norms are scaled by another shift.
    spread = d.choice(300, 30, 1)
    values = np.clip(zero_point + d.rng.integers(-spread, spread + 1, shape), *LIMITS[dtype]).astype(dtype)
    assert compare(builder.build(), [values]).wrong == {}


@some
@given(data=st.data())
def test_requantize_between_types(dtype: str, data: st.DataObject) -> None:
    d = draw(data, dtype)
    builder = ModelBuilder()
    x = builder.input("x", (1, 256), dtype, *d.quant())
    target = str(d.choice("int8", "uint8"))
    builder.output(builder.quantize(x, target, (d.scale(), d.integer(*LIMITS[target]))))
    low, high = LIMITS[dtype]
    assert compare(builder.build(), [np.arange(low, high + 1).astype(dtype)[None]]).wrong == {}


@some
@given(data=st.data())
def test_float_edges(dtype: str, data: st.DataObject) -> None:
    d = draw(data, dtype)
    scale, zero_point = d.quant()
    builder = ModelBuilder()
    x = builder.input("x", (1, 400), "float32")
    builder.output(builder.dequantize(builder.quantize(x, dtype, (scale, zero_point))))
    # Multiples of half a step, and of any number: halfway cases and saturation.
    steps = d.rng.integers(-600, 601, (1, 400)).astype(np.float32) * np.float32(0.5)
    values = steps * np.float32(scale) if d.choice(True, False) else steps * np.float32(0.37)
    assert compare(builder.build(), [values]).wrong == {}


@some
@given(data=st.data())
def test_concatenation(dtype: str, data: st.DataObject) -> None:
    d = draw(data, dtype)
    shape, axis = d.shape(), d.integer(0, 3)
    quant = d.quant()
    builder, parts, shapes = ModelBuilder(), [], []
    for number in range(d.integer(1, 3)):
        own = tuple(d.integer(1, 4) if i == axis else size for i, size in enumerate(shape))
        # Only uint8 may join tensors of different scales.
        given_quant = d.choice(quant, d.quant()) if dtype == "uint8" else quant
        parts.append(builder.input(f"x{number}", own, dtype, *given_quant))
        shapes.append(own)
    d.run(builder, builder.concatenation(parts, axis, out=quant), *shapes)


@some
@given(data=st.data())
def test_data_movement_between_convolutions(dtype: str, data: st.DataObject) -> None:
    """A convolution in front gives the moved tensor the layout under test."""
    d = draw(data, dtype)
    shape = (1, d.integer(2, 6), d.integer(2, 6), 6)
    builder = ModelBuilder()
    x = builder.input("x", shape, dtype, *d.quant())
    options = weights(d, (4, 1, 1, 6), 4)
    y = builder.conv2d(x, options.pop("weights"), options.pop("bias"), out=d.quant(0.2), **options)
    h, w = shape[1], shape[2]
    top, left = d.integer(0, 1), d.integer(0, 1)
    modes = ({}, {"align_corners": True}, {"half_pixel_centers": True})
    moves = {
        "pad": lambda: builder.pad(y, [(d.integer(0, 1), d.integer(0, 2)) for _ in range(4)]),
        "transpose": lambda: builder.transpose(y, d.data.draw(st.permutations(range(4)))),
        "reshape": lambda: builder.reshape(y, (h * w, -1)),
        "squeeze": lambda: builder.squeeze(y, (0,)),
        "slice": lambda: builder.slice(y, (0, top, left, 1), (1, h - 1, -1, 2)),
        "strided_slice": lambda: builder.strided_slice(
            y, (0, top, 0, d.integer(0, 2)), (1, h, w, 4), (1, 2, d.integer(1, 3), 1), shrink_axes=d.choice((), (0,))
        ),
        "split": lambda: builder.split(y, d.choice(2, 4), 3),
        "resize": lambda: builder.resize_nearest_neighbor(y, (d.integer(1, 13), d.integer(1, 13)), **d.choice(*modes)),
    }
    made = moves[str(d.choice(*moves))]()
    found = d.run(builder, made, shape)
    assert any(layer.op.op == "move" for layer in found.graph.layers)
