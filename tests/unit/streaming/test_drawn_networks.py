"""Random networks that run by rows, on the host built with sanitizers: each tensor has LiteRT's bytes.

The groups and the rows per call are random too, since every valid plan must be exact. STREAMING_NETWORKS=N in the
environment runs N networks of each dtype.
"""

import json
import os
import random
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from stages.base import StageError
from stages.ir.models.builder import ModelBuilder, Tensor
from stages.ir.reference import Reference
from stages.ir.reference.interpreter import random_inputs
from stages.lower.streaming.groups import Group, Grouping, GroupSearch
from tests.support.emitted import run_emitted, target_named
from tests.support.row_networks import network
from tests.support.stages_run import run_stages

COUNT = int(os.environ.get("STREAMING_NETWORKS", "2"))


def random_groups(search: GroupSearch, rng: random.Random) -> Grouping:
    """Return groups between random cuts, with random rows per call, of which the ports by rows have one."""
    network = search.network
    for _ in range(20):
        groups = _random_groups(search, rng)
        ends = {group.first for group in groups[:1]} | {group.end for group in groups[-1:]}
        if (not network.pushed or 0 in ends) and (not network.emitted or list(network.cuts)[-1] in ends):
            return Grouping(tuple(groups), 0, 0.0)
    return Grouping((), 0, 0.0)


def _random_groups(search: GroupSearch, rng: random.Random) -> list[Group]:
    cuts_at = search.network.cuts
    cuts, groups, place = list(cuts_at), [], 0
    while place < cuts[-1]:
        ends = [cut for cut in cuts if cut > place]
        inner = [end for end in ends if end > place + 1 or search.network.may_overlap(cuts_at[place], end)]
        inner += [end for end in ends[:1] if end not in inner and search.network.is_emitted(end)]
        candidates = {end: found for end in inner if (found := simulated(search, place, end, rng))}
        place = rng.choice(sorted(candidates)[-3:]) if candidates and rng.random() < 0.9 else ends[0]
        groups += candidates.get(place, [])[:1]
    return groups


def longest_groups(search: GroupSearch, share: float, limit: int | None = None) -> Grouping:
    """Return the longest groups from the beginning on, with one or two rows per call."""
    rng, groups, place = random.Random(0), [], 0
    while place < len(search.live):
        ends = [cut for cut in search.network.cuts if cut > place]
        found = next(
            (group for end in ends[::-1] if end > place + 1 for group in simulated(search, place, end, rng)), None
        )
        groups += [found] if found else []
        place = found.end if found else ends[0]
    return Grouping(tuple(groups), 0, 0.0)


def single_layers(search: GroupSearch, share: float, limit: int | None = None) -> Grouping:
    """Return a group for each layer."""
    rng, end = random.Random(1), len(search.live)
    return Grouping(tuple(simulated(search, i, i + 1, rng)[0] for i in range(end)), 0, 0.0)


def simulated(search: GroupSearch, first: int, end: int, rng: random.Random) -> list[Group]:
    equal, described = rng.choice([0, 0, 1, 2]), search.network.described(first, end)
    if described is None:
        return []
    rows = tuple(min(equal or rng.choice([1, 1, 1, 2, 3, 5]), layer.height) for layer in described.layers)
    group = search._group(first, end, rows)
    return [] if group is None else [group]


