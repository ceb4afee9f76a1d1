"""Functions and sums of int16 that LiteRT tabulates, or shifts: every value, bit for bit."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from stages.base import StageError
from stages.models.builder import ModelBuilder, Tensor
from tests.support.integer import compare, integer_graph

EVERY = np.arange(-32768, 32768).astype(np.int16).reshape(1, -1)


def alone(op: str, scale: float, out: float, shape: tuple[int, ...], table: str = "", **fields: Any) -> bytes:
    b = ModelBuilder()
    x = b.input("x", shape, "int16", scale, 0)
    b.output(b.emit(op, [x], shape, (out, 0), op.lower(), table, fields))
    return b.build()


@pytest.mark.parametrize("out", [1e-4, 3e-4, 0.01])
@pytest.mark.parametrize("scale", [2e-5, 3e-4, 1e-3])
@pytest.mark.parametrize("op", ["EXP", "LOG", "GELU", "RSQRT"])
def test_lines(op: str, scale: float, out: float) -> None:
    """RSQRT of numbers below zero ends LiteRT's run."""
    given = EVERY[:, 32768:] if op == "RSQRT" else EVERY
    table = "GeluOptions" if op == "GELU" else ""
    assert compare(alone(op, scale, out, given.shape, table), [given]).wrong == {}


def test_gelu_by_tanh() -> None:
    data = alone("GELU", 3e-4, 2e-4, EVERY.shape, "GeluOptions", approximate=True)
    assert compare(data, [EVERY]).wrong == {}


@pytest.mark.parametrize("alpha", [0.2, 0.01, 1.5, 0.0, -0.3])
@pytest.mark.parametrize("out", [2e-4, 3e-4, 1e-3])
def test_leaky_relu(alpha: float, out: float) -> None:
    data = alone("LEAKY_RELU", 3e-4, out, EVERY.shape, "LeakyReluOptions", alpha=alpha)
    assert compare(data, [EVERY]).wrong == {}


def pair(
    join: Callable[[ModelBuilder, Tensor, Tensor], Tensor],
    scales: tuple[float, float],
    shapes: tuple[tuple[int, ...], tuple[int, ...]] = ((1, 4096), (1, 4096)),
) -> bytes:
    b = ModelBuilder()
    inputs = [b.input(name, shape, "int16", s, 0) for name, s, shape in zip("ab", scales, shapes, strict=True)]
    b.output(join(b, *inputs))
    return b.build()


@pytest.mark.parametrize("activation", ["none", "relu", "relu6"])
@pytest.mark.parametrize("op", ["add", "sub"])
@pytest.mark.parametrize("scales", [(2**-12, 2**-12), (2**-13, 2**-11), (2**-11, 2**-14)], ids=str)
def test_sums_on_powers_of_two(scales: tuple[float, float], op: str, activation: str) -> None:
    def join(b: ModelBuilder, x: Tensor, y: Tensor) -> Tensor:
        made: Tensor = getattr(b, op)(x, y, out=(max(scales), 0), activation=activation)
        return made

    result = compare(pair(join, scales))
    assert result.wrong == {} and [layer.kind for layer in result.graph.layers] == [op]


def test_a_difference_on_powers_of_two_broadcasts() -> None:
    def join(b: ModelBuilder, x: Tensor, y: Tensor) -> Tensor:
        return b.sub(x, y, out=(2**-12, 0))

    assert compare(pair(join, (2**-12, 2**-13), ((2, 8, 64), (1, 1, 64)))).wrong == {}


def test_powers_of_two_that_are_not_to_be_taken_so() -> None:
    """pot_scale_int16 of the options is off in files of converters since 2020."""

    def join(b: ModelBuilder, x: Tensor, y: Tensor) -> Tensor:
        made = b.tensor("sum", x.shape, "int16", 2**-11, 0)
        b.operator("ADD", [x, y], [made], "AddOptions", {"potScaleInt16": False})
        return made

    result = compare(pair(join, (2**-12, 2**-13)))
    assert result.wrong == {} and result.graph.layers[0].op.op == "add"


@pytest.mark.parametrize(
    ("out", "shapes", "message"),
    [
        (2**-10, ((1, 4), (1, 4)), "of which LiteRT takes one equal to the output's and none above it"),
        (2**-12, ((1, 4), (1, 4)), "of which LiteRT takes one equal to the output's and none above it"),
        (2**-11, ((2, 4), (1, 4)), "broadcasts, which LiteRT's ADD of int16 does not"),
    ],
)
def test_sums_that_litert_refuses(out: float, shapes: Any, message: str) -> None:
    with pytest.raises(StageError) as caught:
        integer_graph(pair(lambda b, x, y: b.add(x, y, out=(out, 0)), (2**-11, 2**-11), shapes))
    assert message in caught.value.message
