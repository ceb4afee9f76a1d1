"""Operators on raw integers of 8 and 16 bits against LiteRT."""

from pathlib import Path

import numpy as np
import pytest

from stages.ir.models.builder import ModelBuilder
from stages.lower.simplify.simplify import simplified
from tests.support.integer import compare
from tests.support.stages_run import check_firmware

COMPARISONS = ("EQUAL", "NOT_EQUAL", "GREATER", "GREATER_EQUAL", "LESS", "LESS_EQUAL")
LOW, HIGH = -(1 << 15), (1 << 15) - 1
SHAPES = (((2, 5, 4, 3), (2, 5, 4, 3)), ((2, 5, 4, 3), (5, 1, 3)), ((4,), (2, 4)))


def values(rng: np.random.Generator, shape: tuple[int, ...], dtype: str) -> np.ndarray:
    """Values of all magnitudes, some of them equal, with the extremes."""
    limits = np.iinfo(dtype)
    far = rng.integers(limits.min, limits.max + 1, shape)
    near = rng.integers(-4, 5, shape)
    mixed = np.where(rng.integers(0, 2, shape), far, near)
    mixed.reshape(-1)[:2] = limits.min, limits.max
    return mixed.astype(dtype)


@pytest.mark.parametrize("op", COMPARISONS)
def test_comparisons_of_sixteen_bits(op: str) -> None:
    """EQUAL and NOT_EQUAL read scales, the others do not."""
    rng = np.random.default_rng(len(op))
    for number, shapes in enumerate(SHAPES * 4):
        scales = [float(np.float32(10 ** rng.uniform(-4, -0.1))) for _ in range(2)]
        scales = [scales[0]] * 2 if number % 3 else scales
        b = ModelBuilder()
        inputs = [values(rng, shape, "int16") for shape in shapes]
        x, y = (b.input(name, shape, "int16", scale) for name, shape, scale in zip("xy", shapes, scales, strict=True))
        out = b.tensor("z", np.broadcast_shapes(*shapes), "bool")
        b.operator(op, [x, y], [out])
        b.output(out)
        assert compare(b.build(), inputs).wrong == {}, (shapes, scales)


@pytest.mark.parametrize("layout", ["NHWC", "NCHW"])
@pytest.mark.parametrize("op", ["ABS", "NEG"])
def test_functions_of_sixteen_bits(op: str, layout: str) -> None:
    for scales in ((0.5, 0.5), (0.5, 0.3), (0.01, 0.07), (1.5, 0.002)):
        b = ModelBuilder()
        x = b.input("x", (1, 256, 64, 4), "int16", scales[0])
        b.output(b.emit(op, [x], x.shape, (scales[1], 0), "y", f"{op.title()}Options"))
        every = np.arange(LOW, HIGH + 1).astype(np.int16).reshape(x.shape)
        assert compare(b.build(), [every], layout).wrong == {}, scales


@pytest.mark.parametrize("layout", ["NHWC", "NCHW"])
@pytest.mark.parametrize("dtype", ["int8", "int16"])
@pytest.mark.parametrize("op", ["FLOOR_DIV", "FLOOR_MOD"])
def test_quotients_and_remainders_whatever_the_scales(op: str, dtype: str, layout: str) -> None:
    rng = np.random.default_rng(len(op))
    for shapes in SHAPES:
        b = ModelBuilder()
        zeros = (3, -5, 7) if dtype == "int8" else (0, 0, 0)
        x = b.input("x", shapes[0], dtype, 0.5, zeros[0])
        y = b.input("y", shapes[1], dtype, 0.02, zeros[1])
        out = b.tensor("z", np.broadcast_shapes(*shapes), dtype, 0.3, zeros[2])
        b.operator(op, [x, y], [out], version=2 if dtype == "int8" else 1)
        b.output(out)
        first, second = (values(rng, shape, dtype) for shape in shapes)
        second = np.where(second == 0, -1, second).astype(dtype)
        assert compare(b.build(), [first, second], layout).wrong == {}, shapes


@pytest.mark.parametrize("op", ["ADD", "SUB", "MUL", "DIV", "MAXIMUM", "MINIMUM"])
def test_arithmetic_of_int32(op: str) -> None:
    """No TVM function is left; the second operand may be a constant, and a scalar."""
    rng = np.random.default_rng(len(op))
    for number, shapes in enumerate((*SHAPES, ((40,), ()))):
        b = ModelBuilder()
        most = 1 << (15 if op == "MUL" else 30)
        first, second = (rng.integers(-most, most, shape).astype(np.int32) for shape in shapes)
        second = np.where(second == 0, -1, second).astype(np.int32)
        x = b.input("x", shapes[0], "int32")
        y = b.constant("y", second) if number % 2 else b.input("y", shapes[1], "int32")
        out = b.tensor("z", np.broadcast_shapes(*shapes), "int32")
        b.operator(op, [x, y], [out], "" if op in ("MAXIMUM", "MINIMUM") else f"{op.title()}Options")
        b.output(out)
        comparison = compare(b.build(), [first] if number % 2 else [first, second])
        assert comparison.wrong == {} and comparison.graph.layers[0].op.op == f"int32_{op.lower()}", shapes


