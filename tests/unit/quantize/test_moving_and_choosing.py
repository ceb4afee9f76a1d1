"""ONE_HOT, SELECT, comparisons and CAST: random shapes, every tensor equals LiteRT's. tests/tflm has the others."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from stages.base import StageError
from stages.ir.models.tflite_reader import read
from stages.ir.models.tflite_writer import Tensor, TFLiteWriter
from tests.support.integer import compare

Rng = np.random.Generator
Made = tuple[bytes, list[np.ndarray]]
QUANT: dict[str, tuple[float, int]] = {"int8": (0.05, -3), "uint8": (0.05, 120)}
OTHER: dict[str, tuple[float, int]] = {"int8": (0.031, 7), "uint8": (0.031, 131)}


class Net(TFLiteWriter):
    """One operator, with the values of its inputs."""

    def __init__(self, rng: Rng) -> None:
        super().__init__()
        self.rng, self.values = rng, []

    def data(self, shape: tuple[int, ...], dtype: str, values: np.ndarray | None = None, quant: Any = QUANT) -> Tensor:
        """An input, with these values or any."""
        if values is None:
            limits = (0, 2) if dtype == "bool" else (-100, 100) if dtype == "float32" else np.iinfo(dtype)
            low, high = limits if isinstance(limits, tuple) else (limits.min, int(limits.max) + 1)
            values = self.rng.integers(low, high, shape)
        self.values.append(values.astype(dtype))
        return self.input("x", shape, dtype, *quant.get(dtype, ()))

    def known(self, values: Any) -> Tensor:
        return self.constant("known", np.array(values, np.int32))

    def made(self, op: str, inputs: list[Tensor], shapes: list[tuple[int, ...]], dtype: str, **more: Any) -> Made:
        results = [self.tensor("y", shape, dtype, *QUANT.get(dtype, ())) for shape in shapes]
        self.operator(op, inputs, results, more.get("table", ""), more.get("fields"), version=more.get("version", 1))
        self.output(*results)
        return self.build(), self.values


def _shape(rng: Rng, least: int = 1, most: int = 4) -> tuple[int, ...]:
    return tuple(int(n) for n in rng.integers(1, 6, rng.integers(least, most + 1)))


def one_hot(rng: Rng, dtype: str) -> Made:
    """Also with indices beyond the depth, and 64-bit ones that LiteRT wraps into it."""
    net, shape, depth = Net(rng), _shape(rng, 0, 3), int(rng.integers(1, 6))
    axis, wide = int(rng.integers(0, len(shape) + 1)), bool(rng.integers(0, 2))
    indices = rng.integers(-1, depth + 1, shape) + (rng.integers(-1, 2, shape) << 32 if wide else 0)
    x = net.data(shape, "int64" if wide else "int32", np.asarray(indices))
    computed, place = rng.integers(0, 2, 2), ((), (1,))[rng.integers(0, 2)]
    known = [net.constant("v", np.full(place, value, dtype)) for value in (0, 1)]
    values = [
        net.data(place, dtype) if is_computed else constant
        for is_computed, constant in zip(computed, known, strict=True)
    ]
    fields = {"axis": -1 if axis == len(shape) else axis}
    out = (*shape[:axis], depth, *shape[axis:])
    return net.made("ONE_HOT", [x, net.known(depth), *values], [out], dtype, table="OneHotOptions", fields=fields)


def select(rng: Rng, dtype: str) -> Made:
    net, shape = Net(rng), _shape(rng, 2)
    condition = [shape, shape[:1], ()][rng.integers(0, 3)]
    inputs = [net.data(condition, "bool"), net.data(shape, dtype), net.data(shape, dtype)]
    return net.made("SELECT", inputs, [shape], dtype)


def comparison(rng: Rng, dtype: str) -> Made:
    net, shapes = Net(rng), _broadcasting(rng, 2)
    op = ["EQUAL", "NOT_EQUAL", "LESS", "LESS_EQUAL", "GREATER", "GREATER_EQUAL"][rng.integers(0, 6)]
    inputs = [net.data(shapes[0], dtype), net.data(shapes[1], dtype, quant=OTHER if rng.integers(0, 2) else QUANT)]
    return net.made(op, inputs, [np.broadcast_shapes(*shapes)], "bool")


def cast(rng: Rng, dtype: str) -> Made:
    net, shape = Net(rng), _shape(rng)
    to = ["int8", "uint8", "int16", "int32", "int64", "float32", "bool"][rng.integers(0, 7)]
    return net.made("CAST", [net.data(shape, dtype)], [shape], to, table="CastOptions")


def _broadcasting(rng: Rng, count: int) -> list[tuple[int, ...]]:
    full = _shape(rng)
    shapes = [tuple(1 if rng.integers(0, 3) == 0 else n for n in full) for _ in range(count)]
    return [shape[rng.integers(0, len(shape)) :] if rng.integers(0, 3) == 0 else shape for shape in shapes]


TYPES: dict[Callable[[Rng, str], Made], tuple[str, ...]] = {
    select: ("int8", "uint8", "int16", "int32", "float32"),
    one_hot: ("int8", "uint8", "int32", "int64", "float32", "bool"),
    comparison: ("int8", "uint8", "int32", "int64", "float32"),
    cast: ("int8", "uint8", "int16", "int32", "int64", "float32", "bool"),
}


@pytest.mark.parametrize("build", TYPES, ids=lambda build: build.__name__)
def test_every_tensor_is_litert_s(build: Callable[[Rng, str], Made]) -> None:
    for seed in range(12):
        for dtype in TYPES[build]:
            data, inputs = build(np.random.default_rng(seed), dtype)
            result = compare(data, inputs)
            outputs = len(read(data).outputs)
            assert (result.wrong, result.checked >= outputs + len(inputs)) == ({}, True), (seed, dtype)


@pytest.mark.parametrize(("first", "second"), [(0.05, 0.031), (0.5, 0.25), (0.97, 0.71), (0.003, 0.0029), (0.9, 0.003)])
def test_numbers_that_are_nearly_equal_compare_as_in_litert(first: float, second: float) -> None:
    """Each value with its nearest neighbours on the other scale, where rounding decides."""
    a = np.repeat(np.arange(-128, 128), 3)
    b = np.clip(np.round((a + 3) * first / second) + 7 + np.tile([-1, 0, 1], 256), -128, 127)
    for op in ("EQUAL", "LESS", "GREATER_EQUAL"):
        net = Net(np.random.default_rng(0))
        inputs = [
            net.data(a.shape, "int8", a, {"int8": (first, -3)}),
            net.data(b.shape, "int8", b, {"int8": (second, 7)}),
        ]
        data, arrays = net.made(op, inputs, [a.shape], "bool")
        assert compare(data, arrays).wrong == {}, op


@pytest.mark.parametrize("value", [2**53 - 1, -(2**53), 2**53 + 1])
def test_pads_of_int64_are_exact_or_refused(value: int) -> None:
    net = Net(np.random.default_rng(0))
    inputs = [net.data((3,), "int64"), net.known([[1, 2]]), net.constant("value", np.array([value]))]
    data, arrays = net.made("PADV2", inputs, [(6,)], "int64", table="PadV2Options")
    if abs(value) > 2**53:
        with pytest.raises(StageError, match=r"pads with 9007199254740993; an int64 value must be within 2\^53 of 0"):
            compare(data, arrays)
    else:
        assert compare(data, arrays).wrong == {}
