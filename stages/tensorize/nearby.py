"""How far the model of a kernel is off for a layer, by how far it is off for the measured layers most like it.

A model has few quantities, and kernels have edges that these do not see: a block of channels that is half empty, one
channel, an image of one pixel. Near layers have the same ones. So what a model says is multiplied by the mean of

    measured / modelled        geometric, each weighed by 1 / (1/2 + d^2)^2

over the measured layers of the same kind, where d is the distance between shapes, windows and layouts, in factors of
two; and by 1, with the weight of a layer at some distance, so that far ones change nothing.

What comes of it is no further from the kernel's own estimate than any of these layers is: a model of a few large layers
has instructions for each call that no small one takes.

Choices go into keys, so the factor is the same number on every machine: stages.tensorize.logarithms, sums by fsum or by
adding in turn. Those of numpy and of C differ in their last digit.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from math import fsum, sqrt
from typing import TYPE_CHECKING, Any

from stages.tensorize.logarithms import exp, ln, log2

if TYPE_CHECKING:
    import numpy.typing as npt

    Array = npt.NDArray[Any]

_TENSOR = re.compile(r"\[([0-9x]*)\](\w*)")
_NEAR = 0.5  # of squared distance: layers nearer than that count alike
_UNCHANGED = 0.02  # the weight of a model that is right
_LITTLE = 0.005  # the weight of what models are off by as a rule
_USUAL = 0.2  # which is this, in powers of e
_SOME = 4  # layers that tell how far estimates are off
_OTHER = 2.0  # the distance of another layout, or of a window that reaches over the border
_PAIRS = ("kernel", "stride", "dilation", "groups")


@dataclass(frozen=True)
class Nearby:
    """`layers` are signature -> variant -> what was measured, what the model says of that, and the kernel itself."""

    layers: Mapping[str, Mapping[str, tuple[float, float, float | None]]]
    _known: dict[tuple[str, str], tuple[Array, Array] | None] = field(default_factory=dict, repr=False, compare=False)
    _bounds: dict[tuple[str, str], tuple[float, float]] = field(default_factory=dict, repr=False, compare=False)

    def instructions(self, variant: str, text: str, modelled: float, estimate: float | None) -> float:
        """What a variant takes for the layer with this signature, of which a model and the kernel say this."""
        corrected = modelled * self.factor(variant, text)
        if not estimate:
            return corrected
        least, most = self._off(variant, _kind(text))
        return min(max(corrected, least * estimate), most * estimate)

    def factor(self, variant: str, text: str) -> float:
        """By what the model's instructions of a variant are to be multiplied for the layer with this signature."""
        known = self._of(variant, _kind(text))
        if known is None:
            return 1.0
        errors, weights = known[1], _weights(known[0], text)
        return exp(_mean(errors, weights))

    def spread(self, variant: str, text: str) -> float:
        """How far factors are off for measured layers like the one of a signature: root mean square, in powers of e.

        Near ones count most, as in the factor; of a layer unlike all that were measured it is what is usual.
        """
        known = self._of(variant, _kind(text))
        if known is None:
            return _USUAL
        errors, weights = known[1], _weights(known[0], text)
        apart = errors - _mean(errors, weights)
        squares = fsum((weights * apart * apart).tolist()) + _LITTLE * _USUAL * _USUAL
        return sqrt(squares / (fsum(weights.tolist()) + _LITTLE))

    def distance(self, variant: str, text: str) -> float:
        """How far the layer of a signature is from the nearest that the variant was measured on; inf without any."""
        known = self._of(variant, _kind(text))
        return float("inf") if known is None else float(_squared(known[0], text).min()) ** 0.5

    def _off(self, variant: str, kind: str) -> tuple[float, float]:
        """The least and the most that one of the kind took, by the estimate; no bounds of fewer than `_SOME`."""
        if (variant, kind) not in self._bounds:
            rows = [row[variant] for text, row in self.layers.items() if variant in row and _kind(text) == kind]
            ratios = [took / estimate for took, _, estimate in rows if estimate]
            known = len(ratios) == len(rows) >= _SOME
            self._bounds[variant, kind] = (min(ratios), max(ratios)) if known else (0.0, float("inf"))
        return self._bounds[variant, kind]

    def _of(self, variant: str, kind: str) -> tuple[Array, Array] | None:
        """Coordinates and errors, in powers of e, of the layers of the kind that the variant was measured on."""
        import numpy as np

        if (variant, kind) not in self._known:
            pairs = [
                (text, row[variant]) for text, row in self.layers.items() if variant in row and _kind(text) == kind
            ]
            usable = [(_place(text), took / said) for text, (took, said, _) in pairs if took > 0 and said > 0]
            found = None
            if usable:
                axes = np.array([place for place, _ in usable]).T.copy()
                found = axes, np.array([ln(ratio) for _, ratio in usable])
            self._known[variant, kind] = found
        return self._known[variant, kind]


def _weights(axes: Array, text: str) -> Array:
    """What measured layers, which have a row for each coordinate, count for the layer of a signature."""
    apart = _NEAR + _squared(axes, text)
    found: Array = 1 / (apart * apart)
    return found


def _mean(errors: Array, weights: Array) -> float:
    """Of the errors, with the weight of a model that is right."""
    return fsum((weights * errors).tolist()) / (fsum(weights.tolist()) + _UNCHANGED)


def _squared(axes: Array, text: str) -> Array:
    """Squared distances of a layer from others, which have a row for each coordinate."""
    apart: Array = sum((axis - here) * (axis - here) for axis, here in zip(axes, _place(text), strict=True))
    return apart


def _kind(text: str) -> str:
    return text.partition(" ")[0]


@lru_cache(maxsize=1 << 14)
def _place(text: str) -> tuple[float, ...]:
    """Where a layer is among others, from its signature (stages.tensorize.costs)."""
    read, _, rest = text.partition(" -> ")
    inputs, (out, *options) = _TENSOR.findall(read), rest.split(" ")
    found: list[float] = [float(len(inputs))]
    for sizes, layout in (inputs[0], _TENSOR.findall(out)[0]):
        found += [_log2(size) for size in _four(sizes)]
        found += [_OTHER * bool(layout), _OTHER * layout.endswith("c")]
    given = dict(option.partition("=")[::2] for option in options)
    for name in _PAIRS:
        found += [_log2(number) for number in _numbers(given.get(name, "1"), 1 if name == "groups" else 2)]
    order = _numbers(given.get("permutation", "0x1x2x3"), 4)
    found += [_OTHER * (axis != place) for place, axis in enumerate(order)]
    return (*found, _OTHER * ("padding" in given), _OTHER * int(given.get("axis", "0")))


@lru_cache(maxsize=1 << 14)
def _log2(size: int) -> float:
    """Of 0 as of 1."""
    return log2(max(size, 1))


def _four(sizes: str) -> Sequence[int]:
    """The last four of a shape's sizes, 1 for those that it has not."""
    return [1, 1, 1, 1, *(int(size) for size in sizes.split("x") if size)][-4:]


def _numbers(text: str, count: int) -> Sequence[int]:
    numbers = [int(number) for number in text.split("x")]
    return (numbers * count)[:count]
