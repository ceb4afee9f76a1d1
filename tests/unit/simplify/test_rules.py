"""Layers that need not be there: which go by which rule, and that nothing else changes. All against LiteRT."""

from collections.abc import Callable

import numpy as np
import pytest

from stages.ir.models.builder import ModelBuilder, Tensor
from stages.lower.simplify.simplify import simplified
from tests.support.constant_channels import Drawn
from tests.support.drawn_networks import network
from tests.support.integer import LAYOUTS, compare

QUANT = (0.05, 3)
SHAPE = (1, 4, 6, 8)
Build = Callable[[ModelBuilder, Tensor], Tensor]


def conv(b: ModelBuilder, x: Tensor, name: str = "conv", **more: object) -> Tensor:
    rng = np.random.default_rng(2)
    values = rng.integers(-127, 128, (8, 1, 1, x.shape[3])).astype(np.int8)
    bias = rng.integers(-900, 900, 8).astype(np.int32)
    return b.conv2d(x, values, bias, weight_scale=0.01, out=QUANT, name=name, **more)  # type: ignore[arg-type]


def narrow(b: ModelBuilder, x: Tensor, activation: str) -> Tensor:
    """Results of 0.3 to 1.8 or so."""
    values = np.ones((4, 1, 1, x.shape[3]), np.int8)
    bias = np.full(4, 2_000, np.int32)
    return b.conv2d(x, values, bias, weight_scale=0.01, out=QUANT, activation=activation, name="narrow")


def padded(b: ModelBuilder, x: Tensor, *amounts: int, name: str = "pad") -> Tensor:
    return b.pad(x, [(0, 0), (amounts[0], amounts[1]), (amounts[2], amounts[3]), (0, 0)], name=name)


def two(b: ModelBuilder, one: Tensor, other: Tensor) -> Tensor:
    return b.add(one, other, out=(0.1, 0), name="y")


def extreme(b: ModelBuilder, op: str, x: Tensor, value: int) -> Tensor:
    quant = (x.scale[0], x.zero_point[0])
    number = b.constant(f"{op} {value}", np.full(1, value, np.int8), *quant)
    return b.emit(op, [x, number], x.shape, None, f"{op} of {value}", "MaximumMinimumOptions")


