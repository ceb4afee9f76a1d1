"""The pass that lets layers run by rows (stages.lower.streaming)."""

from dataclasses import replace
from math import inf

from stages.backends.kernels.registry import row_sum_kernels
from stages.base import StageError
from stages.ir.graph import Graph, Layer, LayerView
from stages.ir.operators.floats import Float
from stages.ir.tensor_layout import Layout
from stages.lower.arena import liveness
from stages.lower.streaming.bands import ROWS_OF_PLANES, band_view
from stages.lower.streaming.ends import why_group_ends, why_no_group, why_port_is_whole
from stages.lower.streaming.groups import BandCost, Grouping, GroupSearch
from stages.lower.streaming.network import RowNetwork
from stages.lower.streaming.plan import StreamedGroup, Streaming
from stages.lower.streaming.row_places import source_rows
from stages.tensorize.arena_size import arena_bytes, scratch_bytes
from stages.tensorize.choices import Band, Chosen, StreamedLayer
from stages.tensorize.config import TensorizeConfig
from stages.tensorize.costs import KernelCall
from stages.tensorize.float_cost import float_cost
from stages.tensorize.in_place import overlaid, overlays_band
from stages.tensorize.pass_context import PassContext
from stages.tensorize.select import Choice

_FLOAT_BYTES = 4
_OVERWRITE = ("memory", "overwrite_input")


def with_rows(chosen: Chosen, context: PassContext) -> Chosen:
    """Return the choices with streamed groups, if they save memory within the recipe's limits."""
    config = context.config
    ports, limit, share = config.ports_by_rows, config.arena_limit, context.most_extra
    _check_overwrite(config)
    if not config.by_rows:
        return chosen
    if ports and config.streaming is False:
        raise _refused(ports[0], "needs layers by rows, but memory.streaming is false")
    if reason := _why_not(chosen, context):
        if ports:
            raise _refused(ports[0], f"is not possible: {reason}")
        return _whole(chosen, context, reason)
    bands = _Bands(chosen, context)
    # Overlaps need groups of single layers too, and so kernels for few rows: code. So they are used on request.
    search = bands.search(overlaps=bool(config.overwrite_input) or limit is not None)
    result = bands.streamed(search.best(share, limit))
    assert result.streaming is not None
    if result.groups or (ports and context.counting):  # while kernels are counted, layouts may change
        return result
    for port in ports:
        if reason := why_port_is_whole(search, port):
            raise _refused(port, f"is not possible: {reason}")
    if ports:
        raise _refused("output", "is not possible with `input: rows`: no layer between them has a whole input")
    return _whole(chosen, context, result.streaming.reason, result.streaming)


def _check_overwrite(config: TensorizeConfig) -> None:
    """Raise StageError if the recipe contradicts `overwrite_input`."""
    if not config.overwrite_input:
        return
    if config.input_rows:
        raise StageError(
            "memory.overwrite_input has no effect with `emit: {input: rows}`: the arena holds no whole input",
            hint="remove one of them",
            at=_OVERWRITE,
        )
    if config.streaming is False:
        raise StageError(
            "memory.overwrite_input needs layers by rows, but memory.streaming is false",
            hint="remove one of them",
            at=_OVERWRITE,
        )


def _refused(port: str, reason: str) -> StageError:
    """Return the error for an input or output that cannot be passed by rows."""
    return StageError(f"`emit: {{{port}: rows}}` {reason}", at=("stages", "emit", port))


def _whole(chosen: Chosen, context: PassContext, reason: str, effect: Streaming | None = None) -> Chosen:
    """Return the choices, with the reason why no layer runs by rows if rows are asked for."""
    if context.config.streaming is None and not context.config.ports_by_rows:
        return chosen
    return replace(chosen, streaming=effect or Streaming(reason=reason))


def cost(chosen: Chosen) -> float:
    """Return the estimated cost of all layers, with rows."""
    extra = chosen.streaming.extra if chosen.streaming is not None else 0.0
    return sum(choice.cost or 0.0 for choice in chosen.choices.values()) + extra


def _why_not(chosen: Chosen, context: PassContext) -> str:
    """Return why no layer of a network can run by rows with these options, '' if layers can."""
    if context.offload is not None:
        return f"target {context.target.name} has an accelerator"
    if chosen.rom is not None or context.config.narrow_weights:
        return "weights are packed in ROM (optimize_for: rom, narrow_weights)"
    return ""


