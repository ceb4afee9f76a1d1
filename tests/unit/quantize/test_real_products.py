"""FULLY_CONNECTED equals LiteRT's product with a real number, on halves too."""

import numpy as np
import pytest

from stages.base import StageError
from stages.ir.models.builder import ModelBuilder
from stages.quantize.arithmetic import LIMITS
from stages.quantize.patterns import convolution
from tests.support.integer import compare, integer_graph


@pytest.mark.parametrize("dtype", ["int8", "uint8"])
def test_halves_of_layers_are_litert_s(dtype: str, monkeypatch: pytest.MonkeyPatch) -> None:
    low, high = LIMITS[dtype]
    others = 0
    for number in range(16):
        rng = np.random.default_rng(number)
        depth, units = int(rng.choice([1, 8, 64, 300])), int(rng.choice([1, 5, 32]))
        scale, quotient = float(rng.choice([0.5, 0.1, 1 / 16])), int(rng.choice([6, 10, 14, 24, 64, 100, 512, 1000]))
        many = dtype == "int8" and number % 2 == 1
        weight_scale = [float(value) for value in rng.choice([1.0, 0.5, 0.75, 1 / 3], units)] if many else 1.0
        builder = ModelBuilder()
        x = builder.input("x", (64, depth), dtype, scale, int(rng.integers(low, high + 1)))
        weights = rng.integers(low, high + 1, (units, depth)).astype(dtype)
        options = {"weight_scale": weight_scale, "weight_zero_point": 0 if dtype == "int8" else 119}
        bias = rng.integers(-20_000, 20_000, units).astype(np.int32) if number % 3 else None
        out = (float(np.float32(scale * quotient)), int(rng.integers(low, high + 1)))
        builder.output(builder.fully_connected(x, weights, bias, out=out, **options))
        data, inputs = builder.build(), [rng.integers(low, high + 1, (64, depth)).astype(dtype)]
        assert compare(data, inputs).wrong == {}
        with monkeypatch.context() as patch:
            patch.setattr(convolution, "exact_multipliers", lambda fixed, *_: fixed)
            others += len(compare(data, inputs).wrong)
    assert others > 0


@pytest.mark.parametrize(("dtype", "beyond", "within", "out", "out_within"), [
    ("int8", (1 << 29) + 9, (1 << 29) - 600, (0.25, 3), (0.25, 3)),  # 4 times as much is beyond int32
    ("int8", 9 - (1 << 31), 600 - (1 << 31), (1.0, -20), (1.0, -20)),  # with the zero point
    ("uint8", (1 << 31) - 9, (1 << 30) - 600, (0.5, 0), (0.5, 0)),  # sums that wrap may be any
    ("int16", 1 << 40, (1 << 40) - 5, (1.0, 0), (2048.0, 0)),
])  # fmt: skip
def test_results_beyond_int32_are_refused(
    dtype: str, beyond: int, within: int, out: tuple[float, int], out_within: tuple[float, int]
) -> None:
    """LiteRT converts float64 to int32 unchecked: the result depends on the processor."""
    with pytest.raises(
        StageError, match=r"'fully_connected' has sums of up to \S+ in unit 1, .* they overflow in LiteRT"
    ):
        integer_graph(_of_two_units(dtype, beyond, out))
    assert compare(_of_two_units(dtype, within, out_within)).wrong == {}


@pytest.mark.parametrize(("kind", "beyond", "within", "scale", "scale_within"), [
    ("conv2d", 1 << 32, (1 << 31) - (1 << 20), 1.0, 1.0),
    ("depthwise_conv2d", 1 << 32, (1 << 31) - (1 << 20), 1.0, 1.0),
    ("conv2d", 1 << 47, (1 << 47) - (1 << 20), 2.0**20, 2.0**17),
    ("depthwise_conv2d", -(1 << 47), (1 << 20) - (1 << 47), 2.0**20, 2.0**17),
    ("transpose_conv", 1 << 30, 1 << 28, 0.25, 0.25),
])  # fmt: skip
def test_convolutions_of_int16_beyond_litert_s_integers_are_refused(
    kind: str, beyond: int, within: int, scale: float, scale_within: float
) -> None:
    with pytest.raises(StageError, match=r"has sums of up to \S+ in unit 1, .* they overflow in LiteRT"):
        integer_graph(_of_two_channels(kind, beyond, scale))
    assert compare(_of_two_channels(kind, within, scale_within)).wrong == {}


