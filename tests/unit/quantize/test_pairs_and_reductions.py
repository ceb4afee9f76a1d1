"""MAXIMUM, MINIMUM, SQUARED_DIFFERENCE, DIV and reductions of 8 bits against LiteRT, bit for bit."""

import re

import numpy as np
import pytest

from stages.base import StageError
from stages.ir.models.builder import ModelBuilder
from stages.ir.reference.integer import run_graph
from stages.ir.reference.interpreter import Reference
from stages.ir.reference.partitions import reference_of
from stages.ir.reference.refusal import RunError
from tests.support.integer import compare, integer_graph

SHAPES = (
    ((2, 5, 4, 3), (2, 5, 4, 3)),
    ((2, 5, 4, 3), (1, 1, 1, 3)),
    ((3,), (2, 5, 4, 3)),
    ((2, 5, 4, 3), (5, 1, 3)),
    ((4,), (4,)),
    ((1, 5, 4, 1), (2, 1, 1, 3)),
)
AXES = ((1,), (3,), (1, 2), (1, 3), (0, 2), (-1,), (0, 1, 2, 3), (2, 3))
PAIRS = {
    "MAXIMUM": "MaximumMinimumOptions",
    "MINIMUM": "MaximumMinimumOptions",
    "SQUARED_DIFFERENCE": "",
    "DIV": "DivOptions",
}
Quant = tuple[float, int]


def quant(rng: np.random.Generator, dtype: str) -> Quant:
    limits = np.iinfo(dtype)
    return float(np.float32(10 ** rng.uniform(-2.5, -0.5))), int(rng.integers(limits.min, limits.max + 1))


def values(rng: np.random.Generator, shape: tuple[int, ...], dtype: str) -> np.ndarray:
    limits = np.iinfo(dtype)
    return rng.integers(limits.min, limits.max + 1, shape).astype(dtype)


@pytest.mark.parametrize("layout", ["NHWC", "NCHW"])
@pytest.mark.parametrize("op", PAIRS)
def test_pairs(op: str, layout: str) -> None:
    """Shapes that broadcast, one scale or three, activations, a constant operand."""
    rng = np.random.default_rng(len(op))
    for number, shapes in enumerate(SHAPES * 2):
        dtype = "uint8" if number % 2 and op != "SQUARED_DIFFERENCE" else "int8"
        quants = [quant(rng, dtype) for _ in range(3)]
        quants = [quants[0]] * 3 if number % 3 == 0 else quants
        inputs = [values(rng, shape, dtype) for shape in shapes]
        if op == "DIV":
            inputs[1] = np.where(inputs[1] == quants[1][1], inputs[1] ^ 1, inputs[1]).astype(dtype)
        b = ModelBuilder()
        x = b.input("x", shapes[0], dtype, *quants[0])
        constant = number % 4 == 1
        y = b.constant("y", inputs[1], *quants[1]) if constant else b.input("y", shapes[1], dtype, *quants[1])
        options = {"fusedActivationFunction": (0, 1, 3)[number % 3]} if op == "DIV" else None
        b.output(b.emit(op, [x, y], None, quants[2], "z", PAIRS[op], options))
        comparison = compare(b.build(), inputs[: 2 - constant], layout)
        assert comparison.wrong == {}, (number, shapes, quants)


def test_quotients_of_all_pairs() -> None:
    """Also small ones, for which LiteRT shifts by 32 and more."""
    rng = np.random.default_rng(0)
    for number in range(8):
        dtype = ("int8", "uint8")[number % 2]
        (scale, zero_point), other, (out, middle) = (quant(rng, dtype) for _ in range(3))
        every = np.arange(256).astype(np.uint8).view(dtype)
        x, y = (part.ravel() for part in np.meshgrid(every, every[every != other[1]]))
        b = ModelBuilder()
        inputs = b.input("x", x.shape, dtype, scale, zero_point), b.input("y", y.shape, dtype, *other)
        b.output(b.emit("DIV", inputs, None, (out * 10 ** (number % 4), middle), "z", "DivOptions", {}))
        assert compare(b.build(), [x, y]).wrong == {}


# Shifts by 22 down to -19, so what quotients are shifted right by leaves 0 to 63 on both sides.
@pytest.mark.parametrize("scales", [(1, 1e-3, 5e-4), (1, 1, 1 / 32768), (0.01, 0.003, 0.02), (1e-6, 1, 1)])
def test_quotients_of_int16(scales: tuple[float, float, float]) -> None:
    """Every divisor, every dividend, and random pairs of all magnitudes."""
    rng = np.random.default_rng(3)
    every = np.delete(np.arange(-(1 << 15), 1 << 15), 1 << 15)
    samples = np.array([-(1 << 15), -20000, -257, -3, -1, 1, 2, 7, 128, 255, 32766, 32767])

    def sizes(shape: tuple[int, ...]) -> np.ndarray:
        return rng.integers(-(1 << 15), 1 << 15, shape) >> rng.integers(0, 15, shape)

    pairs = [(samples[:, None], every), (every, samples[:, None])]
    pairs += [(sizes(shape), sizes(other)) for shape, other in (((9999,), (9999,)), *SHAPES)]
    pairs = [(dividends, np.where(divisors == 0, 1, divisors)) for dividends, divisors in pairs]
    for number, pair in enumerate(pairs):
        b = ModelBuilder()
        x, constant = b.input("x", pair[0].shape, "int16", scales[0]), number % 4 == 3
        divisors = pair[1].astype(np.int16)
        y = b.constant("y", divisors, scales[1], 0) if constant else b.input("y", divisors.shape, "int16", scales[1])
        options = {"fusedActivationFunction": (0, 1, 3)[number % 3]}
        b.output(b.emit("DIV", [x, y], None, (scales[2], 0), "z", "DivOptions", options))
        comparison = compare(
            b.build(), [pair[0].astype(np.int16), divisors][: 2 - constant], ("NHWC", "NCHW")[number % 2]
        )
        assert comparison.wrong == {}, number


