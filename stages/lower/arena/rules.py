"""What a recipe's memory rules say of the buffers and constants of one network."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from stages.ir.graph.layer_rules import about_unused
from stages.lower.arena.liveness import scratch_name

if TYPE_CHECKING:
    from stages.backends.targets.memory_rules import MemoryRule, RulePart
    from stages.ir.graph import Graph, Layer
    from stages.lower.arena.liveness import Liveness


@dataclass(frozen=True)
class Contents:
    """What of a network lies in memory: buffers of the arena and, by layer, bytes of scratch and keys of constants."""

    graph: Graph
    lives: Liveness
    scratch: Mapping[int, Mapping[str, int]]
    constants: Mapping[int, Sequence[str]]


@dataclass
class Ruled:
    """The number, from 0, of the rule that decides, by buffer of the arena and by key of the constant."""

    arena: dict[str, int] = field(default_factory=dict)
    weights: dict[str, int] = field(default_factory=dict)
    warnings: list[str] = field(default_factory=list)


def apply_rules(rules: Sequence[MemoryRule], contents: Contents, rooms: Mapping[str, Sequence[str]]) -> Ruled:
    """Which rule decides for what, and warnings about those that decide nothing.

    `rooms` names the regions of `arena` and of `weights`, so that a rule without a part takes what its region may hold;
    it is empty for a target with one of each.
    """
    ruled = Ruled()
    deciding, fitting = set(), set()
    for number, rule in enumerate(rules):
        for part, name in _matched(rule, contents, rooms):
            fitting.add(number + 1)
            decided = ruled.weights if part == "weights" else ruled.arena
            if decided.setdefault(name, number) == number:
                deciding.add(number + 1)
    shown = [f"{rule.match.described()}{f' {rule.part}' if rule.part else ''} -> {rule.region}" for rule in rules]
    ruled.warnings = about_unused("memory rule", shown, deciding, fitting)
    return ruled


def _matched(
    rule: MemoryRule, contents: Contents, rooms: Mapping[str, Sequence[str]]
) -> Iterator[tuple[RulePart, str]]:
    """The parts that a rule matches, each with the name of a buffer or the key of a constant."""
    if _takes(rule, "tensors", rooms):
        yield from (("tensors", name) for name in _tensors(rule, contents))
    for layer in _layers(rule, contents.graph):
        if _takes(rule, "scratch", rooms):
            yield from (("scratch", scratch_name(layer.index, name)) for name in contents.scratch.get(layer.index, ()))
        if _takes(rule, "weights", rooms):
            yield from (("weights", key) for key in contents.constants.get(layer.index, ()))


def _takes(rule: MemoryRule, part: RulePart, rooms: Mapping[str, Sequence[str]]) -> bool:
    if rule.part is not None:
        return rule.part == part
    return not rooms or rule.region in rooms["weights" if part == "weights" else "arena"]


def _layers(rule: MemoryRule, graph: Graph) -> Iterator[Layer]:
    return (layer for layer in graph.layers if rule.match.fits(graph.view(layer)))


def _tensors(rule: MemoryRule, contents: Contents) -> Iterator[str]:
    """The buffers of inputs of the model and of what the matched layers write."""
    graph, home = contents.graph, contents.lives.home
    for name in graph.inputs:
        if rule.match.op is None and name in home and rule.match.fits_tensor(name, graph.tensors[name].shape):
            yield home[name]
    for layer in _layers(rule, graph):
        yield from (home[name] for name in layer.outputs if name in home)
