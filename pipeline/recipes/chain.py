"""Which stages a recipe runs, in which order, and whose artifacts each reads.

Without a word it is the registry's chain. Under `stages:` a recipe may say

    verify: false                  leave this one out; true: as if it were not mentioned
    prune: {after: quantize, …}    put this one in, or move it: it runs right after that one
    emit: {use: my_emit, …}        have another stage do this one's part

Of several that run after the same one, the first written is the first to run. An artifact is known by what it is, its
role: a stage provides its own kind, or what `Stage.provides` says. A stage that consumes `quantize` gets the artifact
of the last stage before it that provides `quantize`; so what is put in stands for what it changes, for all that follow.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any

from pipeline.errors import PipelineError, RecipeError, list_known
from pipeline.plugins.registry import Registry
from pipeline.recipes.recipe import Recipe
from stages.base import Stage
from stages.messages import escape
from stages.messages.wording import as_yaml, did_you_mean


@dataclass(frozen=True)
class Link:
    """A stage in a chain, under the name that the recipe has for it.

    `inputs` maps the kinds that it consumes, as far as they are there, to the names of the links that provide them.
    """

    name: str
    stage: Stage[Any]
    inputs: Mapping[str, str]


@dataclass(frozen=True)
class Chain:
    """The stages of a recipe in running order."""

    links: tuple[Link, ...]

    def __iter__(self) -> Iterator[Link]:
        return iter(self.links)

    @property
    def names(self) -> tuple[str, ...]:
        """The stages' names, in running order."""
        return tuple(link.name for link in self.links)

    def provider(self, kind: str) -> str:
        """The name of the last stage that provides a kind of artifact. Raises PipelineError when none does."""
        found = [link.name for link in self.links if link.stage.role == kind]
        if not found:
            raise PipelineError(f"the recipe has no stage that provides {kind}")
        return found[-1]

    def until(self, name: str) -> tuple[Link, ...]:
        """The links as far as one of them; '': all. Raises PipelineError for a name that is none."""
        if not name:
            return self.links
        if name not in self.names:
            message = f"the recipe has no stage '{escape.name(name)}'{did_you_mean(name, self.names)}"
            raise PipelineError(message, hint=list_known("stages", self.names))
        return self.links[: self.names.index(name) + 1]


@dataclass(frozen=True)
class _Said:
    """What a recipe says of one stage, but for its options."""

    name: str
    after: str | None = None
    use: str | None = None
    left_out: bool = False


