"""What a recipe wants little of beside instructions (or instead of them): `optimize_for: cycles`, `rom` or `ram`.

What code is worth, for all objectives, is decided once layouts are (stages.tensorize.rom_tradeoff).

cycles  Kernels are counted in cycles of the target's timing model (stages.count); all else is as for speed.
rom     Bytes of constants have a price in instructions: one percent of the network's bytes is worth five times the
        instructions of its fastest form. Sub-byte constants count as they are stored (stages.tensorize.rom).
ram     The arena gets a low limit, within which speed counts: each layer in turn takes the kernel that needs least
        while it runs, of equal ones the first by name, and the largest of these needs is the limit. That is greedy:
        what a kernel changes for later layers by working in place is not weighed, nor are layouts, which a limit leaves
        as they are, and forms are chosen after it. A lower limit of the recipe's own counts instead.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import TYPE_CHECKING

from stages.base import StageError
from stages.tensorize.costs import variant
from stages.tensorize.memory import ArenaBound
from stages.tensorize.rom import Rom
from stages.tensorize.rom_tradeoff import EXPONENTS
from stages.tensorize.select import offers_of
from stages.tensorize.sharing import renames_only

if TYPE_CHECKING:
    from stages.backends.targets.spec import Target
    from stages.ir.graph import Graph, LayerView
    from stages.tensorize.pass_context import PassContext
    from stages.tensorize.select import Offer


def check_timed(target: Target) -> None:
    """Raises StageError, which names Firmline's targets that have one, for a target without a timing model."""
    at = ("stages", "tensorize", "optimize_for")
    if target.accelerator is not None:
        raise StageError(
            f"optimize_for: cycles is of a core alone: on {target.name} the accelerator's own model counts cycles",
            hint="speed, the default, chooses by it",
            at=at,
        )
    if target.timing_model is None:
        from stages.backends.targets.load import load_targets
        from stages.support.messages.wording import in_lines

        timed = [name for name, one in load_targets().items() if one.is_timed]
        raise StageError(
            f"optimize_for: cycles needs a timing model, and none is known of {target.name}",
            hint=in_lines(
                f"Targets with one: {', '.join(timed)}; docs/explanation/timing.md says how a core gets its own"
            ),
            at=at,
        )


def with_objective(graph: Graph, context: PassContext) -> PassContext:
    """The context in which the recipe's objective decides; as it is for speed, which needs nothing more."""
    wanted = context.config.optimize_for
    if wanted == "rom":
        return replace(context, rom=_priced(graph, context))
    if wanted == "ram":
        limit = _least_arena(graph, context)
        given = context.config.arena_limit
        if limit is not None and (given is None or limit < given):
            config = context.config.model_copy(update={"arena_limit": limit})
            return replace(context, config=config, least_arena=True)
    return context


def _priced(graph: Graph, context: PassContext) -> Rom:
    """With the rate at which constants count; what kernels' code is worth follows when kernels are chosen."""
    rom = context.rom or Rom(context.target, narrow=context.config.narrow_weights)
    cost, total = 0.0, 0
    for view, offers in _offered(graph, context):
        prices = [offer.price.cost for offer in offers if offer.price.cost is not None]
        cost += min(prices, default=0.0)
        total += sum(view.constant(role).nbytes for role in view.layer.constants)
    return replace(rom, rate=EXPONENTS["rom"] * cost / total) if total else rom


def _least_arena(graph: Graph, context: PassContext) -> int | None:
    """The bound that the kernels of least need keep to; None where a layer has no kernel, which is told later."""
    bound = ArenaBound(graph, 0, context.lowerings)
    limit = 0
    for view, offers in _offered(graph, context):
        if not offers:
            return None
        needs = [(sum(bound.needed(view, offer.kernel, offer.params)), number) for number, offer in enumerate(offers)]
        least, number = min(needs)
        bound.taken(view, offers[number].kernel)
        limit = max(limit, least)
    try:
        within = ArenaBound(graph, limit, context.lowerings)
        for view, _ in _offered(graph, context):
            within.taken(view, context.choose(view, within).kernel)
    except StageError:
        return None
    return limit


def _offered(graph: Graph, context: PassContext) -> Iterator[tuple[LayerView, list[Offer]]]:
    """The layers that kernels compute, with what a recipe's rules leave of those that can."""
    for layer in graph.layers:
        if layer.op.op == "float" or renames_only(graph, layer):
            continue
        view = graph.view(layer)
        able = [one for one in context.kernels if one.is_for(view.op) and not one.why_not(view, context.target)]
        offers = offers_of(view, context.target, able, context.costs)
        rule = next((rule for rule in context.config.rules if rule.match.fits(view)), None)
        if rule is not None:
            offers = [offer for offer in offers if offer.kernel.name == rule.kernel] or offers
        yield view, sorted(offers, key=lambda offer: variant(offer.kernel, offer.params))
