"""Which layout each tensor gets, with an engine for tests that works on NCHW16c alone beside the generic kernels."""

from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from stages.backends.kernels import registry
from stages.base import StageError
from stages.emit import EmitConfig
from stages.emit.build import emit
from stages.import_model.build import build_module
from stages.import_model.describe import describe, operator_options
from stages.ir.graph import Graph, Layout, RequestedLayout
from stages.ir.graph.layer_rules import LayerMatch
from stages.ir.models.builder import ModelBuilder
from stages.ir.models.tflite_reader import read
from stages.ir.reference.integer import run_graph
from stages.layout.apply import lay_out
from stages.layout.rules import LayoutConfig
from stages.quantize.lower import lower_module
from stages.tensorize import TensorizeConfig, TensorizeRule, layouts
from stages.tensorize.arena_size import arena_bytes
from stages.tensorize.artifact import save
from stages.tensorize.build import decide
from stages.tensorize.choices import Chosen, choose_kernels
from stages.tensorize.layouts import with_cheapest_layouts
from stages.tensorize.packing import pack_and_lower
from stages.tensorize.pass_context import PassContext
from tests.firmware.test_offload import with_toy
from tests.support.emitted import run_emitted, target_named
from tests.support.integer import integer_graph
from tests.support.kernels.blocked import FOLDER, BlockedConv2d
from tests.support.toy import Toy

HOST = target_named("host")
QUANT = (0.05, 3)


def setting(**options: Any) -> PassContext:
    kernels = [*registry.kernels(HOST.kernels).values(), BlockedConv2d()]
    return PassContext.of(HOST, TensorizeConfig(**options), kernels)


def chain(channels: tuple[int, ...], *, size: int = 6, limit: int = 127) -> Graph:
    """Convolutions 3x3 one after the other, `channels` of the input and of each output; weights to +- `limit`."""
    rng, b = np.random.default_rng(sum(channels)), ModelBuilder()
    x = b.input("x", (1, size, size, channels[0]), "int8", *QUANT)
    for number, (depth, count) in enumerate(pairwise(channels)):
        weights = rng.integers(-limit, limit + 1, (count, 3, 3, depth)).astype(np.int8)
        bias = rng.integers(-900, 900, count).astype(np.int32)
        x = b.conv2d(x, weights, bias, weight_scale=0.5 / limit, out=QUANT, name=f"conv{number}")
    b.output(x)
    return integer_graph(b.build())


def residual(join: Callable[[ModelBuilder, Any, Any], Any], channels: int) -> Graph:
    """Two convolutions, the second and what `join` makes of both, a convolution; blocks of 16 are filled up."""
    rng, b = np.random.default_rng(7), ModelBuilder()
    x = b.input("x", (1, 5, 5, channels), "int8", *QUANT)

    def conv(y: Any, name: str) -> Any:
        weights = rng.integers(-127, 128, (channels, 3, 3, y.shape[-1])).astype(np.int8)
        return b.conv2d(y, weights, np.zeros(channels, np.int32), weight_scale=0.004, out=QUANT, name=name)

    first = conv(x, "first")
    b.output(conv(join(b, first, conv(first, "second")), "last"))
    return integer_graph(b.build())


def pooled(b: ModelBuilder, first: Any, second: Any) -> Any:
    """Generic, and reads rows or planes."""
    return b.avg_pool2d(b.add(first, second, out=QUANT), (3, 3), (1, 1), padding="same")


def summed(b: ModelBuilder, first: Any, second: Any) -> Any:
    """Generic, element by element."""
    return b.logistic(b.add(first, second, out=QUANT))


def decided(graph: Graph, **options: Any) -> Chosen:
    one = setting(**options)
    return choose_kernels(with_cheapest_layouts(graph, one), one)


def kernels(chosen: Chosen) -> list[str]:
    names = {index: choice.kernel.name for index, choice in chosen.choices.items()}
    return [names.get(layer.index, "alias") for layer in chosen.graph.layers]


