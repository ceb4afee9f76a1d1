"""Every operator with random options against LiteRT: constants and numpy reference, bit for bit."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from stages.ir.models.builder import ModelBuilder
from tests.support.drawn_models import OPERATORS, SCALES, input_tensor, model, values, weights, zero_points
from tests.support.integer import LAYOUTS, compare

LIMITS = {"int8": (-128, 127), "uint8": (0, 255)}
SEEDS = st.integers(0, 1 << 20)
layouts = st.sampled_from(sorted(LAYOUTS))


@pytest.fixture(params=["int8", "uint8"])
def dtype(request: pytest.FixtureRequest) -> str:
    return str(request.param)


def every(dtype: str) -> np.ndarray:
    low, high = LIMITS[dtype]
    return np.arange(low, high + 1).astype(dtype)[None]


def quant(data: st.DataObject, dtype: str) -> tuple[float, int]:
    return data.draw(SCALES), data.draw(zero_points(dtype))


@pytest.mark.parametrize("name", OPERATORS)
@given(data=st.data())
@settings(max_examples=40)
def test_drawn(name: str, dtype: str, data: st.DataObject) -> None:
    comparison = compare(model(data.draw, dtype, (name,)), None, data.draw(layouts), data.draw(SEEDS))
    assert comparison.wrong == {} and comparison.checked > 1


@pytest.mark.parametrize("name", ["relu", "relu6", "relu_n1_to_1", "leaky_relu", "hard_swish", "logistic", "tanh"])
@given(data=st.data())
@settings(max_examples=30)
def test_activations_on_all_256_values(name: str, dtype: str, data: st.DataObject) -> None:
    builder = ModelBuilder()
    x = builder.input("x", (1, 256), dtype, *quant(data, dtype))
    options = {} if name in ("logistic", "tanh") else {"out": quant(data, dtype)}
    if name == "leaky_relu":
        options["alpha"] = data.draw(st.sampled_from([-1.0, -0.5, 0.25]) | st.floats(-1, 1.5, width=32))
    if name == "relu_n1_to_1":
        y = builder.tensor("y", (1, 256), dtype, *options["out"])
        builder.operator("RELU_N1_TO_1", [x], [y])
    else:
        y = getattr(builder, name)(x, **options)
    builder.output(y)
    assert compare(builder.build(), [every(dtype)]).wrong == {}


@pytest.mark.parametrize(("scale", "out"), [
    (0.05, 20.0), (0.05, 600.0), (13.0, 9e4), (1e-7, 1e-7), (1e-8, 3e-6), (2e-5, 0.02),
])  # fmt: skip
def test_hard_swish_that_shifts_by_16_and_more(scale: float, out: float, dtype: str) -> None:
    """LiteRT divides 16-bit integers by 2^16 then, which gives 1 or -1."""
    low = LIMITS[dtype][0]
    builder = ModelBuilder()
    x = builder.input("x", (1, 256), dtype, float(np.float32(scale)), low + 90)
    builder.output(builder.hard_swish(x, out=(float(np.float32(out)), low + 128)))
    assert compare(builder.build(), [every(dtype)]).wrong == {}


@given(data=st.data())
@settings(max_examples=30)
def test_prelu_behind_a_pool_that_decides_its_layout(dtype: str, data: st.DataObject) -> None:
    shape = data.draw(st.tuples(st.integers(1, 2), st.integers(1, 9), st.integers(1, 9), st.integers(1, 7)))
    slopes = tuple(data.draw(st.sampled_from([1, size])) for size in shape)
    builder = ModelBuilder()
    x = builder.max_pool2d(builder.input("x", shape, dtype, *quant(data, dtype)), (1, 1))
    if data.draw(st.booleans()):
        inner = slopes[data.draw(st.integers(0, 3)) :]
        alpha = builder.constant("alpha", values(data.draw, inner, dtype), *quant(data, dtype))
    else:
        alpha = builder.input("alpha", slopes, dtype, *quant(data, dtype))
    builder.output(builder.emit("PRELU", [x, alpha], shape, quant(data, dtype), "prelu"))
    assert compare(builder.build(), None, data.draw(layouts), data.draw(SEEDS)).wrong == {}


@given(data=st.data())
@settings(max_examples=30)
def test_l2_normalization(dtype: str, data: st.DataObject) -> None:
    shape = (data.draw(st.integers(1, 3)), data.draw(st.integers(1, 200)))
    scale, zero_point = quant(data, dtype)
    builder = ModelBuilder()
    x = builder.input("x", shape, dtype, scale, zero_point)
    y = builder.tensor("y", shape, dtype, 1 / 128, 0 if dtype == "int8" else 128)
    fields = {"fusedActivationFunction": 0}
    builder.operator("L2_NORMALIZATION", [x], [y], "L2NormOptions", fields, version=2 if dtype == "int8" else 1)
    builder.output(y)
    # Near the zero point too: small norms are scaled by another shift.
    spread = data.draw(st.sampled_from([300, 30, 1]))
    offsets = np.random.default_rng(data.draw(SEEDS)).integers(-spread, spread + 1, shape)
    assert compare(builder.build(), [np.clip(zero_point + offsets, *LIMITS[dtype]).astype(dtype)]).wrong == {}


@given(data=st.data())
@settings(max_examples=30)
def test_requantize_between_types(dtype: str, data: st.DataObject) -> None:
    builder = ModelBuilder()
    x = builder.input("x", (1, 256), dtype, *quant(data, dtype))
    target = data.draw(st.sampled_from(["int8", "uint8"]))
    builder.output(builder.quantize(x, target, quant(data, target)))
    assert compare(builder.build(), [every(dtype)]).wrong == {}


@given(data=st.data())
@settings(max_examples=30)
def test_float_edges(dtype: str, data: st.DataObject) -> None:
    scale, zero_point = quant(data, dtype)
    builder = ModelBuilder()
    x = builder.input("x", (1, 400), "float32")
    builder.output(builder.dequantize(builder.quantize(x, dtype, (scale, zero_point))))
    # Multiples of half a step, and of any number: halfway cases and saturation.
    steps = np.random.default_rng(data.draw(SEEDS)).integers(-600, 601, (1, 400)).astype(np.float32) * np.float32(0.5)
    assert compare(builder.build(), [steps * np.float32(data.draw(st.sampled_from([scale, 0.37])))]).wrong == {}


def test_uint8_joins_tensors_of_different_scales() -> None:
    builder = ModelBuilder()
    quants = [(0.05, 3), (0.031, 200), (0.05, 3), (0.2, 128)]
    parts = [builder.input(f"x{n}", (1, 4, 3 + n, 5), "uint8", *quant) for n, quant in enumerate(quants)]
    builder.output(builder.concatenation(parts, 2, out=quants[0]))
    assert compare(builder.build()).wrong == {}


@given(data=st.data())
@settings(max_examples=40)
def test_data_movement_between_convolutions(dtype: str, data: st.DataObject) -> None:
    """A convolution before it gives the moved tensor the layout under test."""

    def integer(low: int, high: int) -> int:
        return data.draw(st.integers(low, high))

    builder, (h, w) = ModelBuilder(), (integer(2, 6), integer(2, 6))
    x = input_tensor(data.draw, builder, "front", dtype, (1, h, w, 6))
    y = builder.conv2d(x, **weights(data.draw, x, (4, 1, 1, 6), 4, 0))
    shrunk = data.draw(st.sampled_from([(), (0,)]))
    mode = data.draw(st.sampled_from([{}, {"align_corners": True}, {"half_pixel_centers": True}]))
    moves = {
        "pad": lambda: builder.pad(y, [(integer(0, 1), integer(0, 2)) for _ in range(4)]),
        "transpose": lambda: builder.transpose(y, data.draw(st.permutations(range(4)))),
        "reshape": lambda: builder.reshape(y, (h * w, -1)),
        "squeeze": lambda: builder.squeeze(y, (0,)),
        "slice": lambda: builder.slice(y, (0, integer(0, 1), integer(0, 1), 1), (1, h - 1, -1, 2)),
        "strided_slice": lambda: builder.strided_slice(
            y, (0, integer(0, 1), 0, integer(0, 2)), (1, h, w, 4), (1, 2, integer(1, 3), 1), shrink_axes=shrunk
        ),
        "split": lambda: builder.split(y, data.draw(st.sampled_from([2, 4])), 3),
        "resize": lambda: builder.resize_nearest_neighbor(y, (integer(1, 13), integer(1, 13)), **mode),
    }
    moved = moves[data.draw(st.sampled_from(sorted(moves)))]()
    builder.output(*(moved if isinstance(moved, list) else [moved]))
    comparison = compare(builder.build(), None, data.draw(layouts), data.draw(SEEDS))
    assert comparison.wrong == {} and any(layer.op.op == "move" for layer in comparison.graph.layers)
