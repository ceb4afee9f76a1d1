"""The pass that gives layers kernels with less memory where the arena is largest.

They work in place, or need less scratch."""

from collections.abc import Iterator
from dataclasses import replace

from stages.tensorize.arena_size import arena_buffers, arena_bytes
from stages.tensorize.choices import Chosen
from stages.tensorize.pass_context import PassContext
from stages.tensorize.rows import cost
from stages.tensorize.select import Choice, Offer, offers_of

_LEAST_SAVED = 1024  # bytes of arena that other kernels are worth


def with_smaller_peak(chosen: Chosen, context: PassContext) -> Chosen:
    """Return the choices with kernels that need less memory, if the arena gets smaller.

    They and rows together cost at most `context.most_extra` of the instructions.
    """
    if not context.by_rows or not context.most_extra or chosen.rom is not None:
        return chosen
    whole = cost(chosen) - (chosen.streaming.extra if chosen.streaming is not None else 0.0)
    most = whole * (1 + context.most_extra)
    needs = _needs(chosen, context)
    smallest, least = chosen, max(needs, default=0)
    current = chosen
    while needs:
        peak = max(needs)
        smaller = next((other for other in _others(current, needs.index(peak), context, most)), None)
        if smaller is None:
            break
        current, needs = smaller, _needs(smaller, context)
        if max(needs) < least:
            smallest, least = current, max(needs)
    saved = arena_bytes(chosen, context) - arena_bytes(smallest, context)
    return smallest if saved >= _LEAST_SAVED else chosen


def _needs(chosen: Chosen, context: PassContext) -> list[int]:
    """Return the bytes of tensors and scratch that are in use at each layer."""
    buffers = arena_buffers(chosen, context)
    return [sum(b.bytes for b in buffers if b.first <= i <= b.last) for i in range(len(chosen.graph.layers))]


def _others(chosen: Chosen, index: int, context: PassContext, most: float) -> Iterator[Chosen]:
    """Yield the choices with other kernels for a layer that need less memory, cheapest first.

    most  maximum cost of all layers
    """
    choice, view = chosen.choices.get(index), chosen.graph.view(chosen.graph.layers[index])
    if choice is None or choice.cost is None or index in chosen.streamed or context.is_ruled(view):
        return
    target, costs = context.target, context.costs
    able = [k for k in context.kernels if k.lowers and k.is_for(view.op) and not k.why_not(view, target)]
    offers = offers_of(view, target, able, costs)
    offers += [Offer(k, p, costs.price(k, view, p, target)) for k in able for p in k.smaller(k.seen(view), target)]
    offers = [offer for offer in offers if offer.price.cost is not None]
    left, need = most - cost(chosen) + choice.cost, _needs(chosen, context)[index]
    for offer in sorted(offers, key=lambda offer: offer.price.cost or 0.0):
        price, source = offer.price.cost or 0.0, offer.price.source
        if price <= left:
            other = Choice(offer.kernel, offer.params, "needs less memory", price, source, choice.alternatives)
            changed = replace(chosen, choices={**chosen.choices, index: other})
            if _needs(changed, context)[index] < need:
                yield changed
