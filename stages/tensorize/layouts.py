"""In which layout each tensor lies, decided together with the kernels that compute the layers.

Each image is written in one layout, each layer reads it in one. A layer costs what its cheapest kernel takes for the
layouts that it reads and writes, and a tensor costs a transform for each other layout that it is read in. The least sum
over the whole graph is taken (`stages.tensorize.elimination`):

    x NHWC -> [transform] -> NCHW16c -> conv2d -> NCHW16c -> conv2d -> NCHW16c -> [transform] -> NHWC y

Given are the layouts of the model's inputs and outputs, of constants, of float layers, of what shares memory with a
reshape, and those that the recipe's layout rules say. With a limit on the arena all others stay too, since transforms
may need memory. What the layout stage decided is one of the choices, so nothing gets dearer than that, and it stays
where less than a hundredth of the instructions would be saved. A layer whose costs in another layout are a guess must
promise a twentieth more: what is measured is known, so is what an engine's model says, and what computes element by
element takes the same in any order.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from math import fsum, prod
from typing import TYPE_CHECKING, Any

import numpy as np

from stages.base import StageError
from stages.ir.graph import Graph, Layer, LayerView, Layout
from stages.support.messages import escape
from stages.tensorize.elimination import Costs, cheapest
from stages.tensorize.sharing import renames_only
from stages.tensorize.transforms import (
    OUTPUT,
    Untransformed,
    transform,
    usual,
    with_transforms,
    without_transforms,
)

if TYPE_CHECKING:
    from stages.backends.kernels.kernel import Kernel
    from stages.tensorize.pass_context import PassContext

# An image as it is written (reader None), or as a layer reads it.
Variable = tuple[int | None, str]
Domains = Mapping[Variable, Sequence[Layout]]


@dataclass(frozen=True)
class _Copy:
    """Whether there is a copy of an image in a layout, for those of its readers that want it."""

    name: str
    layout: Layout


_MOST = 64  # combinations of a layer's layouts; where there are more, they stay
_TABLE = 64  # of a tensor's, in one table; where there are more, each copy is a choice of its own
_GUESS = 1.05
_VIEW = 1.0  # a transform that moves no byte: of what costs the same the choice with fewer is taken
_WORTH = 0.99  # what other layouts may take of the graph's instructions: so exactly costs are known


def with_cheapest_layouts(graph: Graph, context: PassContext) -> Graph:
    """The pass: layouts and transforms with the least costs; the graph itself where that is what it has.

    Raises StageError for a layout rule that no kernel can follow.
    """
    given = without_transforms(graph)
    if given is None:
        return graph
    choices = _Choices.of(given, context)
    domains = choices.domains()
    costs = [*choices.of_layers(domains), *choices.of_images(domains)]
    sizes: dict[Variable | _Copy, int] = {variable: len(domain) for variable, domain in domains.items()}
    sizes |= dict.fromkeys((one for cost in costs for one in cost.variables if isinstance(one, _Copy)), 2)
    numbers = cheapest(sizes, costs)
    first = dict.fromkeys(numbers, 0)
    if _total(costs, numbers) > _WORTH * _total(costs, first):
        numbers = first
    layouts = {variable: domain[numbers[variable]] for variable, domain in domains.items()}
    if all(layout == choices.now(variable) for variable, layout in layouts.items()):
        return graph
    homes = {name: layout for (reader, name), layout in layouts.items() if reader is None}
    reads = {(reader, name): layout for (reader, name), layout in layouts.items() if reader is not None}
    return with_transforms(given, homes, reads)


def weighed(graph: Graph, context: PassContext) -> Iterator[LayerView]:
    """Every layer, and every transform of an image, in each layout that the pass weighs for it."""
    given = without_transforms(graph)
    if given is None:
        yield from (graph.view(layer) for layer in graph.layers if _is_computed(graph, layer))
        return
    choices = _Choices.of(given, context)
    domains = choices.domains()
    for layer in given.graph.layers:
        if _is_computed(given.graph, layer):
            own = [variable for variable in choices.of_layer(layer) if variable in domains]
            for layouts in product(*(domains[variable] for variable in own)):
                yield choices.laid_out(layer, dict(zip(own, layouts, strict=True)))
    for name in given.graph.tensors:
        there = [layout for variable in choices.of_image(name) for layout in domains.get(variable, ())]
        for home, layout in product(dict.fromkeys(there), repeat=2):
            tensor = given.graph.tensors[name].model_copy(update={"layout": home, "alias_of": None, "offset": 0})
            layer, copy = transform(tensor, layout, f"{name}/{layout}")
            if home != layout and copy.alias_of is None:
                yield LayerView(layer, {tensor.name: tensor, copy.name: copy}, {})


@dataclass(frozen=True)
class _Choices:
    """What can be chosen, and what it costs. `writers` are the layers that write each tensor."""

    given: Untransformed
    context: PassContext
    writers: Mapping[str, Layer]

    @classmethod
    def of(cls, given: Untransformed, context: PassContext) -> _Choices:
        return cls(given, context, {name: layer for layer in given.graph.layers for name in layer.outputs})

    def now(self, variable: Variable) -> Layout:
        """What the layout stage decided."""
        reader, name = variable
        return usual(self.given.graph.tensors[name]) if reader is None else self.given.reads[reader, name]

    def domains(self) -> Domains:
        """The layouts of each variable; first what it has now, where a rule of the recipe says nothing else."""
        images = [name for name, tensor in self.given.graph.tensors.items() if len(tensor.shape) == 4]
        variables: list[Variable] = [(None, name) for name in images]
        variables += [read for read in self.given.reads if read[1] in images]
        found = {variable: self._domain(variable) for variable in variables}
        for own in map(self.of_layer, self.given.graph.layers):
            there = [variable for variable in own if variable in found]
            if prod(len(found[variable]) for variable in there) > _MOST:
                found.update({variable: found[variable][:1] for variable in there})
        return found

    def of_layers(self, domains: Domains) -> Iterator[Costs[Variable | _Copy]]:
        """What each layer takes for the layouts that it reads and writes. Raises StageError as the pass does."""
        for layer in self.given.graph.layers:
            if not _is_computed(self.given.graph, layer) and layer.wanted is None:
                continue
            own = [variable for variable in self.of_layer(layer) if variable in domains]
            prices = [
                self._instructions(layer, dict(zip(own, layouts, strict=True)))
                for layouts in product(*(domains[variable] for variable in own))
            ]
            self._check_rule(layer, prices)
            if _is_computed(self.given.graph, layer):
                yield _costs(own, domains, prices)

    def of_images(self, domains: Domains) -> Iterator[Costs[Variable | _Copy]]:
        """What the transforms of each image take."""
        for name in self.given.graph.tensors:
            own = [variable for variable in self.of_image(name) if variable in domains]
            if prod(len(domains[variable]) for variable in own) > _TABLE:
                yield from self._of_copies(name, own, domains)
            elif own:
                prices = [
                    sum(self._transform(name, home, layout) for layout in dict.fromkeys(reads) if layout != home)
                    for home, *reads in product(*(domains[variable] for variable in own))
                ]
                yield _costs(own, domains, prices)

    def _of_copies(self, name: str, own: Sequence[Variable], domains: Domains) -> Iterator[Costs[Variable | _Copy]]:
        """The same of an image with many readers: what each copy takes, and that nobody reads one that is not there."""
        home, *reads = own
        for layout in dict.fromkeys(layout for read in reads for layout in domains[read]):
            now = domains[home][0] != layout and any(domains[read][0] == layout for read in reads)
            copy, there = _Copy(name, layout), (now, not now)
            choices: dict[Any, Sequence[Any]] = {**domains, copy: there}
            takes = {made: 0.0 if made == layout else self._transform(name, made, layout) for made in domains[home]}
            prices = [takes[made] if is_there else 0.0 for made, is_there in product(domains[home], there)]
            yield _costs((home, copy), choices, prices)
            for read in reads:
                wants = product(domains[read], domains[home], there)
                lacks = [wanted == layout != made and not is_there for wanted, made, is_there in wants]
                yield _costs((read, home, copy), choices, [float("inf") if one else 0.0 for one in lacks])

    def of_layer(self, layer: Layer) -> list[Variable]:
        """Its variables, images or not."""
        reads: list[Variable] = [(layer.index, name) for name in dict.fromkeys(layer.inputs)]
        return reads + [(None, name) for name in layer.outputs]

    def of_image(self, name: str) -> list[Variable]:
        """Written first, then read."""
        return [(None, name), *(read for read in self.given.reads if read[1] == name)]

    def _domain(self, variable: Variable) -> tuple[Layout, ...]:
        reader, name = variable
        graph, now = self.given.graph, self.now(variable)
        layer = self.writers.get(name) if reader is None else None if reader == OUTPUT else graph.layers[reader]
        if layer is None or graph.tensors[name].constant or not _is_computed(graph, layer):
            return (now,)
        if reader is not None and layer.wanted is not None:
            return (now if layer.wanted.layout in ("NHWC", "NCHW") else layer.wanted.layout,)
        if self.context.config.arena_limit is not None:
            return (now,)
        known = [layout for kernel in self.context.kernels_for(layer) for layout in self._layouts(kernel)]
        return tuple(dict.fromkeys((now, *known)))

    def _layouts(self, kernel: Kernel) -> tuple[Layout, ...]:
        """Those a kernel may take; of one that computes element by element those that any kernel of the target has."""
        kernels = self.context.kernels if kernel.in_place else (kernel,)
        return tuple(dict.fromkeys(Layout(text) for one in kernels for text in one.layouts))

    def laid_out(self, layer: Layer, layouts: Mapping[Variable, Layout]) -> LayerView:
        """The layer with its images in these layouts."""
        tensors = dict(self.given.graph.tensors)
        for (_, name), layout in layouts.items():
            tensors[name] = tensors[name].model_copy(update={"layout": layout})
        return LayerView(layer, tensors, self.given.graph.constants)

    def _instructions(self, layer: Layer, layouts: Mapping[Variable, Layout]) -> float:
        """Infinity where no kernel can compute it. Types are decided later: an engine may have those that it wants."""
        view = self.laid_out(layer, layouts)
        on_engine = self.context.cost_on_engine(view)
        try:
            choice = self.context.choose(view, None)
        except StageError:
            return on_engine
        # A lower bound is no guess: what is chosen by it is counted.
        is_guess = choice.cost_source == "estimated" and not self.context.costs.lower_bounds
        is_guess = is_guess and not choice.kernel.in_place
        is_other = any(self.now(variable) != layout for variable, layout in layouts.items())
        return min((choice.price or 0.0) * (_GUESS if is_other and is_guess else 1), on_engine)

    def _transform(self, name: str, home: Layout, layout: Layout) -> float:
        tensor = self.given.graph.tensors[name].model_copy(update={"layout": home})
        layer, copy = transform(tensor, layout, f"{name}/{layout}")
        if copy.alias_of is not None:
            return _VIEW
        try:
            choice = self.context.choose(LayerView(layer, {tensor.name: tensor, copy.name: copy}, {}), None)
        except StageError:
            return float("inf")
        return choice.cost or 0.0

    def _check_rule(self, layer: Layer, prices: Sequence[float]) -> None:
        wanted = layer.wanted
        if wanted is None or min(prices) < float("inf") or wanted.layout in ("NHWC", "NCHW"):
            return
        able = [f"{layout} ({', '.join(names)})" for layout, names in self._readable(layer).items()]
        raise StageError(
            f"layout rule {wanted.rule} wants {wanted.layout} for layer {layer.index} "
            f"({layer.kind} {escape.name(layer.name)}), which no kernel of target {self.context.target.core} reads",
            hint=f"Kernels read it in {'; '.join(able) or 'no layout'}",
            at=("stages", "layout", "rules", wanted.rule - 1, "data"),
        )

    def _readable(self, layer: Layer) -> dict[str, list[str]]:
        """Names of the kernels that can compute the layer, by the layout that they read, whatever they write then."""
        found: dict[str, list[str]] = {}
        graph, images = self.given.graph, self.of_layer(layer)
        for kernel in self.context.kernels_for(layer):
            for data, out in product(self._layouts(kernel), repeat=2):
                tensors = dict(graph.tensors)
                for reader, name in images:
                    if len(tensors[name].shape) == 4 and not tensors[name].constant:
                        layout = Layout(out if reader is None else data)
                        tensors[name] = tensors[name].model_copy(update={"layout": layout})
                able = not kernel.why_not(LayerView(layer, tensors, graph.constants), self.context.target)
                if able and kernel.name not in found.setdefault(data, []):
                    found[data].append(kernel.name)
        return {layout: names for layout, names in found.items() if names}


def _costs(
    own: Sequence[Variable | _Copy], domains: Mapping[Any, Sequence[Any]], prices: Sequence[float]
) -> Costs[Variable | _Copy]:
    """Of those variables that have a choice; `prices` by all of them."""
    free = tuple(variable for variable in own if len(domains[variable]) > 1)
    return Costs(free, np.array(prices, float).reshape([len(domains[variable]) for variable in free]))


def _is_computed(graph: Graph, layer: Layer) -> bool:
    """Whether a kernel computes it."""
    return layer.op.op != "float" and not renames_only(graph, layer)


def _total(costs: Sequence[Costs[Variable | _Copy]], numbers: Mapping[Variable | _Copy, int]) -> float:
    """The sum of all costs, infinite where a layer cannot be computed."""
    return fsum(one.table[tuple(numbers[variable] for variable in one.variables)] for one in costs)
