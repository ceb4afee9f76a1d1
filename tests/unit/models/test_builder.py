"""ModelBuilder: what it writes means in LiteRT what the method says."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest

from stages.ir.models.builder import BuildError, ModelBuilder, Tensor
from stages.ir.models.tflite_reader import read
from stages.ir.reference import run

Build = Callable[[ModelBuilder, Tensor], Tensor | list[Tensor]]
SHAPE = (1, 6, 5, 4)


def model(build: Build, dtype: str = "float32", shape: Sequence[int] = SHAPE) -> bytes:
    b = ModelBuilder()
    quant = {"float32": (None,), "int8": (0.05, -3), "uint8": (0.05, 125)}[dtype]
    made = build(b, b.input("x", shape, dtype, *quant))
    b.output(*(made if isinstance(made, list) else [made]))
    return b.build()


def values(dtype: str = "float32", shape: Sequence[int] = SHAPE) -> np.ndarray:
    random = np.random.default_rng(5)
    if dtype == "float32":
        return random.normal(size=shape).astype(np.float32)
    return random.integers(np.iinfo(dtype).min, np.iinfo(dtype).max + 1, shape).astype(dtype)


MOVES: dict[str, tuple[Build, Callable[[np.ndarray], Any]]] = {
    "reshape": (lambda b, x: b.reshape(x, (1, -1)), lambda x: x.reshape(1, -1)),
    "squeeze": (lambda b, x: b.squeeze(x, (0,)), lambda x: x[0]),
    "transpose": (lambda b, x: b.transpose(x, (0, 3, 1, 2)), lambda x: x.transpose(0, 3, 1, 2)),
    "slice": (lambda b, x: b.slice(x, (0, 1, 2, 0), (1, 3, -1, 2)), lambda x: x[:, 1:4, 2:, :2]),
    "strided_slice": (
        lambda b, x: b.strided_slice(x, (0, 1, 0, 1), (1, 5, 5, 4), (1, 2, 2, 1)),
        lambda x: x[0:1, 1:5:2, 0:5:2, 1:4],
    ),
    "strided_slice_shrink": (
        lambda b, x: b.strided_slice(x, (0, 2, 0, 0), (1, 3, 5, 4), shrink_axes=(1,)),
        lambda x: x[:, 2],
    ),
    "split": (lambda b, x: b.split(x, 2, 3), lambda x: np.split(x, 2, 3)),
    "concatenation": (lambda b, x: b.concatenation([x, x, x], 1), lambda x: np.concatenate([x, x, x], 1)),
    "max_pool2d": (
        lambda b, x: b.max_pool2d(x, (2, 2), (2, 1)),
        lambda x: np.stack([x[:, i : i + 5 : 2, j : j + 4] for i in (0, 1) for j in (0, 1)]).max(axis=0),
    ),
    "resize": (
        lambda b, x: b.resize_nearest_neighbor(x, (12, 10)),
        lambda x: x.repeat(2, axis=1).repeat(2, axis=2),
    ),
}


@pytest.mark.parametrize("dtype", ["int8", "uint8", "float32"])
@pytest.mark.parametrize("name", MOVES)
def test_operators_that_move_data_equal_numpy(name: str, dtype: str) -> None:
    build, reference = MOVES[name]
    x = values(dtype)
    expected = reference(x)
    outputs = run(model(build, dtype), [x])
    for output, want in zip(outputs, expected if isinstance(expected, list) else [expected], strict=True):
        assert np.array_equal(output, want)


FUNCTIONS: dict[str, tuple[Build, Callable[[np.ndarray], np.ndarray]]] = {
    "relu": (lambda b, x: b.relu(x), lambda x: np.maximum(x, 0)),
    "relu6": (lambda b, x: b.relu6(x), lambda x: np.clip(x, 0, 6)),
    "leaky_relu": (lambda b, x: b.leaky_relu(x, 0.3), lambda x: np.where(x >= 0, x, 0.3 * x)),
    "hard_swish": (lambda b, x: b.hard_swish(x), lambda x: x * np.clip(x + 3, 0, 6) / 6),
    "logistic": (lambda b, x: b.logistic(x), lambda x: 1 / (1 + np.exp(-x))),
    "tanh": (lambda b, x: b.tanh(x), np.tanh),
    "softmax": (
        lambda b, x: b.softmax(x, 0.5),
        lambda x: np.exp(0.5 * x) / np.exp(0.5 * x).sum(axis=-1, keepdims=True),
    ),
    "mean": (lambda b, x: b.mean(x, (1, 2)), lambda x: x.mean(axis=(1, 2))),
    "mean_keep": (lambda b, x: b.mean(x, (3,), keep_dims=True), lambda x: x.mean(axis=3, keepdims=True)),
    "sub": (lambda b, x: b.sub(x, _row(b, x)), lambda x: x - ROW),
    "add": (lambda b, x: b.add(x, _row(b, x), activation="relu"), lambda x: np.maximum(x + ROW, 0)),
    "mul": (lambda b, x: b.mul(x, _row(b, x)), lambda x: x * ROW),
}
ROW = np.array([-1.5, -0.5, 0.5, 1.0], dtype=np.float32)


def _row(b: ModelBuilder, x: Tensor) -> Tensor:
    return b.constant("row", ROW)


@pytest.mark.parametrize("name", FUNCTIONS)
def test_functions_are_the_real_ones(name: str) -> None:
    build, function = FUNCTIONS[name]
    x = values()
    (output,) = run(model(build), [x])
    np.testing.assert_allclose(output, function(x), rtol=1e-5, atol=1e-6)


def test_int8_convolution_is_per_channel_and_has_the_right_bias_scale() -> None:
    weights = np.ones((2, 1, 1, 4), dtype=np.int8)
    bias = np.array([0, 400], dtype=np.int32)

    def build(b: ModelBuilder, x: Tensor) -> Tensor:
        return b.conv2d(x, weights, bias, weight_scale=[0.5, 0.25], out=(1.0, 0))

    data = model(build, "int8")
    info = read(data)
    assert [round(float(s), 6) for s in info.tensors[info.operators[0].inputs[2]].scale] == [0.025, 0.0125]
    (output,) = run(data, [np.full(SHAPE, 17, dtype=np.int8)])
    # Four inputs of (17 + 3) * 0.05 = 1.0, times 0.5 and 0.25, plus 400 * 0.0125.
    assert output[0, 0, 0].tolist() == [2, 6]


def test_same_calls_give_the_same_bytes_and_constants_are_shared_and_aligned() -> None:
    table = np.arange(64, dtype=np.float32).reshape(1, 1, 16, 4)

    def build(b: ModelBuilder, x: Tensor) -> Tensor:
        x = b.add(x, b.constant("a", table))
        return b.add(x, b.constant("b", table.copy()))

    data = model(build, shape=(1, 6, 16, 4))
    assert data == model(build, shape=(1, 6, 16, 4))
    assert data.count(table.tobytes()) == 1
    assert data.index(table.tobytes()) % 16 == 0


@pytest.mark.parametrize(
    ("build", "message"),
    [
        (lambda b, x: b.conv2d(x, np.zeros((2, 3, 3, 3), np.float32)), r"has 4 channels in .* not a multiple of the 3"),
        (lambda b, x: b.conv2d(x, np.zeros((2, 7, 7, 4), np.float32), padding="valid"), "a window of 7 over"),
        (lambda b, x: b.conv2d(x, np.zeros((2, 1, 1, 4), np.float32), np.zeros(3, np.float32)), "bias"),
        (lambda b, x: b.conv2d(x, np.zeros((2, 1, 1, 4), np.float32), padding="full"), "padding 'full'"),
        (lambda b, x: b.relu(x, out=(0.1, 0)), "without quantization"),
        (lambda b, x: b.add(x, b.constant("c", np.zeros(3, np.float32))), "broadcast"),
        (lambda b, x: b.transpose(x, (0, 1, 2)), "order of the axes"),
        (lambda b, x: b.split(x, 3, 3), "into 3"),
        (lambda b, x: b.split(x, 1, 9), "axis 9"),
        (lambda b, x: b.slice(x, (0, 0), (1, 1)), "but 4 are needed"),
        (lambda b, x: b.strided_slice(x, (0,) * 4, (1,) * 4, (1, 0, 1, 1)), "stride 0 along axis 1"),
        (lambda b, x: b.tensor("t", (2,), "int8", [0.1, 0.2, 0.3]), "3 scales for 2 channels"),
        (lambda b, x: b.tensor("t", (2,), "int8", 0.1, 200), "zero point"),
        (lambda b, x: b.tensor("t", (2,), "int8", 0.0), "positive"),
        (lambda b, x: b.tensor("t", (2, 0), "int8"), "below 1"),
        (lambda b, x: b.operator("CONVOLVE", [x], [x]), "CONVOLVE"),
    ],
)
def test_impossible_models_are_refused(build: Build, message: str) -> None:
    with pytest.raises(BuildError, match=message):
        model(build)
