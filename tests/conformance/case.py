"""A case of the suite: a layer, what it is there for, and the inputs it runs on."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from stages.ir.graph import LayerView, Tensor
from stages.ir.reference.integer import advance_layer
from tests.conformance.draw import Draw, bounds

Inputs = tuple[np.ndarray, ...]


@dataclass(frozen=True)
class Case:
    """`covers` are the classes of the coverage table; each of `inputs` is one run, arrays in logical order.

    `within`: how far numbers may be from the reference's, of themselves, where functions of the C library round.
    """

    name: str
    covers: tuple[str, ...]
    view: LayerView
    inputs: tuple[Inputs, ...]
    within: float = 0.0

    @cached_property
    def states(self) -> list[Inputs]:
        """What the layer's state is before each run: any values, for whatever runs came before.

        Floats are quarters. Where functions of the C library round, they are at most 2: an exponential of large sums
        amplifies their rounding.
        """
        draw = Draw(len(self.inputs))
        states = [tuple(whole(values(draw, tensor)) for tensor in self.view.states) for _ in self.inputs]
        return [tuple(state.clip(-2, 2) for state in run) for run in states] if self.within else states

    @cached_property
    def expected(self) -> list[Inputs]:
        """The reference's output of each run, then the state behind it, in logical order."""
        with np.errstate(over="ignore"):  # quotients beyond float32
            made = [advance_layer(self.view, *run) for run in zip(self.inputs, self.states, strict=True)]
        return [(output, *states) for output, states in made]


def values(draw: Draw, tensor: Tensor) -> np.ndarray:
    """Any values of the tensor's type."""
    return draw.array(tensor.shape, tensor.dtype)


def whole(array: np.ndarray) -> np.ndarray:
    """Floats as multiples of a quarter, of which sums of products are exact in any order; integers as they are."""
    return (np.round(array * 4) / 4).astype(array.dtype) if array.dtype == np.float32 else array


def extremes(tensors: Sequence[Tensor]) -> list[Inputs]:
    """All lowest, all highest, both in turn and the other way round; two inputs at opposite ends as well."""

    def filled(tensor: Tensor, even: int, odd: int) -> np.ndarray:
        ends = (-3e38, 3e38) if tensor.dtype == "float32" else bounds(tensor.dtype)
        parity = np.indices(tensor.shape).sum(0) % 2
        return np.where(parity, ends[odd], ends[even]).astype(tensor.dtype)

    patterns = [(0, 0), (1, 1), (0, 1), (1, 0)]
    found = [tuple(filled(tensor, *pattern) for tensor in tensors) for pattern in patterns]
    if len(tensors) > 1:
        for first in (0, 1):
            ends = [first if number == 0 else 1 - first for number in range(len(tensors))]
            found.append(tuple(filled(tensor, end, end) for tensor, end in zip(tensors, ends, strict=True)))
    return found


def drawn_inputs(draw: Draw, layer: LayerView) -> tuple[Inputs, ...]:
    """Any values, then every extreme."""
    return (tuple(values(draw, tensor) for tensor in layer.inputs), *extremes(layer.inputs))


def case(name: str, draw: Draw, layer: LayerView, *covers: str) -> Case:
    """A case on `drawn_inputs`."""
    return Case(name, covers, layer, drawn_inputs(draw, layer))


def cases(
    count: int,
    make: Callable[[Draw], LayerView],
    *covers: str,
    name: str = "",
    types: Sequence[str] = ("int8",),
    inputs: Callable[[Draw, LayerView], tuple[Inputs, ...]] = drawn_inputs,
) -> Iterator[Case]:
    """Layers of the seeds 0 to `count`, of these types in turn; named by their operators, or all by one `name`."""
    for number in range(count):
        draw = Draw(number, types[number % len(types)])
        layer = make(draw)
        yield Case(f"{name or layer.op.op} {number}", covers, layer, inputs(draw, layer))
