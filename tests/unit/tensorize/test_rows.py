"""Layers by rows, as users see them: the plan's reasons, the report, `doit explain`."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from stages.backends.kernels.registry import kernels_of
from stages.base import StageError
from stages.count.run import exceeds_limit
from stages.ir.graph import Graph
from stages.ir.models.builder import ModelBuilder, Tensor
from stages.report.build import build_report
from stages.report.html.extras import Extras
from stages.report.html.memory import arenas
from stages.report.html.page import page
from stages.report.markdown import markdown
from stages.report.rows import columns, layer_rows, summary
from stages.report.streaming import explained
from stages.tensorize import TensorizeConfig, build
from stages.tensorize.arena_size import arena_bytes
from stages.tensorize.pass_context import PassContext
from stages.tensorize.select import offers_of
from tests.support.convolutions import QUANT, convolutions
from tests.support.emitted import target_named
from tests.support.stages_run import run_stages

ROOT = Path(__file__).parents[3]


# Two convolutions with a large image in between, then a fully connected layer.
LAYERS = ("wide", (16, 3, 3, 2)), ("narrow", (2, 3, 3, 16))
NETWORK = convolutions((1, 16, 16, 2), *LAYERS, strides=(1, 2), classes=3)
DIGITS = (ROOT / "recipes/digits/digits_int8.tflite").read_bytes()


def run(network: bytes, folder: Path, emit: dict[str, Any] | None = None, **tensorize: Any) -> dict[str, Path]:
    """Artifacts by stage, for the host."""
    configs = {"tensorize": {"count": False, **tensorize}, "emit": emit or {}}
    return run_stages(network, "host", folder / "run", configs=configs, without=("count", "ptq"))


def report_of(folder: Path, network: bytes = NETWORK, **options: Any) -> dict[str, Any]:
    return build_report(run(network, folder, **options), "host", target_named("host").model_dump(mode="json"))


@pytest.mark.parametrize(("size", "groups"), [(16, 0), (48, 1)])
def test_a_group_must_save_a_sixteenth_of_the_arena_or_1024_bytes(tmp_path: Path, size: int, groups: int) -> None:
    network = convolutions((1, size, size, 8), ("wide", (9, 1, 1, 8)), ("narrow", (8, 1, 1, 9)))
    streaming = report_of(tmp_path, network, streaming="auto")["streaming"]
    assert len(streaming["groups"]) == groups
    assert streaming["bytes"] - streaming["whole_bytes"] == -groups * size * (size - 9)
    assert (streaming["reason"] == "no group of layers saves enough memory within 2 % more instructions") != groups


def test_the_report_shows_groups_rolling_buffers_and_what_they_save(tmp_path: Path) -> None:
    report = report_of(tmp_path, streaming="auto")
    (group,) = report["streaming"]["groups"]
    assert (group["first"], group["last"]) == (0, 1)
    assert group["ends"].startswith("layer 2: ")
    assert report["streaming"]["whole_bytes"] == 16 * 16 * (2 + 16)
    assert report["streaming"]["bytes"] == group["bytes"] < group["whole_bytes"]
    assert [layer["rows"] and layer["rows"]["image"] for layer in report["layers"]] == [16, 8, None]
    assert [row[columns(report).index("rows")] for row in layer_rows(report)][1:] == [
        f"{report['layers'][1]['rows']['call']} of 8",
        "",
    ]
    (rolling,) = (buffer for buffer in report["arena"] if "rows" in (buffer["holds"] or [{}])[0])
    (held,) = rolling["holds"]
    assert (rolling["first"], rolling["last"], held["first"], held["height"]) == (0, 1, 0, 16)
    assert rolling["bytes"] == held["bytes"] == held["rows"] * 16 * 16
    label = f"wide ({held['rows']} of 16 rows)"
    assert any(block.title.startswith(f"{label}: ") for picture in arenas(report) for block in picture.blocks)
    line = dict(summary(report))["streaming"]
    assert line.startswith(f"layers 0 to 1 by rows: tensors {group['bytes']:,} B instead of 4,608 (-")
    assert explained(report["streaming"])[1].endswith(f"ends because: {group['ends']}")
    assert f"| {held['rows']} of 16 rows |" in markdown(report) and group["ends"] in markdown(report)
    assert "Layers by rows" in page(report, Extras())


@pytest.mark.parametrize("name", ["rv64-rvp", "cortex-m4", "cortex-m55"])
def test_the_scratch_that_kernels_declare_is_what_lowering_finds_or_a_few_bytes_more(tmp_path: Path, name: str) -> None:
    target = target_named(name)
    graph = Graph.load(run_stages(DIGITS, target, tmp_path, until="quantize")["quantize"])
    context = PassContext.of(target, TensorizeConfig(), kernels_of(target).values())
    found = []
    for view in map(graph.view, graph.layers):
        able = [k for k in context.kernels_for(view.layer) if k.lowers and not k.why_not(view, target)]
        for offer in offers_of(view, target, able, context.costs):
            lowered = context.lowerings.of_kernel(view, offer.kernel, offer.params)
            (scratch,) = context.lowerings.scratch([lowered])
            declared = context.lowerings.declared_scratch(view, offer.kernel, offer.params)
            assert all(0 <= declared[name] - size < 16 for name, size in scratch.items()), (offer.variant, scratch)
            assert sum(declared.values()) - sum(scratch.values()) < 32, (offer.variant, scratch)
            found += declared.values()
    assert max(found) > 1000


def test_the_arena_of_a_choice_is_the_one_that_emit_plans(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each scratch buffer of a layer is aligned on its own, so their sum is not enough."""
    builder, sizes = ModelBuilder(), list[int]()
    x = builder.input("x", (1, 5, 5, 19), "int8", 0.05, 3)
    weights = np.random.default_rng(0).integers(-127, 128, (2, 1, 1, 19)).astype(np.int8)
    builder.output(builder.conv2d(x, weights, weight_scale=0.01, out=(0.1, 3)))

    def noted(*choice: Any) -> int:
        sizes.append(arena_bytes(*choice))
        return sizes[-1]

    monkeypatch.setattr(build, "arena_bytes", noted)
    configs = {stage: {"arena_limit": 1 << 20} for stage in ("tensorize", "emit")}
    made = run_stages(builder.build(), "rv32-rvp", tmp_path, configs=configs, without=("count",))
    assert json.loads((made["emit"] / "model.json").read_text())["arena_bytes"] == sizes[-1]