CASES: dict[str, tuple[Build, str]] = {
    # what is built behind x; the rules that are found -> the kinds of the layers that are left
    "relu behind a convolution": (lambda b, x: b.relu(conv(b, x)), "clamp -> conv2d"),
    "relu that another layer than the relu reads around": (
        lambda b, x: two(b, b.relu(c := conv(b, x)), c),
        "-> conv2d relu add",
    ),
    "relu6 behind a relu": (lambda b, x: b.relu6(b.relu(conv(b, x))), "clamp clamp -> conv2d"),
    "relu of what is never negative": (
        lambda b, x: two(b, b.relu(r := conv(b, x, activation="relu")), r),
        "identity -> conv2d add",
    ),
    "relu with another scale": (lambda b, x: b.relu(conv(b, x), out=(0.04, -5)), "-> conv2d relu"),
    "functions of functions": (
        lambda b, x: b.tanh(b.quantize(b.hard_swish(x, out=(0.07, 1)), "int8", (0.03, -9))),
        "tables tables -> tanh",
    ),
    "times a number": (lambda b, x: b.mul(x, _number(b, 5), out=(0.2, -3)), "tables -> requantize"),
    "plus a number, then a function": (
        lambda b, x: b.tanh(b.add(x, _number(b, -77), out=(0.06, 4))),
        "tables tables -> tanh",
    ),
    "a number less it": (lambda b, x: b.sub(_number(b, 19), x, out=(0.06, 4)), "tables -> requantize"),
    "times a number for each channel": (lambda b, x: b.mul(x, _row(b), out=(0.2, -3)), "-> mul"),
    "the larger of it and a number": (
        lambda b, x: extreme(b, "MAXIMUM", extreme(b, "MINIMUM", conv(b, x), 90), -40),
        "clamp clamp -> conv2d",
    ),
    "the smaller of it and a number, without a layer before": (
        lambda b, x: extreme(b, "MINIMUM", x, 90),
        "tables -> requantize",
    ),
    "the square of its distance from a number": (
        lambda b, x: b.emit("SQUARED_DIFFERENCE", [x, _number(b, 19)], x.shape, (0.3, -128), "y"),
        "tables -> requantize",
    ),
    "an integer more behind a convolution": (
        lambda b, x: b.quantize(conv(b, x), "int8", (0.05, -40), name="q"),
        "clamp -> conv2d",
    ),
    "an integer more that another layer reads around": (
        lambda b, x: two(b, b.quantize(c := conv(b, x), "int8", (0.05, -40), name="q"), c),
        "tables -> conv2d requantize add",
    ),
    "an integer more in front of convolutions": (
        lambda b, x: two(
            b,
            conv(b, q := b.quantize(b.relu(x), "int8", (0.05, -90), name="q"), "one", padding="same"),
            b.add(q, q, out=QUANT, name="two"),
        ),
        "zero_point -> relu conv2d add add",
    ),
    "an integer more that reaches the end of the type": (
        lambda b, x: conv(b, b.quantize(b.relu(x), "int8", (0.05, 90), name="q")),
        "tables -> requantize conv2d",
    ),
    "an integer more in front of a pool": (
        lambda b, x: b.max_pool2d(b.quantize(b.tanh(x), "int8", (1 / 128, -1), name="q"), (2, 2), (1, 1)),
        "tables -> requantize max_pool2d",
    ),
    "a clamp that never acts": (lambda b, x: narrow(b, x, "relu6"), "unbounded -> conv2d"),
    "a clamp of which one end never acts": (lambda b, x: narrow(b, x, "relu_n1_to_1"), "unbounded -> conv2d"),
    "out of the integers and back": (
        lambda b, x: b.quantize(b.dequantize(x), "int8", (0.07, 9), name="q"),
        "floats -> requantize",
    ),
    "paddings": (lambda b, x: padded(b, padded(b, x, 1, 0, 2, 1), 0, 2, 1, 1, name="p2"), "movement -> pad"),
    "a padding of nothing": (lambda b, x: conv(b, padded(b, x, 0, 0, 0, 0)), "identity -> conv2d"),
    "transposed and back": (
        lambda b, x: conv(b, b.transpose(b.transpose(x, (0, 3, 1, 2), name="t"), (0, 2, 3, 1), name="u")),
        "movement identity -> conv2d",
    ),
    "transposed twice": (
        lambda b, x: b.transpose(b.transpose(x, (0, 3, 1, 2), name="t"), (0, 3, 1, 2), name="u"),
        "movement -> transpose",
    ),
    "the whole of it": (lambda b, x: conv(b, b.slice(x, (0, 0, 0, 0), SHAPE)), "identity -> conv2d"),
    "the same twice": (lambda b, x: two(b, conv(b, x, "one"), conv(b, x, "other")), "duplicate -> conv2d add"),
    "nearly the same": (
        lambda b, x: two(b, conv(b, x, "one"), conv(b, x, "other", activation="relu")),
        "-> conv2d conv2d add",
    ),
}


def _number(b: ModelBuilder, value: int) -> Tensor:
    return b.constant("number", np.array([value], np.int8), 0.03, 2)


def _row(b: ModelBuilder) -> Tensor:
    return b.constant("row", np.arange(-4, 4, dtype=np.int8), 0.03, 2)


@pytest.mark.parametrize("case", CASES)
def test_what_goes_and_what_stays(case: str) -> None:
    build, expected = CASES[case]
    b = ModelBuilder()
    b.output(build(b, b.input("x", SHAPE, "int8", *QUANT)))
    found: list[str] = []

    def change(graph):  # type: ignore[no-untyped-def]
        graph, rewrites = simplified(graph)
        found.extend(rewrite.rule for rewrite in rewrites)
        return graph

    made = compare(b.build(), seed=3, change=change)
    assert made.wrong == {}
    assert f"{' '.join(found)} -> {' '.join(layer.kind for layer in made.graph.layers)}".strip() == expected
    assert [layer.index for layer in made.graph.layers] == list(range(len(made.graph.layers)))
    views = [made.graph.view(layer) for layer in made.graph.layers]
    assert all(v.constant("table").dtype == v.outputs[0].dtype for v in views if v.has("table"))


@pytest.mark.parametrize("layout", LAYOUTS)
def test_networks_stay_litert_s(layout: str) -> None:
    gone = 0
    for seed in range(15):
        for data in (network(seed), Drawn(seed).build(), Drawn(seed, "uint8").build()):
            found = compare(data, seed=seed, layout=layout, change=lambda graph: simplified(graph)[0])
            before = compare(data, seed=seed, layout=layout).graph
            assert found.wrong == {} and found.graph.outputs == before.outputs, seed
            gone += len(before.layers) - len(found.graph.layers)
    assert gone > 40
