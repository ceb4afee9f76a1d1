"""`doit bench suite=layers`: single layers of real networks, or drawn ones, many in one firmware.

Those of networks are held to docs/layers.json, all of them to `no_slower` of the suite.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from functools import partial
from typing import TYPE_CHECKING, Any

from pipeline.commands.bench.check import Verdict
from pipeline.commands.bench.choices import report_choices
from pipeline.commands.bench.files import writing
from pipeline.commands.bench.layer_figures import (
    Figure,
    LayerRow,
    check_layers,
    merged,
    read_rows,
    slower,
    write_rows,
)
from pipeline.commands.bench.layer_page import family_table, layer_table, peer_tables, section, update_page
from pipeline.commands.bench.peer import AskedPeer, asked_peer
from pipeline.commands.bench.suite import Layers
from pipeline.commands.counting import counter_of, tools_of
from pipeline.commands.executing import chosen
from pipeline.commands.exit_codes import PENDING
from pipeline.errors import PipelineError, list_known
from pipeline.keys.package_groups import install_group
from pipeline.plugins.registry import registry_of
from pipeline.project import Project
from pipeline.recipes.loader import load_recipes
from pipeline.recipes.targets import load_targets, unknown_target_error
from pipeline.runs.workspace import Workspace
from pipeline.terminal.table import Table, render
from stages.base import StageError
from stages.messages import escape
from stages.system.asides import check_writable

if TYPE_CHECKING:
    from pipeline.commands.drawing import Draw
    from pipeline.terminal.progress import ProgressDisplay
    from stages.bench.judge import Judged
    from stages.bench.side_by_side import Network
    from stages.layout.rules import LayoutConfig
    from stages.models.spec import OpModel
    from stages.targets.spec import Target
    from stages.tensorize import TensorizeConfig

_DRAWN = "drawn/"
_NETWORKS_ONLY = ("models", "recipe", "times")


@dataclass(frozen=True)
class Member:
    """A layer on one target: of the suite, `CLASS/NAME`, with its recipe's options, or drawn, with the usual ones."""

    name: str
    target: Target
    model: OpModel
    layout: LayoutConfig
    tensorize: TensorizeConfig


def bench_layers(
    options: Mapping[str, Any], layers: Layers, project: Project, display: ProgressDisplay, draw: Draw | None = None
) -> int:
    """Measures what the options select, shows it, keeps it or holds it to what is stored. Returns the exit code.

    With `draw` it is layers drawn at random instead of those of the suite. Raises PipelineError, also for a layer whose
    firmware is not exact.
    """
    refuse(options)
    if draw is not None and options["update"]:
        raise PipelineError("drawn= measures layers that docs/layers.json does not keep; it does not go with --update")
    wanted = _targets(options["targets"], layers, project)
    members = {target: list(_members(layers, target, project, draw)) for target in wanted}
    names = list(dict.fromkeys(one.name for found in members.values() for one in found))
    chosen = _selected(names, options["only"])
    _check_places(options, project)
    rows: dict[str, LayerRow] = {}
    judged: dict[str, Sequence[Judged]] = {}
    peer = asked_peer(options["peer"])
    if peer is not None and not any(load_targets(project)[name].family in peer.families for name in wanted):
        fitting = [name for name in layers.targets if load_targets(project)[name].family in peer.families]
        raise PipelineError(
            f"--peer {peer.name}: it has no functions for {', '.join(wanted)}", hint=f"--targets {','.join(fitting)}"
        )
    for target, found in members.items():
        for row in _counted(
            target, [one for one in found if one.name in chosen], project, display, peer, judged if draw else None
        ):
            before = rows.get(row.name)
            rows[row.name] = (
                row if before is None else LayerRow(row.name, row.macs, row.elements, {**before.figures, **row.figures})
            )
    asked = "" if peer is None else peer.title
    code = _finish(options, layers, project, rows, names, display, stored=draw is None, asked=asked)
    if draw is None:
        return code
    print(f"layers of {draw}")
    behind = report_choices(judged)
    return code or (PENDING if behind else 0)


def _check_places(options: Mapping[str, Any], project: Project) -> None:
    """That what is measured can be kept. Raises PipelineError."""
    for name in ("json", "markdown"):
        if options[name]:
            writing(options[name], check_writable)
    if options["update"]:
        for name in ("layers.json", "reference/layers.md"):
            writing(str(project.root / "docs" / name), check_writable)


def refuse(options: Mapping[str, Any]) -> None:
    """Raises PipelineError for options that are about networks."""
    for name in _NETWORKS_ONLY:
        if options[name]:
            raise PipelineError(f"--{name} is about networks; it does not go with suite=layers")
    if options["jobs"] not in (None, 1):
        raise PipelineError("-n is about networks: suite=layers measures many layers in one firmware")
    if options["check"] and options["update"]:
        raise PipelineError("give one of --check and --update")


def _targets(given: str, layers: Layers, project: Project) -> list[str]:
    known = load_targets(project)
    wanted = [name.strip() for name in given.split(",") if name.strip()] or [*layers.targets]
    for name in wanted:
        if name not in known:
            raise unknown_target_error(name, known)
        if known[name].counter == "none" or known[name].accelerator is not None:
            why = "counts no instructions" if known[name].counter == "none" else "has an accelerator"
            raise PipelineError(f"suite=layers measures kernels of cores; target {name} {why}")
    return list(dict.fromkeys(wanted))


