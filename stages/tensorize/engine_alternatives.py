"""What is said of the choice of a layer's kernel where an engine is among them, beside what choosing itself knows.

The types of a layer's data are chosen before its kernel is (stages.tensorize.signedness). What the engine takes then is
often int8 and uint8 in one layer, which few kernels of the core compute; so what the core would take is asked for data
of one type, with the flips that the layer's tensors need for it.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from stages.base import StageError
from stages.tensorize.select import ONLY, choose
from stages.tensorize.signedness import TYPES, in_one_type, why_not_as_uint8

if TYPE_CHECKING:
    from collections.abc import Iterator

    from stages.ir.graph import LayerView
    from stages.tensorize.pass_context import PassContext
    from stages.tensorize.plan import Alternative
    from stages.tensorize.select import Choice


def explained(choice: Choice, view: LayerView, context: PassContext) -> Choice:
    """The choice with what keeps the engine from the layer whatever its types, or what the core would take instead."""
    engine = context.offload
    if engine is None:
        return choice
    if choice.kernel is engine:
        return _with_core(choice, view, context)
    if engine.name not in {one.kernel for one in choice.alternatives if one.reason}:
        return choice
    reason = why_not_as_uint8(engine, view, context.target)
    return replace(
        choice,
        alternatives=tuple(
            one.model_copy(update={"reason": reason or one.reason}) if one.kernel == engine.name else one
            for one in choice.alternatives
        ),
    )


def _with_core(choice: Choice, view: LayerView, context: PassContext) -> Choice:
    """Kernels that compute the layer in neither of its types as they are, with what they cost in one type."""
    able = [one for one in choice.alternatives if not one.reason]
    known = {one.kernel for one in able}
    flipped = [one for one in _flipped(view, context) if one.kernel not in known]
    if not flipped:
        return choice
    best: dict[str, Alternative] = {}
    for one in sorted(flipped, key=lambda one: one.cost or 0.0):
        best.setdefault(one.kernel, one)
    refused = [one for one in choice.alternatives if one.reason and one.kernel not in best]
    why = choice.why
    if why == ONLY:
        cheaper = min(one.cost or 0.0 for one in best.values()) < (choice.cost or 0.0)
        why = f"{ONLY} in these types ({choice.cost_source})"
        if not cheaper:
            why = f"cheapest of {1 + len(best)}, others with flips ({choice.cost_source})"
    return replace(choice, alternatives=(*able, *best.values(), *refused), why=why)


def _flipped(view: LayerView, context: PassContext) -> Iterator[Alternative]:
    """Kernels of the core for the layer's data in one type, each with the flips in its cost."""
    core = [kernel for kernel in context.kernels if kernel is not context.offload]
    for dtype in TYPES:
        found = in_one_type(view, dtype, context.cost)
        if found is None or not found.flips:
            continue
        try:
            choice = choose(found.view, context.target, core, (), context.costs)
        except StageError:
            continue
        offers = [one for one in choice.alternatives if not one.reason and one.cost is not None]
        offers.append(choice.as_alternative)
        for one in offers:
            if one.cost is not None:
                yield one.model_copy(update={"cost": one.cost + found.cost, "flips": found.flips})