def streamed_layers(
    tflite: bytes,
    folder: Path,
    layout: str = "NHWC",
    target: str = "host",
    streaming: str | bool | None = "auto",
    arena_limit: int | None = None,
    ports: Sequence[str] = (),
    overwrite: bool = False,
) -> int:
    """Build and run a model; all tensors must be LiteRT's. Return how many layers ran by rows.

    ports      `input` or `output`, which the application passes or receives by rows
    overwrite  groups may overwrite the network's input
    """
    chosen, reference = target_named(target), Reference(tflite)
    inferences = [random_inputs(reference.info, seed) for seed in (1, 2)]
    options = {"streaming": streaming, "arena_limit": arena_limit}
    configs: dict[str, dict[str, Any]] = {"tensorize": options, "emit": options, "layout": {"default": layout}}
    configs["tensorize"] = {**options, **({"overwrite_input": True} if overwrite else {})}
    configs["tensorize"] |= {f"{port}_rows": True for port in ports}
    configs["emit"] = {**options, **dict.fromkeys(ports, "rows")}
    artifacts = run_stages(tflite, chosen, folder, configs=configs)
    model = json.loads((artifacts["emit"] / "model.json").read_text())
    plan = json.loads((artifacts["tensorize"] / "plan.json").read_text())
    for inputs, inference in zip(inferences, run_emitted(artifacts["emit"], chosen, inferences), strict=True):
        for number, (expected, output) in enumerate(zip(reference.run(inputs), inference.outputs, strict=True)):
            np.testing.assert_array_equal(output, expected, f"output {number}")
        for trace in model["traces"]:
            expected = reference.tensor(trace["tflite_index"])[..., trace["channels"] or slice(None)]
            np.testing.assert_array_equal(inference.traces[trace["tensor"]], expected, str(trace))
    return sum(len(group["layers"]) for group in plan.get("groups", ()))