class _Misarranged(Exception):
    """What is wrong with a chain, and where in the recipe."""

    def __init__(self, message: str, *at: str, key: bool = False, hint: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.at = ("stages", *at)
        self.key = key
        self.hint = hint


def chain_of(stages: Any, registry: Registry, error: Callable[..., RecipeError]) -> Chain:
    """The chain that a recipe's `stages:` makes of the registry's.

    `error(message, path, key=, hint=)` is the recipe's error at a path. What is no mapping says nothing.
    """
    try:
        said = [_said(name, entry) for name, entry in stages.items()] if isinstance(stages, dict) else []
        unwanted = frozenset(stage.kind for stage in registry if stage.options_of and not _is_wanted(stage, stages))
        return _arranged(registry, tuple(said), unwanted)
    except _Misarranged as wrong:
        raise error(wrong.message, wrong.at, key=wrong.key, hint=wrong.hint) from None


def _is_wanted(stage: Stage[Any], stages: Any) -> bool:
    """Whether a stage whose options are among those of another is part of the chain."""
    entry = stages.get(stage.options_of, {}) if isinstance(stages, dict) else {}
    entry = {} if entry is None or entry is True else entry
    return isinstance(entry, dict) and entry.get("use", stage.options_of) == stage.options_of and stage.wanted(entry)


def _said(name: str, entry: Any) -> _Said:
    if not isinstance(entry, dict):
        return _Said(name, left_out=entry is False)
    for word in ("after", "use"):
        value = entry.get(word, "")
        if not isinstance(value, str):
            message = f"stages.{escape.name(name)}.{word}: should be the name of a stage"
            raise _Misarranged(f"{message}, is {escape.name(as_yaml(value), 60)}", name, word)
    return _Said(name, entry.get("after"), entry.get("use"))


@cache
def _arranged(registry: Registry, said: tuple[_Said, ...], unwanted: frozenset[str]) -> Chain:
    """Raises _Misarranged."""
    for one in said:
        if one.name in registry and one.name not in registry.named:
            of = registry[one.name].options_of
            raise _Misarranged(f"stage '{one.name}' has its options among those of {of}", one.name, key=True)
        if one.name not in registry.named:
            guess = did_you_mean(one.name, registry.named)
            if one.name in Recipe.model_fields:
                guess = "; it stands at the top, not in stages"
            message = f"unknown stage '{escape.name(one.name)}'{guess}"
            raise _Misarranged(message, one.name, key=True, hint=list_known("stages", registry.named))
    stages = {one.name: _used(one, registry) for one in said if not one.left_out}
    order = _order(registry, said, unwanted)
    links: list[Link] = []
    providers: dict[str, str] = {}
    for name in order:
        stage = stages.get(name) or registry[name]
        inputs = {kind: providers[kind] for kind in (*stage.consumes, *stage.may_consume) if kind in providers}
        missing = [kind for kind in stage.consumes if kind not in inputs]
        if missing:
            raise _missing(name, missing[0], order, said, stages)
        links.append(Link(name, stage, inputs))
        providers[stage.role] = name
    return Chain(tuple(links))


def _used(one: _Said, registry: Registry) -> Stage[Any]:
    """The stage that runs under a name."""
    if one.use is None:
        return registry[one.name]
    role = registry[one.name].role
    known = [stage.kind for stage in registry if stage.role == role and stage.kind != one.name]
    others = list_known(f"others that provide {role}", known) if known else f"no other stage provides {role}"
    where = f"stages.{one.name}.use"
    if one.use not in registry:
        message = f"{where}: unknown stage '{escape.name(one.use)}'{did_you_mean(one.use, known)}"
        raise _Misarranged(message, one.name, "use", hint=others)
    used = registry[one.use]
    if used.role != role:
        message = f"{where}: '{one.use}' cannot stand for '{one.name}': what follows reads {role}, it makes {used.role}"
        own = used.kind in registry.chain
        hint = others if own else f'{others}; a stage that makes what {role} does says so: `provides = "{role}"`'
        raise _Misarranged(message, one.name, "use", hint=hint)
    return used


def _order(registry: Registry, said: tuple[_Said, ...], unwanted: frozenset[str]) -> list[str]:
    """The names in running order: the usual chain, and behind each of it what was put after it."""
    left_out = {one.name for one in said if one.left_out} | unwanted
    after = {one.name: one.after for one in said if one.after is not None}
    followers: dict[str, list[str]] = {}
    for name, leader in after.items():
        followers.setdefault(leader, []).append(name)
    order: list[str] = []

    def place(name: str) -> None:
        order.append(name)
        for follower in followers.get(name, ()):
            place(follower)

    for name in registry.chain:
        if name not in left_out and name not in after:
            place(name)
    for one in said:
        if one.name in order or one.left_out:
            continue
        if one.after is None:
            message = f"stage '{one.name}' is in no chain by itself: say which stage it runs after"
            leader = _earliest(registry, one.name, order)
            raise _Misarranged(message, one.name, key=True, hint=f"such as {one.name}: {{after: {leader}}}")
        raise _unplaced(one.name, after, left_out, [*order, *after])
    return order


def _earliest(registry: Registry, name: str, order: list[str]) -> str:
    """After which stage of the order all that another consumes is there; the first where it consumes nothing."""
    wanted = set(registry[name].consumes)
    for leader in order:
        wanted.discard(registry[leader].role)
        if not wanted:
            return leader
    return order[-1]


def _unplaced(name: str, after: Mapping[str, str], left_out: set[str], known: list[str]) -> _Misarranged:
    """Why a stage that runs after another has no place."""
    seen = [name]
    while after.get(seen[-1]) is not None:
        leader = after[seen[-1]]
        if leader in seen:
            circle = " -> ".join([*seen[seen.index(leader) :], leader])
            return _Misarranged(f"stages run after each other in a circle: {circle}", seen[-1], "after")
        seen.append(leader)
    follower, leader = seen[-2:]
    known = [one for one in dict.fromkeys(known) if one not in seen]
    if leader in left_out:
        message = f"stages.{follower}.after: '{leader}' is left out"
    else:
        message = f"stages.{follower}.after: no stage '{escape.name(leader)}' runs{did_you_mean(leader, known)}"
    return _Misarranged(message, follower, "after", hint=list_known("stages", known))


def _missing(
    name: str, kind: str, order: list[str], said: tuple[_Said, ...], stages: Mapping[str, Stage[Any]]
) -> _Misarranged:
    """The error for a stage that consumes what none before it provides, at the line that makes it so."""
    given = {one.name: one for one in said}
    if kind in given and given[kind].left_out:
        message = f"stage '{name}' consumes '{kind}', which is left out"
        return _Misarranged(message, kind, hint=f"leave that out as well: `{name}: false`")
    message = f"stage '{name}' consumes '{kind}', which no stage before it provides"
    behind = order[order.index(name) + 1 :]
    later = [one for one in behind if one == kind or (one in stages and stages[one].role == kind)]
    hint = f"{later[0]} runs after it" if later else ""
    blamed = next((one for one in (name, *later) if one in given and given[one].after is not None), None)
    if blamed is not None:
        return _Misarranged(message, blamed, "after", hint=hint)
    return _Misarranged(message, name, key=True, hint=hint)