def check(chosen: Chosen, folder: Path, **options: Any) -> None:
    """Runs it on this machine under its sanitizers; every traced tensor is that of the integer reference."""
    one = setting(**options)
    source, out = folder / "tensorized", folder / "emitted"
    source.mkdir()
    out.mkdir()
    save(pack_and_lower(chosen, one), source)
    emit(source, out, EmitConfig(), HOST, folders=registry.folders(HOST.kernels) | {FOLDER.name: FOLDER})
    tensor = chosen.graph.tensors[chosen.graph.inputs[0]]
    x = np.random.default_rng(1).integers(-128, 128, tensor.shape).astype(np.int8)
    (run,) = run_emitted(out, HOST, [[x]])
    values = run_graph(chosen.graph, [x])
    assert np.array_equal(run.outputs[0], values[chosen.graph.outputs[0]])
    assert len(run.traces) == len(chosen.graph.layers)
    for name, traced in run.traces.items():
        assert np.array_equal(traced, values[name]), name


@pytest.mark.parametrize(("limit", "bits"), [(127, 8), (7, 4)])
def test_a_chain_of_accelerated_layers_has_one_transform_at_each_end(limit: int, bits: int, tmp_path: Path) -> None:
    """With 20 and 33 channels, so that blocks are filled up; weights of 4 bits take half the bytes."""
    chosen = decided(chain((20, 32, 33, 16, 20), limit=limit))
    assert kernels(chosen) == ["generic.move", *["blocked.conv2d"] * 4, "generic.move"]
    order = [str(chosen.graph.tensors[layer.outputs[0]].layout) for layer in chosen.graph.layers]
    assert order == ["NCHW16c"] * 5 + ["NHWC"]
    weights = pack_and_lower(chosen, setting()).weights["001.weights"]
    assert weights.nbytes == 32 * 3 * 3 * 32 * bits // 8
    check(chosen, tmp_path)


def test_an_arena_limit_that_is_kept_without_it_changes_no_layout() -> None:
    graph = chain((16, 32, 32, 16))
    free = decide(graph, setting())[0]
    roomy = setting(arena_limit=arena_bytes(free, setting()))
    assert kernels(decide(graph, roomy)[0]) == kernels(free)
    assert "blocked.conv2d" in kernels(free)


def test_a_layer_for_which_transforms_cost_more_than_they_save_stays() -> None:
    """One channel in and out: the engine would compute 256 products for one, and fill up 16 bytes for one."""
    graph = chain((1, 1))
    assert with_cheapest_layouts(graph, setting()) is graph
    assert kernels(decided(graph)) == ["generic.conv2d"]