@pytest.mark.parametrize("is_read_twice", [False, True])
def test_consecutive_arithmetic_of_int32_is_one_layer(is_read_twice: bool) -> None:
    """With the casts around it, up to a result that another layer reads too."""
    b = ModelBuilder()
    x = source = b.input("x", (40,), "int16", 0.5)
    steps = (("CAST", 0), ("MUL", 256), ("ADD", 333), ("DIV", -666), ("SUB", 128), ("MINIMUM", 127), ("MAXIMUM", -128))
    for number, (op, value) in enumerate(steps):
        out = b.tensor(f"y{number}", (40,), "int32")
        constants = [b.constant(f"c{number}", np.array(value, np.int32))] if number else []
        options = {"MINIMUM": "MaximumMinimumOptions", "MAXIMUM": "MaximumMinimumOptions"}
        b.operator(op, [x, *constants], [out], options.get(op, f"{op.title()}Options"))
        if is_read_twice and op == "DIV":
            b.output(out)
        x = out
    y = b.tensor("y", (40,), "int8")
    b.operator("CAST", [x], [y], "CastOptions")
    b.output(y)
    inputs = [values(np.random.default_rng(1), source.shape, "int16")]
    comparison = compare(b.build(), inputs, change=lambda graph: simplified(graph)[0])
    assert comparison.wrong == {}
    assert [layer.op.op for layer in comparison.graph.layers] == ["int32_steps"] * (1 + is_read_twice)


@pytest.mark.parametrize("axes", [(1,), (3,), (1, 2), (0, 2)])
def test_products_of_sixteen_bits(axes: tuple[int, ...]) -> None:
    rng = np.random.default_rng(axes)
    count = int(np.prod([(2, 5, 4, 3)[axis] for axis in axes]))
    b = ModelBuilder()
    x = b.input("x", (2, 5, 4, 3), "int16", 0.05)
    inputs = [x, b.constant("axes", np.array(axes, np.int32))]
    shape = [1 if axis in axes else size for axis, size in enumerate(x.shape)]
    b.output(b.emit("REDUCE_PROD", inputs, shape, (0.05**count * 300, 0), "y", "ReducerOptions", {"keepDims": True}))
    assert compare(b.build(), [rng.integers(-40, 41, x.shape).astype(np.int16)]).wrong == {}


@pytest.mark.parametrize("op", ["REDUCE_MAX", "REDUCE_MIN", "REDUCE_PROD", "SUM"])
def test_reductions_of_booleans(op: str, tmp_path: Path) -> None:
    """As firmware, computed by TVM. SUM is any, REDUCE_PROD is all."""
    b, rng = ModelBuilder(), np.random.default_rng(3)
    x = b.input("x", (6, 3), "bool")
    axes = b.constant("axes", np.array([1], np.int32))
    b.output(b.emit(op, [x, axes], (6,), None, "y", "ReducerOptions", {"keepDims": False}))
    inputs = rng.integers(0, 2, (6, 3)).astype(bool)
    inputs[0], inputs[1] = True, False
    check_firmware(b.build(), tmp_path, [[inputs]])


@pytest.mark.parametrize("dtype", ["int32", "int64"])
@pytest.mark.parametrize("keep", [False, True])
def test_means_of_whole_numbers(dtype: str, keep: bool, tmp_path: Path) -> None:
    """Sums beyond 32 bits; of both signs, since quotients are rounded towards zero."""
    b, rng = ModelBuilder(), np.random.default_rng(3)
    x = b.input("x", (2, 5, 4, 3), dtype)
    axes = b.constant("axes", np.array([-1, 1], np.int32))
    out = (2, 1, 4, 1) if keep else (2, 4)
    b.output(b.emit("MEAN", [x, axes], out, None, "y", "ReducerOptions", {"keepDims": keep}))
    inputs = rng.integers(-(1 << 31), 1 << 31, x.shape).astype(dtype)
    inputs[1] //= 1 << 28
    check_firmware(b.build(), tmp_path, [[inputs]])


def test_the_mean_of_all_elements_builds(tmp_path: Path) -> None:
    """On rv32-scalar: GCC for other targets sees that the sum has a start value."""
    b, x = ModelBuilder(), np.arange(60, dtype=np.int32).reshape(1, 5, 4, 3)
    axes = b.constant("axes", np.arange(4, dtype=np.int32))
    b.output(b.emit("MEAN", [b.input("x", x.shape, "int32"), axes], (), None, "y", "ReducerOptions"))
    check_firmware(b.build(), tmp_path, [[x]], target="rv32-scalar")
