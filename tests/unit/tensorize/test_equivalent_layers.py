"""The forms a layer can be computed in: both give LiteRT's bytes, the cheaper one is taken, unless a rule names one."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from stages.ir.graph import Graph, Layer
from stages.ir.models.builder import ModelBuilder
from stages.tensorize.equivalent_layers import cheapest_equivalents, with_all_equivalents
from stages.tensorize.plan import TensorizePlan
from tests.support.integer import compare, integer_graph
from tests.support.stages_run import run_stages

LIMITS = {"int8": (-128, 127), "uint8": (0, 255)}


@pytest.mark.parametrize("layout", ["NHWC", "planar depthwise"])
@pytest.mark.parametrize("dtype", ["int8", "uint8"])
def test_a_depthwise_convolution_of_few_channels_can_be_an_ordinary_one(dtype: str, layout: str) -> None:
    """Weights of the other channels are zero. micro_speech begins with one channel, which all outputs read."""
    rng = np.random.default_rng(5)
    for channels, multiplier in ((1, 1), (1, 8), (3, 1), (2, 4), (5, 1)):
        outputs = channels * multiplier
        values = rng.integers(*LIMITS[dtype], (1, 3, 2, outputs)).astype(dtype)
        bias = rng.integers(-4000, 4001, outputs).astype(np.int32)
        builder = ModelBuilder()
        x = builder.input("x", (1, 9, 8, channels), dtype, 0.04, 3)
        zero_point = 120 if dtype == "uint8" else 0
        more = {"weight_scale": 0.01, "weight_zero_point": zero_point, "stride": (2, 1), "out": (0.1, 7)}
        builder.output(builder.depthwise_conv2d(x, values, bias, **more))
        found = compare(
            builder.build(),
            [rng.integers(*LIMITS[dtype], (1, 9, 8, channels)).astype(dtype)],
            layout,
            change=with_all_equivalents,
        )
        assert found.wrong == {}
        (layer,) = [layer for layer in found.graph.layers if layer.kind != "layout"]
        if channels > 4:
            assert layer.kind == "depthwise_conv2d"
            continue
        assert layer.kind == "conv2d"
        assert (layer.op.kernel_layout, found.graph.view(layer).constant("weights").shape) == (
            "HWIO",
            (3, 2, channels, outputs),
        )


@pytest.mark.parametrize("layout", ["NHWC", "NCHW"])
@pytest.mark.parametrize("channels", [1, 4])
def test_a_convolution_whose_filters_read_one_channel_can_be_a_depthwise_one(channels: int, layout: str) -> None:
    """Several channels are as many groups."""
    rng = np.random.default_rng(6)
    values, bias = rng.integers(-127, 128, (8, 3, 2, 1)).astype(np.int8), np.arange(8, dtype=np.int32)
    builder = ModelBuilder()
    x = builder.input("x", (1, 9, 8, channels), "int8", 0.04, 3)
    builder.output(builder.conv2d(x, values, bias, weight_scale=0.01, stride=(2, 1), out=(0.1, 7)))
    image = rng.integers(-128, 128, (1, 9, 8, channels)).astype(np.int8)
    found = compare(builder.build(), [image], layout, change=with_all_equivalents)
    assert found.wrong == {}
    (layer,) = [layer for layer in found.graph.layers if layer.kind != "layout"]
    assert layer.kind == "depthwise_conv2d"
    assert layer.op.depth_multiplier == 8 // channels


def test_a_layer_is_exchanged_once_and_only_where_that_saves_enough() -> None:
    """Where both forms cost the same each would do, for ever."""
    rng = np.random.default_rng(7)
    for kind, factor, found in (
        ("conv2d", 0.98, "conv2d"),
        ("conv2d", 0.96, "depthwise_conv2d"),
        ("depthwise_conv2d", 1.0, "conv2d"),
        ("depthwise_conv2d", 1.01, "depthwise_conv2d"),
    ):
        b = ModelBuilder()
        x, options = b.input("x", (1, 6, 6, 1), "int8", 0.05, 11), {"weight_scale": 0.01, "out": (0.1, 0)}
        shape, bias = (4, 3, 3, 1) if kind == "conv2d" else (1, 3, 3, 4), np.zeros(4, np.int32)
        b.output(getattr(b, kind)(x, rng.integers(-127, 128, shape).astype(np.int8), bias, **options))
        graph = integer_graph(b.build())

        def price(_graph: Graph, layer: Layer, kind: str = kind, factor: float = factor) -> float:
            return 100.0 if layer.kind == kind else 100.0 * factor

        (layer,) = cheapest_equivalents(graph, price, lambda _graph, _layer: False).layers
        assert layer.kind == found


def test_weights_that_two_layers_share_stay_those_of_the_other() -> None:
    rng, b = np.random.default_rng(8), ModelBuilder()
    values, bias = rng.integers(-127, 128, (4, 3, 2, 1)).astype(np.int8), np.zeros(4, np.int32)
    x = b.input("x", (1, 6, 7, 1), "int8", 0.05, 11)
    b.output(*(b.conv2d(x, values, bias, weight_scale=0.01, stride=(n, 1), out=(0.1, 0)) for n in (1, 2)))
    graph = integer_graph(b.build())
    roles = graph.layers[0].constants
    shared = replace(graph, layers=[layer.model_copy(update={"constants": roles}) for layer in graph.layers])

    def price(_graph: Graph, layer: Layer) -> float:
        is_first = layer.index == 0
        return 1.0 if is_first == (layer.kind == "conv2d") else 2.0

    made = cheapest_equivalents(shared, price, lambda _graph, _layer: False)
    kept = {layer.kind: made.constants[layer.constants["weights"]].shape for layer in made.layers}
    assert kept == {"conv2d": (4, 3, 2, 1), "depthwise_conv2d": (4, 1, 3, 2)}


def padded_convolution() -> bytes:
    """PAD, then a 3x3 convolution with stride 2, as Keras writes it."""
    rng, b = np.random.default_rng(1), ModelBuilder()
    y = b.pad(b.input("x", (1, 8, 8, 4), "int8", 0.05, 11), [(0, 0), (0, 1), (0, 1), (0, 0)])
    values, bias = rng.integers(-127, 128, (8, 3, 3, 4)).astype(np.int8), np.zeros(8, np.int32)
    b.output(b.conv2d(y, values, bias, weight_scale=0.01, stride=(2, 2), padding="valid", out=(0.1, 0), name="conv"))
    return b.build()


@pytest.mark.parametrize(("pad", "conv", "folded"), [(10, 0, True), (10, 10, True), (10, 11, False), (0, 1, False)])
def test_the_cheaper_form_is_taken(pad: int, conv: int, folded: bool) -> None:
    """`conv` is what the convolution costs more with padding of its own."""

    def price(graph: Graph, layer: Layer) -> float:
        if layer.kind == "pad":
            return pad
        return 100 if len(graph.layers) == 2 else 100 + conv

    graph = integer_graph(padded_convolution())
    kinds = [layer.kind for layer in cheapest_equivalents(graph, price, lambda _graph, _layer: False).layers]
    assert kinds == (["conv2d"] if folded else ["pad", "conv2d"])


@pytest.mark.parametrize(("options", "kinds"), [({}, ["conv2d"]), ({"op": "pad"}, ["pad", "conv2d"])])
def test_what_a_rule_of_the_recipe_names_stays(tmp_path: Path, options: dict[str, str], kinds: list[str]) -> None:
    rules = [{"match": options, "kernel": "generic.move"}] if options else []
    configs: dict[str, Any] = {"tensorize": {"rules": rules}}
    made = run_stages(padded_convolution(), "rv64-rvp", tmp_path, until="tensorize", configs=configs)
    assert [layer.op for layer in TensorizePlan.load(made["tensorize"]).layers] == kinds


@pytest.mark.parametrize(("kernel", "stride"), [((1, 1), (1, 1)), ((5, 1), (3, 1)), ((3, 2), (1, 1))])
@pytest.mark.parametrize("dtype", ["int8", "uint8"])
def test_a_convolution_over_a_whole_image_can_be_fully_connected(
    dtype: str, kernel: tuple[int, int], stride: tuple[int, int]
) -> None:
    """As layers of streaming networks; one more row, and windows slide."""
    rng = np.random.default_rng(8)
    values = rng.integers(*LIMITS[dtype], (7, *kernel, 6)).astype(dtype)
    for rows, kind in ((kernel[0], "fully_connected"), (kernel[0] + stride[0], "conv2d")):
        builder = ModelBuilder()
        x = builder.input("x", (2, rows, kernel[1], 6), dtype, 0.04, 3)
        more = {"weight_scale": 0.01, "weight_zero_point": 120 if dtype == "uint8" else 0, "padding": "valid"}
        bias = rng.integers(-4000, 4001, 7).astype(np.int32)
        builder.output(builder.conv2d(x, values, bias, stride=stride, out=(0.1, 7), **more))
        images = [rng.integers(*LIMITS[dtype], (2, rows, kernel[1], 6)).astype(dtype)]
        found = compare(builder.build(), images, "NHWC", change=with_all_equivalents)
        assert found.wrong == {}
        assert found.graph.layers[-1].kind == kind or found.graph.layers[-2].kind == kind


def _mixed(
    sizes: tuple[tuple[int, int], ...], begins: tuple[tuple[int, int], ...], step: int, dilation: int, order: list[int]
) -> bytes:
    """Depthwise convolutions of four channels each, of slices of an image (1, 12, 6, 4 * n) that begin anywhere."""
    rng, builder, parts = np.random.default_rng(9), ModelBuilder(), []
    x = builder.input("x", (1, 12, 6, 4 * len(sizes)), "int8", 0.04, 3)
    for number in order:
        ends = [
            begin + (size - 1) * dilation + 1 + step for begin, size in zip(begins[number], sizes[number], strict=True)
        ]
        first, last = (0, *begins[number], 4 * number), (1, *ends, 4 * number + 4)
        part = builder.strided_slice(x, first, last, name=f"part{number}")
        values, bias = rng.integers(-127, 128, (1, *sizes[number], 4)), rng.integers(-4000, 4001, 4)
        more = {"weight_scale": 0.01, "padding": "valid", "stride": (step, step), "dilation": (dilation, dilation)}
        y = builder.depthwise_conv2d(part, values.astype(np.int8), bias.astype(np.int32), out=(0.2, -9), **more)
        parts.append(y)
    builder.output(builder.concatenation(parts, 3))
    return builder.build()


@pytest.mark.parametrize(
    ("sizes", "begins", "step", "dilation", "order", "merged"),
    [
        (((3, 1), (5, 2)), ((2, 0), (0, 1)), 1, 1, [0, 1], True),
        (((3, 2), (2, 2), (1, 1)), ((1, 0), (3, 2), (5, 2)), 1, 2, [0, 1, 2], True),
        (((2, 2), (3, 2)), ((4, 0), (3, 0)), 2, 1, [0, 1], True),
        (((3, 2), (2, 2)), ((1, 0), (2, 0)), 1, 2, [0, 1], False),  # between the taps
        (((3, 1), (5, 2)), ((2, 0), (0, 1)), 1, 1, [1, 0], False),  # channels in another order
    ],
)
def test_depthwise_convolutions_of_neighbouring_channels_can_be_one(
    sizes: tuple[tuple[int, int], ...],
    begins: tuple[tuple[int, int], ...],
    step: int,
    dilation: int,
    order: list[int],
    merged: bool,
) -> None:
    images = [np.random.default_rng(1).integers(-128, 128, (1, 12, 6, 4 * len(sizes))).astype(np.int8)]
    found = compare(_mixed(sizes, begins, step, dilation, order), images, "NHWC", change=with_all_equivalents)
    assert found.wrong == {}
    assert ("concatenation" not in [layer.kind for layer in found.graph.layers]) == merged
