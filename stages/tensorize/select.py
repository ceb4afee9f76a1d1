"""Choose the kernel of a layer and its parameters: from a rule, otherwise the cheapest."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from pydantic import ValidationError

from stages.backends.kernels.kernel import Kernel
from stages.backends.targets.spec import Target
from stages.base import StageError, error_at
from stages.ir.graph import LayerView
from stages.ir.graph.layer_rules import about_unused
from stages.support.messages import escape
from stages.support.options.wrong_option import first_wrong
from stages.tensorize.config import TensorizeRule
from stages.tensorize.costs import Costs, Price, variant
from stages.tensorize.memory import ArenaBound
from stages.tensorize.plan import Alternative, Distance
from stages.tensorize.rom import Rom
from stages.tensorize.rules import unknown_kernel
from stages.tensorize.signedness import why_not_as_uint8

ONLY = "the only kernel for this layer"
AS_GOOD = 1.01


@dataclass(frozen=True)
class Choice:
    """A kernel with its parameters, the reason for it, and the rejected alternatives.

    instead   `A instead of B` if the arena limit excluded the kernel B, else ''
    distance  of the engine's arithmetic from LiteRT's, None if exact
    worth     the cost with the objective's price of bytes, None if only speed counts
    """

    kernel: Kernel
    params: Any
    why: str
    cost: float | None
    cost_source: str
    alternatives: tuple[Alternative, ...]
    instead: str = ""
    distance: Distance | None = None
    worth: float | None = None

    @property
    def price(self) -> float | None:
        """The cost that passes compare: instructions, None if unknown."""
        return self.cost if self.worth is None else self.worth

    @property
    def as_alternative(self) -> Alternative:
        """The choice as a rejected alternative."""
        params = self.params.model_dump(mode="json")
        return Alternative(kernel=self.kernel.name, params=params, cost=self.cost, cost_source=self.cost_source)


@dataclass(frozen=True)
class Offer:
    """A kernel that can compute the layer, with parameters and their price."""

    kernel: Kernel
    params: Any
    price: Price

    @property
    def variant(self) -> str:
        """The kernel with its parameters: `rvp.gemm_s8 mr=5`."""
        return variant(self.kernel, self.params)


def unused_rules(
    rules: Sequence[TensorizeRule], views: Sequence[LayerView], floats: Sequence[LayerView] = ()
) -> tuple[tuple[int, ...], list[str]]:
    """Return the numbers, from 1, of rules that decide for no layer, and warnings.

    `floats` are the float layers, which rules cannot decide.
    """
    numbered = list(enumerate(rules, 1))
    deciding = {next((number for number, rule in numbered if rule.match.fits(view)), 0) for view in views}
    fitting = {number for number, rule in numbered if any(rule.match.fits(view) for view in views)}
    shown = [f"{rule.match.described()} -> {rule.kernel}" for rule in rules]
    unused = tuple(number for number, _ in numbered if number not in deciding)
    warnings = about_unused("tensorize rule", shown, deciding, fitting)
    if any(rule.match.fits(view) for number, rule in numbered if number not in fitting for view in floats):
        warnings[-1] += " on integers; TVM's own code computes layers on float32"
    return unused, warnings


class ExceedsLimit(StageError):
    """No kernel keeps a layer within the arena's limit.

    `least` is the smallest sum of tensors and scratch, in bytes.
    """

    def __init__(self, least: int) -> None:
        super().__init__(f"a layer needs {least:,} bytes of arena")
        self.least = least


def choose(
    view: LayerView,
    target: Target,
    kernels: Iterable[Kernel],
    rules: Sequence[TensorizeRule],
    costs: Costs,
    bound: ArenaBound | None = None,
    rom: Rom | None = None,
) -> Choice:
    """Return the layer's kernel. Raises StageError if none, or not the rule's, can compute it.

    Kernels that exceed the `bound` of the arena are skipped. With `rom`, bytes have a price.
    """
    known = {kernel.name: kernel for kernel in kernels}
    offered = {name: kernel for name, kernel in known.items() if kernel.is_for(view.op)}
    reasons = {name: kernel.why_not(view, target) for name, kernel in offered.items()}
    able = [kernel for name, kernel in offered.items() if not reasons[name]]
    offers = offers_of(view, target, able, costs)
    rule = next((rule for rule in rules if rule.match.fits(view)), None)
    if rule is not None:
        number = list(rules).index(rule)
        with error_at("stages", "tensorize", "rules", number, "kernel"):
            kernel = _named(rule, target, known)
            params = _params(kernel, rule, ("stages", "tensorize", "rules", number, "params"))
            _check_able(kernel, view, target, reasons)
        allowed = (
            [Offer(kernel, params, costs.price(kernel, view, params, target))]
            if rule.params
            else [offer for offer in offers if offer.kernel is kernel]
        )
        best, refused = _cheapest(allowed, view, costs, bound, rom)
        why = f"rule {number + 1} of the recipe"
        if refused:
            why += ", with its cheapest parameters that keep to the arena's limit"
    else:
        if not offers:
            raise _nothing_can(view, target, reasons)
        best, refused = _cheapest(offers, view, costs, bound, rom)
        why = _reason(len(offers), best.price, limited=bool(refused), of_rom=rom is not None)
    return Choice(
        best.kernel,
        best.params,
        why,
        best.price.cost,
        best.price.source,
        _others(best, offers, reasons, refused),
        instead=f"{best.variant} instead of {refused[0][0].variant}" if refused else "",
        worth=None if rom is None else rom.worth(view, best.kernel, best.params, best.price.cost or 0.0),
    )


def offers_of(view: LayerView, target: Target, able: Iterable[Kernel], costs: Costs) -> list[Offer]:
    """Return the kernels in `able` with each of their parameter sets."""
    return [
        Offer(kernel, params, costs.price(kernel, view, params, target))
        for kernel in able
        for params in kernel.candidates(kernel.seen(view), target)
    ]


def _cheapest(
    offers: Sequence[Offer], view: LayerView, costs: Costs, bound: ArenaBound | None, rom: Rom | None
) -> tuple[Offer, list[tuple[Offer, str]]]:
    """Return the cheapest offer within the bound, and cheaper ones with their reasons.

    With counted costs the first offer within 1 % wins, so that choices do not depend on a few instructions. Ties and
    unknown costs go to the first: kernel folders are in order of preference. Raises ExceedsLimit if no offer fits.
    """
    refused: list[tuple[Offer, str]] = []
    if rom is None and costs.lower_bounds and bound is None:
        prices = [float("inf") if offer.price.cost is None else offer.price.cost for offer in offers]
        limit = AS_GOOD * min(prices, default=0.0)
        return next(offer for offer, price in zip(offers, prices, strict=True) if price <= limit), refused

    def order(offer: Offer) -> float:
        cost = float("inf") if offer.price.cost is None else offer.price.cost
        return cost if rom is None else rom.worth(view, offer.kernel, offer.params, cost)

    for offer in sorted(offers, key=order):
        reason = "" if bound is None else bound.why_not(view, offer.kernel, offer.params)
        if not reason:
            return offer, refused
        refused.append((offer, reason))
    assert bound is not None
    raise ExceedsLimit(min(sum(bound.needed(view, offer.kernel, offer.params)) for offer in offers))


def _others(
    best: Offer, offers: Sequence[Offer], reasons: dict[str, str], refused: Sequence[tuple[Offer, str]]
) -> tuple[Alternative, ...]:
    """Return the rejected offers and kernels as alternatives."""
    above = {id(offer): reason for offer, reason in refused}
    able = [
        Alternative(
            kernel=offer.kernel.name,
            params=offer.params.model_dump(mode="json"),
            cost=offer.price.cost,
            cost_source=offer.price.source,
            reason=above.get(id(offer), ""),
        )
        for offer in offers
        if (offer.kernel, offer.params) != (best.kernel, best.params)
    ]
    return (*able, *(Alternative(kernel=name, reason=reason) for name, reason in reasons.items() if reason))


def _nothing_can(view: LayerView, target: Target, reasons: dict[str, str]) -> StageError:
    lines = [f"no kernel of target {target.core} ({', '.join(target.kernels)}) can compute layer {_describe(view)}"]
    lines += [f"{name}: {reason}" for name, reason in list(reasons.items())[:3]]
    return StageError("\n".join(lines))


def _reason(able: int, price: Price, *, limited: bool, of_rom: bool) -> str:
    """Return the reason for a choice.

    `limited`: cheaper kernels exceed the arena limit. `of_rom`: bytes have a price.
    """
    if able == 1:
        return ONLY
    if price.cost is None:
        which = "keeps to the arena's limit" if limited else "can"
        return f"first of the target's kernels that {which}; no costs are known"
    keeps = " that keeps to the arena's limit" if limited else ""
    keeps += " with its bytes of ROM" if of_rom else ""
    return f"cheapest of {able}{keeps} ({price.source})"


def _named(rule: TensorizeRule, target: Target, known: dict[str, Kernel]) -> Kernel:
    if rule.kernel not in known:
        raise unknown_kernel(rule.kernel, target, known)
    return known[rule.kernel]


def _check_able(kernel: Kernel, view: LayerView, target: Target, reasons: dict[str, str]) -> None:
    name = kernel.name
    if name not in reasons:
        can = ", ".join(sorted(kernel.ops))
        can += " whose scales no 32-bit multiplier rounds as LiteRT does" if view.op.op in kernel.ops else ""
        raise StageError(f"kernel {name} of a tensorize rule computes {can}, not layer {_describe(view)}")
    if reasons[name]:
        reason = why_not_as_uint8(kernel, view, target) or reasons[name]
        raise StageError(f"kernel {name} of a tensorize rule cannot compute layer {_describe(view)}: {reason}")


def _params(kernel: Kernel, rule: TensorizeRule, place: tuple[str | int, ...]) -> Any:
    try:
        return kernel.params.model_validate(rule.params)
    except ValidationError as error:
        wrong = first_wrong(error, kernel.params)
        raise StageError(
            f"params of a tensorize rule for {kernel.name}: {wrong.message}",
            hint=f"Parameters of {kernel.name}: {', '.join(kernel.params.model_fields) or 'none'}",
            at=(*place, *wrong.at),
        ) from None


def _describe(view: LayerView) -> str:
    shapes = ", ".join("x".join(str(d) for d in t.shape) for t in view.inputs)
    called = f"{view.layer.kind} {escape.name(view.layer.name)}"
    return f"{view.layer.index} ({called}, input {shapes} {view.inputs[0].dtype})"