def test_a_plan_with_less_scratch_must_be_worth_its_code(tmp_path: Path) -> None:
    """Kernels for layers 0 and 1 by rows would save 272 bytes of arena and take 7 KB of code."""
    configs = {"tensorize": {"count": False, "streaming": "auto"}}
    made = run_stages(DIGITS, "rv32-rvp", tmp_path, configs=configs, without=("count",), until="tensorize")
    plan = json.loads((made["tensorize"] / "plan.json").read_text())
    assert [(group["first"], group["end"]) for group in plan["groups"]] == [(2, 4)]


@pytest.mark.parametrize(("streaming", "images"), [(None, 1), (False, 2)])
def test_layers_work_in_place_where_the_arena_is_largest(tmp_path: Path, streaming: bool | None, images: int) -> None:
    """On two images no layer runs by rows. A copy of few pixels in scratch replaces a copy of all."""
    layers = [(name, (128, 1, 1, channels)) for name, channels in (("wide", 8), ("first", 128), ("second", 128))]
    network, configs = convolutions((2, 6, 6, 8), *layers), {"tensorize": {"count": False, "streaming": streaming}}
    emitted = run_stages(network, "cortex-m55", tmp_path / "run", configs=configs, without=("count",))["emit"]
    arena = json.loads((emitted / "model.json").read_text())["arena_bytes"]
    assert arena // (2 * 6 * 6 * 128) == images


@pytest.mark.parametrize(
    ("options", "reason"), [({"narrow_weights": True}, "weights are packed in ROM (optimize_for: rom, narrow_weights)")]
)
def test_why_no_layer_runs_by_rows_is_reported(tmp_path: Path, options: dict[str, Any], reason: str) -> None:
    report = report_of(tmp_path, streaming="auto", **options)
    assert report["streaming"]["reason"] == reason
    assert dict(summary(report))["streaming"] == f"no layer runs by rows: {reason}"
    assert "rows" not in columns(report)


def test_a_limit_that_rows_cannot_meet_names_the_layer_and_what_may_help(tmp_path: Path) -> None:
    with pytest.raises(StageError) as error:
        run(NETWORK, tmp_path, {"arena_limit": 900}, arena_limit=900)
    first, second = error.value.message.splitlines()
    assert first == "the arena needs 2,048 bytes, the recipe's arena_limit is 900. No smaller arena was found"
    assert "(conv2d narrow), with layers 0 to 1 by rows: wide 768, x 576, scratch:1:patch 576" in second
    assert "emit: {input: rows}" in error.value.hint


@pytest.mark.parametrize(("limit", "exceeds"), [(900, True), (2048, False), (None, False)])
def test_kernels_are_not_counted_if_the_arena_exceeds_its_limit(
    limit: int | None, exceeds: bool, tmp_path: Path
) -> None:
    graph = Graph.load(run_stages(NETWORK, "host", tmp_path, until="quantize")["quantize"])
    target, config = target_named("host"), TensorizeConfig(arena_limit=limit)
    assert exceeds_limit(graph, PassContext.of(target, config, kernels_of(target).values())) == exceeds


