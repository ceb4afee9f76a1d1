"""Kernels that are hardly faster than what other layers have anyway go, for their code.

A kernel brings some kilobytes of code into a firmware, for one layer as for twenty. So each that is used, those that
compute least first, is left out where all of its layers have another kernel whose code is there for other layers, that
needs no more memory (than the kernel, or than the network at another layer), and of constants hardly more. Lost by each
such exchange is no more than

    a quarter of a percent of the network's instructions,
    of a network with many constants half of the part that 1,600 bytes have in them, where that is less, or
    a hundredth of those layers', where these are counted.

A layer that a rule of the recipe is for keeps its kernel.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from math import fsum
from os.path import normpath
from typing import TYPE_CHECKING

from stages.tensorize.costs import variant
from stages.tensorize.in_place import overlays
from stages.tensorize.memory import ArenaBound
from stages.tensorize.rom import CODE, Rom

if TYPE_CHECKING:
    from stages.graph import Graph, LayerView
    from stages.kernels.kernel import Kernel
    from stages.tensorize.plan import Alternative
    from stages.tensorize.select import Choice
    from stages.tensorize.setting import Setting

_OF_NETWORK, _OF_BYTES, _OF_LAYERS = 0.0025, 0.5, 0.01
_CONSTANTS = 256  # bytes more: no kernel has less code


def with_less_code(graph: Graph, choices: Mapping[int, Choice], setting: Setting) -> dict[int, Choice]:
    """The choices, by layer index, without kernels whose code is worth more than what they save."""
    now, memory = dict(choices), _Memory(graph, choices, setting)
    while True:
        at_hand = _AtHand(graph, now, setting, memory)
        found = next((one for one in map(at_hand.without, at_hand.used) if one), None)
        if found is None:
            return now
        now |= found


@dataclass(frozen=True)
class _Memory:
    """What layers need while they run."""

    graph: Graph
    choices: Mapping[int, Choice]
    setting: Setting

    def has_room(self, view: LayerView, one: Choice, instead_of: Choice) -> bool:
        """Whether a kernel needs no more than another, or than another layer does anyway."""
        if overlays(instead_of.kernel, view) and not overlays(one.kernel, view):
            return False
        scratch, tensors = self._bound.needed(view, one.kernel, one.params)
        return scratch <= self._bound.needed(view, instead_of.kernel, instead_of.params)[0] or (
            scratch + tensors <= self._most
        )

    @cached_property
    def _bound(self) -> ArenaBound:
        bound = ArenaBound(self.graph, 0, self.setting.lowerings)
        for index, choice in self.choices.items():
            bound.taken(self.graph.view(self.graph.layers[index]), choice.kernel)
        return bound

    @cached_property
    def _most(self) -> int:
        """What the layer needs that needs most."""
        layers = ((self.graph.view(self.graph.layers[index]), choice) for index, choice in self.choices.items())
        return max(sum(self._bound.needed(view, choice.kernel, choice.params)) for view, choice in layers)


@dataclass(frozen=True)
class _AtHand:
    graph: Graph
    choices: Mapping[int, Choice]
    setting: Setting
    memory: _Memory

    @cached_property
    def may_lose(self) -> float:
        """Instructions of the network that a kernel's code is worth."""
        constants = sum(array.nbytes for array in self.graph.constants.values())
        share = min(_OF_NETWORK, _OF_BYTES * CODE / (constants + CODE))
        return share * fsum(choice.cost or 0.0 for choice in self.choices.values())

    @property
    def used(self) -> list[str]:
        """The kernels with code of their own, in the order in which to leave them out."""
        costs: dict[str, list[float]] = {}
        for choice in self.choices.values():
            if choice.kernel.lowers and choice.kernel.sources:
                costs.setdefault(choice.kernel.name, []).append(choice.cost or 0.0)
        return sorted(costs, key=lambda name: (fsum(costs[name]), name))

    def without(self, name: str) -> dict[int, Choice]:
        """What the layers of a kernel get instead of it; nothing where it stays."""
        own = {index: choice for index, choice in self.choices.items() if choice.kernel.name == name}
        others = [choice.kernel for choice in self.choices.values() if choice.kernel.name != name]
        there = frozenset(source for kernel in others for source in _sources(kernel))
        if _sources(next(iter(own.values())).kernel) <= there:
            return {}  # nothing would go
        able = {one.name: one for one in self.setting.kernels if one.lowers and one.sources and _sources(one) <= there}
        cost = fsum(choice.cost or 0.0 for choice in own.values())
        lost, constants = 0.0, 0
        found: dict[int, Choice] = {}
        for index, choice in own.items():
            view = self.graph.view(self.graph.layers[index])
            for one in () if self.setting.is_ruled(view) else _rivals(choice, able):
                known = choice.cost_source == one.cost_source == "counted"
                may_lose = max(self.may_lose, _OF_LAYERS * cost if known else 0.0)
                more = (one.cost or 0.0) - (choice.cost or 0.0)
                if lost + more > may_lose or not self.memory.has_room(view, one, choice):
                    continue
                bytes_more = self._constants(view, one) - self._constants(view, choice)
                if constants + bytes_more <= _CONSTANTS:
                    lost, constants = lost + more, constants + bytes_more
                    found[index] = one
                    break
            else:
                return {}
        return found

    def _constants(self, view: LayerView, choice: Choice) -> int:
        return Rom(self.setting.target, narrow=False).kept(view, choice.kernel, choice.params).bytes


def _sources(kernel: Kernel) -> frozenset[str]:
    return frozenset(normpath(f"{kernel.folder.name}/{source}") for source in kernel.sources)


def _rivals(choice: Choice, able: Mapping[str, Kernel]) -> Iterator[Choice]:
    """What a layer may have by these kernels, the cheapest first."""
    there = [one for one in choice.alternatives if one.kernel in able and not one.reason]
    costs = [(one.cost, number) for number, one in enumerate(there) if one.cost is not None]
    for _, number in sorted(costs) if choice.cost is not None else ():
        yield _with(choice, there[number], able[there[number].kernel])


def _with(choice: Choice, one: Alternative, kernel: Kernel) -> Choice:
    more = 100 * ((one.cost or 0.0) / (choice.cost or 1.0) - 1)
    instead = variant(choice.kernel, choice.params)
    others = [each for each in choice.alternatives if each is not one]
    return replace(
        choice,
        kernel=kernel,
        params=kernel.params.model_validate(one.params),
        cost=one.cost,
        cost_source=one.cost_source,
        why=f"{more:.1f} % dearer than {instead}, whose code no other layer needs ({one.cost_source})",
        alternatives=(choice.as_alternative, *others),
    )