@pytest.mark.parametrize("dtype", ["int8", "uint8", "int16"])
@pytest.mark.parametrize("number", range(COUNT))
def test_random_groups(dtype: str, number: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    rng = random.Random(number)
    monkeypatch.setattr(GroupSearch, "best", lambda search, share, limit=None: random_groups(search, rng))
    layout = "NCHW" if number % 3 == 2 and dtype != "int16" else "NHWC"
    streamed_layers(network(number, dtype), tmp_path, layout, overwrite=number % 2 == 1)


@pytest.mark.parametrize("dtype", ["int8", "uint8", "int16"])
@pytest.mark.parametrize("number", range(2, COUNT + 2))
def test_random_groups_of_images_by_rows(
    dtype: str, number: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rng = random.Random(number)
    monkeypatch.setattr(GroupSearch, "best", lambda search, share, limit=None: random_groups(search, rng))
    ports = ["output"] if number % 2 else ["input", "output"]
    try:
        assert streamed_layers(network(number, dtype, image=True), tmp_path, ports=ports)
    except StageError as error:
        pytest.skip(error.message)


def _convolution(b: ModelBuilder, x: Tensor, name: str) -> Tensor:
    weights = np.random.default_rng(len(name)).integers(-127, 128, (16, 3, 3, x.shape[3])).astype(np.int8)
    return b.conv2d(x, weights, weight_scale=0.004, out=(0.05, 3), name=name)


def special_networks() -> dict[str, bytes]:
    """Return networks in which rows, or what must not become rows, are easily confused."""
    networks, quant = {}, (0.05, 3)

    def images(*names: str) -> tuple[ModelBuilder, list[Tensor]]:
        b = ModelBuilder()
        return b, [b.input(name, (1, 8, 4, 16), "int8", *quant) for name in names]

    b, (x, y) = images("x", "y")
    b.output(_convolution(b, _convolution(b, b.add(x, y, out=quant), "first"), "second"))
    networks["two inputs"] = b.build()
    b, (x,) = images("x")
    rows = b.constant("rows", np.arange(-64, 64, 16, dtype=np.int8).reshape(8, 1, 1), *quant)
    b.output(_convolution(b, b.add(_convolution(b, x, "first"), rows, out=quant), "second"))
    networks["a value per row"] = b.build()
    b, (x,) = images("x")
    joined = b.concatenation([first := _convolution(b, x, "first"), x], 1)
    b.output(first, b.add(joined, b.relu(joined), out=quant))
    networks["a part is an output"] = b.build()
    b, (x,) = images("x")
    y = b.avg_pool2d(_convolution(b, x, "first"), (1, 1), (5, 1), name="pool")
    b.output(_convolution(b, y, "second"))
    networks["rows that nothing reads"] = b.build()
    b = ModelBuilder()
    x = b.input("x", (1, 1, 4, 16), "int8", *quant)
    b.output(_convolution(b, _convolution(b, x, "first"), "second"))
    networks["one row"] = b.build()
    return networks


CASES = ["two inputs", "a value per row", "a part is an output", "rows that nothing reads", "one row"]


@pytest.mark.parametrize("name", CASES)
def test_special_networks(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(GroupSearch, "best", longest_groups)
    streamed_layers(special_networks()[name], tmp_path)


def test_a_kernel_for_eighths_runs_no_resize_of_which_only_the_first_row_has_eighths(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def of_single_rows(search: GroupSearch, share: float, limit: int | None = None) -> Grouping:
        group = search._group(0, 2, (1, 1))
        assert group is not None
        return Grouping((group,), 0, 0.0)

    monkeypatch.setattr(GroupSearch, "best", of_single_rows)
    b = ModelBuilder()
    x, size = b.input("x", (1, 6, 4, 16), "int8", 0.05, 3), b.constant("size", np.array([12, 4], np.int32))
    resized = b.emit("RESIZE_BILINEAR", [x, size], None, None, "up", "ResizeBilinearOptions", {"alignCorners": True})
    b.output(_convolution(b, resized, "conv"))
    config = {"tensorize": {"streaming": "auto"}, "emit": {"streaming": "auto"}}
    artifacts = run_stages(b.build(), target_named("cortex-m4"), tmp_path, configs=config)
    plan = json.loads((artifacts["tensorize"] / "plan.json").read_text())
    assert [layer["kernel"] for layer in plan["layers"] if layer["rows"]][:1] == ["generic.resize_bilinear"]


@pytest.mark.parametrize("ports", [[], ["input"]])
def test_a_network_that_only_adds_up_rows(ports: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(GroupSearch, "best", single_layers)
    b = ModelBuilder()
    b.output(b.mean(b.input("x", (1, 8, 4, 3), "int8", 0.05, 3), (1, 2), out=(0.05, 3)))
    assert streamed_layers(b.build(), tmp_path, ports=ports) == 1


@pytest.mark.parametrize("dtype", ["int8", "int16"])
def test_softmax_over_channels_goes_to_the_application_by_rows(dtype: str, tmp_path: Path) -> None:
    b = ModelBuilder()
    x = b.input("x", (1, 9, 5, 4), dtype, 0.0002 if dtype == "int16" else 0.05, 0)
    b.output(b.softmax(b.relu(x), name="classes"))
    assert streamed_layers(b.build(), tmp_path, ports=["output"]) >= 1


def test_layers_run_by_rows_unless_the_recipe_forbids_it(tmp_path: Path) -> None:
    """Without a limit they cost at most 2 % more, which a small image does not allow."""
    builder, rng = ModelBuilder(), np.random.default_rng(0)
    x = builder.input("x", (1, 16, 8, 8), "int8", 0.05, 3)
    for number, units in enumerate((32, 32, 8)):
        weights = rng.integers(-99, 99, (units, 3, 3, x.shape[3])).astype(np.int8)
        x = builder.conv2d(x, weights, weight_scale=0.01, out=(0.3, -7), name=f"conv{number}")
    builder.output(x)
    tflite = builder.build()
    assert streamed_layers(tflite, tmp_path / "whole", streaming=False) == 0
    assert streamed_layers(tflite, tmp_path / "limited", streaming=None, arena_limit=5000) == 3
    with pytest.raises(StageError, match="arena_limit"):
        streamed_layers(tflite, tmp_path / "refused", streaming=False, arena_limit=5000)


@pytest.mark.parametrize("number", [500, 505, 508])
def test_an_input_that_the_caller_passes_by_rows(number: int, tmp_path: Path) -> None:
    assert streamed_layers(network(number), tmp_path, ports=["input"])


def test_groups_overwrite_their_inputs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each layer is a group whose output lies over its input, so that the arena is little more than one image."""
    monkeypatch.setattr(GroupSearch, "best", single_layers)
    b = ModelBuilder()
    x = b.input("x", (1, 16, 8, 16), "int8", 0.05, 3)
    for name in ("first", "second", "third", "fourth"):
        x = _convolution(b, x, name)
    b.output(x)
    assert streamed_layers(b.build(), tmp_path, overwrite=True) == 4
    emitted = json.loads((tmp_path / "emit" / "model.json").read_text())
    assert emitted["arena_bytes"] < 1.9 * 16 * 8 * 16
