"""Weigh ROM against instructions: which kernels a network gets, when the code of each is paid once.

Of all ways to compute the layers in the layouts that they have, the one with the least

    instructions * bytes ** exponent

is searched. Bytes are those of packed constants, of the layers' functions, and of the kernels' functions, each counted
once for the network (`Costs.rom`). The exponent is the objective's (EXPONENTS): for `balanced`, 5 % more bytes are
worth 10 % fewer instructions, and the network takes at most 1.5 times the instructions of the fastest choice. So its
ROM is at most 1.05 times that of the smallest choice, or its instructions are at most 0.9 times those.

The search begins with the choices that cost least, and with those that take least ROM. It moves the layers of a kernel,
or one layer, to other kernels as long as that is better. A layer that a rule of the recipe is for keeps its kernel. But
for `rom` without a limit of the arena, no layer gets a kernel that needs more RAM than another layer does.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from math import fsum, inf, log
from os.path import normpath
from typing import TYPE_CHECKING

from stages.tensorize.costs import signature, variant
from stages.tensorize.in_place import overlays
from stages.tensorize.memory import ArenaBound
from stages.tensorize.select import AS_GOOD

if TYPE_CHECKING:
    from stages.ir.graph import Graph, LayerView
    from stages.tensorize.pass_context import PassContext
    from stages.tensorize.select import Choice

_WORTH = 0.9  # times the instructions, for 1.05 times the bytes
_MOST = 1.5  # times the instructions of the fastest choice
EXPONENTS = {"balanced": log(1 / _WORTH) / log(1.05), "rom": 500.0}
_OTHERS = 0.05  # 1 % fewer bytes are worth 0.05 % more instructions
CODE = 1_600  # bytes of a source of kernels, where no code is counted
_LEAST = 1e-6  # of the score, below which a choice is no better


def exponent_of(context: PassContext) -> float:
    """How much bytes are worth.

    Little where nothing counts them, beside an engine, which has its own model, and for programs of an operating
    system, whose memory is not a part's.
    """
    wanted, target = context.config.optimize_for, context.target
    if wanted == "balanced" and (not context.costs.rom or context.offload is not None or target.is_hosted):
        return _OTHERS
    return EXPONENTS.get(wanted, _OTHERS)


def with_rom_tradeoff(graph: Graph, choices: Mapping[int, Choice], context: PassContext) -> dict[int, Choice]:
    """The choices, by layer index, with the kernels that are worth their bytes."""
    if not choices:
        return {}
    code = _Code.of(context)
    layers = [_options(graph.view(graph.layers[index]), choice, context, code) for index, choice in choices.items()]
    computed = {name for index in choices for name in graph.layers[index].constants.values()}
    rest = sum(array.nbytes for name, array in graph.constants.items() if name not in computed)
    room = _Room(graph, choices, context)
    search = _Search(list(choices), layers, rest, code.sizes, room)
    best = search.best(exponent_of(context))
    return {
        index: options[number].instead_of(options[0])
        for index, options, number in zip(choices, layers, best, strict=True)
    }


@dataclass(frozen=True)
class _Option:
    """What a layer may have: instructions, bytes of its own, and sections of code, each a bit of a number."""

    choice: Choice
    cost: float
    own: int
    code: int

    @property
    def kernel(self) -> str:
        return self.choice.kernel.name

    @cached_property
    def variant(self) -> str:
        return variant(self.choice.kernel, self.choice.params)

    def instead_of(self, cheapest: _Option) -> Choice:
        """The choice, which says that it is there instead of the one that costs least."""
        choice, first = self.choice, cheapest.choice
        if self is cheapest:
            return choice
        more = 100 * ((choice.cost or 0.0) / (first.cost or 1.0) - 1)
        mine = choice.as_alternative
        others = [
            one for one in first.alternatives if one.reason or (one.kernel, one.params) != (mine.kernel, mine.params)
        ]
        why = f"{more:.1f} % dearer than {cheapest.variant}, for less ROM ({choice.cost_source})"
        return replace(choice, why=why, alternatives=(first.as_alternative, *others))


@dataclass(frozen=True)
class _Code:
    """Sections of code as bits: `sizes` by their numbers. `common` has what all counted calls of a kernel reach."""

    context: PassContext
    common: Mapping[str, Mapping[str, int]]
    numbers: dict[str, int] = field(default_factory=dict)
    sizes: list[int] = field(default_factory=list)

    @classmethod
    def of(cls, context: PassContext) -> _Code:
        common: dict[str, Mapping[str, int]] = {}
        for (_, name), takes in context.costs.rom.items():
            kernel = name.partition(" ")[0]
            code = common.get(kernel, takes.code)
            common[kernel] = {one: size for one, size in code.items() if one in takes.code}
        return cls(context, common)

    def option(self, view: LayerView, choice: Choice) -> _Option:
        """What a choice takes; the least that it may where it was not counted and others were."""
        kernel, cost = choice.kernel, choice.cost or 0.0
        constants = sum(view.constant(role).nbytes for role in view.layer.constants)
        if not kernel.lowers:
            return _Option(choice, cost, constants, 0)
        takes = self.context.costs.rom.get((signature(kernel.seen(view)), variant(kernel, choice.params)))
        own = takes.own if takes else constants
        if self.context.rom is not None:
            whole = replace(self.context.rom, narrow=False).storage(view, kernel, choice.params)
            kept = self.context.rom.storage(view, kernel, choice.params)
            own = (own if takes else whole.bytes) - whole.bytes + kept.bytes
            choice = replace(choice, worth=self.context.rom.worth(view, kernel, choice.params, cost))
            cost += kept.instructions
        code = takes.code if takes else self.common.get(kernel.name, {})
        if not self.context.costs.rom:
            code = {normpath(f"{kernel.folder.name}/{source}"): CODE for source in kernel.sources}
        return _Option(choice, cost, own, sum(1 << self._number(name, size) for name, size in code.items()))

    def _number(self, name: str, size: int) -> int:
        if name not in self.numbers:
            self.numbers[name] = len(self.sizes)
            self.sizes.append(size)
        return self.numbers[name]


def _options(view: LayerView, choice: Choice, context: PassContext, code: _Code) -> list[_Option]:
    """The choice, and all else that can compute the layer."""
    known = {kernel.name: kernel for kernel in context.kernels if kernel.lowers}
    is_fixed = not choice.kernel.lowers or choice.cost is None or context.is_ruled(view)
    options = [code.option(view, choice)]
    for one in () if is_fixed else choice.alternatives:
        if one.kernel in known and not one.reason and not one.flips and one.cost is not None:
            kernel = known[one.kernel]
            params = kernel.params.model_validate(one.params)
            other = replace(choice, kernel=kernel, params=params, cost=one.cost, cost_source=one.cost_source)
            options.append(code.option(view, other))
    if context.costs.lower_bounds:  # a cheaper kernel within a percent was not taken either (stages.tensorize.select)
        first = options[0].cost
        options = [replace(one, cost=first) if one.cost < first <= AS_GOOD * one.cost else one for one in options]
    return options


@dataclass
class _Search:
    """Which option each layer gets, as a list of numbers in the order of `indices`.

    rest   bytes of ROM that are there in any case
    sizes  bytes of the sections of code
    """

    indices: Sequence[int]
    layers: Sequence[Sequence[_Option]]
    rest: int
    sizes: Sequence[int]
    room: _Room
    limit: float = inf  # of instructions
    _bytes: dict[int, int] = field(default_factory=dict)

    def best(self, exponent: float) -> list[int]:
        """The best that is found."""
        fastest = [0] * len(self.layers)
        if exponent <= _OTHERS:
            return self._improved(fastest, exponent)
        smallest = self._improved(fastest, EXPONENTS["rom"])
        if exponent != EXPONENTS["rom"]:
            self.limit = _MOST * self._instructions(fastest)
            if self._instructions(smallest) > self.limit:
                self.limit = min(self.limit, _WORTH * self._instructions(smallest))
                return self._improved(fastest, exponent)
        found = (self._improved(start, exponent) for start in (fastest, smallest))
        return min(found, key=lambda one: self._score(one, exponent))

    def _improved(self, now: list[int], exponent: float) -> list[int]:
        """The options after all moves that are better, again and again until none is."""
        score, before = self._score(now, exponent), float("inf")
        while score < before:
            before = score
            for group, left, preferred in list(self._moves(now)):
                rate = exponent * self._instructions(now) / self._rom(now)
                while True:
                    move = self._moved(now, group, left, preferred, rate)
                    moved = self._score(move, exponent)
                    if moved >= score - _LEAST:
                        break
                    if self._has_room(move):
                        score, now = moved, move
                        break
        return now

    def _moves(self, now: Sequence[int]) -> Iterator[tuple[tuple[int, ...], str, str]]:
        """Layers that leave a kernel, or a kernel with its parameters, and the kernel that they get where it can."""
        chosen = [(number, options[now[number]]) for number, options in enumerate(self.layers) if len(options) > 1]
        for name in sorted({one.kernel for _, one in chosen}):
            group = tuple(number for number, one in chosen if one.kernel == name)
            others = {one.kernel for number in group for one in self.layers[number]}
            yield from ((group, name, other) for other in sorted(others - {name}))
        for name in sorted({one.variant for _, one in chosen}):
            yield tuple(number for number, one in chosen if one.variant == name), name, ""
        yield from (((number,), one.variant, "") for number, one in chosen)

    def _moved(self, now: Sequence[int], group: Sequence[int], left: str, preferred: str, rate: float) -> list[int]:
        """The layers of a group with the options that are worth most now; where none is left, as they are."""
        moved, code = list(now), 0
        for number in set(range(len(now))) - set(group):
            code |= self.layers[number][now[number]].code
        for number in group:
            options = self.layers[number]
            allowed = [
                n
                for n, one in enumerate(options)
                if left not in (one.kernel, one.variant) and (number, n) not in self.room.excluded
            ]
            allowed = [n for n in allowed if options[n].kernel == preferred] or allowed or [now[number]]

            def worth(n: int, options: Sequence[_Option] = options, code: int = code) -> float:
                return options[n].cost + rate * (options[n].own + self._size(options[n].code & ~code))

            moved[number] = min(allowed, key=worth)
            code |= options[moved[number]].code
        return moved

    def _has_room(self, move: Sequence[int]) -> bool:
        """Whether the layers need no more RAM than the network has; options that do are excluded."""
        fits = True
        for number, new in enumerate(move):
            if new and (number, new) not in self.room.included:
                options = self.layers[number]
                holds = self.room.holds(self.indices[number], options[new].choice, options[0].choice)
                (self.room.included if holds else self.room.excluded).add((number, new))
                fits = fits and holds
        return fits

    def _score(self, numbers: Sequence[int], exponent: float) -> float:
        instructions = self._instructions(numbers)
        return inf if instructions > self.limit else log(max(1.0, instructions)) + exponent * log(self._rom(numbers))

    def _instructions(self, numbers: Sequence[int]) -> float:
        return fsum(options[number].cost for options, number in zip(self.layers, numbers, strict=True))

    def _rom(self, numbers: Sequence[int]) -> int:
        own, code = self.rest, 0
        for options, number in zip(self.layers, numbers, strict=True):
            own += options[number].own
            code |= options[number].code
        return max(1, own + self._size(code))

    def _size(self, code: int) -> int:
        if code not in self._bytes:
            self._bytes[code] = sum(size for number, size in enumerate(self.sizes) if code >> number & 1)
        return self._bytes[code]


@dataclass(frozen=True)
class _Room:
    """What layers need while they run, by the choices that cost least."""

    graph: Graph
    choices: Mapping[int, Choice]
    context: PassContext
    included: set[tuple[int, int]] = field(default_factory=set)
    excluded: set[tuple[int, int]] = field(default_factory=set)

    def holds(self, index: int, one: Choice, instead_of: Choice) -> bool:
        """Whether a kernel needs no more than another, or than another layer does anyway; for `rom` alone no matter."""
        if self.context.config.optimize_for == "rom" and self.context.config.arena_limit is None:
            return True
        view = self.graph.view(self.graph.layers[index])
        if overlays(instead_of.kernel, view) and not overlays(one.kernel, view):
            return False
        scratch, tensors = self._bound.needed(view, one.kernel, one.params)
        return scratch <= self._bound.needed(view, instead_of.kernel, instead_of.params)[0] or (
            scratch + tensors <= self._most
        )

    @cached_property
    def _bound(self) -> ArenaBound:
        bound = ArenaBound(self.graph, 0, self.context.lowerings)
        for index, choice in self.choices.items():
            bound.taken(self.graph.view(self.graph.layers[index]), choice.kernel)
        return bound

    @cached_property
    def _most(self) -> int:
        """What the layer needs that needs most."""
        layers = ((self.graph.view(self.graph.layers[index]), choice) for index, choice in self.choices.items())
        return max(sum(self._bound.needed(view, choice.kernel, choice.params)) for view, choice in layers)