def pushed(folder: Path, shape: tuple[int, ...], weights: tuple[int, ...]) -> dict[str, Any]:
    """The report of a network of one layer whose input comes row by row."""
    b, zeros = ModelBuilder(), np.zeros(weights[0], np.int32)
    x = b.input("x", shape, "int8", *QUANT)
    layer = b.conv2d if len(weights) == 4 else b.fully_connected
    b.output(layer(x, np.ones(weights, np.int8), zeros, weight_scale=0.01, out=QUANT, name="only"))
    return report_of(folder, b.build(), emit={"input": "rows"}, input_rows=True)


def test_a_group_of_one_layer_has_one_number(tmp_path: Path) -> None:
    report = pushed(tmp_path, (1, 16, 16, 2), (2, 3, 3, 2))
    line, group = explained(report["streaming"])
    assert "layer 0 by rows: tensors" in line
    assert group.startswith("  layer 0: ")
    assert "\n| 0 | " in markdown(report).split("## Layers by rows")[1]


@pytest.mark.parametrize(
    ("shape", "weights", "reason"),
    [
        ((1, 8), (3, 8), r"layer 0 \(fully_connected only\): fully_connected needs whole tensors"),
        ((2, 8, 8, 2), (2, 3, 3, 2), r"layer 0 \(conv2d only\): x has the shape 2x8x8x2, which is not one image"),
    ],
)
def test_a_first_layer_without_rows_is_refused(
    tmp_path: Path, shape: tuple[int, ...], weights: tuple[int, ...], reason: str
) -> None:
    with pytest.raises(StageError, match=reason):
        pushed(tmp_path, shape, weights)


@pytest.mark.parametrize(
    ("options", "reason"),
    [({"streaming": False}, "memory.streaming is false"), ({"input_rows": True}, "the arena holds no whole input")],
)
def test_overwrite_input_needs_layers_by_rows_and_an_input_in_memory(
    tmp_path: Path, options: dict[str, Any], reason: str
) -> None:
    b = ModelBuilder()
    b.output(b.relu(b.input("x", (1, 8, 8, 2), "int8", *QUANT)))
    with pytest.raises(StageError, match=reason):
        run(b.build(), tmp_path, overwrite_input=True, **options)


def _classes(b: ModelBuilder, x: Tensor) -> None:
    b.output(b.fully_connected(x, np.ones((3, 128), np.int8), weight_scale=0.01, out=QUANT, name="classes"))


def _mean(b: ModelBuilder, x: Tensor) -> None:
    b.output(b.mean(x, (1, 2), keep_dims=True, name="mean"))


def _reshaped(b: ModelBuilder, x: Tensor) -> None:
    b.output(b.reshape(x, (1, 128), name="flat"))


def _two(b: ModelBuilder, x: Tensor) -> None:
    b.output(b.relu(x, name="one"), b.relu6(x, name="other"))


def _inner(b: ModelBuilder, x: Tensor) -> None:
    y = b.relu(x, name="one")
    b.output(b.add(y, b.transpose(y, (0, 2, 1, 3), name="turn"), out=QUANT, name="sum"))


@pytest.mark.parametrize(
    ("end", "options", "reason"),
    [
        (_classes, {}, r"layer \d \(fully_connected classes\): fully_connected needs whole tensors"),
        (_mean, {}, r"layer 1 \(mean mean\): mean adds up all rows"),
        (_reshaped, {}, r"layer 1 \(reshape flat\): "),
        (_two, {}, "the network has 2 outputs"),
        (_inner, {}, r"layer \d \(transpose turn\): "),
        (_classes, {"streaming": False}, r"`emit: {output: rows}` needs layers by rows, but memory.streaming is false"),
        (_classes, {"narrow_weights": True}, r"weights are packed in ROM"),
    ],
)
def test_an_output_without_rows_is_refused(
    tmp_path: Path, end: Callable[[ModelBuilder, Tensor], None], options: dict[str, Any], reason: str
) -> None:
    b = ModelBuilder()
    x = b.input("x", (1, 8, 8, 2), "int8", *QUANT)
    end(b, b.conv2d(x, np.ones((2, 3, 3, 2), np.int8), weight_scale=0.01, out=QUANT, name="first"))
    with pytest.raises(StageError, match=reason) as error:
        run(b.build(), tmp_path, {"output": "rows"}, output_rows=True, **options)
    assert error.value.at == ("stages", "emit", "output") and "\n" not in error.value.message


def test_what_the_output_by_rows_saves_is_reported(tmp_path: Path) -> None:
    network = convolutions((1, 16, 16, 2), ("only", (4, 3, 3, 2)))
    report = report_of(tmp_path, network, emit={"output": "rows"}, output_rows=True)
    (group,) = report["streaming"]["groups"]
    rows = group["rows"]["0"]
    assert group["ends"].endswith(f"receives its rows: {(16 - rows) * 64:,} B less for the output")
    assert f"only ({rows} of 16 rows)" in str([block.title for picture in arenas(report) for block in picture.blocks])