@pytest.mark.parametrize("kind", ["conv2d", "depthwise_conv2d", "transpose_conv"])
@pytest.mark.parametrize(("bias", "refused"), [((1 << 31) - 1, True), ((1 << 31) - 900, False)])
def test_convolutions_of_int8_whose_zero_point_leaves_int32(kind: str, bias: int, refused: bool) -> None:
    """Scales whose product is nearly 1."""
    builder = ModelBuilder()
    scales = 0.2767435908317566, 0.38619163632392883, 0.10687606036663055
    x = builder.input("x", (1, 4, 4, 2), "int8", scales[0], 0)
    weights = np.ones((1, 1, 1, 2) if kind == "depthwise_conv2d" else (2, 1, 1, 2), np.int8)
    more = {"shape": (1, 4, 4, 2)} if kind == "transpose_conv" else {}
    options = {"weight_scale": scales[1], "out": (scales[2], 100), **more}
    builder.output(getattr(builder, kind)(x, weights, np.array([0, bias], np.int32), **options))
    if refused:
        with pytest.raises(StageError, match="they overflow in LiteRT"):
            integer_graph(builder.build())
    else:
        assert compare(builder.build()).wrong == {}


def _of_two_channels(kind: str, bias: int, scale: float) -> bytes:
    """The second channel has the bias; the output has the scale."""
    builder = ModelBuilder()
    x = builder.input("x", (1, 4, 4, 2), "int16", 1.0, 0)
    weights = np.ones((1, 2, 2, 2) if kind == "depthwise_conv2d" else (2, 2, 2, 2), np.int8)
    more = {"shape": (1, 4, 4, 2)} if kind == "transpose_conv" else {}
    biases = np.array([0, bias], np.int64)
    builder.output(getattr(builder, kind)(x, weights, biases, weight_scale=1.0, out=(scale, 0), **more))
    return builder.build()


def _of_two_units(dtype: str, bias: int, out: tuple[float, int]) -> bytes:
    """The second unit has the bias."""
    builder = ModelBuilder()
    zero_point = 128 if dtype == "uint8" else 0
    x = builder.input("x", (8, 2), dtype, 1.0, zero_point)
    weights = np.full((2, 2), 1 + zero_point, "uint8" if dtype == "uint8" else "int8")
    biases = np.array([0, bias], np.int64 if dtype == "int16" else np.int32)
    builder.output(builder.fully_connected(x, weights, biases, weight_scale=1.0, weight_zero_point=zero_point, out=out))
    return builder.build()


def layer_without_multiplier(dtype: str, number: int) -> tuple[bytes, np.ndarray]:
    """A layer without an exact multiplier, and inputs of which some sums are halves."""
    low, high = LIMITS[dtype]
    rng = np.random.default_rng(number)
    depth, units, rows = int(rng.choice([1, 9, 64])), int(rng.choice([1, 5, 32])), 64
    builder = ModelBuilder()
    x_scale, out_scale, large = [(7.0, 640.0, 40_000), (15.0, 416.0, 9_000), (1.1, 1.3e7, 1 << 30)][number % 3]
    x = builder.input("x", (rows, depth), dtype, x_scale, int(rng.integers(low, high + 1)))
    weights = rng.integers(-3, 4, (units, depth)).astype(np.int64) * int(rng.choice([1, 8]))
    bias = rng.integers(-large, large, units) // 16 * 16
    many = dtype == "int8" and number % 2 == 1
    zero_point = 0 if dtype == "int8" else 128
    out = builder.fully_connected(
        x,
        (weights + zero_point).astype(dtype),
        bias.astype(np.int32),
        weight_scale=[1.0, *rng.choice([1.0, 0.5, 1 / 3], units - 1)] if many else 1.0,
        weight_zero_point=zero_point,
        out=(out_scale, int(rng.integers(low, high + 1))),
        activation=str(rng.choice(["none", "relu"])),
    )
    builder.output(out)
    inputs = rng.integers(low, high + 1, (rows, depth)).astype(dtype)
    inputs[: rows // 2] = x.zero_point  # where the sum is the bias
    return builder.build(), inputs


@pytest.mark.parametrize("dtype", ["int8", "uint8"])
def test_layers_without_a_multiplier_are_litert_s(dtype: str) -> None:
    by_steps = 0
    for number in range(24):
        data, inputs = layer_without_multiplier(dtype, number)
        by_steps += integer_graph(data).layers[0].op.rounding == "steps"
        assert compare(data, [inputs]).wrong == {}, number
    assert by_steps > 12
