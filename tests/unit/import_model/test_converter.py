"""Each float32 operator, imported and run by TVM, against LiteRT's reference kernels. TVM computes no integers."""

from collections.abc import Callable

import numpy as np
import pytest

from stages.import_model.build import build_module
from stages.ir.models.builder import ModelBuilder, Tensor
from stages.ir.models.tflite_reader import read
from stages.ir.reference.interpreter import random_inputs, run
from tests.support.relax_run import run_relax, weights

SHAPE = (2, 7, 6, 8)


class Case:
    """A model of one operator in the making."""

    def __init__(self) -> None:
        self.rng, self.b = np.random.default_rng(7), ModelBuilder()

    def weights(self, *shape: int) -> np.ndarray:
        return self.rng.standard_normal(shape).astype(np.float32)

    def constant(self, *shape: int) -> Tensor:
        return self.b.constant("c", self.weights(*shape))

    def build(self, *results: Tensor) -> bytes:
        self.b.output(*results)
        return self.b.build()


def difference(data: bytes) -> float:
    """The largest difference of any output element, and a check that there is something to compare."""
    info = read(data)
    inputs = random_inputs(info, seed=3)
    wanted = run(data, inputs)
    assert all(len(np.unique(array)) > 1 for array in wanted)
    got = run_relax(build_module(data, info), inputs)
    for have, want in zip(got, wanted, strict=True):
        assert have.shape == want.shape
        assert have.dtype == want.dtype
    return max(float(np.abs(a.astype(float) - b.astype(float)).max()) for a, b in zip(got, wanted, strict=True))


ROUNDED: dict[str, Callable[[Case, Tensor], Tensor]] = {
    "conv2d": lambda c, x: c.b.conv2d(x, c.weights(9, 3, 2, 8), c.weights(9), stride=(2, 1)),
    "conv2d, no bias, relu6": lambda c, x: c.b.conv2d(x, c.weights(4, 1, 1, 8), padding="valid", activation="relu6"),
    "conv2d, dilated": lambda c, x: c.b.conv2d(x, c.weights(4, 3, 3, 8), dilation=(2, 2)),
    "conv2d, grouped": lambda c, x: c.b.conv2d(x, c.weights(6, 3, 3, 4)),
    "conv2d, one channel out": lambda c, x: c.b.conv2d(x, c.weights(1, 3, 3, 8), c.weights(1)),
    "depthwise": lambda c, x: c.b.depthwise_conv2d(x, c.weights(1, 3, 3, 8), c.weights(8)),
    "depthwise, multiplier": lambda c, x: c.b.depthwise_conv2d(
        x, c.weights(1, 3, 2, 16), stride=(2, 2), activation="relu"
    ),
    "fully_connected": lambda c, x: c.b.fully_connected(x, c.weights(5, 8 * 42), c.weights(5)),
    "fully_connected, kept axes": lambda c, x: c.b.fully_connected(x, c.weights(5, 8), None, keep_num_dims=True),
    "add": lambda c, x: c.b.add(x, c.constant(1, 1, 1, 8), activation="relu"),
    "sub": lambda c, x: c.b.sub(c.constant(2, 7, 6, 8), x),
    "mul": lambda c, x: c.b.mul(x, x),
    "avg_pool2d": lambda c, x: c.b.avg_pool2d(x, (3, 2), (2, 2), padding="same"),
    "mean": lambda c, x: c.b.mean(x, (1, 2)),
    "mean, kept axes": lambda c, x: c.b.mean(x, (-1,), keep_dims=True),
    "leaky_relu": lambda c, x: c.b.leaky_relu(x, 0.3),
    "hard_swish": lambda c, x: c.b.hard_swish(x),
    "logistic": lambda c, x: c.b.logistic(x),
    "tanh": lambda c, x: c.b.tanh(x),
    "softmax": lambda c, x: c.b.softmax(x),
    "softmax, beta": lambda c, x: c.b.softmax(x, 0.25),
}


@pytest.mark.parametrize("name", ROUNDED)
def test_arithmetic_differs_by_the_order_of_sums(name: str) -> None:
    case = Case()
    assert difference(case.build(ROUNDED[name](case, case.b.input("x", SHAPE, "float32")))) <= 2e-5


