"""Objectives beside instructions: `optimize_for: cycles`, `rom` or `ram`.

The size of kernels' code is weighed after layouts, for all objectives (stages.tensorize.rom_tradeoff).

cycles  Kernels are counted in cycles of the target's timing model (stages.count); the rest is as for speed.
rom     Bytes of constants have a price in instructions: one percent of the network's bytes is worth five times the
        instructions of its fastest kernels. Sub-byte constants count as stored (stages.tensorize.rom).
ram     The arena gets a low limit, and speed counts within it. Each layer in turn takes the kernel with the least
        memory, ties by name; the largest of these is the limit. This is greedy: it ignores that a kernel that works
        in place changes later layers. Layouts stay as they are, and equivalents are chosen within the limit. A lower
        limit of the recipe wins.
"""

from collections.abc import Iterator
from dataclasses import replace

from stages.backends.targets.spec import Target
from stages.base import StageError
from stages.ir.graph import Graph, LayerView
from stages.ir.operators.floats import Float
from stages.tensorize.costs import variant
from stages.tensorize.memory import ArenaBound
from stages.tensorize.pass_context import PassContext
from stages.tensorize.rom import Rom
from stages.tensorize.rom_tradeoff import EXPONENTS
from stages.tensorize.select import Offer, offers_of
from stages.tensorize.sharing import renames_only


def check_timed(target: Target) -> None:
    """Raise StageError for a target without a timing model; it lists the targets that have one."""
    at = ("stages", "tensorize", "optimize_for")
    if target.accelerator is not None:
        raise StageError(
            f"optimize_for: cycles is for cores alone; on {target.name} the accelerator's own model gives cycles",
            hint="leave optimize_for out: kernels are then chosen by that model",
            at=at,
        )
    if target.timing_model is None:
        from stages.backends.targets.load import load_targets
        from stages.support.messages.wording import in_lines

        timed = [name for name, candidate in load_targets().items() if candidate.is_timed]
        raise StageError(
            f"optimize_for: cycles needs a timing model; {target.name} has none",
            hint=in_lines(f"Targets with one: {', '.join(timed)}; docs/explanation/timing.md shows how to add one"),
            at=at,
        )


def with_objective(graph: Graph, context: PassContext) -> PassContext:
    """Return the context with the recipe's objective; unchanged for speed."""
    objective = context.config.optimize_for
    if objective == "rom":
        return replace(context, rom=_priced(graph, context))
    if objective == "ram":
        limit = _least_arena(graph, context)
        recipe_limit = context.config.arena_limit
        if limit is not None and (recipe_limit is None or limit < recipe_limit):
            config = context.config.model_copy(update={"arena_limit": limit})
            return replace(context, config=config, least_arena=True)
    return context


def _priced(graph: Graph, context: PassContext) -> Rom:
    """Return the ROM price: the instructions that a byte of constants is worth."""
    rom = context.rom or Rom(context.target, narrow=context.config.narrow_weights)
    cost, total = 0.0, 0
    for view, offers in _offered(graph, context):
        prices = [offer.price.cost for offer in offers if offer.price.cost is not None]
        cost += min(prices, default=0.0)
        total += sum(view.constant(role).nbytes for role in view.layer.constants)
    return replace(rom, rate=EXPONENTS["rom"] * cost / total) if total else rom


def _least_arena(graph: Graph, context: PassContext) -> int | None:
    """Return the arena bytes that the smallest kernels need; None if a layer has no kernel.

    Kernel selection reports such a layer later.
    """
    bound = ArenaBound(graph, 0, context.lowerings)
    limit = 0
    for view, offers in _offered(graph, context):
        if not offers:
            return None
        needs = [(sum(bound.needed(view, offer.kernel, offer.params)), number) for number, offer in enumerate(offers)]
        least, number = min(needs)
        bound.assign(view, offers[number].kernel)
        limit = max(limit, least)
    try:
        within = ArenaBound(graph, limit, context.lowerings)
        for view, _ in _offered(graph, context):
            within.assign(view, context.choose(view, within).kernel)
    except StageError:
        return None
    return limit


def _offered(graph: Graph, context: PassContext) -> Iterator[tuple[LayerView, list[Offer]]]:
    """Yield the layers that kernels compute, with the offers that the recipe's rules allow."""
    for layer in graph.layers:
        if isinstance(layer.op, Float) or renames_only(graph, layer):
            continue
        view = graph.view(layer)
        able = [
            kernel for kernel in context.kernels if kernel.is_for(view.op) and not kernel.why_not(view, context.target)
        ]
        offers = offers_of(view, context.target, able, context.costs)
        rule = next((rule for rule in context.config.rules if rule.match.fits(view)), None)
        if rule is not None:
            offers = [offer for offer in offers if offer.kernel.name == rule.kernel] or offers
        yield view, sorted(offers, key=lambda offer: variant(offer.kernel, offer.params))
