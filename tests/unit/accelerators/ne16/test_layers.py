"""Layers as NE16's jobs, on the numpy model of the engine, against the integer reference of their arithmetic."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import cache
from itertools import islice

import numpy as np
import pytest

from stages.accelerators.ne16.descriptor import Ne16, Ne16Parameters
from stages.accelerators.ne16.weights import Found
from stages.accelerators.tiles import Span, extent, why_not_tiled
from stages.graph import LayerView
from stages.models.operators import build
from stages.models.spec import OpModel
from stages.reference.integer import run_layer
from stages.tensorize.signs import in_types
from tests.conformance.draw import Draw, bounds, with_constants, with_op
from tests.conformance.operators import add, conv2d, depthwise_conv2d, fully_connected
from tests.conformance.operators.windows import Window
from tests.support.integer import integer_graph
from tests.support.ne16_layers import computed, with_own

ENGINES = {
    "core": Ne16(Ne16Parameters(), "core"),
    "core rvp": Ne16(Ne16Parameters(), "core", frozenset({"rvp 0.9.11"})),
    "engine": Ne16(Ne16Parameters(), "engine"),
    "tflite": Ne16(Ne16Parameters(extension="tflite")),
}
every_engine = pytest.mark.parametrize("name", ENGINES)
OPERATORS = {
    "conv2d": conv2d.mandatory,
    "depthwise_conv2d": depthwise_conv2d.mandatory,
    "fully_connected": fully_connected.mandatory,
}


def typed(engine: Ne16, view: LayerView, draw: Draw) -> LayerView | None:
    """The layer with types that the engine reads and writes, None where it is for another unit."""
    reads, writes = engine.reads(view), engine.writes(view)
    one = draw.choose(*reads)
    inputs = [one] * len(view.inputs)
    output = one if view.op.op in ("add", "sub") and engine.given.extension == "tflite" else draw.choose(*writes)
    found = in_types(view, inputs, output)
    return None if found is None or engine.why_not(found) or why_not_tiled(found) else found


def unclamped(view: LayerView) -> LayerView:
    low, high = bounds(view.outputs[0].dtype)
    return with_op(view, act_min=low, act_max=high)


def check(engine: Ne16, view: LayerView, seed: int) -> None:
    """The whole layer, or tiles of some rows and channels."""
    draw, out, granule = Draw(seed), extent(view.outputs[0]), engine.granule(view)
    own = with_own(engine, view)
    inputs = tuple(draw.array(tensor.shape, tensor.dtype) for tensor in view.inputs)
    sizes = [
        min(-(-draw.integer(1, whole) // each) * each, whole)
        for whole, each in ((out.rows, granule.rows), (out.channels, granule.channels))
    ]
    rows, channels = draw.choose((out.rows, out.channels), tuple(sizes))
    expected = run_layer(own, list(inputs))
    np.testing.assert_array_equal(computed(engine, own, inputs, rows, channels), expected)


@cache
def small_layers(operator: str) -> tuple[LayerView, ...]:
    views = [case.view for case in OPERATORS[operator]()]
    return tuple(view for view in views if max(tensor.elements for tensor in (*view.inputs, *view.outputs)) <= 6000)


def layers(name: str, operator: str, step: int) -> Iterator[LayerView]:
    """One in `step` of the small ones, where the engine takes it: whether it does is most of the work."""
    for number, view in islice(enumerate(small_layers(operator)), 0, None, step):
        found = typed(ENGINES[name], view, Draw(number))
        if found is not None:
            yield found


@every_engine
@pytest.mark.parametrize("operator", OPERATORS)
def test_cases_of_the_conformance_suite(name: str, operator: str) -> None:
    """Ties, extremes, zero points at both ends, tails: those that the engine takes, some of each kind."""
    step = {"conv2d": 23, "depthwise_conv2d": 17, "fully_connected": 13}[operator]
    count = 0
    for number, view in enumerate(layers(name, operator, step)):
        check(ENGINES[name], view, number)
        count += 1
    assert count >= 8


@pytest.mark.parametrize("name", ["engine", "tflite"])
def test_sums_of_two_tensors(name: str) -> None:
    engine, count = ENGINES[name], 0
    for seed in range(24):
        draw = Draw(seed, ("int8", "uint8")[seed % 2])
        shape = (1, draw.integer(1, 6), draw.choose(2, 4, 8), draw.choose(4, 8, 16, 24))
        given = add.add(draw, [shape, shape], op="add" if name == "tflite" else draw.choose("add", "sub"))
        view = typed(engine, given, draw)
        if view is not None:
            check(engine, view, seed)
            count += 1
    assert count >= 8


@every_engine
@pytest.mark.parametrize("bits", range(1, 9))
def test_weights_take_as_few_bits_as_hold_them(name: str, bits: int) -> None:
    """Wherever their range lies; two at least."""
    engine = ENGINES[name]
    for least in sorted({-128, -(1 << bits - 1), 128 - (1 << bits)}):
        draw = Draw(bits, "uint8")
        window = Window((5, 5), (3, 3), (1, 1), (1, 1, 1, 1))
        given = unclamped(conv2d.conv2d(draw, window, 20, 40, weight_type=("int8", 0)))
        weights = draw.rng.integers(least, least + (1 << bits), (40, 3, 3, 20)).astype(np.int8)
        weights[0, 0, 0, :2] = least, least + (1 << bits) - 1
        view = typed(engine, with_constants(given, weights=weights), draw)
        assert view is not None
        whole = Span(0, 40)
        plain = engine.constant_bytes(with_constants(view, weights=weights_of_8_bits(weights)), whole)
        assert plain - engine.constant_bytes(view, whole) == 40 * 2 * 18 * (8 - max(bits, 2))
        check(engine, view, bits)


def weights_of_8_bits(weights: np.ndarray) -> np.ndarray:
    made = weights.copy()
    made[0, 0, 0, :2] = -128, 127
    return made


REFUSED: dict[str, Callable[[Draw], LayerView]] = {
    "a dilation of 2x2": lambda draw: conv2d.conv2d(draw, Window((9, 9), (3, 3), dilation=(2, 2)), 4, 4),
    "2 groups of channels": lambda draw: conv2d.conv2d(draw, Window((5, 5)), 4, 4, groups=2),
    "a depth multiplier of 2": lambda draw: depthwise_conv2d.depthwise(draw, Window((5, 5), (3, 3)), 4, multiplier=2),
    "a depthwise window of 5x5, stride 1x1": lambda draw: depthwise_conv2d.depthwise(draw, Window((7, 7), (5, 5)), 4),
    "of stride 2 the engine has even numbers": lambda draw: depthwise_conv2d.depthwise(
        draw, Window((7, 7), (3, 3), (2, 2)), 5
    ),
    "no multiple of 16": lambda draw: add.add(draw, [(1, 3, 3, 5)] * 2, op="add"),
    "tensors of different shapes": lambda draw: add.add(draw, [(1, 4, 4, 16), (1, 1, 1, 16)], op="add"),
}


@pytest.mark.parametrize("reason", REFUSED)
def test_what_the_engine_cannot_compute_it_refuses_with_the_reason(reason: str) -> None:
    for name in ("engine", "tflite") if "1" in reason and "x" not in reason else ENGINES:
        layer = REFUSED[reason](Draw(3, "uint8"))
        full = unclamped(layer)
        if full.op.op == "add" and name.startswith("core"):
            continue
        assert reason in ENGINES[name].why_not(full), name


def test_results_that_are_clamped_closer_than_the_type_are_not_the_engines() -> None:
    layer = conv2d.conv2d(Draw(1, "uint8"), Window((4, 4)), 4, 4, act_min=0, act_max=200)
    assert "clamped to 0 to 200" in ENGINES["engine"].why_not(layer)
    assert ENGINES["core"].why_not(layer) == ENGINES["tflite"].why_not(layer) == ""


def test_int8_is_for_the_extension_alone() -> None:
    layer = conv2d.conv2d(Draw(1), Window((4, 4)), 4, 4)
    assert {name: engine.reads(layer) for name, engine in ENGINES.items()} == {
        "core": ("uint8",), "core rvp": ("uint8",), "engine": ("uint8",), "tflite": ("int8", "uint8"),
    }  # fmt: skip


@pytest.mark.parametrize(("weights", "bits"), [("int8", 8), ("int4", 4), ({"bits": 5}, 5), ({"bits": 2}, 2)])
def test_weights_of_the_models_bits_are_stored_in_them(weights: str | dict[str, int], bits: int) -> None:
    options = {"op": "conv2d", "shape": (6, 6, 20), "out_channels": 24, "kernel": (3, 3), "weights": weights}
    graph = integer_graph(build(OpModel.model_validate(options)))
    given = graph.view(graph.layers[0])
    assert Found().weights(given).bits == bits
    for name, engine in ENGINES.items():
        view = typed(engine, given, Draw(bits))
        assert view is not None, name
        check(engine, view, bits)
