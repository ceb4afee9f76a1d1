"""`doit bench suite=layers`: single layers, real or sampled, many in one firmware.

Layers of networks are compared with docs/layers.json. All layers must meet `no_slower` of the suite.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, Any

from pipeline.commands.bench.baseline import Baseline, parse_baseline
from pipeline.commands.bench.check import Verdict
from pipeline.commands.bench.files import write_named_file
from pipeline.commands.bench.layer_figures import (
    Figure,
    LayerRow,
    compare_layers,
    merged,
    read_rows,
    slower,
    write_rows,
)
from pipeline.commands.bench.layer_page import baseline_tables, class_table, layer_table, section, update_page
from pipeline.commands.bench.suite import Layers
from pipeline.commands.counting import counter_of, tools_of
from pipeline.commands.executor import current_executor
from pipeline.commands.exit_codes import PENDING
from pipeline.errors import PipelineError, list_known
from pipeline.keys.package_groups import install_group
from pipeline.plugins.registry import registry_of
from pipeline.project import Project
from pipeline.recipes.loader import load_recipes
from pipeline.recipes.targets import load_targets, unknown_target_error
from pipeline.runs.workspace import Workspace
from pipeline.terminal.progress import ProgressDisplay
from stages.backends.targets.spec import Target
from stages.base import StageError
from stages.ir.models.spec import OpModel
from stages.support.messages import escape
from stages.support.system.atomic_write import check_writable

if TYPE_CHECKING:
    from pipeline.commands.sampling import Sampling
    from stages.delivery.bench.choice_quality import ChoiceQuality
    from stages.delivery.bench.networks import Network
    from stages.layout.rules import LayoutConfig
    from stages.tensorize.config import TensorizeConfig

_DRAWN = "drawn/"
_NETWORKS_ONLY = ("models", "recipe", "times")


@dataclass(frozen=True)
class Member:
    """A layer on one target, from the suite (`CLASS/NAME`) or sampled with default options."""

    name: str
    target: Target
    model: OpModel
    layout: LayoutConfig
    tensorize: TensorizeConfig


def bench_layers(
    options: Mapping[str, Any],
    layers: Layers,
    project: Project,
    display: ProgressDisplay,
    sample: Sampling | None = None,
) -> int:
    """Measure the selected layers; print, store or check the figures. Returns the exit code.

    `sample` selects random layers instead of the suite's. Raises PipelineError, also for a layer that differs from the
    reference.
    """
    refuse(options)
    if sample is not None and options["update"]:
        raise PipelineError("drawn= cannot be combined with --update: docs/layers.json has no sampled layers")
    target_names = _targets(options["targets"], layers, project)
    members = {target: list(_members(layers, target, project, sample)) for target in target_names}
    names = list(dict.fromkeys(member.name for of_target in members.values() for member in of_target))
    selected = _selected(names, options["only"])
    _check_places(options, project)
    rows: dict[str, LayerRow] = {}
    choices: dict[str, Sequence[ChoiceQuality]] = {}
    baseline = parse_baseline(options["peer"])
    if baseline is not None and not any(
        load_targets(project)[name].family in baseline.families for name in target_names
    ):
        supported = [name for name in layers.targets if load_targets(project)[name].family in baseline.families]
        raise PipelineError(
            f"peer={baseline.name}: no functions for {', '.join(target_names)}", hint=f"target={','.join(supported)}"
        )
    for target, of_target in members.items():
        for row in _counted(
            target,
            [member for member in of_target if member.name in selected],
            project,
            display,
            baseline,
            choices if sample else None,
        ):
            before = rows.get(row.name)
            rows[row.name] = (
                row if before is None else LayerRow(row.name, row.macs, row.elements, {**before.figures, **row.figures})
            )
    baseline_title = "" if baseline is None else baseline.title
    code = _finish(
        options, layers, project, rows, names, display, stored=sample is None, measured_baseline=baseline_title
    )
    if sample is None:
        return code
    print(f"layers of {sample}")
    behind = print_kernel_choices(choices)
    return code or (PENDING if behind else 0)


def _check_places(options: Mapping[str, Any], project: Project) -> None:
    """Check that the result files can be written. Raises PipelineError."""
    for name in ("json", "markdown"):
        if options[name]:
            write_named_file(options[name], check_writable)
    if options["update"]:
        for name in ("layers.json", "reference/layers.md"):
            write_named_file(str(project.root / "docs" / name), check_writable)


def refuse(options: Mapping[str, Any]) -> None:
    """Raise PipelineError for options that apply to whole networks."""
    for name in _NETWORKS_ONLY:
        if options[name]:
            raise PipelineError(f"--{name} cannot be combined with suite=layers")
    if options["jobs"] not in (None, 1):
        raise PipelineError("-n cannot be combined with suite=layers, which measures many layers in one firmware")
    if options["check"] and options["update"]:
        raise PipelineError("--check and --update cannot be combined")


def _targets(text: str, layers: Layers, project: Project) -> list[str]:
    known = load_targets(project)
    target_names = [name.strip() for name in text.split(",") if name.strip()] or [*layers.targets]
    for name in target_names:
        if name not in known:
            raise unknown_target_error(name, known)
        if known[name].counter == "none" or known[name].accelerator is not None:
            why = "does not count instructions" if known[name].counter == "none" else "has an accelerator"
            raise PipelineError(f"suite=layers measures kernels of cores; target {name} {why}")
    return list(dict.fromkeys(target_names))


def _members(layers: Layers, target: str, project: Project, sample: Sampling | None) -> Iterator[Member]:
    from stages.ir.models.spec import OpModel
    from stages.layout.rules import LayoutConfig
    from stages.tensorize.config import TensorizeConfig

    if sample is not None:
        from stages.delivery.bench.sampled import described, sampled_layers

        for spec in sampled_layers(sample.seed, sample.count):
            name = f"{_DRAWN}{described(spec)}"
            yield Member(name, load_targets(project)[target], spec, LayoutConfig(), TensorizeConfig())
        return
    for recipe in layers.recipes:
        variants = load_recipes(recipe, root=project, registry=registry_of(project), variables={"target": target})
        for loaded in variants:
            name, stages = f"{recipe.rpartition('/')[2]}/{loaded.labels['model']}", loaded.recipe.stages
            layout, tensorize = stages.get("layout", LayoutConfig()), stages.get("tensorize", TensorizeConfig())
            model = loaded.recipe.model
            assert isinstance(model, OpModel) and isinstance(layout, LayoutConfig)
            assert isinstance(tensorize, TensorizeConfig)
            yield Member(name, loaded.target, model, layout, tensorize)


def _selected(names: Sequence[str], only: str) -> set[str]:
    globs = [part.strip() for part in only.split(",") if part.strip()]
    matches = {name for name in names if not globs or any(fnmatchcase(name, glob) for glob in globs)}
    if not matches:
        families = dict.fromkeys(f"{name.partition('/')[0]}/*" for name in names)
        raise PipelineError(f"only={escape.name(only)}: no layer matches", hint=list_known("layers", families))
    return matches


def _counted(
    name: str,
    members: Sequence[Member],
    project: Project,
    display: ProgressDisplay,
    baseline: Baseline | None,
    choices: dict[str, Sequence[ChoiceQuality]] | None,
) -> Iterator[LayerRow]:
    """Yield a row per layer, with a baseline's figures if it supports the target.

    Layers that do not fit the target's memory are reported and skipped. `choices` collects the results of judging the
    kernel choices.
    """
    if not members:
        return
    from stages.delivery.bench.choice_quality import rate_choices
    from stages.delivery.bench.networks import count, setting_of

    def progress(message: str, fraction: float | None = None) -> None:
        display.progress("", name, message, fraction)

    target = members[0].target
    try:
        networks = list(_networks(members))
        begin = current_executor().remote_calls(tools_of(target))
        with Workspace(root=project, install=install_group) as workspace:
            counter = counter_of(target, workspace, progress)
            counted = list(count(networks, target, counter, progress=progress, begin=begin))
            if choices is not None:
                settings = [(layer.name, layer.graph, setting_of(target, layer.tensorize)) for layer in networks]
                choices[name] = rate_choices(settings, counter)
        measured = {layer.network.name for layer in counted}
        baseline_counts: dict[str, int] = {}
        if baseline is not None and target.family in baseline.families:
            baseline_counts = baseline.figures([layer.network for layer in counted], target, progress, display.line)
        for layer in counted:
            network = layer.network
            of_baseline = (
                {baseline.title: baseline_counts[network.name]}
                if baseline is not None and network.name in baseline_counts
                else {}
            )
            figures = {name: Figure(layer.instructions, layer.kernels, of_baseline)}
            yield LayerRow(network.name, network.macs, network.elements, figures)
    except StageError as error:
        raise PipelineError(f"suite=layers on {name}: {error.message}", hint=error.hint) from error
    finally:
        display.end("", name)
    for network in networks:
        if network.name not in measured:
            display.line(f"  {escape.name(network.name)} on {name}: skipped, it does not fit the target's memory")


def _networks(members: Iterable[Member]) -> Iterator[Network]:
    """Yield a one-layer network per member; skip sampled layers with impossible options."""
    from stages.delivery.bench.networks import Network

    for member in members:
        try:
            yield Network.of(member.name, member.model, member.layout, member.tensorize)
        except StageError:
            if not member.name.startswith(_DRAWN):
                raise


def _finish(
    options: Mapping[str, Any],
    layers: Layers,
    project: Project,
    rows: Mapping[str, LayerRow],
    names: Iterable[str],
    display: ProgressDisplay,
    *,
    stored: bool,
    measured_baseline: str,
) -> int:
    """Print, store and check the figures. Returns the exit code."""
    ordered = [rows[name] for name in names if name in rows]
    tables = [("instructions per multiply-accumulate or element", layer_table(ordered))]
    tables += [("the same by class: median (least to most)", class_table(ordered)), *baseline_tables(ordered)]
    for title, table in tables:
        display.show_table(table, title)
    if options["json"]:
        write_named_file(options["json"], lambda path: write_rows(path, ordered))
    if options["markdown"]:
        write_named_file(options["markdown"], lambda path: path.write_text(section(ordered), encoding="utf-8"))
    place = project.root / "docs" / "layers.json"
    if options["update"]:
        kept = merged(read_rows(place), rows, names, measured_baseline)
        write_rows(place, kept.values())
        changed = update_page(place.parent / "reference" / "layers.md", [*kept.values()])
        print(f"docs/layers.json: {len(kept)} layers; docs/reference/layers.md {'updated' if changed else 'unchanged'}")
    if not options["check"]:
        return 0
    verdict = compare_layers(rows, read_rows(place)) if stored else Verdict()
    verdict.worse += slower(rows, layers.no_slower)
    verdict.print("doit bench suite=layers --update")
    compared = sum(len(row.figures) for row in rows.values())
    counts = f"{len(verdict.worse)} worse, {len(verdict.better)} better, {len(verdict.stale)} stale"
    print(f"{counts}; {compared} figures of {len(rows)} layers")
    return verdict.exit_code


def print_kernel_choices(results: Mapping[str, Sequence[ChoiceQuality]]) -> int:
    """Print the layers with a slow choice, by target. Returns their number."""
    from stages.delivery.bench.choice_quality import TOLERANCE

    total = 0
    for target, layers in results.items():
        slow = [layer for layer in layers if layer.behind > TOLERANCE]
        for layer in slow:
            chosen, best = (escape.line(", ".join(calls)) for calls in (layer.calls, layer.best_calls))
            print(f"{100 * layer.behind:6.1f} % slower than the best kernel on {target}: {escape.line(layer.name)}")
            print(f"          {layer.chosen:,} instructions with {chosen}; {layer.best:,} with {best}")
        kernels = sum(layer.counted for layer in layers)
        limit = f"{100 * TOLERANCE:.0f} %"
        behind = f"{len(slow)} of {len(layers)} layers over {limit} slower than the best"
        print(f"{target}: {behind}, {kernels} kernels counted")
        total += len(slow)
    return total
