"""Functions and sums of int16 that LiteRT tabulates or shifts: every value, bit for bit."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from stages.base import StageError
from stages.ir.models.builder import ModelBuilder, Tensor
from stages.ir.reference.integer import run_graph
from stages.ir.reference.interpreter import Reference
from stages.ir.reference.refusal import RunError
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
    """LiteRT aborts on RSQRT of negative numbers."""
    inputs = EVERY[:, 32768:] if op == "RSQRT" else EVERY
    table = "GeluOptions" if op == "GELU" else ""
    assert compare(alone(op, scale, out, inputs.shape, table), [inputs]).wrong == {}


@pytest.mark.parametrize(("op", "scale", "out"), [
    ("EXP", 0.05, 5.7e-4), ("EXP", 0.19, 1.6), ("EXP", 0.0031, 1e-5), ("EXP", 0.0064, 0.031), ("EXP", 1.0, 1e-6),
    ("LOG", 0.0043, 3.6e-6), ("GELU", 0.45, 1.4e-5), ("GELU", 3.0, 1e-6),
])  # fmt: skip
def test_lines_that_rise_by_more_than_int16_holds(op: str, scale: float, out: float) -> None:
    """LiteRT's differences wrap; also for an infinite float32."""
    data = alone(op, scale, out, EVERY.shape, "GeluOptions" if op == "GELU" else "")
    assert compare(data, [EVERY]).wrong == {}


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
        out: Tensor = getattr(b, op)(x, y, out=(max(scales), 0), activation=activation)
        return out

    result = compare(pair(join, scales))
    assert result.wrong == {} and [layer.kind for layer in result.graph.layers] == [op]


def test_powers_of_two_that_are_not_to_be_taken_so() -> None:
    """Converters since 2020 write files with the option pot_scale_int16 off."""

    def join(b: ModelBuilder, x: Tensor, y: Tensor) -> Tensor:
        out = b.tensor("sum", x.shape, "int16", 2**-11, 0)
        b.operator("ADD", [x, y], [out], "AddOptions", {"potScaleInt16": False})
        return out

    result = compare(pair(join, (2**-12, 2**-13)))
    assert result.wrong == {} and result.graph.layers[0].op.op == "add"


@pytest.mark.parametrize(
    ("out", "shapes", "message"),
    [
        (2**-10, ((1, 4), (1, 4)), "LiteRT requires one equal to the output's and none above it"),
        (2**-12, ((1, 4), (1, 4)), "LiteRT requires one equal to the output's and none above it"),
        (2**-11, ((2, 4), (1, 4)), "broadcasts with power-of-two scales, which LiteRT's ADD of int16 does not support"),
    ],
)
def test_sums_that_litert_refuses(out: float, shapes: Any, message: str) -> None:
    with pytest.raises(StageError) as caught:
        integer_graph(pair(lambda b, x, y: b.add(x, y, out=(out, 0)), (2**-11, 2**-11), shapes))
    assert message in caught.value.message


@pytest.mark.parametrize("layout", ["NHWC", "NCHW"])
@pytest.mark.parametrize("scales", [(0.01, 0.001), (1 / 32768, 1 / 32768), (3.0, 0.01), (1e-6, 0.7), (0.5, 90.0)])
def test_roots(scales: tuple[float, float], layout: str) -> None:
    """Roots that are truncated, clamped, 0 and 1."""
    every = EVERY[:, 32768:].reshape(1, 64, 128, 4)
    comparison = compare(alone("SQRT", *scales, every.shape), [every], layout)
    assert (comparison.wrong, [layer.kind for layer in comparison.graph.layers]) == ({}, ["sqrt"])


def test_what_has_no_root() -> None:
    data, inputs = alone("SQRT", 0.1, 0.1, (2,)), np.array([4, -1], np.int16)
    with pytest.raises(RunError, match="Sqrt is only defined for non-negative values"):
        Reference(data).run([inputs])
    graph = integer_graph(data)
    assert run_graph(graph, [inputs])[graph.outputs[0]].tolist() == [6, 0]
    with pytest.raises(StageError, match=r"operator 0 \(SQRT\) 'sqrt' has roots beyond int32"):
        integer_graph(alone("SQRT", 3.0, 1e-8, (2,)))
