"""A board with more memory than it has, for the sizes of a network that does not fit."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from stages.backends.targets.memory import Memory

if TYPE_CHECKING:
    from stages.backends.targets.spec import Target

_MORE = 32 << 20


def with_larger_memory(target: Target) -> Target:
    """Return the target with 32 MB more in each region that is the last choice for its content.

    Other regions keep their lengths, so that they are filled first, as on the board. Regions keep their addresses,
    unless a larger one before them needs the space. The result cannot be simulated.
    """
    memory = target.memory
    assert memory is not None
    read_only = [name for name in memory.homes("weights") if not memory.regions[name].is_written]
    last = {memory.homes("arena")[-1], memory.home("code"), memory.home("constants"), *read_only[-1:]}
    larger = {name for region in last for name in memory.same(memory.regions[region].same_as or region)}
    regions: dict[str, Any] = {}
    end = 0
    for name, region in sorted(memory.regions.items(), key=lambda item: item[1].origin):
        length = region.length + (_MORE if name in larger else 0)
        regions[name] = region.model_copy(update={"origin": max(region.origin, end), "length": length})
        end = regions[name].end
    changed = Memory(stack=memory.stack, reserve=memory.reserve, **{name: regions[name] for name in memory.regions})
    return target.model_copy(update={"memory": changed, "simulated": None})
