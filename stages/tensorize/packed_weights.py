"""Choose which weights are packed for `optimize_for: rom`: only as many as RAM can unpack.

The board's RAM is unknown here, because artifacts belong to the core. With an arena limit the plan must stay within
it. Without a limit it must not exceed the plan with unpacked weights. Plans are made as emit makes them for one block,
with each alignment that emit supports:

    decide with packing  ->  plan  ->  layers that need too much stay unpacked  ->  decide again  ->  ...

Each round leaves at least one more layer unpacked, so this ends, at the latest with no packed layer.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass

from stages.lower.arena import Buffer, liveness, plan
from stages.lower.arena.planner import lower_bound
from stages.tensorize.choices import Chosen
from stages.tensorize.pass_context import PassContext
from stages.tensorize.placement import scratch_of_layers

Scratch = Mapping[int, Mapping[str, int]]

ALIGNMENTS = (8, 16, 32, 64)


@dataclass(frozen=True)
class _RamLimit:
    """Bytes of the arena by alignment, and of its largest buffer.

    The buffer counts because no region of several may have to hold a larger one.
    """

    arena: Mapping[int, int]
    buffer: float = float("inf")

    def holds(self, buffers: Iterable[Buffer]) -> bool:
        """Return whether a plan of the buffers stays within the limit."""
        planned = list(buffers)
        return all(plan(planned, alignment).total <= most for alignment, most in self.arena.items()) and all(
            buffer.bytes <= self.buffer for buffer in planned
        )

    def holds_at_once(self, buffers: Iterable[Buffer]) -> bool:
        """Return whether buffers that are alive together stay within the limit, at any offsets."""
        alive = list(buffers)
        return all(lower_bound(alive, alignment) <= most for alignment, most in self.arena.items()) and all(
            buffer.bytes <= self.buffer for buffer in alive
        )


def fit_to_ram(
    context: PassContext, unpacked: Callable[[], Chosen], packed: Callable[[frozenset[str]], Chosen]
) -> Chosen:
    """Return the decision of `packed`, with as many layers unpacked as RAM requires.

    unpacked  decides with all weights unpacked
    packed    decides with the weights of these layers unpacked, and others packed if worth it
    """
    wide: frozenset[str] = frozenset()
    chosen = packed(wide)
    limit: _RamLimit | None = None
    while widened := _widened(chosen):
        if limit is None:
            limit = _ram_limit(context, unpacked)
        excluded = _too_large(chosen, widened, limit, context)
        if not excluded:
            return chosen
        wide |= {chosen.graph.layers[index].name for index in excluded}
        chosen = packed(wide)
    return chosen if limit is None else unpacked()


def _ram_limit(context: PassContext, unpacked: Callable[[], Chosen]) -> _RamLimit:
    """Return the recipe's limit, or the arena of the plan with unpacked weights."""
    limit = context.config.arena_limit
    if limit is not None:
        return _RamLimit(dict.fromkeys(ALIGNMENTS, limit))
    chosen = unpacked()
    buffers = _buffers(chosen, scratch_of_layers(chosen, context), {})
    arena = {alignment: plan(buffers, alignment).total for alignment in ALIGNMENTS}
    return _RamLimit(arena, max((buffer.bytes for buffer in buffers), default=0))


def _widened(chosen: Chosen) -> dict[int, Mapping[str, int]]:
    """Return the scratch of unpacked constants by layer."""
    if chosen.rom is None:
        return {}
    scratch = {}
    for index, choice in chosen.choices.items():
        storage = chosen.rom.storage(chosen.graph.view(chosen.graph.layers[index]), choice.kernel, choice.params)
        if storage.scratch:
            scratch[index] = storage.scratch
    return scratch


def _too_large(chosen: Chosen, widened: Scratch, limit: _RamLimit, context: PassContext) -> set[int]:
    """Return the layers that stay unpacked in ROM so that the arena keeps its limit."""
    scratch, remaining = scratch_of_layers(chosen, context), dict(widened)
    while remaining and not limit.holds(buffers := _buffers(chosen, scratch, remaining)):
        alone = {index for index in remaining if not limit.holds_at_once(_alive(buffers, index))}
        for index in alone or {max(remaining, key=lambda index: (sum(remaining[index].values()), index))}:
            del remaining[index]
    return widened.keys() - remaining.keys()


def _buffers(chosen: Chosen, scratch: Scratch, widened: Scratch) -> tuple[Buffer, ...]:
    graph, choices = chosen.graph, chosen.choices
    total_scratch = {index: {**needed, **widened.get(index, {})} for index, needed in scratch.items()}
    views = {index: choice.kernel.seen(graph.view(graph.layers[index])) for index, choice in choices.items()}
    overlaid = frozenset(index for index, choice in choices.items() if choice.kernel.overlays(views[index]))
    return tuple(liveness(graph, total_scratch, overlaid).buffers)


def _alive(buffers: Iterable[Buffer], now: int) -> Iterator[Buffer]:
    return (Buffer(b.name, b.bytes, now, now) for b in buffers if b.first <= now <= b.last)
