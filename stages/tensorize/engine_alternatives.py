"""Alternatives in the plan where an accelerator is among the kernels.

The types of a layer's data are chosen before its kernel (stages.tensorize.signedness). For an engine they are often
int8 and uint8 in one layer, which few kernels of the core compute. So the cost on the core is computed for data of
one type, including the conversions (flips) of the layer's tensors.
"""

from collections.abc import Iterator
from dataclasses import replace

from stages.base import StageError
from stages.ir.graph import LayerView
from stages.tensorize.pass_context import PassContext
from stages.tensorize.plan import Alternative
from stages.tensorize.select import ONLY, Choice, choose
from stages.tensorize.signedness import TYPES, in_one_type, why_not_as_uint8


def with_engine_alternatives(choice: Choice, view: LayerView, context: PassContext) -> Choice:
    """Return the choice with the alternatives that the layer's types exclude."""
    engine = context.offload
    if engine is None:
        return choice
    if choice.kernel is engine:
        return _with_core(choice, view, context)
    if engine.name not in {alternative.kernel for alternative in choice.alternatives if alternative.reason}:
        return choice
    reason = why_not_as_uint8(engine, view, context.target)
    return replace(
        choice,
        alternatives=tuple(
            alternative.model_copy(update={"reason": reason or alternative.reason})
            if alternative.kernel == engine.name
            else alternative
            for alternative in choice.alternatives
        ),
    )


def _with_core(choice: Choice, view: LayerView, context: PassContext) -> Choice:
    """Return the choice with the core's kernels that need all data in one type."""
    able = [alternative for alternative in choice.alternatives if not alternative.reason]
    known = {alternative.kernel for alternative in able}
    flipped = [alternative for alternative in _flipped(view, context) if alternative.kernel not in known]
    if not flipped:
        return choice
    best: dict[str, Alternative] = {}
    for alternative in sorted(flipped, key=lambda alternative: alternative.cost or 0.0):
        best.setdefault(alternative.kernel, alternative)
    refused = [
        alternative for alternative in choice.alternatives if alternative.reason and alternative.kernel not in best
    ]
    why = choice.why
    if why == ONLY:
        cheaper = min(alternative.cost or 0.0 for alternative in best.values()) < (choice.cost or 0.0)
        why = f"{ONLY} in these types ({choice.cost_source})"
        if not cheaper:
            why = f"cheapest of {1 + len(best)}, others with flips ({choice.cost_source})"
    return replace(choice, alternatives=(*able, *best.values(), *refused), why=why)


def _flipped(view: LayerView, context: PassContext) -> Iterator[Alternative]:
    """Yield the core's kernels for the layer with all data in one type, flips included."""
    core = [kernel for kernel in context.kernels if kernel is not context.offload]
    for dtype in TYPES:
        uniform = in_one_type(view, dtype, context.cost)
        if uniform is None or not uniform.flips:
            continue
        try:
            choice = choose(uniform.view, context.target, core, (), context.costs)
        except StageError:
            continue
        offers = [
            alternative
            for alternative in choice.alternatives
            if not alternative.reason and alternative.cost is not None
        ]
        offers.append(choice.as_alternative)
        for alternative in offers:
            if alternative.cost is not None:
                yield alternative.model_copy(update={"cost": alternative.cost + uniform.cost, "flips": uniform.flips})
