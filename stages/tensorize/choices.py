"""The pass that chooses a kernel for each layer."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from stages.ir.graph import Graph, LayerView
from stages.ir.operators.floats import Float
from stages.lower.offload.plan import Offload
from stages.lower.streaming.plan import StreamedGroup, Streaming
from stages.tensorize.engine_alternatives import with_engine_alternatives
from stages.tensorize.memory import ArenaBound
from stages.tensorize.plan import Alternative
from stages.tensorize.rom_tradeoff import with_rom_tradeoff
from stages.tensorize.select import Choice, ExceedsLimit, unused_rules
from stages.tensorize.sharing import renames_only
from stages.tensorize.slow_layers import slow_layers

if TYPE_CHECKING:
    from stages.tensorize.pass_context import PassContext
    from stages.tensorize.rom import Rom


@dataclass(frozen=True)
class Band:
    """A call of a streamed layer: the layer on few rows, its estimated cost and its kernel.

    The kernel is None for float layers.
    """

    view: LayerView
    cost: float
    choice: Choice | None = None


@dataclass(frozen=True)
class StreamedLayer:
    """The calls of a layer by rows: most, and the first or last ones with fewer rows."""

    band: Band
    rest: Band | None
    calls: int
    rests: int

    @property
    def bands(self) -> list[Band]:
        """The different calls."""
        return [self.band] if self.rest is None else [self.band, self.rest]


@dataclass(frozen=True)
class Chosen:
    """A graph with a kernel for each layer.

    choices       by layer index; none for float layers and for layers whose inputs and outputs share memory
    unused_rules  numbers, from 1, of the recipe's rules that decided for no layer
    warnings      sentences about rules, the arena's limit and slow layers
    offload       programs of the accelerator's layers, once they are planned
    rom           the price of ROM bytes, if the objective has one
    groups        groups of layers that run by rows, and `streamed`, their calls by layer index
    streaming     bytes saved and instructions added by rows; None without groups, unless the recipe asks for rows
    """

    graph: Graph
    choices: Mapping[int, Choice]
    unused_rules: tuple[int, ...] = ()
    warnings: tuple[str, ...] = ()
    offload: Offload = field(default_factory=Offload)
    rom: Rom | None = None
    groups: tuple[StreamedGroup, ...] = ()
    streamed: Mapping[int, StreamedLayer] = field(default_factory=dict)
    streaming: Streaming | None = None


def choose_kernels(graph: Graph, context: PassContext) -> Chosen:
    """Choose a kernel for each layer. Raises StageError for a layer that no kernel can compute."""
    bound = context.bound(graph)
    choices: dict[int, Choice] = {}
    for layer in graph.layers:
        if isinstance(layer.op, Float) or renames_only(graph, layer):
            continue
        view = graph.view(layer)
        choices[layer.index] = choice = with_engine_alternatives(_choose(view, bound, context), view, context)
        if bound is not None:
            bound.assign(view, choice.kernel, choice.instead)
    if context.weigh_rom:
        choices = with_rom_tradeoff(graph, choices, context)
    floats = [graph.view(layer) for layer in graph.layers if isinstance(layer.op, Float)]
    ruled = [graph.view(graph.layers[index]) for index in choices]
    unused, about_rules = unused_rules(context.config.rules, ruled, floats)
    limited = () if bound is None or context.least_arena else bound.warnings()
    return Chosen(
        graph, choices, unused, (*about_rules, *limited, *slow_layers(graph, choices, context)), rom=context.rom
    )


def _choose(view: LayerView, bound: ArenaBound | None, context: PassContext) -> Choice:
    """Return the layer's kernel.

    If none keeps to the arena's limit, the limit grows, and emit reports the whole arena.
    """
    try:
        return context.choose(view, bound)
    except ExceedsLimit as error:
        assert bound is not None
        bound.limit = error.least
        return context.choose(view, bound)


def with_estimates(chosen: Chosen, context: PassContext) -> Chosen:
    """Return the choices with the kernels' estimates in place of lower bounds, for the plan."""
    kernels = {kernel.name: kernel for kernel in context.kernels}

    def shown(alternative: Alternative) -> Alternative:
        kernel = kernels.get(alternative.kernel)
        cost = (
            alternative.cost
            if kernel is None
            else context.costs.estimate(kernel, alternative.cost, alternative.cost_source)
        )
        return alternative.model_copy(update={"cost": cost})

    choices = {
        index: replace(choice, alternatives=tuple(map(shown, choice.alternatives)))
        for index, choice in chosen.choices.items()
    }
    return replace(chosen, choices=choices)