def test_softmax_with_a_beta_beyond_what_its_product_holds() -> None:
    """x * beta is infinite, where LiteRT multiplies the differences from the maximum."""
    case = Case()
    x = case.b.input("x", (3, 5), "float32")
    info = read(data := case.build(case.b.softmax(x, 3e38)))
    inputs = [np.array([[4, -9, 4, 3, 0], [-7, -8, -9, -7, -30], [0, 0, 0, 0, 0]], np.float32)]
    (wanted,), (got,) = run(data, inputs), run_relax(build_module(data, info), inputs)
    np.testing.assert_array_equal(wanted[0], np.array([0.5, 0, 0.5, 0, 0], np.float32))
    np.testing.assert_allclose(got, wanted, rtol=1e-6)


MOVED: dict[str, Callable[[Case, Tensor], Tensor | list[Tensor]]] = {
    "max_pool2d": lambda c, x: c.b.max_pool2d(x, (3, 3), (2, 2), padding="same"),
    "relu": lambda c, x: c.b.relu(x),
    "relu6": lambda c, x: c.b.relu6(x),
    "pad": lambda c, x: c.b.pad(x, [(0, 0), (1, 2), (0, 1), (0, 3)]),
    "concatenation": lambda c, x: c.b.concatenation([x, x], axis=-1),
    "reshape": lambda c, x: c.b.reshape(x, (2, -1)),
    "squeeze": lambda c, x: c.b.squeeze(c.b.reshape(x, (2, 1, 42, 8)), (1,)),
    "transpose": lambda c, x: c.b.transpose(x, (3, 0, 1, 2)),
    "slice": lambda c, x: c.b.slice(x, (0, 1, 2, 3), (2, 3, -1, 4)),
    "strided_slice": lambda c, x: c.b.strided_slice(x, (0, 1, 0, 1), (2, 7, 6, 8), (1, 2, 3, 1)),
    "strided_slice, shrunk": lambda c, x: c.b.strided_slice(
        x, (0, 3, 0, 0), (2, 4, 6, 8), (1, 1, 2, 1), shrink_axes=(1,)
    ),
    "strided_slice, from the end": lambda c, x: c.b.strided_slice(x, (0, -4, 0, 0), (2, -1, 99, 8), (1, 1, 1, 2)),
    "split": lambda c, x: c.b.split(x, 4),
    "resize": lambda c, x: c.b.resize_nearest_neighbor(x, (10, 9)),
    "resize, half pixels": lambda c, x: c.b.resize_nearest_neighbor(x, (11, 4), half_pixel_centers=True),
    "resize, aligned corners": lambda c, x: c.b.resize_nearest_neighbor(x, (12, 11), align_corners=True),
}


@pytest.mark.parametrize("name", MOVED)
def test_moved_data_is_exact(name: str) -> None:
    case = Case()
    result = MOVED[name](case, case.b.input("x", SHAPE, "float32"))
    assert difference(case.build(*(result if isinstance(result, list) else [result]))) == 0


@pytest.mark.parametrize("batch", [1, 3])
@pytest.mark.parametrize(
    ("op", "many"), [("conv2d", False), ("conv2d", True), ("depthwise_conv2d", True), ("fully_connected", False)]
)
def test_float_data_with_integer_weights(op: str, many: bool, batch: int) -> None:
    """LiteRT quantizes the data at run time; a conversion that just dequantizes the weights is off by per cent."""
    rng, b = np.random.default_rng(2), ModelBuilder()
    x = b.input("x", (batch, 5, 6, 8), "float32")
    shape = {"conv2d": (4, 3, 3, 8), "fully_connected": (4, 240), "depthwise_conv2d": (1, 3, 3, 8)}[op]
    channels = 8 if op == "depthwise_conv2d" else 4
    scale = [0.01 + 0.003 * i for i in range(channels)] if many else 0.02
    bias = weights(rng, (channels,), "float32")
    b.output(getattr(b, op)(x, weights(rng, shape, "int8"), bias, weight_scale=scale))
    assert difference(b.build()) < 2e-5
