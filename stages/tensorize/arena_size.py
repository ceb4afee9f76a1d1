"""The bytes of the arena for chosen kernels."""

from collections.abc import Mapping

from stages.backends.kernels.kernel import RowSumKernel
from stages.ir.graph import LayerView
from stages.ir.operators.floats import Float
from stages.lower.arena import Buffer, liveness, plan
from stages.tensorize.choices import Band, Chosen
from stages.tensorize.in_place import overlaid
from stages.tensorize.lowering import Lowered
from stages.tensorize.pass_context import PassContext
from stages.tensorize.select import Choice


def arena_bytes(chosen: Chosen, context: PassContext) -> int:
    """Return the bytes of the arena that emit plans, aligned to 16 bytes, or a few more."""
    return plan(arena_buffers(chosen, context)).total


def arena_buffers(chosen: Chosen, context: PassContext) -> tuple[Buffer, ...]:
    """Return the buffers of the arena: tensors and scratch."""
    graph, lowerings = chosen.graph, context.lowerings
    sizes: dict[int, dict[str, int]] = {}
    floats: list[tuple[int, Lowered]] = []
    for layer in graph.layers:
        index, streamed = layer.index, chosen.streamed.get(layer.index)
        calls = [Band(graph.view(layer), 0.0, chosen.choices.get(index))] if streamed is None else streamed.bands
        sizes[index] = {}
        for call in calls:
            _enlarge(sizes[index], _scratch(call.view, call.choice, context))
        if isinstance(layer.op, Float):
            heights = [0] if streamed is None else [call.view.outputs[0].shape[1] for call in calls]
            floats += ((index, lowerings.of_float(layer, rows)) for rows in heights)
    for (index, _), scratch in zip(floats, lowerings.scratch([layer for _, layer in floats]), strict=True):
        _enlarge(sizes[index], scratch)
    kernels = ((index, choice.kernel) for index, choice in chosen.choices.items() if index not in chosen.streamed)
    return liveness(graph, sizes, overlaid(graph, kernels), groups=chosen.groups).buffers


def scratch_bytes(view: LayerView, choice: Choice | None, context: PassContext) -> int:
    """Return the scratch of a call in bytes; 0 for float layers."""
    return sum(_scratch(view, choice, context).values())


def _scratch(view: LayerView, choice: Choice | None, context: PassContext) -> dict[str, int]:
    """Return the scratch of a call in bytes by name: each one is a buffer, aligned on its own."""
    if choice is None:
        return {}
    if isinstance(choice.kernel, RowSumKernel):
        return {"sums": 4 * view.inputs[0].shape[3]}
    return context.lowerings.declared_scratch(view, choice.kernel, choice.params)


def _enlarge(sizes: dict[str, int], others: Mapping[str, int]) -> None:
    """Let each size be at least the other one of its name."""
    sizes |= {name: max(count, sizes.get(name, 0)) for name, count in others.items()}
