"""Cases at the bounds where a kernel changes its arithmetic.

A kernel that has a fast way for some ranges of the sums and a safe one for the others chooses by the constants, when it
packs them, and says so nowhere. But it shows: where a bias passes the bound, more changes in the packed constants than
the bias (or the kernel refuses the layer). So the bounds are found by bisection, and cases lie on both sides.
"""

from collections.abc import Callable, Iterator, Mapping
from itertools import pairwise
from typing import Any

import numpy as np

from stages.backends.kernels.kernel import Kernel
from stages.backends.targets.spec import Target
from stages.base import StageError
from stages.ir.graph import LayerView
from tests.conformance.case import Case
from tests.conformance.draw import Draw, bounds, with_constants

SHIFTS = {"double": (-1, -2, -5, -11, -12, -13, -15, -16, -20, 0), "single": (-2, -3, -9, -15)}
_EXPONENTS = range(31)

Packed = tuple[str, bytes]


def bound_cases(kernel: Kernel, target: Target, plain: Callable[[Draw, str], LayerView]) -> Iterator[Case]:
    """Cases beside each bound of the kernel. `plain(draw, rounding)` is a layer of which most weights are 0."""
    for rounding, shifts in SHIFTS.items():
        for number, shift in enumerate(shifts):
            draw = Draw(number, ("int8", "uint8")[number % 2])
            layer = _uniform(
                plain(draw, rounding), shift, draw.choose(1 << 30, 3 << 29, draw.integer(1 << 30, (1 << 31) - 1))
            )
            for sign in (1, -1):
                for bias in _bounds(kernel, target, layer, sign):
                    for name, value in (("inside", bias), ("outside", bias + sign)):
                        made = _with_bias(layer, value)
                        if kernel.why_not(made, target) == "":
                            title = f"{kernel.name} {rounding} shift {shift}, {name} of a bound at {bias}"
                            yield Case(title, ("bounds of modes",), made, _runs(made))


def _uniform(layer: LayerView, shift: int, multiplier: int) -> LayerView:
    units = layer.constant("bias").size
    return with_constants(
        layer,
        bias=np.zeros(units, np.int32),
        shift=np.full(units, shift, np.int32),
        multiplier=np.full(units, multiplier, np.int32),
    )


def _with_bias(layer: LayerView, bias: int) -> LayerView:
    """One channel has the bias; the others some near it, so that no range is larger."""
    array = np.full(layer.constant("bias").size, bias - bias // 8, np.int32)
    array[1] = bias
    return with_constants(layer, bias=array)


def _runs(layer: LayerView) -> tuple[Any, ...]:
    """Every value on its own, and the extremes of every sum: where the weights of a channel are positive, and not."""
    x = layer.inputs[0]
    low, high = bounds(x.dtype)
    flat = np.arange(x.elements) % 256 + low
    runs = [np.full(x.shape, value, x.dtype) for value in (low, high, layer.op.input_zero_point)]
    return tuple((run,) for run in (*runs, flat.reshape(x.shape).astype(x.dtype)))


def _bounds(kernel: Kernel, target: Target, layer: LayerView, sign: int) -> list[int]:
    """The biases of that sign that are the last before the packing changes, from small to large."""
    biases = [sign * ((1 << exponent) - 1) for exponent in _EXPONENTS]
    packed = {bias: _packed(kernel, target, _with_bias(layer, bias)) for bias in biases}
    hidden = _bias_words(kernel, target, layer, packed, sign)

    def shown(bias: int) -> Packed:
        made = packed.get(bias)
        if made is None:
            made = _packed(kernel, target, _with_bias(layer, bias))
        if isinstance(made, str):
            return made, b""
        return "", np.where(hidden.get(made.size, False), 0, made).tobytes()

    found = []
    for low, high in pairwise(biases):
        if shown(low) != shown(high):
            found.append(_last(shown, low, high))
    return found


def _last(shown: Callable[[int], Packed], low: int, high: int) -> int:
    """The bias nearest to `high` that shows what `low` does; one bound where there are several between them."""
    wanted = shown(low)
    while abs(high - low) > 1:
        middle = (low + high) // 2
        if shown(middle) == wanted:
            low = middle
        else:
            high = middle
    return low


def _bias_words(
    kernel: Kernel, target: Target, layer: LayerView, packed: Mapping[int, np.ndarray | str], sign: int
) -> dict[int, np.ndarray]:
    """The packed words that hold biases, by the number of words: those that change from 2^n - 1 to 2^n.

    All lower bits of a bias do then.
    """
    hidden: dict[int, np.ndarray] = {}
    for bias, before in packed.items():
        after = _packed(kernel, target, _with_bias(layer, bias + sign))
        if not isinstance(before, str) and not isinstance(after, str) and after.size == before.size:
            hidden[before.size] = hidden.get(before.size, False) | (after != before)
    return hidden


def _packed(kernel: Kernel, target: Target, layer: LayerView) -> np.ndarray | str:
    """The packed constants as words of 32 bits, or why there are none."""
    try:
        reason = kernel.why_not(layer, target)
        if reason:
            return "refused"
        made = kernel.pack_for(kernel.seen(layer), kernel.params(), target)
    except StageError as error:
        return str(error)
    data = b"".join(np.ascontiguousarray(made[key]).tobytes() for key in sorted(made))
    return np.frombuffer(data + bytes(-len(data) % 4), np.uint32)
