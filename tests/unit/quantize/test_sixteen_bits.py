"""16-bit activations with 8-bit weights: numpy and firmware equal LiteRT; errors for the rest."""

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from stages.base import StageError
from stages.ir.models.builder import ModelBuilder, Tensor
from tests.support.integer import compare, integer_graph, one_input
from tests.support.stages_run import check_firmware

QUANT = (3e-4, 0)


def network(seed: int) -> bytes:
    """All operators with a 16-bit form, between conversions to 8 bits and float32."""
    rng, b = np.random.default_rng(seed), ModelBuilder()

    def weights(*shape: int) -> np.ndarray:
        return rng.integers(-127, 128, shape).astype(np.int8)

    def bias(count: int) -> np.ndarray:
        return rng.integers(-(10**6), 10**6, count)

    channels = [0.002 + 0.0003 * i for i in range(8)]
    x = b.input("x", (1, 9, 8, 6), "int16", *QUANT)
    y = b.conv2d(
        x, weights(8, 3, 3, 6), bias(8), weight_scale=channels, out=(4e-4, 0), activation="relu", stride=(2, 1)
    )
    y = b.depthwise_conv2d(y, weights(1, 3, 3, 8), bias(8), weight_scale=channels, out=(5e-4, 0))
    y = b.conv2d(y, weights(6, 1, 1, 4), bias(6), weight_scale=0.006, out=(5e-4, 0), name="grouped")
    average = b.avg_pool2d(y, (2, 2), (1, 1), padding="same")
    most = b.max_pool2d(y, (2, 2), (1, 1), padding="same")
    total = b.add(average, most, out=(7e-4, 0))
    less = b.sub(total, average, out=(6e-4, 0))
    product = b.mul(less, total, out=(6e-3, 0), activation="relu6")
    above = b.relu(less, out=QUANT)
    between = b.relu6(b.mul(above, above, out=(9e-3, 0)), out=(2e-4, 0))
    joined = b.pad(b.concatenation([between, between]), [(0, 0), (1, 0), (0, 1), (0, 0)])
    flat = b.reshape(joined, (1, -1))
    dense = b.fully_connected(flat, weights(5, flat.shape[1]), bias(5), weight_scale=0.003, out=(3e-3, 0))
    last = b.fully_connected(dense, weights(4, 5), weight_scale=channels[:4], out=(4e-3, 0), name="last")
    last = b.softmax(b.tanh(b.logistic(last)))
    means = b.mean(product, [1, 2], out=(5e-3, 0))
    narrow = b.quantize(dense, "int8", (0.9, -3))
    real = b.dequantize(means)
    b.output(last, b.mean(product, [3], keep_dims=True, out=(5e-3, 0)), narrow, real)
    b.output(
        b.quantize(real, "int16", (4e-3, 0)), b.quantize(narrow, "int16", (5e-3, 0)), b.quantize(means, "int16", QUANT)
    )
    return b.build()


@pytest.mark.parametrize("seed", range(3))
def test_the_graph_computes_what_litert_does(seed: int) -> None:
    result = compare(network(seed), seed=seed)
    assert (result.checked, result.wrong) == (27, {})


def test_sums_beyond_32_bits() -> None:
    """512 products of 2^22 each leave int32."""

    def dense(b: ModelBuilder, x: Tensor) -> Tensor:
        weights = np.full((3, 600), 127, np.int8)
        weights[1] = -127
        return b.fully_connected(x, weights, weight_scale=0.001, out=(0.01, 0))

    data = one_input((1, 600), "int16", QUANT, dense)
    for value in (32767, -32768):
        assert compare(data, [np.full((1, 600), value, np.int16)]).wrong == {}


EVERY = np.arange(-32768, 32768).astype(np.int16).reshape(1, -1)


@pytest.mark.parametrize("scale", [1 / 4096, 1 / 8192, 1 / 2048, 0.0003, 0.01, 2.6, 1e-9])
@pytest.mark.parametrize("name", ["logistic", "tanh"])
def test_functions_of_every_value(name: str, scale: float) -> None:
    data = one_input(EVERY.shape, "int16", (scale, 0), lambda b, x: getattr(b, name)(x))
    assert compare(data, [EVERY]).wrong == {}


@pytest.mark.parametrize("beta", [1.0, 0.3])
@pytest.mark.parametrize("scale", [1e-7, 0.0003, 0.001, 0.9])
def test_softmax_of_rows_of_any_length(scale: float, beta: float) -> None:
    rng = np.random.default_rng(0)
    for count in (1, 2, 7, 600):
        rows = rng.integers(-32768, 32768, (9, count)).astype(np.int16)
        rows[0] = 5
        data = one_input(rows.shape, "int16", (scale, 0), lambda b, x: b.softmax(x, beta))
        assert compare(data, [rows]).wrong == {}, count


def test_firmware_gives_litert_s_bytes(tmp_path: Path) -> None:
    check_firmware(network(7), tmp_path)


def _dense(weight_zero_point: int = 0, bias: type = np.int64) -> Callable[[ModelBuilder, Tensor], Tensor]:
    def made(b: ModelBuilder, x: Tensor) -> Tensor:
        of_weights = {"weight_scale": 0.01, "weight_zero_point": weight_zero_point}
        return b.fully_connected(x, np.ones((2, 4), np.int8), np.zeros(2, bias), **of_weights, out=QUANT)

    return made


@pytest.mark.parametrize(
    ("quant", "operator", "message"),
    [
        (QUANT, _dense(bias=np.int32), "has a bias of int32 in 'fully_connected/bias'; with int16 data it is int64"),
        (QUANT, _dense(3), "has the zero point 3 in 'fully_connected/weights'; with int16 data it must be 0"),
        ((3e-4, 5), _dense(), "has the zero point 5 in 'x'; for int16 it must be 0"),
        (QUANT, lambda b, x: b.hard_swish(x), "has the type int16 in 'x'"),
        (
            QUANT,
            lambda b, x: b.emit("TANH", [x], x.shape, (1e-3, 0), "tanh"),
            "has an output with scale 0.001, not 1/32768",
        ),
        ((3.0, 0), lambda b, x: b.logistic(x), "has an input with scale 3; it must be below 8/3"),
        ((2.0, 0), lambda b, x: b.softmax(x), "beta * scale is 2; it must not be above 1.25"),
        ((2**-12, 0), lambda b, x: b.add(x, x, out=(2**-11, 0)), "has power-of-two scales"),
    ],
    ids=["bias", "weights", "input", "operator", "output", "sigmoid", "softmax", "scales"],
)
def test_what_litert_does_not_compute_is_refused(
    quant: tuple[float, int], operator: Callable[[ModelBuilder, Tensor], Tensor], message: str
) -> None:
    with pytest.raises(StageError) as caught:
        integer_graph(one_input((1, 4), "int16", quant, operator))
    assert message in caught.value.message
