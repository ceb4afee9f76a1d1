"""Lists what networks and layers lose without each kernel, and which kernels do not pay.

    python -m tests.removable_kernels --targets rv64-rvp,rv32-rvp

Networks are those of `doit bench` and the shared models; layers are those of `doit bench suite=layers`, the shared
models of one operator, and drawn ones. Each is decided with and without a kernel as a recipe decides it, and what is
chosen is counted on the simulator (counts are kept in the store).

Kernels are taken away one after another, always the one whose absence costs least. Losses are against all kernels, so
small ones add up, and kernels that stand in for each other do not both go. A kernel stays if without it, on any of the
targets,

    a network loses 1 % of its instructions,
    a suite layer loses 15 %, or a drawn layer of an operator and type that no network and no suite layer has,
    a network's arena grows, or
    something cannot be computed any more.

Kernels of operators that nothing at hand has are not judged. Name all targets that share a kernel folder in one
command: a kernel goes only if it pays on none of them.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from fnmatch import fnmatchcase
from functools import cached_property
from math import fsum, inf
from typing import TYPE_CHECKING, Any

from pipeline.api import run_recipe
from pipeline.commands.bench.cases import models_folder, suite_cases
from pipeline.commands.bench.layers import _members, _networks
from pipeline.commands.bench.suite import load_suite
from pipeline.commands.counting import counter_of
from pipeline.commands.sampling import Sampling
from pipeline.errors import PipelineError
from pipeline.project import current_project
from pipeline.recipes.targets import load_targets
from pipeline.runs.workspace import Workspace
from stages.base import StageError
from stages.count.call import chosen_calls
from stages.count.search import _missing
from stages.delivery.bench.networks import setting_of
from stages.ir.graph import Graph
from stages.tensorize import TensorizeConfig
from stages.tensorize.build import decide
from stages.tensorize.costs import Costs, KernelCall
from stages.tensorize.memory import ArenaBound

if TYPE_CHECKING:
    from pipeline.project import Project
    from stages.backends.targets.spec import Target
    from stages.count.call import KernelCall
    from stages.count.counter import Counter
    from stages.tensorize.choices import Chosen
    from stages.tensorize.costs import Call

NETWORK, LAYER, DRAWN = "network", "layer", "drawn"
MAY_LOSE = {NETWORK: 0.01, LAYER: 0.15, DRAWN: 0.15}
_SHARED = ("mlperf_tiny", "hosted", "small", "streaming", "ops")
_LARGE = "inception*"
_RECIPES = {"cortex_m": "cortex_m_base", "riscv": "rvp_base"}


@dataclass
class Result:
    """How something is computed with a set of kernels: which of them, its instructions and the chosen graph."""

    used: frozenset[str]
    instructions: float
    chosen: Chosen | None
    arena: int | None = None


@dataclass
class Item:
    """A network or a layer, with its results by the kernels taken away."""

    name: str
    role: str
    graph: Graph
    results: dict[frozenset[str], Result] = field(default_factory=dict)

    @cached_property
    def kinds(self) -> frozenset[tuple[str, str]]:
        """Operator and input type of its layers."""
        views = (self.graph.view(layer) for layer in self.graph.layers)
        return frozenset((view.op.op, view.inputs[0].dtype) for view in views if view.inputs)


class Core:
    """A target with everything that is computed on it, and the counts so far."""

    def __init__(self, target: Target, counter: Counter, items: Sequence[Item]) -> None:
        self.counter = counter
        self.items = items
        self.setting = replace(setting_of(target, TensorizeConfig()), weigh_rom=False)
        self.costs = Costs({}, lower_bounds=True)

    def count_for(self, wanted: Iterable[tuple[Item, frozenset[str]]]) -> None:
        """Decide items without kernels, and count until all calls that are chosen are counted (stages.count.search).

        Raises StageError for a kernel that is not exact.
        """
        waiting = [(item, gone) for item, gone in wanted if self.known(item, gone) is None]
        while waiting:
            missing: dict[Call, KernelCall] = {}
            undecided = []
            for item, gone in waiting:
                left = tuple(kernel for kernel in self.setting.kernels if kernel.name not in gone)
                setting = replace(self.setting, kernels=left, costs=self.costs)
                try:
                    chosen = decide(item.graph, setting)[0]
                except StageError:
                    item.results[gone] = Result(frozenset(), inf, None)
                    continue
                if more := _missing(chosen, setting, self.costs):
                    missing |= more
                    undecided.append((item, gone))
                    continue
                calls = [call for _, call in chosen_calls(chosen, setting.target)]
                used = frozenset(choice.kernel.name for choice in chosen.choices.values())
                item.results[gone] = Result(used, fsum(map(self._instructions, calls)), chosen)
            if missing:
                print(f"# {self.setting.target.name}: counting {len(missing)} calls", flush=True)
                self._count(missing)
            waiting = undecided

    def _count(self, calls: dict[Call, KernelCall]) -> None:
        counts = {layer: dict(row) for layer, row in self.costs.counts.items()}
        found = self.counter([calls[key] for key in sorted(calls)])
        for (layer, variant), instructions in found.items():
            counts.setdefault(layer, {})[variant] = instructions
        uncounted = self.costs.uncounted | (calls.keys() - found.keys())
        self.costs = replace(self.costs, counts=counts, uncounted=uncounted)

    def known(self, item: Item, gone: frozenset[str]) -> Result | None:
        """How an item is computed without kernels: what was best with more of them, if none of its are gone."""
        fitting = (one for before, one in item.results.items() if before <= gone and not one.used & gone)
        return next(fitting, None)

    def result(self, item: Item, gone: frozenset[str]) -> Result:
        """As `known`, decided and counted where it is not."""
        self.count_for([(item, gone)])
        result = self.known(item, gone)
        assert result is not None
        return result

    def _instructions(self, call: KernelCall) -> float:
        return self.costs.counts.get(call.signature, {}).get(call.variant, call.estimate or 0.0)

    def arena(self, result: Result) -> int:
        """Bytes that the layer needs that needs most: its scratch, and the tensors alive beside it."""
        if result.arena is None:
            assert result.chosen is not None
            graph = result.chosen.graph
            bound = ArenaBound(graph, 0, self.setting.lowerings)
            views = [(graph.view(graph.layers[index]), one) for index, one in result.chosen.choices.items()]
            for view, one in views:
                bound.assign(view, one.kernel)
            result.arena = max((sum(bound.needed(view, one.kernel, one.params)) for view, one in views), default=0)
        return result.arena


@dataclass(frozen=True)
class Loss:
    """What an item loses without kernels. `part` is 1.0 for as much as it may lose."""

    target: str
    item: Item
    lost: float
    arena: int = 0

    @property
    def part(self) -> float:
        return inf if self.arena > 0 else self.lost / MAY_LOSE[self.item.role]

    def __str__(self) -> str:
        if self.lost == inf:
            return f"{self.item.name} on {self.target} cannot be computed"
        ram = f", {self.arena} bytes of RAM" if self.arena > 0 else ""
        return f"{100 * self.lost:.2f} % of {self.item.name} on {self.target}{ram}"


def losses(cores: Iterable[Core], gone: frozenset[str], name: str) -> Iterator[Loss]:
    """Those of everything that `name` computes while the kernels `gone` are away, against all kernels."""
    for core in cores:
        using = [item for item in core.items if name in core.result(item, gone).used]
        core.count_for((item, gone | {name}) for item in using)
        for item in using:
            full, now = core.result(item, frozenset()), core.result(item, gone | {name})
            lost = inf if now.chosen is None else now.instructions / full.instructions - 1 if full.instructions else 0.0
            loss = Loss(core.setting.target.name, item, lost)
            if item.role == NETWORK and loss.part < 1:  # lowering takes long: only where nothing else holds the kernel
                loss = replace(loss, arena=core.arena(now) - core.arena(full))
            yield loss


def removable(cores: Sequence[Core], names: Sequence[str]) -> tuple[list[tuple[str, Loss | None]], dict[str, Loss]]:
    """Kernels that go, in order, with their largest loss; and those that stay, with what they are needed for."""
    gone: frozenset[str] = frozenset()
    removed: list[tuple[str, Loss | None]] = []
    while True:
        worst: dict[str, Loss | None] = {}
        for name in names:
            if name not in gone:
                worst[name] = max(losses(cores, gone, name), key=lambda one: one.part, default=None)
        parts = {name: 0.0 if loss is None else loss.part for name, loss in worst.items()}
        least = min(parts, key=lambda name: (parts[name], name), default=None)
        if least is None or parts[least] >= 1:
            return removed, {name: loss for name, loss in worst.items() if loss is not None}
        gone |= {least}
        removed.append((least, worst[least]))
        print(f"goes: {least}: {worst[least] or 'computes nothing'}", flush=True)


def items_of(target: str, project: Project, draw: Sampling | None, skip: Sequence[str]) -> Iterator[Item]:
    """The networks and layers of a target, without float networks and what is not at hand."""
    suite = load_suite()
    recipes: dict[str, Any] = {}
    models = models_folder(project.root)
    for case in suite_cases(suite.rows, project.root, models):
        accelerated = load_targets(project)[case.target].accelerator is not None
        is_layer = case.base.startswith("layers/")
        if case.recipe is None or accelerated or "fp32" in case.row or (is_layer and case.target != target):
            continue
        key = json.dumps(case.recipe.get("model", case.base), sort_keys=True)
        if case.target == target or key not in recipes:
            recipes[key] = {**case.recipe, "target": target, "name": case.row}
    for folder in _SHARED:
        for path in sorted((models / folder).rglob("*.tflite")):
            model = {"file": os.path.relpath(path, project.root)}
            name = "_".join((*path.parent.parts[-2:], path.stem)) if folder == "ops" else path.stem
            base = _RECIPES.get(load_targets(project)[target].family, "mobilenet_aarch64")
            recipe = {"schema": 1, "name": name.replace(" ", "_"), "extends": base, "target": target, "model": model}
            recipes.setdefault(json.dumps(model, sort_keys=True), recipe)
    for recipe in recipes.values():
        if any(fnmatchcase(recipe["name"], glob) for glob in skip):
            print(f"# {recipe['name']} on {target}: skipped", flush=True)
            continue
        try:
            folder = run_recipe(recipe, until="quantize", root=project).artifacts["quantize"]
        except (PipelineError, StageError) as error:
            print(f"# {recipe['name']} on {target}: {str(error).splitlines()[0]}", flush=True)
            continue
        is_row = "layers/" in recipe["extends"]
        graph = Graph.load(folder)
        yield Item(recipe["name"], NETWORK if is_row or len(graph.layers) > 2 else LAYER, graph)
    for drawing in (None, draw) if draw is not None else (None,):
        for one in _networks(_members(suite.layers, target, project, drawing)):
            yield Item(one.name, LAYER if drawing is None else DRAWN, one.graph)


def needed_drawn(items: Sequence[Item]) -> list[Item]:
    """The items, without drawn layers of kinds that networks or suite layers have."""
    known = frozenset(kind for item in items if item.role != DRAWN for kind in item.kinds)
    return [item for item in items if item.role != DRAWN or item.kinds - known]


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.removable_kernels", description=__doc__.splitlines()[0])
    parser.add_argument("--targets", required=True, help="split_names by commas; all that share a kernel folder")
    parser.add_argument("--folders", default="", help="kernel folders, split_names by commas; all but generic")
    parser.add_argument("--skip", default=_LARGE, help=f"networks to leave out, globs split_names by commas ({_LARGE})")
    parser.add_argument("--drawn", type=int, default=200, help="how many layers to draw (200)")
    parser.add_argument("--seed", type=int, default=1, help="of the drawn layers")
    given = parser.parse_args()
    project, cores = current_project(), []
    draw = Sampling("drawn", given.drawn, given.seed) if given.drawn else None
    with Workspace(root=project) as workspace:
        for name in given.targets.split(","):
            target = load_targets(project)[name]
            items = needed_drawn(list(items_of(name, project, draw, given.skip.split(","))))
            cores.append(Core(target, counter_of(target, workspace, lambda *_: None), items))
            cores[-1].count_for((item, frozenset()) for item in items)
        kernels = {kernel.name: kernel for core in cores for kernel in core.setting.kernels if kernel.lowers}
        folders = (
            given.folders.split(",") if given.folders else {one.folder.name for one in kernels.values()} - {"generic"}
        )
        at_hand = {operator for core in cores for item in core.items for operator, _ in item.kinds}
        names = [name for name, one in kernels.items() if one.folder.name in folders and one.ops & at_hand]
        unjudged = [name for name, one in kernels.items() if one.folder.name in folders and not one.ops & at_hand]
        for core in cores:
            used = ((item, core.result(item, frozenset()).used) for item in core.items)
            core.count_for((item, frozenset({name})) for item, own in used for name in own if name in names)
        print("without each kernel alone:")
        for name in names:
            found = sorted(losses(cores, frozenset(), name), key=lambda one: (-one.part, -one.lost))
            print(f"  {name}: {'; '.join(map(str, found[:4])) or 'nothing is lost'}", flush=True)
        removed, stay = removable(cores, names)
        print("stay:")
        for name, loss in stay.items():
            print(f"  {name}: {loss}")
        print(f"{len(removed)} of {len(names)} kernels go; not judged: {', '.join(unjudged) or 'none'}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