class _Bands:
    """The bands of a network's layers, with their kernels."""

    def __init__(self, chosen: Chosen, context: PassContext) -> None:
        self.chosen = chosen
        self.context = context
        self.graph: Graph = chosen.graph
        # Planes become rows of planes.
        self.layouts: dict[str, Layout] = {
            name: ROWS_OF_PLANES for name, tensor in self.graph.tensors.items() if tensor.layout == "NCHW"
        }
        self._cache: dict[tuple[int, int, int], Band | None] = {}
        self._float_costs: dict[tuple[int, int], float] = {}  # by layer and rows, 0 for whole images
        self._network: RowNetwork | None = None
        self._search: GroupSearch | None = None
        self._live: list[int] = []  # bytes of the tensors in use at each layer, of whole images

    def streamed(self, grouping: Grouping) -> Chosen:
        """Return the choices with these groups, a result of the last search."""
        assert self._search is not None
        search, layers = self._search, {}
        groups = [
            planned.model_copy(update={"ends": why_group_ends(search, grouping, group)})
            for planned, group in zip(self._planned(grouping), grouping.groups, strict=True)
        ]
        for group in grouping.groups:
            for layer in group.described.layers:
                calls, band = layer.calls(), self.band(layer.index, layer.rows)
                assert band is not None
                rest = next((rows for rows in calls if rows != layer.rows), 0)
                rest_band = self.band(layer.index, rest, layer.rows) if rest else None
                layers[layer.index] = StreamedLayer(band, rest_band, calls[layer.rows], calls.get(rest, 0))
        inside = {index for group in grouping.groups for index in range(group.first, group.end)}
        live = [size for index, size in enumerate(self._live) if index not in inside]
        streaming = Streaming(
            bytes=max([*live, *(group.bytes - group.scratch for group in grouping.groups)], default=0),
            whole_bytes=max(self._live, default=0),
            extra=grouping.extra,
            cost=sum(search.whole),
            reason="" if groups else why_no_group(search, self.context.most_extra, self.context.config.arena_limit),
        )
        return replace(self.chosen, groups=tuple(groups), streamed=layers, streaming=streaming)

    def _planned(self, grouping: Grouping) -> list[StreamedGroup]:
        """Return the groups as in the plan, without the reasons for their ends."""
        assert self._search is not None
        return [
            StreamedGroup(
                first=group.first,
                end=group.end,
                layers=group.described.layers,
                tensors=dict(group.described.tensors),
                capacity=group.schedule.capacity,
                layouts={name: self.layouts[name] for name in group.described.tensors if name in self.layouts},
                distance=group.distance,
                pushed=group.pushed,
                bytes=group.bytes - group.scratch,
                whole_bytes=max(self._live[group.first : group.end]),
                extra=group.extra,
            )
            for group in grouping.groups
        ]

    def search(self, *, overlaps: bool = True) -> GroupSearch:
        """Return the search, with the costs of whole images."""
        graph, choices = self.graph, self.chosen.choices
        over = overlaid(graph, ((index, choice.kernel) for index, choice in choices.items()))
        buffers = liveness(graph, {}, over).buffers
        self._live = [sum(b.bytes for b in buffers if b.first <= i <= b.last) for i in range(len(graph.layers))]
        scratch = [scratch_bytes(graph.view(layer), choices.get(layer.index), self.context) for layer in graph.layers]
        live = [size + more for size, more in zip(self._live, scratch, strict=True)]
        config = self.context.config
        self._network = RowNetwork(
            graph,
            frozenset(self.layouts),
            over,
            pushed=config.input_rows,
            emitted=config.output_rows,
            overwrite=bool(config.overwrite_input),
            overlaps=overlaps,
        )
        whole = [self._whole_cost(layer) for layer in graph.layers]
        self._search = GroupSearch(
            self._network, live, whole, self.cost, lambda grouping: arena_bytes(self.streamed(grouping), self.context)
        )
        return self._search

    def _whole_cost(self, layer: Layer) -> float:
        """Return the cost of a layer for whole images."""
        if isinstance(layer.op, Float):
            return self._float_cost(layer) * self._inside(layer)
        choice = self.chosen.choices.get(layer.index)
        return 0.0 if choice is None else choice.cost or 0.0

    def _inside(self, layer: Layer) -> float:
        """Return the share of a float layer's window rows that lie inside the image.

        Sums skip the other rows.
        """
        assert self._network is not None
        window = self._network.windows[layer.index]
        if window is None or window.size == 1:
            return 1.0
        height, rows = (self.graph.tensors[name].shape[1] for name in (layer.inputs[0], layer.outputs[0]))
        inside = sum(max(min(window.end(row), height) - max(window.first(row), 0), 0) for row in range(rows))
        return inside / (rows * window.size)

    def _summed(self, view: LayerView, rows: int) -> Band | None:
        target = self.context.target
        kernel = next(
            (k for k in row_sum_kernels(target) if k.is_for(view.op) and not k.why_not_rows(view, target)), None
        )
        if kernel is None:
            return None
        cost = kernel.cost_rows(view, rows, target)
        return Band(view, cost, Choice(kernel, kernel.params(), "adds up the rows of a group", cost, "estimated", ()))

    def cost(self, index: int, rows: int, like: int = 0) -> BandCost:
        """Return what a call of a layer costs."""
        band = self.band(index, rows, like)
        if band is None:
            return BandCost(inf)
        if band.choice is None:
            return BandCost(band.cost, _FLOAT_BYTES, False)
        kernel, scratch = band.choice.kernel, scratch_bytes(band.view, band.choice, self.context)
        return BandCost(band.cost, kernel.row_alignment, kernel.lowers and overlays_band(kernel, band.view), scratch)

    def band(self, index: int, rows: int, like: int = 0) -> Band | None:
        """Return the call of a layer for `rows` rows; None if no kernel can compute it.

        like  rows of the layer's other calls
        """
        key = index, rows, like or rows
        if key not in self._cache:
            self._cache[key] = self._chosen(*key)
        return self._cache[key]

    def _chosen(self, index: int, rows: int, like: int) -> Band | None:
        assert self._network is not None
        window = self._network.windows[index]
        layer = self.graph.layers[index]
        is_float = isinstance(layer.op, Float)
        if window is None or (index not in self.chosen.choices and not is_float):
            return None
        whole = self.graph.view(layer)
        if window.accumulates:
            return self._summed(whole, rows)
        view = band_view(whole, window, rows, self.layouts)
        if is_float:
            one, two = (self._float_cost(layer, count) for count in (1, min(rows, 2)))
            return Band(view, one + (rows - 1) * (two - one))
        if self.context.is_ruled(whole):
            try:
                choice = self.context.choose_like(whole, view)
            except StageError:
                return None
            if source_rows(view) is not None and choice.kernel.why_not(whole, self.context.target):
                return None
            return Band(view, choice.cost or 0.0, choice)
        main = self.band(index, like) if like != rows else None
        return self._cheapest(whole, view, None if main is None else main.choice)

    def _cheapest(self, whole: LayerView, view: LayerView, like: Choice | None) -> Band | None:
        """Return the call with its cheapest kernel by counts and estimates, not by lower bounds.

        So few calls are counted: those that were chosen once. Estimates of a kernel whose call for the whole image is
        counted are scaled by that count.

        like  a call for other rows, of which the kernel is preferred: another one has additional code and constants
        """
        costs = replace(self.context.costs, lower_bounds=False)
        whole_calls = {call.variant: call for call in self.context.calls(whole)}
        priced = []
        for call in self.context.calls(view):
            if source_rows(view) is not None and call.variant not in whole_calls:
                continue  # it cannot use the tables of all rows
            price = costs.price_of(call)
            if price.cost is not None:
                is_scaled = price.source == "estimated" and call.variant in whole_calls
                cost = price.cost * (self._correction(whole_calls[call.variant]) if is_scaled else 1.0)
                priced.append(Choice(call.kernel, call.params, "cheapest for few rows", cost, price.source, ()))
        if like is not None:
            same = [choice for choice in priced if choice.kernel is like.kernel]
            priced = [choice for choice in same if choice.params == like.params] or same or priced
        best = min(priced, key=lambda choice: choice.cost or 0.0, default=None)
        return None if best is None else Band(view, best.cost or 0.0, best)

    def _float_cost(self, layer: Layer, rows: int = 0) -> float:
        """Return the cost of a float layer for whole images, or a band (linear in its rows)."""
        if (layer.index, rows) not in self._float_costs:
            lowered = self.context.lowerings.of_float(layer, rows)
            self._float_costs[layer.index, rows] = float_cost(lowered.functions.values(), self.context.target)
        return self._float_costs[layer.index, rows]

    def _correction(self, whole: KernelCall) -> float:
        """Return a whole image's count over its estimate; 1 without a count."""
        count = self.context.costs.counts.get(whole.signature, {}).get(whole.variant)
        return count / whole.estimate if count and whole.estimate else 1.0
