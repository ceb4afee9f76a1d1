"""Weigh ROM against instructions over a network, where the code of a kernel counts once.

Of all kernels for the layers in their layouts the search minimizes

    instructions * bytes ** exponent

Bytes are those of packed constants, of the layers' functions, and of the kernels' functions (`Costs.rom`). The
exponent depends on the objective (EXPONENTS). For `balanced` 5 % more bytes are worth 10 % fewer instructions, and the
network takes at most 1.5 times the instructions of the fastest choice. So its ROM is at most 1.05 times that of the
smallest choice, or its instructions are at most 0.9 times those of the smallest.

The search starts from the cheapest choice and from the smallest one. It moves all layers of a kernel, or one layer, to
other kernels while the score improves. Layers with a rule keep their kernel. No layer gets a kernel that needs more RAM
than the network does otherwise, except for `rom` without an arena limit.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from math import fsum, inf, log
from os.path import normpath

from stages.ir.graph import Graph, LayerView
from stages.tensorize.costs import signature, variant
from stages.tensorize.in_place import overlays
from stages.tensorize.memory import ArenaBound
from stages.tensorize.pass_context import PassContext
from stages.tensorize.select import AS_GOOD, Choice

_WORTH = 0.9  # factor of instructions that pays for 1.05 times the bytes
_MOST = 1.5  # maximum factor of instructions over the fastest choice
EXPONENTS = {"balanced": log(1 / _WORTH) / log(1.05), "rom": 500.0}
_OTHERS = 0.05  # 1 % fewer bytes are worth 0.05 % more instructions
CODE = 1_600  # assumed bytes of a kernel source whose code is not counted
_LEAST = 1e-6  # minimum improvement of the score


def exponent_of(context: PassContext) -> float:
    """Return the exponent of bytes.

    It is small if no code is counted, beside an engine (which has its own model), and for programs of an operating
    system (whose memory is not a chip's).
    """
    objective, target = context.config.optimize_for, context.target
    if objective == "balanced" and (not context.costs.rom or context.offload is not None or target.is_hosted):
        return _OTHERS
    return EXPONENTS.get(objective, _OTHERS)


def with_rom_tradeoff(graph: Graph, choices: Mapping[int, Choice], context: PassContext) -> dict[int, Choice]:
    """Return the choices, by layer index, with the kernels that are worth their bytes."""
    if not choices:
        return {}
    code = _Code.of(context)
    layers = [_options(graph.view(graph.layers[index]), choice, context, code) for index, choice in choices.items()]
    computed = {name for index in choices for name in graph.layers[index].constants.values()}
    rest = sum(array.nbytes for name, array in graph.constants.items() if name not in computed)
    ram = _RamLimit(graph, choices, context)
    search = _Search(list(choices), layers, rest, code.sizes, ram)
    best = search.best(exponent_of(context))
    return {
        index: options[number].instead_of(options[0])
        for index, options, number in zip(choices, layers, best, strict=True)
    }


@dataclass(frozen=True)
class _Option:
    """A layer's possible kernel: instructions, own bytes, code sections as a bit set."""

    choice: Choice
    cost: float
    own: int
    code: int

    @property
    def kernel(self) -> str:
        """The kernel's name."""
        return self.choice.kernel.name

    @cached_property
    def variant(self) -> str:
        """The kernel with its parameters."""
        return variant(self.choice.kernel, self.choice.params)

    def instead_of(self, cheapest: _Option) -> Choice:
        """Return the choice with the reason why it replaces the cheapest one."""
        choice, first = self.choice, cheapest.choice
        if self is cheapest:
            return choice
        extra = 100 * ((choice.cost or 0.0) / (first.cost or 1.0) - 1)
        chosen = choice.as_alternative
        others = [
            alternative
            for alternative in first.alternatives
            if alternative.reason or (alternative.kernel, alternative.params) != (chosen.kernel, chosen.params)
        ]
        why = f"{extra:.1f} % dearer than {cheapest.variant}, for less ROM ({choice.cost_source})"
        return replace(choice, why=why, alternatives=(first.as_alternative, *others))


@dataclass(frozen=True)
class _Code:
    """Code sections as bits, with `sizes` by number.

    `common` has the sections that all counted calls of a kernel reach.
    """

    context: PassContext
    common: Mapping[str, Mapping[str, int]]
    numbers: dict[str, int] = field(default_factory=dict)
    sizes: list[int] = field(default_factory=list)

    @classmethod
    def of(cls, context: PassContext) -> _Code:
        """Return the sections of the counted calls."""
        common: dict[str, Mapping[str, int]] = {}
        for (_, name), takes in context.costs.rom.items():
            kernel = name.partition(" ")[0]
            code = common.get(kernel, takes.code)
            common[kernel] = {section: size for section, size in code.items() if section in takes.code}
        return cls(context, common)

    def option(self, view: LayerView, choice: Choice) -> _Option:
        """Return instructions and bytes of a choice; the minimum if only others were counted."""
        kernel, cost = choice.kernel, choice.cost or 0.0
        constants = sum(view.constant(role).nbytes for role in view.layer.constants)
        if not kernel.lowers:
            return _Option(choice, cost, constants, 0)
        measured = self.context.costs.rom.get((signature(kernel.seen(view)), variant(kernel, choice.params)))
        own = measured.own if measured else constants
        if self.context.rom is not None:
            unpacked = replace(self.context.rom, narrow=False).storage(view, kernel, choice.params)
            stored = self.context.rom.storage(view, kernel, choice.params)
            own = (own if measured else unpacked.bytes) - unpacked.bytes + stored.bytes
            choice = replace(choice, worth=self.context.rom.worth(view, kernel, choice.params, cost))
            cost += stored.instructions
        code = measured.code if measured else self.common.get(kernel.name, {})
        if not self.context.costs.rom:
            code = {normpath(f"{kernel.folder.name}/{source}"): CODE for source in kernel.sources}
        return _Option(choice, cost, own, sum(1 << self._number(name, size) for name, size in code.items()))

    def _number(self, name: str, size: int) -> int:
        if name not in self.numbers:
            self.numbers[name] = len(self.sizes)
            self.sizes.append(size)
        return self.numbers[name]


def _options(view: LayerView, choice: Choice, context: PassContext, code: _Code) -> list[_Option]:
    """Return the choice and all alternatives of the layer."""
    known = {kernel.name: kernel for kernel in context.kernels if kernel.lowers}
    is_fixed = not choice.kernel.lowers or choice.cost is None or context.is_ruled(view)
    options = [code.option(view, choice)]
    for option in () if is_fixed else choice.alternatives:
        if option.kernel in known and not option.reason and not option.flips and option.cost is not None:
            kernel = known[option.kernel]
            params = kernel.params.model_validate(option.params)
            other = replace(choice, kernel=kernel, params=params, cost=option.cost, cost_source=option.cost_source)
            options.append(code.option(view, other))
    if context.costs.lower_bounds:  # selection ignores differences below 1 %, so the search does too
        first = options[0].cost
        options = [
            replace(option, cost=first) if option.cost < first <= AS_GOOD * option.cost else option
            for option in options
        ]
    return options


@dataclass
class _Search:
    """Search for the option of each layer, as a list of numbers in the order of `indices`.

    rest   ROM bytes that do not depend on the choice
    sizes  bytes of the code sections
    """

    indices: Sequence[int]
    layers: Sequence[Sequence[_Option]]
    rest: int
    sizes: Sequence[int]
    ram: _RamLimit
    limit: float = inf  # of instructions
    _bytes: dict[int, int] = field(default_factory=dict)

    def best(self, exponent: float) -> list[int]:
        """Return the best options that the search reaches."""
        fastest = [0] * len(self.layers)
        if exponent <= _OTHERS:
            return self._improved(fastest, exponent)
        smallest = self._improved(fastest, EXPONENTS["rom"])
        if exponent != EXPONENTS["rom"]:
            self.limit = _MOST * self._instructions(fastest)
            if self._instructions(smallest) > self.limit:
                self.limit = min(self.limit, _WORTH * self._instructions(smallest))
                return self._improved(fastest, exponent)
        results = (self._improved(start, exponent) for start in (fastest, smallest))
        return min(results, key=lambda numbers: self._score(numbers, exponent))

    def _improved(self, now: list[int], exponent: float) -> list[int]:
        """Apply improving moves until there is none; return the options."""
        score, before = self._score(now, exponent), float("inf")
        while score < before:
            before = score
            for group, previous, preferred in list(self._moves(now)):
                rate = exponent * self._instructions(now) / self._rom(now)
                while True:
                    move = self._moved(now, group, previous, preferred, rate)
                    moved = self._score(move, exponent)
                    if moved >= score - _LEAST:
                        break
                    if self._fits_ram(move):
                        score, now = moved, move
                        break
        return now

    def _moves(self, now: Sequence[int]) -> Iterator[tuple[tuple[int, ...], str, str]]:
        """Yield (layers, kernel or variant to leave, preferred kernel or '')."""
        chosen = [(number, options[now[number]]) for number, options in enumerate(self.layers) if len(options) > 1]
        for name in sorted({option.kernel for _, option in chosen}):
            group = tuple(number for number, option in chosen if option.kernel == name)
            others = {option.kernel for number in group for option in self.layers[number]}
            yield from ((group, name, other) for other in sorted(others - {name}))
        for name in sorted({option.variant for _, option in chosen}):
            yield tuple(number for number, option in chosen if option.variant == name), name, ""
        yield from (((number,), option.variant, "") for number, option in chosen)

    def _moved(self, now: Sequence[int], group: Sequence[int], previous: str, preferred: str, rate: float) -> list[int]:
        """Return the options after a move: the best for each layer of the group, if it has another."""
        moved, code = list(now), 0
        for number in set(range(len(now))) - set(group):
            code |= self.layers[number][now[number]].code
        for number in group:
            options = self.layers[number]
            allowed = [
                n
                for n, option in enumerate(options)
                if previous not in (option.kernel, option.variant) and (number, n) not in self.ram.excluded
            ]
            allowed = [n for n in allowed if options[n].kernel == preferred] or allowed or [now[number]]

            def worth(n: int, options: Sequence[_Option] = options, code: int = code) -> float:
                return options[n].cost + rate * (options[n].own + self._size(options[n].code & ~code))

            moved[number] = min(allowed, key=worth)
            code |= options[moved[number]].code
        return moved

    def _fits_ram(self, move: Sequence[int]) -> bool:
        """Return whether the layers need no more RAM than the network; exclude options that do."""
        fits = True
        for number, new in enumerate(move):
            if new and (number, new) not in self.ram.included:
                options = self.layers[number]
                holds = self.ram.holds(self.indices[number], options[new].choice, options[0].choice)
                (self.ram.included if holds else self.ram.excluded).add((number, new))
                fits = fits and holds
        return fits

    def _score(self, numbers: Sequence[int], exponent: float) -> float:
        instructions = self._instructions(numbers)
        return inf if instructions > self.limit else log(max(1.0, instructions)) + exponent * log(self._rom(numbers))

    def _instructions(self, numbers: Sequence[int]) -> float:
        return fsum(options[number].cost for options, number in zip(self.layers, numbers, strict=True))

    def _rom(self, numbers: Sequence[int]) -> int:
        total, code = self.rest, 0
        for options, number in zip(self.layers, numbers, strict=True):
            total += options[number].own
            code |= options[number].code
        return max(1, total + self._size(code))

    def _size(self, code: int) -> int:
        if code not in self._bytes:
            self._bytes[code] = sum(size for number, size in enumerate(self.sizes) if code >> number & 1)
        return self._bytes[code]


@dataclass(frozen=True)
class _RamLimit:
    """RAM that layers need while they run, by the cheapest choices."""

    graph: Graph
    choices: Mapping[int, Choice]
    context: PassContext
    included: set[tuple[int, int]] = field(default_factory=set)
    excluded: set[tuple[int, int]] = field(default_factory=set)

    def holds(self, index: int, choice: Choice, instead_of: Choice) -> bool:
        """Return whether a kernel needs no more RAM than `instead_of`, or than some other layer.

        Always true for `rom` without an arena limit.
        """
        if self.context.config.optimize_for == "rom" and self.context.config.arena_limit is None:
            return True
        view = self.graph.view(self.graph.layers[index])
        if overlays(instead_of.kernel, view) and not overlays(choice.kernel, view):
            return False
        scratch, tensors = self._bound.needed(view, choice.kernel, choice.params)
        return scratch <= self._bound.needed(view, instead_of.kernel, instead_of.params)[0] or (
            scratch + tensors <= self._most
        )

    @cached_property
    def _bound(self) -> ArenaBound:
        bound = ArenaBound(self.graph, 0, self.context.lowerings)
        for index, choice in self.choices.items():
            bound.assign(self.graph.view(self.graph.layers[index]), choice.kernel)
        return bound

    @cached_property
    def _most(self) -> int:
        """Bytes of the layer that needs most."""
        layers = ((self.graph.view(self.graph.layers[index]), choice) for index, choice in self.choices.items())
        return max(sum(self._bound.needed(view, choice.kernel, choice.params)) for view, choice in layers)
