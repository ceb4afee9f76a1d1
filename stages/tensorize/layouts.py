"""Choose the layout of each tensor together with the kernels that compute the layers.

Each image is written in one layout, and each layer reads it in one. A layer's cost is that of its cheapest kernel for
these layouts. A tensor costs a transform for each other layout in which it is read. The choice minimizes the sum over
the graph (`stages.tensorize.elimination`):

    x NHWC -> [transform] -> NCHW16c -> conv2d -> NCHW16c -> conv2d -> NCHW16c -> [transform] -> NHWC y

Fixed are the layouts of the model's inputs and outputs, of constants, of float layers, of tensors that share memory
with a reshape, and those of the recipe's layout rules. With an arena limit all layouts are fixed, since transforms
may need memory. The layouts of the stage layout are kept if the saving is below 1 %. A layer whose cost in another
layout is a mere estimate must save 5 % more, unless its kernel works element by element.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from math import fsum, prod
from typing import Any

import numpy as np

from stages.backends.kernels.kernel import Kernel
from stages.base import StageError
from stages.ir.graph import Graph, Layer, LayerView, Layout, storage_of
from stages.ir.operators.floats import Float
from stages.support.messages import escape
from stages.tensorize.elimination import Costs, cheapest
from stages.tensorize.pass_context import PassContext
from stages.tensorize.sharing import renames_only
from stages.tensorize.transforms import OUTPUT, Untransformed, transform, usual, with_transforms, without_transforms

# An image as written (reader None) or as read by a layer.
Variable = tuple[int | None, str]
Domains = Mapping[Variable, Sequence[Layout]]


@dataclass(frozen=True)
class _Copy:
    """Whether a copy of an image in a layout exists, for the readers that use it."""

    name: str
    layout: Layout


_MOST = 64  # combinations of a layer's layouts; with more, layouts are fixed
_TABLE = 64  # entries of a tensor's table; with more, each copy is a variable
_GUESS = 1.05  # penalty for an estimate in another layout
_VIEW = 1.0  # cost of a transform that moves no byte, to prefer choices with fewer transforms
_WORTH = 0.99  # keep layouts unless others take at most this share of the instructions


def with_cheapest_layouts(graph: Graph, context: PassContext) -> Graph:
    """Return the graph with the layouts and transforms that cost least, or the graph itself.

    Raises StageError for a layout rule that no kernel can follow.
    """
    untransformed = without_transforms(graph)
    if untransformed is None:
        return graph
    choices = _Choices.of(untransformed, context)
    domains = choices.domains()
    costs = [*choices.of_layers(domains), *choices.of_images(domains)]
    sizes: dict[Variable | _Copy, int] = {variable: len(domain) for variable, domain in domains.items()}
    sizes |= dict.fromkeys(
        (variable for cost in costs for variable in cost.variables if isinstance(variable, _Copy)), 2
    )
    numbers = cheapest(sizes, costs)
    first = dict.fromkeys(numbers, 0)
    if _total(costs, numbers) > _WORTH * _total(costs, first):
        numbers = first
    layouts = {variable: domain[numbers[variable]] for variable, domain in domains.items()}
    if all(layout == choices.now(variable) for variable, layout in layouts.items()):
        return graph
    homes = {name: layout for (reader, name), layout in layouts.items() if reader is None}
    reads = {(reader, name): layout for (reader, name), layout in layouts.items() if reader is not None}
    return with_transforms(untransformed, homes, reads)


def layout_variants(graph: Graph, context: PassContext) -> Iterator[LayerView]:
    """Yield every layer and every transform in each layout that the pass considers."""
    untransformed = without_transforms(graph)
    if untransformed is None:
        yield from (graph.view(layer) for layer in graph.layers if _is_computed(graph, layer))
        return
    choices = _Choices.of(untransformed, context)
    domains = choices.domains()
    for layer in untransformed.graph.layers:
        if _is_computed(untransformed.graph, layer):
            variables = [variable for variable in choices.of_layer(layer) if variable in domains]
            for layouts in product(*(domains[variable] for variable in variables)):
                yield choices.laid_out(layer, dict(zip(variables, layouts, strict=True)))
    for name in untransformed.graph.tensors:
        layouts_of_image = [layout for variable in choices.of_image(name) for layout in domains.get(variable, ())]
        for home, layout in product(dict.fromkeys(layouts_of_image), repeat=2):
            tensor = untransformed.graph.tensors[name].model_copy(
                update={"layout": home, "alias_of": None, "offset": 0}
            )
            layer, copy = transform(tensor, layout, f"{name}/{layout}")
            if home != layout and copy.alias_of is None:
                yield LayerView(layer, {tensor.name: tensor, copy.name: copy}, {})


@dataclass(frozen=True)
class _Choices:
    """The variables, their choices and costs. `writers` maps a tensor to its layer."""

    untransformed: Untransformed
    context: PassContext
    writers: Mapping[str, Layer]

    @classmethod
    def of(cls, untransformed: Untransformed, context: PassContext) -> _Choices:
        """Return the choices for a graph without transforms."""
        return cls(
            untransformed, context, {name: layer for layer in untransformed.graph.layers for name in layer.outputs}
        )

    def now(self, variable: Variable) -> Layout:
        """Return the layout that the stage layout chose."""
        reader, name = variable
        return (
            usual(self.untransformed.graph.tensors[name]) if reader is None else self.untransformed.reads[reader, name]
        )

    def domains(self) -> Domains:
        """Return the layouts of each variable, first the present one or that of a layout rule."""
        images = [name for name, tensor in self.untransformed.graph.tensors.items() if len(tensor.shape) == 4]
        variables: list[Variable] = [(None, name) for name in images]
        variables += [read for read in self.untransformed.reads if read[1] in images]
        domains = {variable: self._domain(variable) for variable in variables}
        for layer_variables in map(self.of_layer, self.untransformed.graph.layers):
            images_of_layer = [variable for variable in layer_variables if variable in domains]
            if prod(len(domains[variable]) for variable in images_of_layer) > _MOST:
                domains.update({variable: domains[variable][:1] for variable in images_of_layer})
        return domains

    def of_layers(self, domains: Domains) -> Iterator[Costs[Variable | _Copy]]:
        """Yield the costs of each layer by its layouts. Raises StageError as the pass does."""
        for layer in self.untransformed.graph.layers:
            if not _is_computed(self.untransformed.graph, layer) and layer.wanted is None:
                continue
            variables = [variable for variable in self.of_layer(layer) if variable in domains]
            prices = [
                self._instructions(layer, dict(zip(variables, layouts, strict=True)))
                for layouts in product(*(domains[variable] for variable in variables))
            ]
            self._check_rule(layer, prices)
            if _is_computed(self.untransformed.graph, layer):
                yield _costs(variables, domains, prices)

    def of_images(self, domains: Domains) -> Iterator[Costs[Variable | _Copy]]:
        """Yield the costs of each image's transforms."""
        for name in self.untransformed.graph.tensors:
            variables = [variable for variable in self.of_image(name) if variable in domains]
            if prod(len(domains[variable]) for variable in variables) > _TABLE:
                yield from self._of_copies(name, variables, domains)
            elif variables:
                prices = [
                    sum(self._transform(name, home, layout) for layout in dict.fromkeys(reads) if layout != home)
                    for home, *reads in product(*(domains[variable] for variable in variables))
                ]
                yield _costs(variables, domains, prices)

    def _of_copies(
        self, name: str, variables: Sequence[Variable], domains: Domains
    ) -> Iterator[Costs[Variable | _Copy]]:
        """Yield the costs of an image with many readers, with a variable for each copy.

        Reading a copy that does not exist costs infinity.
        """
        home, *reads = variables
        for layout in dict.fromkeys(layout for read in reads for layout in domains[read]):
            now = domains[home][0] != layout and any(domains[read][0] == layout for read in reads)
            copy, exists = _Copy(name, layout), (now, not now)
            choices: dict[Any, Sequence[Any]] = {**domains, copy: exists}
            takes = {
                written: 0.0 if written == layout else self._transform(name, written, layout)
                for written in domains[home]
            }
            prices = [takes[written] if is_copied else 0.0 for written, is_copied in product(domains[home], exists)]
            yield _costs((home, copy), choices, prices)
            for read in reads:
                wants = product(domains[read], domains[home], exists)
                lacks = [
                    read_layout == layout != written and not is_copied for read_layout, written, is_copied in wants
                ]
                yield _costs((read, home, copy), choices, [float("inf") if lacking else 0.0 for lacking in lacks])

    def of_layer(self, layer: Layer) -> list[Variable]:
        """Return the variables of all tensors that the layer reads or writes."""
        reads: list[Variable] = [(layer.index, name) for name in dict.fromkeys(layer.inputs)]
        return reads + [(None, name) for name in layer.outputs]

    def of_image(self, name: str) -> list[Variable]:
        """Return the image's variables: written, then read."""
        return [(None, name), *(read for read in self.untransformed.reads if read[1] == name)]

    def _domain(self, variable: Variable) -> tuple[Layout, ...]:
        reader, name = variable
        graph, now = self.untransformed.graph, self.now(variable)
        layer = self.writers.get(name) if reader is None else None if reader == OUTPUT else graph.layers[reader]
        if layer is None or graph.tensors[name].constant or not _is_computed(graph, layer):
            return (now,)
        if layer.state and graph.tensors[storage_of(graph.tensors, name)[0]].state:
            return (now,)  # a window keeps its layout from run to run
        if reader is not None and layer.wanted is not None:
            return (now if layer.wanted.layout in ("NHWC", "NCHW") else layer.wanted.layout,)
        if self.context.config.arena_limit is not None:
            return (now,)
        known = [layout for kernel in self.context.kernels_for(layer) for layout in self._layouts(kernel)]
        return tuple(dict.fromkeys((now, *known)))

    def _layouts(self, kernel: Kernel) -> tuple[Layout, ...]:
        """Return the kernel's layouts; for an element-wise kernel those of all kernels."""
        kernels = self.context.kernels if kernel.in_place else (kernel,)
        return tuple(dict.fromkeys(Layout(text) for each_kernel in kernels for text in each_kernel.layouts))

    def laid_out(self, layer: Layer, layouts: Mapping[Variable, Layout]) -> LayerView:
        """Return the layer with its images in `layouts`."""
        tensors = dict(self.untransformed.graph.tensors)
        for (_, name), layout in layouts.items():
            tensors[name] = tensors[name].model_copy(update={"layout": layout})
        return LayerView(layer, tensors, self.untransformed.graph.constants)

    def _instructions(self, layer: Layer, layouts: Mapping[Variable, Layout]) -> float:
        """Return the layer's instructions, infinity if no kernel can compute it.

        Types are chosen later, so an engine may assume its own.
        """
        view = self.laid_out(layer, layouts)
        on_engine = self.context.cost_on_engine(view)
        try:
            choice = self.context.choose(view, None)
        except StageError:
            return on_engine
        # A lower bound is not a guess: calls that are chosen by it are counted.
        is_guess = choice.cost_source == "estimated" and not self.context.costs.lower_bounds
        is_guess = is_guess and not choice.kernel.in_place
        is_other = any(self.now(variable) != layout for variable, layout in layouts.items())
        return min((choice.price or 0.0) * (_GUESS if is_other and is_guess else 1), on_engine)

    def _transform(self, name: str, home: Layout, layout: Layout) -> float:
        tensor = self.untransformed.graph.tensors[name].model_copy(update={"layout": home})
        layer, copy = transform(tensor, layout, f"{name}/{layout}")
        if copy.alias_of is not None:
            return _VIEW
        try:
            choice = self.context.choose(LayerView(layer, {tensor.name: tensor, copy.name: copy}, {}), None)
        except StageError:
            return float("inf")
        return choice.cost or 0.0

    def _check_rule(self, layer: Layer, prices: Sequence[float]) -> None:
        rule = layer.wanted
        if rule is None or min(prices) < float("inf") or rule.layout in ("NHWC", "NCHW"):
            return
        able = [f"{layout} ({', '.join(names)})" for layout, names in self._readable(layer).items()]
        raise StageError(
            f"layout rule {rule.rule} wants {rule.layout} for layer {layer.index} "
            f"({layer.kind} {escape.name(layer.name)}), which no kernel of target {self.context.target.core} reads",
            hint=f"Kernels read it in {'; '.join(able) or 'no layout'}",
            at=("stages", "layout", "rules", rule.rule - 1, "data"),
        )

    def _readable(self, layer: Layer) -> dict[str, list[str]]:
        """Return the names of the kernels that can compute the layer, by the layout that they read."""
        readers: dict[str, list[str]] = {}
        graph, images = self.untransformed.graph, self.of_layer(layer)
        for kernel in self.context.kernels_for(layer):
            for data, out in product(self._layouts(kernel), repeat=2):
                tensors = dict(graph.tensors)
                for reader, name in images:
                    if len(tensors[name].shape) == 4 and not tensors[name].constant:
                        layout = Layout(out if reader is None else data)
                        tensors[name] = tensors[name].model_copy(update={"layout": layout})
                able = not kernel.why_not(LayerView(layer, tensors, graph.constants), self.context.target)
                if able and kernel.name not in readers.setdefault(data, []):
                    readers[data].append(kernel.name)
        return {layout: names for layout, names in readers.items() if names}


def _costs(
    variables: Sequence[Variable | _Copy], domains: Mapping[Any, Sequence[Any]], prices: Sequence[float]
) -> Costs[Variable | _Copy]:
    """Return costs over the variables that have a choice. `prices` cover all variables."""
    free = tuple(variable for variable in variables if len(domains[variable]) > 1)
    return Costs(free, np.array(prices, float).reshape([len(domains[variable]) for variable in free]))


def _is_computed(graph: Graph, layer: Layer) -> bool:
    """Return whether a kernel computes the layer."""
    return not isinstance(layer.op, Float) and not renames_only(graph, layer)


def _total(costs: Sequence[Costs[Variable | _Copy]], numbers: Mapping[Variable | _Copy, int]) -> float:
    """Return the sum of all costs, infinity if a layer cannot be computed."""
    return fsum(cost.table[tuple(numbers[variable] for variable in cost.variables)] for cost in costs)
