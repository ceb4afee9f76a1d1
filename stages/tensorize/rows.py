"""The pass that lets layers run by rows (stages.lower.streaming)."""

from __future__ import annotations

from dataclasses import replace
from math import inf
from typing import TYPE_CHECKING

from stages.backends.kernels.registry import row_sum_kernels
from stages.base import StageError
from stages.lower.arena import liveness
from stages.lower.streaming.bands import ROWS_OF_PLANES, band_view
from stages.lower.streaming.groups import GroupSearch
from stages.lower.streaming.network import RowNetwork
from stages.lower.streaming.plan import StreamedGroup
from stages.tensorize.choices import Band, StreamedLayer
from stages.tensorize.select import Choice

if TYPE_CHECKING:
    from stages.ir.graph import Graph, LayerView
    from stages.ir.tensor_layout import Layout
    from stages.tensorize.choices import Chosen
    from stages.tensorize.pass_context import PassContext

SHARE = 0.02
"""Largest share of additional instructions, unless the arena's limit asks for more rows."""


def with_rows(chosen: Chosen, context: PassContext) -> Chosen:
    """Return the choices with streamed groups, if they save memory within the recipe's limits."""
    if not context.config.streaming or context.offload is not None or chosen.rom is not None:
        return chosen
    if context.config.narrow_weights:
        return chosen
    bands = _Bands(chosen, context)
    grouping = bands.search().best(SHARE, context.config.arena_limit)
    groups, layers = [], {}
    for group in grouping.groups:
        groups.append(
            StreamedGroup(
                first=group.first,
                end=group.end,
                layers=group.described.layers,
                tensors=dict(group.described.tensors),
                capacity=group.schedule.capacity,
                layouts={name: bands.layouts[name] for name in group.described.tensors if name in bands.layouts},
                pushed=group.pushed,
            )
        )
        for layer in group.described.layers:
            calls, rest = divmod(layer.height, layer.rows)
            band = bands.band(layer.index, layer.rows)
            assert band is not None
            layers[layer.index] = StreamedLayer(band, bands.band(layer.index, rest) if rest else None, calls)
    return replace(chosen, groups=tuple(groups), streamed=layers)


class _Bands:
    """The bands of a network's layers, with their kernels."""

    def __init__(self, chosen: Chosen, context: PassContext) -> None:
        self.chosen = chosen
        self.context = context
        self.graph: Graph = chosen.graph
        # Planes become rows of planes; their producers make one row at a time, which is the same as planes of one row.
        self.layouts: dict[str, Layout] = {
            name: ROWS_OF_PLANES for name, tensor in self.graph.tensors.items() if tensor.layout == "NCHW"
        }
        self._cache: dict[tuple[int, int], Band | None] = {}
        self._network: RowNetwork | None = None

    def search(self) -> GroupSearch:
        """Return the search, with the costs of whole images."""
        graph, choices = self.graph, self.chosen.choices
        overlaid = frozenset(
            index for index, choice in choices.items() if choice.kernel.overlays(graph.view(graph.layers[index]))
        )
        buffers = liveness(graph, {}, overlaid).buffers
        live = [sum(b.bytes for b in buffers if b.first <= i <= b.last) for i in range(len(graph.layers))]
        whole = [(choices[layer.index].cost or 0.0) if layer.index in choices else 0.0 for layer in graph.layers]
        self._network = RowNetwork(graph, frozenset(self.layouts), overlaid)
        fixed = frozenset(layer.index for layer in graph.layers if layer.outputs[0] in self.layouts)
        return GroupSearch(self._network, live, whole, self.cost, fixed)

    def _summed(self, view: LayerView, rows: int) -> Band | None:
        target = self.context.target
        kernel = next(
            (k for k in row_sum_kernels(target) if k.is_for(view.op) and not k.why_not_rows(view, target)), None
        )
        if kernel is None:
            return None
        cost = kernel.cost_rows(view, rows, target)
        return Band(view, Choice(kernel, kernel.params(), "adds up the rows of a group", cost, "estimated", ()))

    def cost(self, index: int, rows: int) -> float:
        """Return the instructions of a call; infinity if no kernel can compute it."""
        band = self.band(index, rows)
        return inf if band is None else band.choice.cost or 0.0

    def band(self, index: int, rows: int) -> Band | None:
        """Return the call of a layer for `rows` rows; None if no kernel can compute it."""
        if (index, rows) not in self._cache:
            self._cache[index, rows] = self._chosen(index, rows)
        return self._cache[index, rows]

    def _chosen(self, index: int, rows: int) -> Band | None:
        assert self._network is not None
        window = self._network.windows[index]
        if window is None or index not in self.chosen.choices:
            return None
        whole = self.graph.view(self.graph.layers[index])
        if window.accumulates:
            return self._summed(whole, rows)
        view = band_view(whole, window, rows, self.layouts)
        try:
            return Band(view, self.context.choose_like(whole, view))
        except StageError:
            return None
