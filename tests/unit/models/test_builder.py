"""ModelBuilder: what it writes means in LiteRT what the method says."""

from collections.abc import Callable, Sequence

import numpy as np
import pytest

from stages.ir.models.builder import BuildError, ModelBuilder, Tensor

Build = Callable[[ModelBuilder, Tensor], Tensor | list[Tensor]]
SHAPE = (1, 6, 5, 4)


def model(build: Build, dtype: str = "float32", shape: Sequence[int] = SHAPE) -> bytes:
    b = ModelBuilder()
    quant = {"float32": (None,), "int8": (0.05, -3), "uint8": (0.05, 125)}[dtype]
    made = build(b, b.input("x", shape, dtype, *quant))
    b.output(*(made if isinstance(made, list) else [made]))
    return b.build()


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