def reducing(op: str, dtype: str, axes: tuple[int, ...], x: Quant, out: Quant, *, keep: bool) -> bytes:
    b = ModelBuilder()
    inputs = b.input("x", (2, 5, 4, 3), dtype, *x), b.constant("axes", np.array(axes, np.int32))
    b.output(b.emit(op, inputs, None, out, "y", "ReducerOptions", {"keepDims": keep}))
    return b.build()


@pytest.mark.parametrize("layout", ["NHWC", "NCHW"])
@pytest.mark.parametrize("op", ["REDUCE_MAX", "REDUCE_MIN", "REDUCE_PROD", "SUM"])
def test_reductions(op: str, layout: str) -> None:
    """SUM of uint8, since LiteRT's reference kernel misreads int8; products of few factors."""
    rng = np.random.default_rng(len(op))
    for number, axes in enumerate(AXES * 2):
        dtype = {"REDUCE_PROD": "int8", "SUM": "uint8"}.get(op, ("int8", "uint8")[number % 2])
        x, out = quant(rng, dtype), quant(rng, dtype)
        inputs = values(rng, (2, 5, 4, 3), dtype)
        if op == "REDUCE_PROD":
            count = int(np.prod([(2, 5, 4, 3)[axis] for axis in axes]))
            if count > 20:
                continue
            out = float(np.float32(x[0] ** count * rng.uniform(1, 5))), out[1]
            inputs = np.clip(inputs, x[1] - 12, x[1] + 12).astype(dtype)
        data = reducing(op, dtype, axes, x, x if op[:8] in ("REDUCE_M",) else out, keep=number > len(AXES))
        assert compare(data, [inputs], layout).wrong == {}, (axes, x, out)


def test_sums_of_int8_are_those_of_uint8() -> None:
    """Zero points are larger by 128; LiteRT's reference kernel reads int8 as uint8, so it is no reference here."""
    rng = np.random.default_rng(1)
    x, out = (0.1, -8), (0.4, 5)
    inputs = values(rng, (2, 5, 4, 3), "int8")
    signed = reducing("SUM", "int8", (1,), x, out, keep=False)
    unsigned = reducing("SUM", "uint8", (1,), (x[0], x[1] + 128), (out[0], out[1] + 128), keep=False)
    (expected,) = Reference(unsigned).run([(inputs.astype(int) + 128).astype(np.uint8)])
    graph, judge = integer_graph(signed), reference_of(signed)
    (judged,) = judge.run([inputs])
    assert np.array_equal(judged.astype(int) + 128, expected)
    assert np.array_equal(run_graph(graph, [inputs])[graph.outputs[0]], judged)
    assert not np.array_equal(Reference(signed).run([inputs])[0], judged)
    assert judge.described == "its formula for 1 x SUM"


def test_what_litert_refuses() -> None:
    b = ModelBuilder()
    inputs = b.input("x", (4,), "int8", 0.1, 3), b.input("y", (4,), "int8", 0.1, 3)
    b.output(b.emit("DIV", inputs, None, (0.1, 0), "z", "DivOptions", {}))
    with pytest.raises(RunError, match=re.escape("operator 0 (DIV) is refused by LiteRT")):
        Reference(b.build()).run([np.zeros(4, np.int8), np.full(4, 3, np.int8)])
    with pytest.raises(StageError, match="needs equal scales for input and output"):
        integer_graph(reducing("REDUCE_MAX", "int8", (1,), (0.1, 0), (0.2, 0), keep=False))
    with pytest.raises(StageError, match="has the type uint8 in 'x'; supported: int8"):
        integer_graph(reducing("REDUCE_PROD", "uint8", (1,), (0.1, 0), (0.2, 0), keep=False))


def test_scales_that_make_no_sense() -> None:
    with pytest.raises(StageError, match=r"would scale its products up by 2\^"):
        integer_graph(reducing("REDUCE_PROD", "int8", (1,), (300.0, 0), (0.2, 0), keep=False))
    b = ModelBuilder()
    inputs = b.input("x", (4,), "int8", 1e6, 3), b.input("y", (4,), "int8", 1e-3, 3)
    b.output(b.emit("DIV", inputs, None, (0.1, 0), "z", "DivOptions", {}))
    with pytest.raises(StageError, match=r"would scale its quotients up by 2\^"):
        integer_graph(b.build())
