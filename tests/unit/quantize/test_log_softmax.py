"""LOG_SOFTMAX of 8 bits against LiteRT, bit for bit."""

import numpy as np
import pytest

from stages.base import StageError
from tests.support.integer import compare, integer_graph, one_input


def model(dtype: str, shape: tuple[int, ...], scale: float, out: tuple[float, int] | None = None) -> bytes:
    out = out or (1 / 16, int(np.iinfo(dtype).max))
    return one_input(shape, dtype, (scale, 3), lambda b, x: b.emit("LOG_SOFTMAX", [x], shape, out, "y"))


@pytest.mark.parametrize("dtype", ["int8", "uint8"])
def test_scales_and_lengths(dtype: str) -> None:
    """Scales from 1e-4 to 10; rows whose values differ much, little, and not at all."""
    rng, limits = np.random.default_rng(4), np.iinfo(dtype)
    for number in range(40):
        shape = (2, 3, (1, 2, 5, 10, 100, 600)[number % 6])
        rows = rng.integers(limits.min, limits.max + 1, shape).astype(dtype)
        rows = np.clip(rows, 5, (limits.max, 15, 5)[number % 3]).astype(dtype)
        data = model(dtype, shape, float(np.float32(10 ** rng.uniform(-4, 1))))
        assert compare(data, [rows]).wrong == {}, number


def test_images_in_any_layout() -> None:
    images = np.random.default_rng(0).integers(-128, 128, (2, 3, 4, 5)).astype(np.int8)
    assert compare(model("int8", (2, 3, 4, 5), 0.07), [images], "NCHW").wrong == {}


def test_what_is_refused() -> None:
    with pytest.raises(StageError, match=r"has an output with scale 0\.1 and zero point 127, not 1/16 and 127"):
        integer_graph(model("int8", (2, 4), 0.1, (0.1, 127)))
    with pytest.raises(StageError, match="sums 5,000 exponentials; the reference can sum at most 4,095"):
        integer_graph(model("int8", (1, 5000), 0.1))
    with pytest.raises(StageError, match="cannot be computed as the reference does"):
        integer_graph(model("int8", (1, 5), 1e-9))
