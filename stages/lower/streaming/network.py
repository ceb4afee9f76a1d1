"""A network's layers as candidates of streamed groups."""

from collections.abc import Mapping
from functools import cached_property
from typing import NamedTuple

from stages.ir.graph import Graph, storage_of
from stages.lower.streaming.outline import Outline
from stages.lower.streaming.row_counts import in_steps
from stages.lower.streaming.row_window import RowWindow
from stages.lower.streaming.schedule import RowLayer, RowTensor
from stages.lower.streaming.window import row_window


class Described(NamedTuple):
    """Layers and tensors of a group, the name of its input, and the outline of its schedules."""

    layers: tuple[RowLayer, ...]
    tensors: Mapping[str, RowTensor]
    source: str
    outline: Outline

    def least_bytes(self, overlaps: bool) -> int:
        """Return a lower bound of the group's bytes; with `overlaps` output may overlap input."""
        size, whole = 0, []
        for name, tensor in self.tensors.items():
            if tensor.place_of:
                continue
            if tensor.whole:
                whole.append(tensor.total * tensor.row_bytes)
            else:
                size += max((x.window.size for x in self.layers if name in x.inputs), default=1) * tensor.row_bytes
        return size + (max(whole) if overlaps else sum(whole))


class RowNetwork:
    """A graph with decided layouts.

    planar     tensors whose rows are not contiguous in a whole image: only inner tensors of a group
    overlaid   layers whose output may take the place of an input, row by row
    pushed     the caller passes the rows of the network's input
    emitted    the application receives the rows of the network's output
    overwrite  results of groups may replace the network's input
    overlaps   results of groups may replace rows of their input
    """

    def __init__(
        self,
        graph: Graph,
        planar: frozenset[str] = frozenset(),
        overlaid: frozenset[int] = frozenset(),
        *,
        pushed: bool = False,
        emitted: bool = False,
        overwrite: bool = False,
        overlaps: bool = True,
    ) -> None:
        self.graph = graph
        self.planar = planar
        self.overlaid = overlaid
        self.pushed = pushed
        self.emitted = emitted
        self.overwrite = overwrite
        self.overlaps = overlaps
        self._groups: dict[tuple[int, int, frozenset[int]], Described | None] = {}
        self._row_layers: dict[tuple[int, int], RowLayer] = {}

    @cached_property
    def windows(self) -> list[RowWindow | None]:
        """The row window of each layer."""
        return [row_window(self.graph.view(layer)) for layer in self.graph.layers]

    @cached_property
    def readers(self) -> dict[str, list[int]]:
        """The layers that read each tensor."""
        readers: dict[str, list[int]] = {}
        for layer in self.graph.layers:
            for name in dict.fromkeys(layer.inputs):
                readers.setdefault(name, []).append(layer.index)
        return readers

    @cached_property
    def cuts(self) -> dict[int, str]:
        """Places before a layer with one live tensor, by its name; also the network's ends."""
        graph, end = self.graph, len(self.graph.layers)
        root = {name: storage_of(graph.tensors, name)[0] for name in graph.tensors}
        first = {root[name]: 0 for name in graph.inputs}
        last: dict[str, int] = {}
        for layer in graph.layers:
            for name in layer.outputs:
                first.setdefault(root[name], layer.index + 1)
            for name in layer.inputs:
                last[root[name]] = layer.index
        last |= {root[name]: end for name in graph.outputs}
        cuts = {}
        for place in range(end + 1):
            alive = [name for name, begin in first.items() if begin <= place <= last.get(name, -1)]
            if len(alive) == 1 or place in (0, end):
                cuts[place] = alive[0] if len(alive) == 1 else ""
        return cuts

    @cached_property
    def divided(self) -> frozenset[str]:
        """Tensors in whose memory others lie: parts, or the same values by another name."""
        tensors = self.graph.tensors
        return frozenset(root for name in tensors if (root := storage_of(tensors, name)[0]) != name)

    @property
    def by_request(self) -> bool:
        """Whether the application passes rows of the input, or receives rows of the output."""
        return self.pushed or self.emitted

    def is_pushed(self, first: int) -> bool:
        """Return whether the caller passes the rows of a group's input."""
        return self.pushed and first == 0

    def is_emitted(self, end: int) -> bool:
        """Return whether the application receives the output's rows of a group before `end`."""
        return self.emitted and end == len(self.graph.layers)

    def is_replaceable(self, source: str, end: int) -> bool:
        """Return whether the output of a group before layer `end` may replace its input's rows."""
        kept = (*self.graph.outputs, *self.divided, *(() if self.overwrite else self.graph.inputs))
        return source not in kept and all(index < end for index in self.readers.get(source, ()))

    def may_overlap(self, source: str, end: int) -> bool:
        """Return whether a group's output may overlap input rows that are no longer needed."""
        return self.overlaps and bool(source) and self.is_replaceable(source, end)

    def described(self, first: int, end: int, overlaid: frozenset[int] | None = None) -> Described | None:
        """Return layers [first, end) as a group, one row per call; None if they cannot run by rows.

        overlaid  layers whose calls may replace an input, all of `self.overlaid` by default
        """
        key = first, end, self.overlaid if overlaid is None else overlaid
        if key not in self._groups:
            self._groups[key] = self._described(*key)
        return self._groups[key]

    def _described(self, first: int, end: int, overlaid: frozenset[int]) -> Described | None:
        layers: list[RowLayer] = []
        if not self.cuts[first]:
            return None
        for layer in self.graph.layers[first:end]:
            window = self.windows[layer.index]
            if window is None or (window.accumulates and layer.index != end - 1):
                return None
            layers.append(self.row_layer(layer.index))
        written = {layer.output: layer for layer in layers}
        for inner in layers[:-1]:
            readers = self.readers.get(inner.output, [])
            if not readers or readers[-1] >= end or inner.output in (*self.graph.outputs, *self.divided):
                return None
        source, last = self.cuts[first], layers[-1]
        if self.is_pushed(first) and source not in self.graph.inputs:
            return None
        is_emitted = self.is_emitted(end)
        if is_emitted and (
            last.window.accumulates or last.output in self.divided or tuple(self.graph.outputs) != (last.output,)
        ):
            return None
        tensors: dict[str, RowTensor] = {}
        for name in dict.fromkeys([source, *written]):
            if last.window.accumulates and name == last.output:
                out = self.graph.tensors[name]
                tensors[name] = RowTensor(name, 1, 0, 0, 0, out.bytes, True)
                continue
            is_boundary = name in (source, last.output)
            if len(self.graph.tensors[name].shape) != 4 or (is_boundary and name in self.planar):
                return None
            tensor = self._row_tensor(name, layers)
            if tensor is None:
                return None
            whole = (name == last.output and not is_emitted) or (name == source and not self.is_pushed(first))
            tensors[name] = tensor._replace(whole=whole)
        if any(name not in tensors for layer in layers for name in layer.inputs):
            return None
        tensors = self._with_shared(layers, tensors, source, overlaid)
        outline = Outline(layers, tensors, source if self.is_pushed(first) else "")
        return Described(tuple(layers), tensors, source, outline)

    def row_layer(self, index: int, rows: int = 1) -> RowLayer:
        """Return a layer with `rows` or few more rows per call: always the same object."""
        if (index, rows) not in self._row_layers:
            layer, window, tensors = self.graph.layers[index], self.windows[index], self.graph.tensors
            assert window is not None
            inputs = tuple(name for name in dict.fromkeys(layer.inputs) if not tensors[name].constant)
            height = tensors[inputs[0] if window.accumulates else layer.outputs[0]].shape[1]
            count = in_steps(window, rows)
            self._row_layers[index, rows] = RowLayer(index, window, inputs, layer.outputs[0], height, count)
        return self._row_layers[index, rows]

    def _row_tensor(self, name: str, layers: list[RowLayer]) -> RowTensor | None:
        """Return a tensor with its readers' padding; None if they need different values."""
        tensor = self.graph.tensors[name]
        height, above, below, fills = tensor.shape[1], 0, 0, set()
        for layer in layers:
            if name not in layer.inputs:
                continue
            outside = layer.end(0) - height
            above, below = max(above, layer.window.padding), max(below, outside)
            if (layer.window.padding or outside > 0) and layer.window.fill is not None:
                fills.add(layer.window.fill)
        if len(fills) > 1 or (fills - {0} and tensor.dtype not in ("int8", "uint8")):
            return None
        return RowTensor(name, height, above, below, fills.pop() if fills else 0, tensor.bytes // height, False)

    def _with_shared(
        self, layers: list[RowLayer], tensors: dict[str, RowTensor], source: str, overlaid: frozenset[int]
    ) -> dict[str, RowTensor]:
        """Let results take the place of input rows that nothing reads afterwards.

        A window's result without padding takes the place of the first row that it needs.
        """
        for layer in layers:
            output, window = tensors[layer.output], layer.window
            if layer.index not in overlaid or not window.is_rigid or window.accumulates:
                continue
            if output.whole:
                if window == RowWindow():
                    self._over_input(layer, tensors, source)
                continue
            for name in reversed(layer.inputs):
                tensor = tensors[name]
                root = tensors[tensor.place_of or name]
                alone = self.readers[name] == [layer.index] and not tensor.whole
                unpadded = window.size == 1 and not root.above + root.below and root.height == output.height
                if alone and tensor.row_bytes == output.row_bytes and (unpadded or not output.above + output.below):
                    tensors[layer.output] = output._replace(place_of=root.name)
                    if unpadded:
                        self._pad_like(tensors, root.name, output)
                    break
        return tensors

    def _over_input(self, layer: RowLayer, tensors: dict[str, RowTensor], source: str) -> None:
        """Let the group's result replace its unshared input; the simulation checks the rows."""
        tensor, output = tensors[source], tensors[layer.output]
        is_replaceable = tensor.whole and self.is_replaceable(source, layer.index + 1)
        if source in layer.inputs and is_replaceable and tensor.row_bytes == output.row_bytes:
            tensors[layer.output] = output._replace(place_of=source, above=tensor.above)

    @staticmethod
    def _pad_like(tensors: dict[str, RowTensor], root: str, output: RowTensor) -> None:
        """Give a tensor, and those that replace it, the padding of the last one that does."""
        for other, tensor in tensors.items():
            if other == root or tensor.place_of == root:
                tensors[other] = tensor._replace(above=output.above, below=output.below, fill=output.fill)
