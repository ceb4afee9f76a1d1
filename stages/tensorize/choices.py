"""The pass that gives each layer its kernel."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from stages.graph import Graph
from stages.offload.plan import Offload
from stages.tensorize.explained import explained
from stages.tensorize.less_code import with_less_code
from stages.tensorize.select import Choice, unused_rules
from stages.tensorize.sharing import renames_only
from stages.tensorize.slow_layers import slow_layers

if TYPE_CHECKING:
    from stages.tensorize.rom import Rom
    from stages.tensorize.setting import Setting


@dataclass(frozen=True)
class Chosen:
    """A graph whose layers have kernels.

    choices       by layer index; float layers have none, nor have those whose inputs and outputs share memory
    unused_rules  numbers, from 1, of the recipe's rules that decided for no layer
    warnings      sentences about rules, the arena's limit, outdated costs and slow layers
    offload       programs of the layers that the target's accelerator computes, once they are planned
    rom           what bytes were worth, where the recipe wants few
    """

    graph: Graph
    choices: Mapping[int, Choice]
    unused_rules: tuple[int, ...] = ()
    warnings: tuple[str, ...] = ()
    offload: Offload = field(default_factory=Offload)
    rom: Rom | None = None


def choose_kernels(graph: Graph, setting: Setting) -> Chosen:
    """The kernel of each layer. Raises StageError for a layer that nothing can compute."""
    bound = setting.bound(graph)
    choices: dict[int, Choice] = {}
    for layer in graph.layers:
        if layer.op.op == "float" or renames_only(graph, layer):
            continue
        view = graph.view(layer)
        choices[layer.index] = choice = explained(setting.choose(view, bound), view, setting)
        if bound is not None:
            bound.taken(view, choice.kernel, choice.instead)
    if setting.less_code and bound is None and setting.rom is None:
        choices = with_less_code(graph, choices, setting)
    floats = [graph.view(layer) for layer in graph.layers if layer.op.op == "float"]
    ruled = [graph.view(graph.layers[index]) for index in choices]
    unused, about_rules = unused_rules(setting.config.rules, ruled, floats)
    limited = () if bound is None or setting.least_arena else bound.warnings()
    return Chosen(
        graph,
        choices,
        unused,
        (
            *about_rules,
            *limited,
            *_outdated(choices, setting),
            *_untuned(choices, setting),
            *slow_layers(graph, choices, setting),
        ),
        rom=setting.rom,
    )


def _outdated(choices: Mapping[int, Choice], setting: Setting) -> tuple[str, ...]:
    """Sentences when layers had a choice of kernels and the measurements of one are of another version of it."""
    compared: set[str] = set()
    for choice in choices.values():
        others = {other.kernel for other in choice.alternatives if not other.reason}
        compared |= {choice.kernel.name, *others} if others else set()
    kernels, costs = setting.kernels, setting.costs
    told = []
    names = sorted(kernel.name for kernel in kernels if kernel.name in compared and costs.outdated(kernel))
    if names:
        command = f"doit calibrate target={setting.target.core}"
        told.append(f"{_changed(names)} since measured, so costs are estimated: {command}")
    cycles = costs.cycles
    names = sorted(one.name for one in kernels if cycles and one.name in compared and cycles.outdated(one))
    if names:
        command = f"doit calibrate target={setting.target.name} --cycles"
        told.append(f"{_changed(names)} since cycles were measured, so those of all kernels count: {command}")
    return tuple(told)


def _changed(names: Sequence[str]) -> str:
    return f"{', '.join(names)} {'has' if len(names) == 1 else 'have'} changed"


def _untuned(choices: Mapping[int, Choice], setting: Setting) -> tuple[str, ...]:
    """A sentence when the recipe's tuning has measurements of a kernel that was in question, of another version."""
    tuned = setting.costs.tuned
    if tuned is None:
        return ()
    compared = {choice.kernel.name for choice in choices.values()}
    compared |= {one.kernel for choice in choices.values() for one in choice.alternatives if not one.reason}
    names = sorted(one.name for one in setting.kernels if one.name in compared and tuned.outdated(one))
    if not names:
        return ()
    return (f"{_changed(names)} since the recipe was tuned: doit tune measures it again",)
