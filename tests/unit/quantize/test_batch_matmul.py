"""BATCH_MATMUL of int8 and int16 against LiteRT, bit for bit."""

import re

import numpy as np
import pytest

from stages.base import StageError
from stages.ir.models.builder import BuildError, ModelBuilder
from tests.support.integer import compare, integer_graph

BATCHES = (((), ()), ((2,), (2,)), ((2, 3), (1, 3)), ((3,), (2, 3)), ((2, 3), ()), ((1, 2, 2), (3, 1, 2)), ((2,), (1,)))
Shape = tuple[int, ...]


def model(
    a: Shape,
    b: Shape | np.ndarray,
    quants: list[tuple[float, int]],
    *,
    x: bool = False,
    y: bool = False,
    dtype: str = "int8",
) -> bytes:
    builder = ModelBuilder()
    first = builder.input("a", a, dtype, *quants[0])
    second = (
        builder.constant("b", b, *quants[1]) if isinstance(b, np.ndarray) else builder.input("b", b, dtype, *quants[1])
    )
    builder.output(
        builder.emit(
            "BATCH_MATMUL", [first, second], None, quants[2], "y", "BatchMatMulOptions", {"adjX": x, "adjY": y}
        )
    )
    return builder.build()


def drawn(rng: np.random.Generator) -> list[tuple[float, int]]:
    return [(float(np.float32(rng.uniform(0.01, 0.1))), int(rng.integers(-128, 128))) for _ in range(3)]


@pytest.mark.parametrize("constant", [False, True])
@pytest.mark.parametrize(("x", "y"), [(False, False), (True, False), (False, True), (True, True)])
def test_batches(x: bool, y: bool, constant: bool) -> None:
    rng = np.random.default_rng(2 * x + y)
    for first, second in BATCHES:
        rows, depth, units = (int(n) for n in rng.integers(1, 9, 3))
        shapes = (
            (*first, *((depth, rows) if x else (rows, depth))),
            (*second, *((units, depth) if y else (depth, units))),
        )
        a, b = (rng.integers(-128, 128, shape).astype(np.int8) for shape in shapes)
        data = model(a.shape, b if constant else b.shape, drawn(rng), x=x, y=y)
        assert compare(data, [a] if constant else [a, b]).wrong == {}, (first, second)


@pytest.mark.parametrize("constant", [False, True])
@pytest.mark.parametrize(("x", "y"), [(False, False), (True, False), (False, True), (True, True)])
def test_sixteen_bits(x: bool, y: bool, constant: bool) -> None:
    """Sums beyond 32 bits, and results that LiteRT wraps as an int32 before it clamps them."""
    rng = np.random.default_rng(4 + 2 * x + y)
    for number, (first, second) in enumerate(BATCHES):
        rows, depth, units = int(rng.integers(1, 9)), int(rng.integers(1, 200)), int(rng.integers(1, 9))
        shapes = (
            (*first, *((depth, rows) if x else (rows, depth))),
            (*second, *((units, depth) if y else (depth, units))),
        )
        low = (-32768, 20000)[number % 2]
        a, b = (rng.integers(low, 32768, shape).astype(np.int16) for shape in shapes)
        for output in (2.0**-9, 3e-6, 1.0, 900.0):
            quants = [(0.0017, 0), (0.0005, 0), (output, 0)]
            data = model(a.shape, b if constant else b.shape, quants, x=x, y=y, dtype="int16")
            assert compare(data, [a] if constant else [a, b]).wrong == {}, (first, second, output)


def test_a_constant_matrix_is_a_convolution() -> None:
    rng = np.random.default_rng(3)
    weights = rng.integers(-128, 128, (8, 12)).astype(np.int8)
    for layout in ("NHWC", "NCHW"):
        data = model((2, 3, 5, 8), weights.reshape(1, 1, 8, 12), drawn(rng))
        comparison = compare(data, [rng.integers(-128, 128, (2, 3, 5, 8)).astype(np.int8)], layout)
        assert (comparison.wrong, [layer.kind for layer in comparison.graph.layers]) == (
            {},
            ["reshape", "conv2d", "reshape"],
        )
    assert integer_graph(data).layers[1].op.macs_of(integer_graph(data).tensors["y"]) == 2 * 3 * 5 * 8 * 12


def test_what_does_not_fit_is_refused() -> None:
    with pytest.raises(BuildError, match=re.escape("cannot multiply 'a' [2, 3] by 'b' [2, 4]")):
        model((2, 3), (2, 4), [(0.1, 0)] * 3)
    with pytest.raises(BuildError, match="with adj_x"):
        model((2, 3), (3, 4), [(0.1, 0)] * 3, x=True)
    with pytest.raises(BuildError, match="matrices of 2 to 5 axes"):
        model((3,), (3, 4), [(0.1, 0)] * 3)
    b = ModelBuilder()
    inputs = b.input("a", (2, 3), "uint8", 0.1, 128), b.input("b", (3, 4), "uint8", 0.1, 128)
    b.output(b.emit("BATCH_MATMUL", inputs, None, (0.1, 128), "y", "BatchMatMulOptions", {}))
    with pytest.raises(StageError, match="has the type uint8 in 'a'; supported: int8, int16, float32"):
        integer_graph(b.build())
    with pytest.raises(StageError, match="has the zero point 3 in 'b'; for int16 it must be 0"):
        integer_graph(model((2, 3), (3, 4), [(0.1, 0), (0.1, 3), (0.1, 0)], dtype="int16"))
    with pytest.raises(StageError, match=re.escape("would scale its sums up by 2^15; check the scales of its tensors")):
        integer_graph(model((2, 3), (3, 4), [(1.0, 0), (1.0, 0), (2.0**-14, 0)], dtype="int16"))
