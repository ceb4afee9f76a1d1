"""Costs at the far end of what they may be, for asking whether another choice could be the right one.

What was not measured may take more or less by this, in powers of e:

    fitted       near + apart * d + times * s     d: distance from what it was measured on; s: how far the model is off
                                                  for what is like it there (stages.tensorize.nearby)
                 in wide bounds no less than wide * (1 + d)
    estimated    most                             a kernel's own word, or a model far from all that was measured
    unknown      anything, as far as numbers can be added: a float tells one instruction beside the most

Of 21,000 measurements, each told from all that are no other layout of its layer, 94 % are within the bounds of fitted
ones. `doit calibrate target=NAME drawn=200` says of layers that no table has how many get a kernel within 5 % of the
best.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any

from stages.tensorize.costs import CostTable, Price, signature, variant
from stages.tensorize.logarithms import exp

if TYPE_CHECKING:
    from stages.graph import LayerView
    from stages.kernels.kernel import Kernel
    from stages.targets.spec import Target

_NEAR, _APART, _TIMES, _MOST = 0.03, 0.01, 1.5, 0.7
_WIDE = 0.1
_ANYTHING = 1e15
_KNOWN = ("tuned", "measured", "modelled")

Call = tuple[str, str]
"""The signature of a layer, as its kernel sees it, and the variant that computes it."""


def call_of(kernel: Kernel, view: LayerView, params: Any) -> Call:
    """By which a measurement is known."""
    return signature(kernel.seen(view)), variant(kernel, params)


@dataclass(frozen=True)
class DoubtedCosts(CostTable):
    """Of the calls that are `taken` the most that they may cost, of all others the least.

    Those of `given` cost what is known of them: they cannot be measured.
    """

    taken: frozenset[Call] = frozenset()
    given: frozenset[Call] = frozenset()
    wide: bool = False

    @classmethod
    def of(
        cls, costs: CostTable, taken: frozenset[Call], given: frozenset[Call], *, wide: bool = False
    ) -> DoubtedCosts:
        """These costs, in doubt; in `wide` bounds for who wants to be sure."""
        known = {one.name: getattr(costs, one.name) for one in fields(costs)}
        return cls(**known, taken=taken, given=given, wide=wide)

    def price(self, kernel: Kernel, view: LayerView, params: Any, target: Target) -> Price:
        """The end of its bounds, as if it were measured: a guess that may be right counts as that."""
        bounds = self.bounds(kernel, view, params, target)
        if bounds is None:
            return super().price(kernel, view, params, target)
        return Price(bounds[call_of(kernel, view, params) in self.taken], "measured")

    def width(self, kernel: Kernel, view: LayerView, params: Any, target: Target) -> float:
        """How far a call may be off: instructions between its bounds, 0 where they are known."""
        least, most = self.bounds(kernel, view, params, target) or (0.0, 0.0)
        return most - least

    def bounds(self, kernel: Kernel, view: LayerView, params: Any, target: Target) -> tuple[float, float] | None:
        """The least and the most that a call may cost; None where that is known, or cannot be."""
        price, call = super().price(kernel, view, params, target), call_of(kernel, view, params)
        if price.source in _KNOWN or call in self.given:
            return None
        if price.cost is None:
            return 0.0, _ANYTHING
        off = _MOST
        if price.source == "fitted" and self.nearby is not None:
            apart = self.nearby.distance(call[1], call[0])
            likely = _NEAR + _APART * apart + _TIMES * self.nearby.spread(call[1], call[0])
            off = min(off, max(likely, _WIDE * (1 + apart)) if self.wide else likely)
        return price.cost * exp(-off), price.cost * exp(off)
