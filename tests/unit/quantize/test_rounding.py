"""Which rounding and which precision of the multiplier LiteRT uses, where variants differ in few outputs.

The accumulators here meet halves exactly or almost; each test also asserts that the other variants would show.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from stages.graph import Graph
from stages.models.builder import ModelBuilder, Tensor
from stages.quantize import arithmetic
from stages.reference.integer import run_graph
from stages.reference.interpreter import Reference
from tests.support.integer import integer_graph

CHANNELS = 48
LIMITS = {"int8": (-128, 127), "uint8": (0, 255)}


def model(op: str, dtype: str, many: bool, number: int) -> tuple[bytes, np.ndarray]:
    """One weighted operator with all 256 inputs and 48 weights: 12,288 sums, and scales whose quotients make ties."""
    rng = np.random.default_rng(number)
    low, high = LIMITS[dtype]
    scale = float(np.float32(rng.uniform(0.01, 0.5)))
    single = float(np.float32(rng.uniform(0.001, 0.02)))
    weight_scale = [float(np.float32(single * rng.integers(1, 5))) for _ in range(CHANNELS)] if many else single
    out = (float(np.float32(scale * single * 2 * rng.integers(10, 70))), int(rng.integers(low, high)))
    zero_point = 0 if dtype == "int8" else int(rng.integers(100, 150))
    options = {"weight_scale": weight_scale, "weight_zero_point": zero_point, "out": out}
    weights = rng.integers(low, high + 1, CHANNELS).astype(dtype)
    bias = rng.integers(-50, 51, CHANNELS).astype(np.int32)
    values = np.arange(low, high + 1).astype(dtype)
    builder = ModelBuilder()
    quant = (scale, int(rng.integers(low, high)))
    make: dict[str, tuple[tuple[int, ...], Callable[[Tensor], Tensor]]] = {
        "conv2d": ((1, 16, 16, 1), lambda x: builder.conv2d(x, weights.reshape(-1, 1, 1, 1), bias, **options)),
        "depthwise_conv2d": (
            (1, 16, 16, 1),
            lambda x: builder.depthwise_conv2d(x, weights.reshape(1, 1, 1, -1), bias, **options),
        ),
        "fully_connected": ((256, 1), lambda x: builder.fully_connected(x, weights.reshape(-1, 1), bias, **options)),
    }
    shape, operator = make[op]
    builder.output(operator(builder.input("x", shape, dtype, *quant)))
    return builder.build(), values.reshape(shape)


def mismatches(graph: Graph, x: np.ndarray, expected: np.ndarray) -> int:
    return int((run_graph(graph, [x])[graph.outputs[0]] != expected).sum())


def changed(graph: Graph, rounding: str = "", multipliers: list[float] | None = None) -> Graph:
    """The same graph with another rounding or other real multipliers."""
    layer, constants = graph.layers[0], dict(graph.constants)
    op = layer.op.model_copy(update={"rounding": rounding} if rounding else {})
    if multipliers is not None:
        fixed = np.array([arithmetic.quantize_multiplier(real) for real in multipliers], dtype=np.int32).T
        constants[layer.constants["multiplier"]], constants[layer.constants["shift"]] = fixed
    layers = [layer.model_copy(update={"op": op})]
    return Graph(graph.tensors, layers, graph.inputs, graph.outputs, constants)


@pytest.mark.parametrize("dtype", ["int8", "uint8"])
@pytest.mark.parametrize("op", ["conv2d", "depthwise_conv2d", "fully_connected"])
def test_rounding_and_precision_of_weighted_operators(op: str, dtype: str) -> None:
    other_rounding = other_precision = 0
    for number in range(24):
        many = dtype == "int8" and number % 2 == 1
        data, x = model(op, dtype, many, number)
        reference, graph = Reference(data), integer_graph(data)
        (expected,) = reference.run([x])
        assert len(np.unique(expected)) > 20
        assert mismatches(graph, x, expected) == 0

        rounding = graph.layers[0].op.rounding
        assert rounding == ("single" if op == "fully_connected" else "double")
        opposite = {"single": "double", "double": "single"}[rounding]
        other_rounding += mismatches(changed(graph, opposite), x, expected)

        tensors = reference.info.tensors
        weights = tensors[next(o for o in reference.info.operators).inputs[1]]
        rule = "int8" if dtype == "uint8" and op != "fully_connected" else "uint8"
        reals = arithmetic.convolution_multipliers(
            rule,
            float(reference.inputs[0].scale[0]),
            [float(scale) for scale in np.broadcast_to(weights.scale, CHANNELS)],
            float(reference.outputs[0].scale[0]),
        )
        other_precision += mismatches(changed(graph, multipliers=reals), x, expected)
    assert other_rounding > 0
    assert other_precision > 0


@pytest.mark.parametrize("dtype", ["int8", "uint8"])
def test_prelu_rounds_twice_and_divides_in_float32(dtype: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """All pairs of a value and a slope, on scales that make ties below zero."""
    low, high = LIMITS[dtype]
    middle = (low + high) // 2
    values = np.arange(low, high + 1).astype(dtype)
    inputs = [np.repeat(values, 256).reshape(256, 256), values.reshape(1, 256)]
    other = other_rounding = 0
    for number in range(8, 16):
        rng = np.random.default_rng(number)
        scales = [float(np.float32(rng.uniform(0.01, 1))) for _ in range(2)]
        out = float(np.float32(scales[0] * scales[1] * 2 * rng.integers(60, 130)))
        builder = ModelBuilder()
        a, b = (
            builder.input(side, x.shape, dtype, scale, middle + int(rng.integers(-9, 10)))
            for side, x, scale in zip("ab", inputs, scales, strict=True)
        )
        builder.output(builder.emit("PRELU", [a, b], a.shape, (out, middle), "prelu"))
        data = builder.build()
        (expected,) = Reference(data).run(inputs)
        assert len(np.unique(expected)) > 20
        graph = integer_graph(data)
        assert np.array_equal(run_graph(graph, inputs)[graph.outputs[0]], expected)
        single = changed(graph, "single")
        other_rounding += int((run_graph(single, inputs)[graph.outputs[0]] != expected).sum())
        with monkeypatch.context() as patch:
            patch.setattr("stages.quantize.patterns.prelu.float32_ratio", lambda a, b: a / b)
            patch.setattr("stages.quantize.patterns.prelu.float32_product", lambda a, b: a * b)
            wrong = integer_graph(data)
        other += int((run_graph(wrong, inputs)[graph.outputs[0]] != expected).sum())
    assert other_rounding > 0
    assert other > 0


@pytest.mark.parametrize("dtype", ["int8", "uint8"])
@pytest.mark.parametrize("name", ["mul", "add", "sub"])
def test_precision_of_two_operand_multipliers(name: str, dtype: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """MUL divides in float32, ADD and SUB in double: all pairs of values on scales that make ties."""
    low, high = LIMITS[dtype]
    values = np.arange(low, high + 1).astype(dtype)
    other = other_rounding = 0
    for number in range(24):
        rng = np.random.default_rng(number)
        scales = [float(np.float32(rng.uniform(0.01, 1))) for _ in range(2)]
        steps = max(scales) * rng.choice([2, 3, 6])
        if name == "mul":
            steps = scales[0] * scales[1] * 2 * rng.integers(60, 130)
        builder = ModelBuilder()
        a, b = (
            builder.input(side, shape, dtype, scale, int(rng.integers(low, high)))
            for side, shape, scale in zip("ab", ((256, 1), (1, 256)), scales, strict=True)
        )
        builder.output(getattr(builder, name)(a, b, out=(float(np.float32(steps)), int(rng.integers(low, high)))))
        data, inputs = builder.build(), [values.reshape(256, 1), values.reshape(1, 256)]
        (expected,) = Reference(data).run(inputs)
        assert len(np.unique(expected)) > 20
        graph = integer_graph(data)
        assert np.array_equal(run_graph(graph, inputs)[graph.outputs[0]], expected)
        single = changed(graph, "single")
        other_rounding += int((run_graph(single, inputs)[graph.outputs[0]] != expected).sum())

        with monkeypatch.context() as patch:
            module = "stages.quantize.patterns.arithmetic"
            if name == "mul":
                patch.setattr(f"{module}.float32_ratio", lambda a, b: a / b)
                patch.setattr(f"{module}.float32_product", lambda a, b: a * b)
            else:
                patch.setattr(f"{module}.quantize_multiplier", from_float32)
            wrong = integer_graph(data)
        other += int((run_graph(wrong, inputs)[graph.outputs[0]] != expected).sum())
    assert other > 0
    assert other_rounding > 0


def from_float32(real: float) -> arithmetic.Fixed:
    """quantize_multiplier of a real number that was rounded to float32."""
    return arithmetic.quantize_multiplier(float(np.float32(real)))


def near_ties(number: int) -> tuple[float, float]:
    """Two float32 scales whose quotient is a fraction with a small even denominator."""
    rng = np.random.default_rng(number)
    scale = float(np.float32(rng.uniform(0.001, 1)))
    return scale, float(np.float32(scale * 2 * rng.integers(1, 60) / rng.integers(1, 60)))


@pytest.mark.parametrize("dtype", ["int8", "uint8"])
@pytest.mark.parametrize(("name", "double"), [("relu", False), ("leaky_relu", False), ("quantize", True)])
def test_precision_of_one_operand_multipliers(
    name: str, double: bool, dtype: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """RELU and LEAKY_RELU divide scales in float32, QUANTIZE in double."""
    low, high = LIMITS[dtype]
    x = np.arange(low, high + 1).astype(dtype)[None]
    other = 0
    for number in range(40):
        scale, out_scale = near_ties(number)
        out = (out_scale, (low + high) // 2)
        builder = ModelBuilder()
        given = builder.input("x", (1, 256), dtype, scale, (low + high) // 2)
        arguments = {"quantize": (dtype, out), "leaky_relu": (0.3,)}.get(name, ())
        keywords = {} if name == "quantize" else {"out": out}
        builder.output(getattr(builder, name)(given, *arguments, **keywords))
        data = builder.build()
        (expected,) = Reference(data).run([x])
        graph = integer_graph(data)
        assert np.array_equal(run_graph(graph, [x])[graph.outputs[0]], expected)

        with monkeypatch.context() as patch:
            if double:
                patch.setattr("stages.quantize.patterns.edges.quantize_multiplier", from_float32)
            else:
                patch.setattr("stages.quantize.tables.float32_ratio", lambda a, b: a / b)
            wrong = integer_graph(data)
        other += int((run_graph(wrong, [x])[graph.outputs[0]] != expected).sum())
    assert other > 0


@pytest.mark.parametrize("dtype", ["int8", "uint8"])
def test_mean_rounds_twice_and_divides_in_double(dtype: str, monkeypatch: pytest.MonkeyPatch) -> None:
    low, high = LIMITS[dtype]
    x = np.repeat(np.arange(low, high + 1).astype(dtype)[:, None], 4, axis=1)
    x[::3, 1] = x[::3, 1] // 2
    other_rounding = other_precision = 0
    for number in range(60):
        scale, out_scale = near_ties(number)
        builder = ModelBuilder()
        given = builder.input("x", (256, 4), dtype, scale, (low + high) // 2)
        builder.output(builder.mean(given, (1,), out=(out_scale, (low + high) // 2)))
        data = builder.build()
        (expected,) = Reference(data).run([x])
        graph = integer_graph(data)
        assert mismatches(graph, x, expected) == 0
        other_rounding += mismatches(changed(graph, "single"), x, expected)
        with monkeypatch.context() as patch:
            exact = arithmetic.quantize_multiplier
            patch.setattr(
                "stages.quantize.arithmetic.quantize_multiplier",
                lambda real, exact=exact: exact(float(np.float32(real))),
            )
            other_precision += mismatches(integer_graph(data), x, expected)
    assert other_rounding > 0
    assert other_precision > 0


@pytest.mark.parametrize("dtype", ["int8", "uint8"])
@pytest.mark.parametrize(("name", "bounds"), [("relu6", (0, 6)), ("relu_n1_to_1", (-1, 1))])
def test_bounds_of_fused_activations_are_divided_in_float32(name: str, bounds: tuple[int, int], dtype: str) -> None:
    """6 / scale is almost a half here: in double it would round to another integer now and then."""
    low, high = LIMITS[dtype]
    middle = low + 128
    differs = 0
    for steps in range(3, 120, 3):
        scale = float(np.float32(bounds[1] / (steps + 0.5)))
        builder = ModelBuilder()
        x = builder.input("x", (1, 256), dtype, 0.5, middle)
        y = builder.constant("y", np.full((1, 1), middle, dtype=dtype), 0.1, middle)
        builder.output(builder.add(x, y, activation=name, out=(scale, middle)))
        data = builder.build()
        (expected,) = Reference(data).run([np.arange(low, high + 1).astype(dtype)[None]])
        op = integer_graph(data).layers[0].op
        assert (op.act_min, op.act_max) == (expected.min(), expected.max())
        in_double = middle + int(np.floor(bounds[1] / scale + 0.5))
        differs += min(in_double, high) != op.act_max
    assert differs > 0
