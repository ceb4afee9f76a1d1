"""The project's cost tables: there for each target with a choice of kernels, current, right about what is cheap."""

import json
import re
from collections.abc import Iterable, Iterator
from functools import cache
from statistics import mean
from typing import Any

import pytest

from pipeline.commands.measurable import versions
from pipeline.errors import ToolError
from pipeline.recipes.targets import load_targets
from stages.calibrate.cases import cases
from stages.calibrate.close import graphs_of
from stages.calibrate.grid import awkward
from stages.calibrate.measure import measure
from stages.calibrate.table import Table
from stages.graph import Graph
from stages.kernels import registry
from stages.kernels.digest import kernel_digest
from stages.kernels.kernel import Kernel
from stages.models.operators import build
from stages.models.spec import OpModel
from stages.targets.spec import Target
from stages.tensorize import cost_table
from stages.tensorize.costs import QUANTITIES, CostTable, kind_of, of_kind, quantities, signature, variant
from stages.tensorize.forms import with_other_forms
from stages.tensorize.nearby import Nearby
from stages.tensorize.select import choose
from tests.support.emitted import ROOT
from tests.support.integer import integer_graph

# Cores with kernels of their own instruction set beside the generic ones; boards have the table of their core.
CORES = [target for target in load_targets(ROOT).values() if target.name == target.core]
TARGETS = [target for target in CORES if target.counter != "none" and len(target.kernels) > 1]
WITH_TABLES = [target for target in CORES if cost_table(target.name, ROOT).is_file()]
every_target = pytest.mark.parametrize("target", TARGETS, ids=lambda target: target.name)
every_table = pytest.mark.parametrize("target", WITH_TABLES, ids=lambda target: target.name)

# Layers of stages/calibrate/grid.py.
SMALL: tuple[dict[str, Any], ...] = (
    {"op": "conv2d", "shape": (8, 8, 16), "out_channels": 16},
    {"op": "depthwise_conv2d", "shape": (8, 8, 8), "kernel": (3, 3)},
    {"op": "fully_connected", "shape": (64,), "out_channels": 12},
    {"op": "add", "shape": (8, 8, 16)},
    {"op": "max_pool2d", "shape": (8, 8, 16), "kernel": (2, 2), "stride": (2, 2)},
)


def content(target: Target) -> dict[str, Any]:
    path = cost_table(target.name, ROOT)
    assert path.is_file(), f"{target.name} has no cost table: {command(target)}"
    return json.loads(path.read_text())  # type: ignore[no-any-return]


def command(target: Target) -> str:
    return f"doit calibrate target={target.name}"


def rivals(target: Target) -> set[str]:
    """Kernels that are not the only one of the target for all of their operators, roundings, halves and bits."""
    kernels = registry.kernels(target.kernels).values()
    return {
        k.name
        for k in kernels
        if any(
            k.ops & other.ops and k.roundings & other.roundings and (k.bits, _halves(k)) == (other.bits, _halves(other))
            for other in kernels
            if other is not k
        )
    }


def _halves(kernel: Kernel) -> str:
    """Which way a kernel that quantizes rounds halves: no layer has a choice of these."""
    return getattr(kernel, "halves", "")


@every_table
def test_every_kernel_that_has_a_rival_is_measured_as_it_is(target: Target) -> None:
    measured = content(target)["kernels"]
    kernels = registry.kernels(target.kernels)
    other = {name for name in rivals(target) | measured.keys() if name not in kernels}
    other |= {name for name in rivals(target) if measured.get(name) != kernel_digest(kernels[name])}
    assert not other, f"not measured, or changed since: {sorted(other)}; {command(target)}"


def test_every_table_is_of_a_core() -> None:
    there = {path.stem for path in cost_table("any", ROOT).parent.glob("*.json")}
    assert there == {target.name for target in WITH_TABLES}


@every_table
def test_no_kernel_of_a_table_has_changed_since(target: Target) -> None:
    """Nor one without a rival: forms, layouts and bits are weighed by its figures too."""
    kernels = registry.kernels_of(target)
    measured = content(target)["kernels"].items()
    other = sorted(name for name, of in measured if name not in kernels or of != kernel_digest(kernels[name]))
    assert not other, f"changed since measured: {other}; {command(target)}"


@every_table
def test_a_table_is_small_and_as_it_would_be_written(target: Target) -> None:
    """But for the last digits of the fits, which another machine's BLAS may have otherwise."""
    path, there = cost_table(target.name, ROOT), content(target)
    assert path.stat().st_size < 400_000
    table = Table.read(path, target)
    if not table.stale:  # else it is about to be written anew
        written = json.loads(table.text(target))
        ours, theirs = written.pop("fits"), there.pop("fits")
        assert written == there, command(target)
        assert ours.keys() == theirs.keys(), command(target)
        for name, fit in ours.items():
            assert fit["layers"] == theirs[name]["layers"], command(target)
            assert fit["factors"] == pytest.approx(theirs[name]["factors"], rel=1e-4), f"{name}: {command(target)}"


