"""The bytes of the arena for chosen kernels."""

from __future__ import annotations

from stages.ir.operators.floats import Float
from stages.lower.arena import Buffer, liveness, plan
from stages.tensorize.choices import Chosen
from stages.tensorize.in_place import overlaid
from stages.tensorize.lowering import Lowered
from stages.tensorize.pass_context import PassContext


def arena_bytes(chosen: Chosen, context: PassContext) -> int:
    """Return the bytes of the arena, as emit plans it with an alignment of 16 bytes."""
    return plan(arena_buffers(chosen, context)).total


def arena_buffers(chosen: Chosen, context: PassContext) -> tuple[Buffer, ...]:
    """Return the buffers of the arena: tensors and scratch."""
    graph, lowerings = chosen.graph, context.lowerings
    lowered: list[tuple[int, Lowered]] = []
    sizes: dict[int, dict[str, int]] = {}
    for layer in graph.layers:
        index, streamed = layer.index, chosen.streamed.get(layer.index)
        if streamed is None:
            if isinstance(layer.op, Float):
                lowered.append((index, lowerings.of_float(layer)))
            elif (choice := chosen.choices.get(index)) is not None:
                lowered.append((index, lowerings.of_kernel(graph.view(layer), choice.kernel, choice.params)))
            continue
        for band in filter(None, (streamed.band, streamed.rest)):
            if band.choice is None:
                lowered.append((index, lowerings.of_float(layer, band.view.outputs[0].shape[1])))
            elif band.choice.kernel.lowers:
                lowered.append((index, lowerings.of_kernel(band.view, band.choice.kernel, band.choice.params)))
            else:
                sizes[index] = {"sums": 4 * band.view.inputs[0].shape[3]}
    for (index, _), scratch in zip(lowered, lowerings.scratch([layer for _, layer in lowered]), strict=True):
        known = sizes.setdefault(index, {})
        sizes[index] = {name: max(count, known.get(name, 0)) for name, count in {**known, **scratch}.items()}
    kernels = ((index, choice.kernel) for index, choice in chosen.choices.items() if index not in chosen.streamed)
    return liveness(graph, sizes, overlaid(graph, kernels), groups=chosen.groups).buffers
