"""A recipe's memory rules: regions for buffers, weights and the stack."""

from collections.abc import Sequence
from typing import Any, Literal, cast

from pydantic import Field, ValidationError

from stages.backends.targets.memory import Memory, Section, Size
from stages.backends.targets.spec import Target
from stages.ir.graph.layer_rules import LayerMatch
from stages.support.messages import escape
from stages.support.messages.stage_error import StageError
from stages.support.messages.wording import did_you_mean
from stages.support.options.strict_model import StrictModel

RulePart = Literal["tensors", "scratch", "weights"]
HELD_AS: dict[RulePart, Section] = {"tensors": "arena", "scratch": "arena", "weights": "weights"}

_STACK = ("memory", "stack")


class MemoryRule(StrictModel):
    """Place `part` of the layers that `match` in `region`. The first rule for a buffer decides.

    tensors  tensors that the layer writes, and inputs of the model that `name` and `shape` match
    weights  all constants of the layer

    A rule without `part` is for everything that the region may hold, except weights that would be copied at start:
    these take space in two regions.
    """

    match: LayerMatch = LayerMatch()
    part: RulePart | None = Field(default=None, description="tensors, scratch or weights; all that the region may hold")
    region: str = Field(description="a region of the target's memory")


class StackRule(StrictModel):
    """Region and size of the stack, instead of the target's."""

    region: str | None = Field(default=None, description="a region of the target's memory that may hold the stack")
    bytes: Size | None = Field(default=None, description="the stack's size (8K)")


def as_stack(value: object) -> object:
    """Convert a size or a region name to a mapping.

    `8K` becomes `{bytes: 8K}`, `dtcm` becomes `{region: dtcm}`.
    """
    if isinstance(value, bool) or not isinstance(value, str | int):
        return value
    return {"region": value} if isinstance(value, str) and value[:1].isalpha() else {"bytes": value}


def with_stack(target: Target, rule: StackRule | None) -> Target:
    """Return the target with the recipe's stack.

    Raises StageError, at the rule, for an impossible one.
    """
    if rule is None:
        return target
    if target.memory is None:
        raise StageError(f"{target.name} has no regions: its operating system provides the memory", at=_STACK)
    if rule.region is not None:
        why = _why_not_in(rule.region, ("stack",), "stack", target)
        if why:
            raise StageError(why, at=(*_STACK, "region"))
    blamed = (*_STACK, "region" if rule.bytes is None else "bytes")
    try:
        memory = _with_stack(target.memory, rule)
    except ValidationError as error:
        raise StageError(f"{target.name}: {error.errors()[0]['msg']}", at=blamed) from None
    try:
        simulated = None if target.simulated is None else _with_stack(target.simulated, rule)
    except ValidationError as error:
        machine = target.simulator.machine or target.simulator.kind
        message = f"{target.name} is simulated on {machine}: {error.errors()[0]['msg']} there"
        raise StageError(message, at=blamed) from None
    return target.model_copy(update={"memory": memory, "simulated": simulated})


def _with_stack(memory: Memory, rule: StackRule) -> Memory:
    """Remove a region that could hold only the stack and does not."""
    regions = memory.regions
    if rule.region is not None:
        held = {
            name: region.holds if name == rule.region else tuple(part for part in region.holds if part != "stack")
            for name, region in regions.items()
        }
        regions = {n: region.model_copy(update={"holds": held[n]}) for n, region in regions.items() if held[n]}
    stack = memory.stack if rule.bytes is None else rule.bytes
    return Memory(stack=stack, reserve=memory.reserve, **cast(Any, regions))


def check_rules(rules: Sequence[MemoryRule], target: Target) -> None:
    """Raise StageError, at the rule, for a region that is unknown or may not hold the part."""
    for number, rule in enumerate(rules):
        why = _why_not(rule, target)
        if why:
            raise StageError(f"memory rule {number + 1}: {why}", at=("memory", "rules", number, "region"))


def _why_not(rule: MemoryRule, target: Target) -> str:
    if target.memory is None:
        return f"{target.name} has no regions: its operating system provides the memory"
    parts = (HELD_AS[rule.part],) if rule.part else tuple(HELD_AS.values())
    why = _why_not_in(rule.region, parts, rule.part or "part of a layer", target)
    if why or rule.part or "arena" in target.memory.regions[rule.region].holds:
        return why
    kept = target.memory.loaded_from(rule.region)
    return f"{rule.region} gets copies of weights from {kept} only by a rule with part: weights" if kept else ""


def _why_not_in(region: str, parts: Sequence[Section], what: str, target: Target) -> str:
    """Return why a region can hold none of the parts; '' if it can."""
    memory = target.memory
    assert memory is not None
    if region not in memory.regions:
        guess = did_you_mean(region, memory.regions) or f"; it has {', '.join(memory.regions)}"
        return f"{target.name} has no region {escape.quoted(region)}{guess}"
    holds = memory.regions[region].holds
    if any(part in holds for part in parts):
        return ""
    able = " and ".join(dict.fromkeys(name for part in parts for name in memory.homes(part)))
    return f"{region} of {target.name} may hold {', '.join(holds)}, but not {what}; {able} may"