@pytest.mark.parametrize(("saved", "kernel"), [(0.9, "generic.conv2d"), (1.1, "blocked.conv2d")])
def test_a_saving_has_to_pay_for_the_transforms(saved: float, kernel: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """`saved` is what the engine saves of the layer, in parts of what both transforms take."""
    graph = chain((20, 20))
    free = decided(graph).choices
    transforms = sum(choice.cost or 0 for choice in free.values() if choice.kernel.name == "generic.move")
    (generic,) = choose_kernels(graph, setting()).choices.values()
    assert generic.cost is not None and transforms > 100
    cost = generic.cost - saved * transforms
    monkeypatch.setattr(BlockedConv2d, "cost", lambda *_: cost)
    monkeypatch.setattr(layouts, "_GUESS", 1.0)
    monkeypatch.setattr(layouts, "_WORTH", 1.0)
    assert kernel in kernels(decided(graph))


@pytest.mark.parametrize(("join", "channels", "transforms"), [(pooled, 32, 4), (summed, 32, 2), (summed, 31, 2)])
def test_layouts_are_decided_over_the_whole_graph(tmp_path: Path, join: Any, channels: int, transforms: int) -> None:
    """A pool reads rows or planes: what it reads and writes is transformed. A sum takes blocks as they come."""
    chosen = decided(residual(join, channels))
    assert kernels(chosen).count("blocked.conv2d") == 3
    made = [layer.name for layer in chosen.graph.layers if layer.kind == "layout"]
    assert len(made) == len(set(made)) == transforms
    (total,) = (layer for layer in chosen.graph.layers if layer.kind == "add")
    assert {str(one.layout) for one in chosen.graph.view(total).inputs} == {"NCHW16c"}
    check(chosen, tmp_path)


def test_a_sum_that_repeats_one_of_its_inputs_does_not_take_blocks() -> None:
    """The pixel that is repeated has other bytes than the image."""
    rng, b = np.random.default_rng(7), ModelBuilder()
    x, pixel = (b.input(name, shape, "int8", *QUANT) for name, shape in (("x", (1, 5, 5, 20)), ("p", (1, 1, 1, 20))))
    weights = rng.integers(-127, 128, (20, 3, 3, 20)).astype(np.int8)
    y = b.conv2d(x, weights, np.zeros(20, np.int32), weight_scale=0.004, out=QUANT, name="conv")
    b.output(b.add(y, pixel, out=QUANT, name="sum"))
    chosen = decided(integer_graph(b.build()))
    (total,) = (layer for layer in chosen.graph.layers if layer.kind == "add")
    assert {str(one.layout) for one in chosen.graph.view(total).inputs} <= {"NHWC", "NCHW", ""}


def wanting(graph: Graph, layout: str, number: int = 0) -> Graph:
    graph.layers[number] = graph.layers[number].model_copy(
        update={"wanted": RequestedLayout(layout=Layout(layout), rule=2)}
    )
    return graph


def test_rules_override_what_is_cheapest(tmp_path: Path) -> None:
    chosen = decided(wanting(chain((20, 32, 32, 16)), "NHWC", 1))
    assert kernels(chosen)[2:4] == ["generic.move", "generic.conv2d"]
    assert kernels(chosen)[-1] == "alias"  # 16 channels lie as in NHWC
    small = decided(wanting(chain((1, 1)), "NCHW16c"))
    assert kernels(small) == ["generic.move", "blocked.conv2d", "generic.move"]
    check(small, tmp_path)


@pytest.mark.parametrize(
    ("config", "wanted"),
    [
        ({}, None),
        ({"default": "NHWC"}, ("NHWC", 0)),
        ({"rules": [{"match": {"op": "add"}, "data": "NCHW"}, {"data": "NCHW16c"}]}, ("NCHW16c", 2)),
        ({"rules": [{"data": "NCHW"}]}, ("NCHW", 1)),
    ],
)
def test_what_the_recipe_says_reaches_the_layer(config: dict[str, Any], wanted: tuple[str, int] | None) -> None:
    """Relax has NHWC and NCHW; other layouts leave it as it is."""
    b = ModelBuilder()
    weights = np.ones((3, 1, 1, 4), np.int8)
    x = b.input("x", (1, 2, 2, 4), "int8", *QUANT)
    b.output(b.conv2d(x, weights, np.zeros(3, np.int32), weight_scale=0.1, out=QUANT, name="conv"))
    data = b.build()
    info = read(data, "model")
    module, _ = lay_out(build_module(data, info), LayoutConfig.model_validate(config))
    graph = lower_module(module, describe(info, operator_options(data))).graph
    (layer,) = [layer for layer in graph.layers if layer.kind == "conv2d"]
    assert layer.wanted == (RequestedLayout(layout=Layout(wanted[0]), rule=wanted[1]) if wanted else None)
    assert (graph.tensors[layer.inputs[0]].layout == "NCHW") == (wanted == ("NCHW", 1))


def test_a_rule_that_no_kernel_follows_is_reported_where_it_stands() -> None:
    with pytest.raises(StageError) as caught:
        decided(wanting(chain((1, 1)), "NHWC4c"))
    text = "layout rule 2 wants NHWC4c for layer 0 (conv2d conv0), which no kernel of target host reads"
    assert str(caught.value).splitlines()[0] == text
    able = "NHWC (generic.conv2d); NCHW (generic.conv2d); NCHW16c (blocked.conv2d)"
    assert f"Kernels read it in {able}" in str(caught.value)
    assert caught.value.at == ("stages", "layout", "rules", 1, "data")


@pytest.mark.parametrize(("cycle", "stays"), [(256, True), (1, False)])
@pytest.mark.parametrize("types", [("int8",), ("uint8",)])
def test_an_engine_is_reckoned_with_in_the_types_that_it_wants(
    monkeypatch: pytest.MonkeyPatch, types: tuple[str, ...], cycle: int, stays: bool
) -> None:
    """Types are decided after layouts: by its int8 tensors alone the network would lie as the blocked kernel wants."""
    monkeypatch.setattr(Toy, "reads", lambda *_: types)
    monkeypatch.setattr(Toy, "why_not", lambda *_: "")
    target = with_toy(64 << 10, macs_per_cycle=cycle)
    kernels = [*registry.kernels(["generic"]).values(), BlockedConv2d()]
    graph = chain((32, 32, 32))
    given = PassContext.of(target, TensorizeConfig(), kernels)
    assert (with_cheapest_layouts(graph, given) is graph) == stays
    rules = (TensorizeRule(match=LayerMatch(op="conv2d"), kernel="blocked.conv2d"),)
    ruled = PassContext.of(target, TensorizeConfig(rules=rules), kernels)
    assert with_cheapest_layouts(graph, ruled) is not graph
