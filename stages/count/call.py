"""A call: a kernel with its parameters, for a layer; and how much of a target's memory it takes."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from stages.tensorize.costs import Call, estimated, signature, variant
from stages.tensorize.select import offers_of

if TYPE_CHECKING:
    from stages.backends.kernels.kernel import Kernel, KernelParams
    from stages.backends.targets.spec import Target
    from stages.ir.graph import LayerView
    from stages.tensorize.choices import Chosen
    from stages.tensorize.pass_context import PassContext

# Of a target's RAM and ROM, what is left for everything but activations and weights: scratch, data; code.
_OTHER_RAM, _OTHER_ROM = 1 / 8, 1 / 4


@dataclass(frozen=True)
class KernelCall:
    """A kernel with its parameters, for the layer of `view` as the kernel sees it; `estimate` is the kernel's own."""

    view: LayerView
    kernel: Kernel
    params: KernelParams
    signature: str
    variant: str
    estimate: float | None

    @classmethod
    def of(cls, kernel: Kernel, view: LayerView, params: KernelParams, target: Target) -> KernelCall:
        """The call for a layer as it is in the graph."""
        seen = kernel.seen(view)
        estimate = estimated(kernel, seen, params, target)
        return cls(seen, kernel, params, signature(seen), variant(kernel, params), estimate)

    @property
    def key(self) -> Call:
        """By which its count is known."""
        return self.signature, self.variant


def chosen_calls(chosen: Chosen, target: Target) -> Iterator[tuple[LayerView, KernelCall]]:
    """The layers of a network with the calls that compute them, but for those of an engine: it has its own model."""
    for index, choice in chosen.choices.items():
        if choice.kernel.lowers:
            view = chosen.graph.view(chosen.graph.layers[index])
            yield view, KernelCall.of(choice.kernel, view, choice.params, target)


def possible_calls(view: LayerView, context: PassContext) -> Iterator[tuple[KernelCall, float]]:
    """The calls that can compute a layer, and what each costs as far as is known."""
    able = [one for one in context.kernels if one.is_for(view.op) and not one.why_not(view, context.target)]
    for offer in offers_of(view, context.target, able, context.costs):
        if offer.kernel.lowers and offer.price.cost is not None:
            yield KernelCall.of(offer.kernel, view, offer.params, context.target), offer.price.cost


@dataclass(frozen=True)
class Memory:
    """Bytes of activations and of weights, of a layer or of all layers of a firmware."""

    activations: float
    weights: float

    @property
    def half(self) -> Memory:
        """Half of it."""
        return Memory(self.activations / 2, self.weights / 2)

    def __add__(self, other: Memory) -> Memory:
        return Memory(self.activations + other.activations, self.weights + other.weights)

    def __le__(self, other: Memory) -> bool:
        return self.activations <= other.activations and self.weights <= other.weights


def memory_of(target: Target) -> Memory:
    """What the target's memory holds; without limit where the operating system provides it."""
    if target.memory is None:
        return Memory(float("inf"), float("inf"))
    ram, rom = target.memory.region_of("arena").length, target.memory.region_of("weights").length
    return Memory(ram * (1 - _OTHER_RAM) - target.memory.stack, rom * (1 - _OTHER_ROM))


def memory_for(view: LayerView) -> Memory:
    """What a layer takes, its weights not packed."""
    weights = sum(view.constant(role).nbytes for role in view.layer.constants)
    return Memory(sum(tensor.bytes for tensor in (*view.inputs, *view.outputs)), weights)