def _members(layers: Layers, target: str, project: Project, draw: Draw | None) -> Iterator[Member]:
    from stages.layout.rules import LayoutConfig
    from stages.models.spec import OpModel
    from stages.tensorize import TensorizeConfig

    if draw is not None:
        from stages.bench.drawn import described, drawn

        for spec in drawn(draw.seed, draw.count):
            name = f"{_DRAWN}{described(spec)}"
            yield Member(name, load_targets(project)[target], spec, LayoutConfig(), TensorizeConfig())
        return
    for recipe in layers.recipes:
        found = load_recipes(recipe, root=project, registry=registry_of(project), variables={"target": target})
        for loaded in found:
            name, stages = f"{recipe.rpartition('/')[2]}/{loaded.labels['model']}", loaded.recipe.stages
            layout, tensorize = stages.get("layout", LayoutConfig()), stages.get("tensorize", TensorizeConfig())
            model = loaded.recipe.model
            assert isinstance(model, OpModel) and isinstance(layout, LayoutConfig)
            assert isinstance(tensorize, TensorizeConfig)
            yield Member(name, loaded.target, model, layout, tensorize)


def _selected(names: Sequence[str], only: str) -> set[str]:
    globs = [part.strip() for part in only.split(",") if part.strip()]
    found = {name for name in names if not globs or any(fnmatchcase(name, glob) for glob in globs)}
    if not found:
        families = dict.fromkeys(f"{name.partition('/')[0]}/*" for name in names)
        raise PipelineError(f"--only {escape.name(only)}: no layer is called that", hint=list_known("layers", families))
    return found


def _counted(
    name: str,
    members: Sequence[Member],
    project: Project,
    display: ProgressDisplay,
    peer: AskedPeer | None,
    judged: dict[str, Sequence[Judged]] | None,
) -> Iterator[LayerRow]:
    """With the figures of a peer that is for the target. What its memory does not hold is reported, and left out.

    Choices of kernels are judged where `judged` is there, by the target's name.
    """
    if not members:
        return
    from stages.bench.judge import judge
    from stages.bench.side_by_side import count, setting_of

    def progress(message: str, fraction: float | None = None) -> None:
        display.progress("", name, message, fraction)

    target = members[0].target
    try:
        networks = list(_networks(members))
        begin = chosen().beginning(tools_of(target))
        with Workspace(root=project, install=install_group) as workspace:
            counter = counter_of(target, workspace, progress)
            counted = list(count(networks, target, counter, progress=progress, begin=begin))
            if judged is not None:
                settings = [(one.name, one.graph, setting_of(target, one.tensorize)) for one in networks]
                judged[name] = judge(settings, counter)
        measured = {one.network.name for one in counted}
        others: dict[str, int] = {}
        if peer is not None and target.family in peer.families:
            others = peer.figures([one.network for one in counted], target, progress, display.line)
        for one in counted:
            network = one.network
            theirs = {peer.title: others[network.name]} if peer is not None and network.name in others else {}
            figures = {name: Figure(one.instructions, one.kernels, theirs)}
            yield LayerRow(network.name, network.macs, network.elements, figures)
    except StageError as error:
        raise PipelineError(f"suite=layers on {name}: {error.message}", hint=error.hint) from error
    finally:
        display.end("", name)
    for network in networks:
        if network.name not in measured:
            display.line(f"  {escape.name(network.name)} on {name}: skipped, its memory does not hold it")


def _networks(members: Iterable[Member]) -> Iterator[Network]:
    """Of each member; of drawn ones those whose options go together: a window may not fit its image."""
    from stages.bench.side_by_side import Network

    for one in members:
        try:
            yield Network.of(one.name, one.model, one.layout, one.tensorize)
        except StageError:
            if not one.name.startswith(_DRAWN):
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
    asked: str,
) -> int:
    ordered = [rows[name] for name in names if name in rows]
    tables = [("instructions per multiply-accumulate or element", layer_table(ordered))]
    tables += [("the same by class: median, and from least to most", family_table(ordered)), *peer_tables(ordered)]
    for title, table in tables:
        display.show(partial(_drawn, table, title))
    if options["json"]:
        writing(options["json"], lambda path: write_rows(path, ordered))
    if options["markdown"]:
        writing(options["markdown"], lambda path: path.write_text(section(ordered), encoding="utf-8"))
    place = project.root / "docs" / "layers.json"
    if options["update"]:
        kept = merged(read_rows(place), rows, names, asked)
        write_rows(place, kept.values())
        changed = update_page(place.parent / "reference" / "layers.md", [*kept.values()])
        print(f"docs/layers.json: {len(kept)} layers; docs/reference/layers.md is {'new' if changed else 'as it was'}")
    if not options["check"]:
        return 0
    verdict = check_layers(rows, read_rows(place)) if stored else Verdict()
    verdict.worse += slower(rows, layers.no_slower)
    verdict.tell("doit bench suite=layers --update")
    compared = sum(len(row.figures) for row in rows.values())
    counts = f"{len(verdict.worse)} worse, {len(verdict.better)} better, {len(verdict.stale)} stale"
    print(f"{counts}; {compared} figures of {len(rows)} layers")
    return verdict.exit_code


def _drawn(table: Table, title: str, width: int) -> Any:
    return render(table, title)
