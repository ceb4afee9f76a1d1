"""Apply a recipe's memory rules to the buffers and constants of a network."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from stages.backends.targets.memory_rules import MemoryRule, RulePart
from stages.ir.graph import Graph, Layer
from stages.ir.graph.layer_rules import about_unused
from stages.lower.arena.liveness import Liveness, scratch_name


@dataclass(frozen=True)
class Contents:
    """A network's memory: buffers of the arena; by layer, scratch bytes and constant keys."""

    graph: Graph
    lives: Liveness
    scratch: Mapping[int, Mapping[str, int]]
    constants: Mapping[int, Sequence[str]]


@dataclass
class Ruled:
    """The number, from 0, of the deciding rule, by arena buffer and by constant key."""

    arena: dict[str, int] = field(default_factory=dict)
    weights: dict[str, int] = field(default_factory=dict)
    warnings: list[str] = field(default_factory=list)


def apply_rules(rules: Sequence[MemoryRule], contents: Contents, regions: Mapping[str, Sequence[str]]) -> Ruled:
    """Return each buffer's and constant's rule, and warnings about rules without effect.

    `regions` names the regions of `arena` and `weights`: a rule without a part applies to all parts of its region.
    Empty for a target with one region of each.
    """
    ruled = Ruled()
    deciding, fitting = set(), set()
    for number, rule in enumerate(rules):
        for part, name in _matched(rule, contents, regions):
            fitting.add(number + 1)
            decided = ruled.weights if part == "weights" else ruled.arena
            if decided.setdefault(name, number) == number:
                deciding.add(number + 1)
    shown = [f"{rule.match.described()}{f' {rule.part}' if rule.part else ''} -> {rule.region}" for rule in rules]
    ruled.warnings = about_unused("memory rule", shown, deciding, fitting)
    return ruled


def _matched(
    rule: MemoryRule, contents: Contents, regions: Mapping[str, Sequence[str]]
) -> Iterator[tuple[RulePart, str]]:
    """Yield the parts that a rule matches, each with a buffer name or a constant key."""
    if _takes(rule, "tensors", regions):
        yield from (("tensors", name) for name in _tensors(rule, contents))
    for layer in _layers(rule, contents.graph):
        if _takes(rule, "scratch", regions):
            yield from (("scratch", scratch_name(layer.index, name)) for name in contents.scratch.get(layer.index, ()))
        if _takes(rule, "weights", regions):
            yield from (("weights", key) for key in contents.constants.get(layer.index, ()))


def _takes(rule: MemoryRule, part: RulePart, regions: Mapping[str, Sequence[str]]) -> bool:
    if rule.part is not None:
        return rule.part == part
    return not regions or rule.region in regions["weights" if part == "weights" else "arena"]


def _layers(rule: MemoryRule, graph: Graph) -> Iterator[Layer]:
    return (layer for layer in graph.layers if rule.match.fits(graph.view(layer)))


def _tensors(rule: MemoryRule, contents: Contents) -> Iterator[str]:
    """Yield the buffers of the model's inputs and of the matched layers' outputs."""
    graph, home = contents.graph, contents.lives.home
    for name in graph.inputs:
        if rule.match.op is None and name in home and rule.match.fits_tensor(name, graph.tensors[name].shape):
            yield home[name]
    for layer in _layers(rule, graph):
        yield from (home[name] for name in layer.outputs if name in home)