def has_compiler_of_table(target: Target) -> bool:
    """Whether counts are those of the table to a few instructions. Skips the test where the target cannot be run."""
    try:
        return bool(versions(target, ROOT)["compiler"] == content(target)["tools"]["compiler"])
    except ToolError as error:
        pytest.skip(str(error).splitlines()[0])


@every_target
def test_layers_get_the_kernel_that_takes_fewest_instructions_on_the_simulator(target: Target) -> None:
    """Counted anew, so that what the table says of these layers is held too."""
    graphs = [integer_graph(build(OpModel.model_validate(options))) for options in SMALL]
    counted: dict[str, dict[str, int]] = {}
    same = has_compiler_of_table(target)
    for case, instructions in measure(cases(graphs, target), target):
        counted.setdefault(case.signature, {})[case.variant] = instructions
    costs, kernels = CostTable.read(cost_table(target.name, ROOT)), registry.kernels(target.kernels).values()
    for graph in graphs:
        view = graph.view(graph.layers[0])
        here = counted[signature(view)]
        choice = choose(view, target, kernels, [], costs)
        assert choice.cost_source == "measured", command(target)
        assert choice.cost is not None
        taken = variant(choice.kernel, choice.params)
        # An address takes one instruction to load, or two, by what else is in the firmware; kernels that are called for
        # each pixel load some each time. Another compiler makes other code of the C around kernels.
        near = max(8, quantities(view, None)["rows"]) if same else max(8, here[taken] / 5)
        assert choice.cost == pytest.approx(here[taken], abs=near), f"{taken}: {command(target)}"
        assert here[taken] <= min(here.values()) + near, signature(view)


@every_target
def test_choosing_by_the_fitted_models_is_nearly_as_good_as_by_measurements(target: Target) -> None:
    """As it is for layers that nobody measured, but such as were measured for being unlike all others.

    How far choices are off for drawn layers `doit calibrate target=NAME drawn=200` measures.
    """
    lost = list(_ratios(content(target), CostTable.read(cost_table(target.name, ROOT))))
    assert len(lost) > 90
    assert mean(lost) < 1.01
    assert sum(ratio > 1.1 for ratio in lost) <= max(1, len(lost) / 100)


def _ratios(table: dict[str, Any], costs: CostTable) -> Iterator[float]:
    """For each layer with a choice: instructions of the kernel chosen by the models, by those of the best.

    The models are corrected by all other layers, whatever they are read in, as they are for a layer of nobody.
    """
    assert costs.nearby is not None
    kinds: dict[str, dict[str, Any]] = {}
    for name, row in costs.nearby.layers.items():
        kinds.setdefault(name.partition(" ")[0], {})[name] = row
    odd = {_rows(name) for name in _odd_ones(table)}
    for name, row in table["layers"].items():
        counts = {key: entry[0] for key, entry in row.items() if key != "work"}
        if len(counts) < 2 or _rows(name) in odd:
            continue
        predicted = {}
        alike = kinds[name.partition(" ")[0]].items()
        others = Nearby({other: entry for other, entry in alike if _rows(other) != _rows(name)})
        for key in counts:
            fit = table["fits"].get(of_kind(key, kind_of(name)), table["fits"][key])
            known = {**dict(zip(QUANTITIES, row["work"], strict=False)), "call": 1, "estimate": row[key][1]}
            modelled = sum(factor * known[quantity] for quantity, factor in fit["factors"].items())
            predicted[key] = others.instructions(key, name, modelled, row[key][1])
        yield counts[min(predicted, key=predicted.__getitem__)] / min(counts.values())


def _odd_ones(table: dict[str, Any]) -> Iterator[str]:
    """Signatures of the awkward and the close layers, and of transforms of their images."""
    yield from _awkward_ones()
    yield from _signatures(graphs_of(table.get("close", ())))


@cache
def _awkward_ones() -> frozenset[str]:
    return frozenset(_signatures(awkward()))


def _signatures(given: Iterable[Graph]) -> Iterator[str]:
    for graph in (form for one in given for form in (one, with_other_forms(one))):
        for view in map(graph.view, graph.layers):
            yield signature(view)
            yield from (f"layout {text} -> {text}" for text in re.findall(r"\w+\[[0-9x]+\]", signature(view)))


def _rows(signature_: str) -> str:
    """A signature without the layouts."""
    return signature_.replace("]NCHW", "]")
