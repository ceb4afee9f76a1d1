"""A recipe's rules for memory: which region of the target holds which buffers and weights."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Literal

from pydantic import Field

from stages import escape
from stages.base import StageError
from stages.layer_rules import LayerMatch
from stages.strict_model import StrictModel
from stages.targets.memory import Memory, Part
from stages.wording import did_you_mean

if TYPE_CHECKING:
    from stages.targets.spec import Target

RulePart = Literal["tensors", "scratch", "weights"]
HELD_AS: dict[RulePart, Part] = {"tensors": "arena", "scratch": "arena", "weights": "weights"}


class MemoryRule(StrictModel):
    """Layers that `match` have `part` of what is theirs in `region`; the first rule for a buffer decides.

    `tensors` are those that the layer writes, and inputs of the model that `name` and `shape` match; `weights` all of
    its constants. Without `part` it is everything that the region may hold.
    """

    match: LayerMatch = LayerMatch()
    part: RulePart | None = Field(default=None, description="tensors, scratch or weights; all that the region may hold")
    region: str = Field(description="a region of the target's memory")


def check_rules(rules: Sequence[MemoryRule], target: Target) -> None:
    """Raises StageError, at the rule, for a region that the target does not have or that may not hold the part."""
    for number, rule in enumerate(rules):
        why = _why_not(rule, target)
        if why:
            raise StageError(f"memory rule {number + 1}: {why}", at=("memory", "rules", number, "region"))


def _why_not(rule: MemoryRule, target: Target) -> str:
    if target.memory is None:
        return f"{target.name} has no regions: its operating system provides the memory"
    regions = target.memory.regions
    if rule.region not in regions:
        guess = did_you_mean(rule.region, regions) or f"; it has {', '.join(regions)}"
        return f"{target.name} has no region {escape.quoted(rule.region)}{guess}"
    parts = (rule.part,) if rule.part else tuple(HELD_AS)
    holds = regions[rule.region].holds
    if any(HELD_AS[part] in holds for part in parts):
        return ""
    able = " and ".join(_able(target.memory, parts))
    return (
        f"{rule.region} of {target.name} may hold {', '.join(holds)}, no {rule.part or 'part of a layer'}; {able} may"
    )


def _able(memory: Memory, parts: Sequence[RulePart]) -> list[str]:
    """The regions that may hold one of the parts."""
    return list(dict.fromkeys(name for part in parts for name in memory.homes(HELD_AS[part])))
