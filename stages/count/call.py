"""Calls: a kernel with parameters for a layer, and the memory that it takes."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from stages.backends.targets.spec import Target
from stages.ir.graph import LayerView
from stages.tensorize.choices import Chosen
from stages.tensorize.costs import KernelCall
from stages.tensorize.pass_context import PassContext

# Shares of a target's RAM for scratch and data, and of its ROM for code.
_OTHER_RAM, _OTHER_ROM = 1 / 8, 1 / 4


def chosen_calls(chosen: Chosen, target: Target) -> Iterator[tuple[LayerView, KernelCall]]:
    """Yield the layers of a network with their calls, except for layers of an engine."""
    for index, choice in chosen.choices.items():
        if choice.kernel.lowers:
            view = chosen.graph.view(chosen.graph.layers[index])
            yield view, KernelCall.of(choice.kernel, view, choice.params, target)
    for streamed in chosen.streamed.values():
        for band in filter(None, (streamed.band, streamed.rest)):
            if band.choice is None or not band.choice.kernel.lowers:
                continue
            yield band.view, KernelCall.of(band.choice.kernel, band.view, band.choice.params, target)


def possible_calls(view: LayerView, context: PassContext) -> Iterator[tuple[KernelCall, float]]:
    """Yield the calls that can compute a layer, and the price of each if it is known."""
    for call in context.calls(view):
        price = context.costs.price_of(call)
        if call.kernel.lowers and price.cost is not None:
            yield call, price.cost


@dataclass(frozen=True)
class Memory:
    """Bytes of activations and weights, of a layer or a firmware."""

    activations: float
    weights: float

    @property
    def half(self) -> Memory:
        """Return half of both sizes."""
        return Memory(self.activations / 2, self.weights / 2)

    def __add__(self, other: Memory) -> Memory:
        return Memory(self.activations + other.activations, self.weights + other.weights)

    def __le__(self, other: Memory) -> bool:
        return self.activations <= other.activations and self.weights <= other.weights


def memory_of(target: Target) -> Memory:
    """Return the target's capacity; infinite if an operating system provides the memory."""
    if target.memory is None:
        return Memory(float("inf"), float("inf"))
    ram, rom = target.memory.region_of("arena").length, target.memory.region_of("weights").length
    return Memory(ram * (1 - _OTHER_RAM) - target.memory.stack, rom * (1 - _OTHER_ROM))


def memory_for(view: LayerView) -> Memory:
    """Return the memory of a layer, with its weights unpacked."""
    weights = sum(view.constant(role).nbytes for role in view.layer.constants)
    return Memory(sum(tensor.bytes for tensor in (*view.inputs, *view.outputs)), weights)
