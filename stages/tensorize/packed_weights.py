"""Weights of few bits that nobody asked for by name are kept so only where there is RAM to widen them.

How much RAM the board has is not known here, where artifacts are those of the core. So a recipe without a limit of the
arena gets none that is larger than with whole bytes, and one with a limit a plan within it. It is planned as emit plans
one block, with each alignment that emit may be told:

    decided with few bits  ->  planned  ->  layers that need too much keep whole bytes  ->  decided again  ->  ...

Each time at least one layer more keeps whole bytes, so this ends: where none is left, with what whole bytes give.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from stages.lower.arena import Buffer, liveness, plan
from stages.lower.arena.planner import lower_bound
from stages.tensorize.placement import scratch_of_layers

if TYPE_CHECKING:
    from stages.tensorize.choices import Chosen
    from stages.tensorize.pass_context import PassContext

Scratch = Mapping[int, Mapping[str, int]]

ALIGNMENTS = (8, 16, 32, 64)


@dataclass(frozen=True)
class _Room:
    """Bytes of the arena by alignment, and of its largest buffer: no memory of several need hold a larger one."""

    arena: Mapping[int, int]
    buffer: float = float("inf")

    def holds(self, buffers: Iterable[Buffer]) -> bool:
        """Whether a plan for them is found that keeps to it."""
        found = list(buffers)
        return all(plan(found, alignment).total <= room for alignment, room in self.arena.items()) and all(
            one.bytes <= self.buffer for one in found
        )

    def holds_at_once(self, buffers: Iterable[Buffer]) -> bool:
        """Whether those that are alive together do, wherever they lie."""
        found = list(buffers)
        return all(lower_bound(found, alignment) <= room for alignment, room in self.arena.items()) and all(
            one.bytes <= self.buffer for one in found
        )


def fit_to_ram(context: PassContext, whole: Callable[[], Chosen], narrow: Callable[[frozenset[str]], Chosen]) -> Chosen:
    """What `narrow` decides, with as many of its layers as it takes in whole bytes.

    whole   decides where all layers keep whole bytes
    narrow  decides where those of these names do, and others as it is worth
    """
    wide: frozenset[str] = frozenset()
    chosen = narrow(wide)
    room: _Room | None = None
    while widened := _widened(chosen):
        if room is None:
            room = _room(context, whole)
        back = _too_large(chosen, widened, room, context)
        if not back:
            return chosen
        wide |= {chosen.graph.layers[index].name for index in back}
        chosen = narrow(wide)
    return chosen if room is None else whole()


def _room(context: PassContext, whole: Callable[[], Chosen]) -> _Room:
    limit = context.config.arena_limit
    if limit is not None:
        return _Room(dict.fromkeys(ALIGNMENTS, limit))
    chosen = whole()
    buffers = _buffers(chosen, scratch_of_layers(chosen, context), {})
    arena = {alignment: plan(buffers, alignment).total for alignment in ALIGNMENTS}
    return _Room(arena, max((one.bytes for one in buffers), default=0))


def _widened(chosen: Chosen) -> dict[int, Mapping[str, int]]:
    """By layer the scratch into which constants of few bits are widened."""
    if chosen.rom is None:
        return {}
    found = {}
    for index, choice in chosen.choices.items():
        kept = chosen.rom.storage(chosen.graph.view(chosen.graph.layers[index]), choice.kernel, choice.params)
        if kept.scratch:
            found[index] = kept.scratch
    return found


def _too_large(chosen: Chosen, widened: Scratch, room: _Room, context: PassContext) -> set[int]:
    """Layers without whose widening the arena has room, as the kernels are now; all of them where it never has."""
    scratch, left = scratch_of_layers(chosen, context), dict(widened)
    while left and not room.holds(buffers := _buffers(chosen, scratch, left)):
        alone = {index for index in left if not room.holds_at_once(_alive(buffers, index))}
        for index in alone or {max(left, key=lambda index: (sum(left[index].values()), index))}:
            del left[index]
    return widened.keys() - left.keys()


def _buffers(chosen: Chosen, scratch: Scratch, widened: Scratch) -> tuple[Buffer, ...]:
    graph, choices = chosen.graph, chosen.choices
    both = {index: {**needed, **widened.get(index, {})} for index, needed in scratch.items()}
    views = {index: choice.kernel.seen(graph.view(graph.layers[index])) for index, choice in choices.items()}
    overlaid = frozenset(index for index, choice in choices.items() if choice.kernel.overlays(views[index]))
    return tuple(liveness(graph, both, overlaid).buffers)


def _alive(buffers: Iterable[Buffer], now: int) -> Iterator[Buffer]:
    return (Buffer(b.name, b.bytes, now, now) for b in buffers if b.first <= now <= b.last)
