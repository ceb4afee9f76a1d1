"""The stage sequence of a recipe: stages in order, and the artifacts that each consumes.

The default is the registry's sequence. `stages:` of a recipe can change it:

    verify: false                  disable a stage (true: no change)
    prune: {after: quantize, …}    insert or move a stage: it runs directly after the other
    emit: {use: my_emit, …}        replace a stage by another

Stages after the same stage run in the order in which the recipe lists them. Artifacts are matched by role: a stage
provides its own kind, or `Stage.provides`. A stage that consumes `quantize` reads the artifact of the last stage before
it with this role. So an inserted stage can replace the output of an earlier one for all later stages.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any

from pipeline.errors import PipelineError, RecipeError, list_known
from pipeline.plugins.registry import Registry
from pipeline.recipes.recipe import Recipe
from stages.base import Stage
from stages.support.messages import escape
from stages.support.messages.wording import as_yaml, did_you_mean


@dataclass(frozen=True)
class Link:
    """A stage in a sequence, with its name in the recipe.

    inputs: for each consumed role that is available, the name of the link that provides it.
    """

    name: str
    stage: Stage[Any]
    inputs: Mapping[str, str]


@dataclass(frozen=True)
class StageSequence:
    """The stages of a recipe, in order."""

    links: tuple[Link, ...]

    def __iter__(self) -> Iterator[Link]:
        return iter(self.links)

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the stages, in order."""
        return tuple(link.name for link in self.links)

    def until(self, name: str) -> tuple[Link, ...]:
        """Return the links up to a stage ('': all). Raises PipelineError for an unknown name."""
        if not name:
            return self.links
        if name not in self.names:
            message = f"the recipe has no stage '{escape.name(name)}'{did_you_mean(name, self.names)}"
            raise PipelineError(message, hint=list_known("stages", self.names))
        return self.links[: self.names.index(name) + 1]


@dataclass(frozen=True)
class _StageSpec:
    """Placement of a stage in `stages:` of a recipe."""

    name: str
    after: str | None = None
    use: str | None = None
    disabled: bool = False


class _SequenceError(Exception):
    """An error in a sequence; `at` is the path of the value in the recipe."""

    def __init__(self, message: str, *at: str, key: bool = False, hint: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.at = ("stages", *at)
        self.key = key
        self.hint = hint


def stage_sequence(stages: Any, registry: Registry, error: Callable[..., RecipeError]) -> StageSequence:
    """Return the registry's sequence with the changes of a recipe's `stages:`.

    stages: the YAML value; ignored if it is not a mapping, since validation reports it.
    error: returns the RecipeError for `(message, path, key=, hint=)`.

    Raises RecipeError.
    """
    try:
        specs = [_stage_spec(name, entry) for name, entry in stages.items()] if isinstance(stages, dict) else []
        unwanted = frozenset(stage.kind for stage in registry if stage.options_of and not _is_wanted(stage, stages))
        return _build_sequence(registry, tuple(specs), unwanted)
    except _SequenceError as wrong:
        raise error(wrong.message, wrong.at, key=wrong.key, hint=wrong.hint) from None


def _is_wanted(stage: Stage[Any], stages: Any) -> bool:
    """Return whether the sequence includes a stage that another stage's options configure."""
    entry = stages.get(stage.options_of, {}) if isinstance(stages, dict) else {}
    entry = {} if entry is None or entry is True else entry
    return isinstance(entry, dict) and entry.get("use", stage.options_of) == stage.options_of and stage.wanted(entry)


def _stage_spec(name: str, entry: Any) -> _StageSpec:
    if not isinstance(entry, dict):
        return _StageSpec(name, disabled=entry is False)
    for word in ("after", "use"):
        value = entry.get(word, "")
        if not isinstance(value, str):
            message = f"stages.{escape.name(name)}.{word}: should be the name of a stage"
            raise _SequenceError(f"{message}, is {escape.name(as_yaml(value), 60)}", name, word)
    return _StageSpec(name, entry.get("after"), entry.get("use"))


@cache
def _build_sequence(registry: Registry, specs: tuple[_StageSpec, ...], unwanted: frozenset[str]) -> StageSequence:
    """Return the sequence for the specs of a recipe. Raises _SequenceError."""
    for spec in specs:
        if spec.name in registry and spec.name not in registry.named:
            of = registry[spec.name].options_of
            raise _SequenceError(f"stage '{spec.name}' is configured by the options of {of}", spec.name, key=True)
        if spec.name not in registry.named:
            guess = did_you_mean(spec.name, registry.named)
            if spec.name in Recipe.model_fields:
                guess = "; it is a top-level key, not a stage"
            message = f"unknown stage '{escape.name(spec.name)}'{guess}"
            raise _SequenceError(message, spec.name, key=True, hint=list_known("stages", registry.named))
    stages = {spec.name: _resolved_stage(spec, registry) for spec in specs if not spec.disabled}
    order = _order(registry, specs, unwanted)
    links: list[Link] = []
    providers: dict[str, str] = {}
    for name in order:
        stage = stages.get(name) or registry[name]
        inputs = {kind: providers[kind] for kind in (*stage.consumes, *stage.may_consume) if kind in providers}
        missing = [kind for kind in stage.consumes if kind not in inputs]
        if missing:
            raise _missing_input_error(name, missing[0], order, specs, stages)
        links.append(Link(name, stage, inputs))
        providers[stage.role] = name
    return StageSequence(tuple(links))


def _resolved_stage(spec: _StageSpec, registry: Registry) -> Stage[Any]:
    """Return the stage that runs under a name. Raises _SequenceError."""
    if spec.use is None:
        return registry[spec.name]
    role = registry[spec.name].role
    known = [stage.kind for stage in registry if stage.role == role and stage.kind != spec.name]
    others = list_known(f"stages that provide {role}", known) if known else f"no other stage provides {role}"
    where = f"stages.{spec.name}.use"
    if spec.use not in registry:
        message = f"{where}: unknown stage '{escape.name(spec.use)}'{did_you_mean(spec.use, known)}"
        raise _SequenceError(message, spec.name, "use", hint=others)
    used = registry[spec.use]
    if used.role != role:
        message = f"{where}: '{spec.use}' cannot replace '{spec.name}': it provides {used.role} instead of {role}"
        is_default = used.kind in registry.default_stages
        hint = others if is_default else f'{others}; a stage that provides {role} declares `provides = "{role}"`'
        raise _SequenceError(message, spec.name, "use", hint=hint)
    return used


def _order(registry: Registry, specs: tuple[_StageSpec, ...], unwanted: frozenset[str]) -> list[str]:
    """Return the names in order: the default sequence with the stages placed after others."""
    disabled = {spec.name for spec in specs if spec.disabled} | unwanted
    after = {spec.name: spec.after for spec in specs if spec.after is not None}
    followers: dict[str, list[str]] = {}
    for name, leader in after.items():
        followers.setdefault(leader, []).append(name)
    order: list[str] = []

    def place(name: str) -> None:
        order.append(name)
        for follower in followers.get(name, ()):
            place(follower)

    for name in registry.default_stages:
        if name not in disabled and name not in after:
            place(name)
    for spec in specs:
        if spec.name in order or spec.disabled:
            continue
        if spec.after is None:
            message = f"stage '{spec.name}' is not in the default sequence and needs `after`"
            leader = _earliest_position(registry, spec.name, order)
            raise _SequenceError(message, spec.name, key=True, hint=f"example: {spec.name}: {{after: {leader}}}")
        raise _placement_error(spec.name, after, disabled, [*order, *after])
    return order


def _earliest_position(registry: Registry, name: str, order: list[str]) -> str:
    """Return the first stage of the order after which all inputs of a stage are available."""
    wanted = set(registry[name].consumes)
    for leader in order:
        wanted.discard(registry[leader].role)
        if not wanted:
            return leader
    return order[-1]


def _placement_error(name: str, after: Mapping[str, str], disabled: set[str], known: list[str]) -> _SequenceError:
    """Return the error for a stage with an invalid `after`."""
    seen = [name]
    while after.get(seen[-1]) is not None:
        leader = after[seen[-1]]
        if leader in seen:
            cycle = " -> ".join([*seen[seen.index(leader) :], leader])
            return _SequenceError(f"`after` forms a cycle: {cycle}", seen[-1], "after")
        seen.append(leader)
    follower, leader = seen[-2:]
    known = [name for name in dict.fromkeys(known) if name not in seen]
    if leader in disabled:
        message = f"stages.{follower}.after: stage '{leader}' is disabled"
    else:
        message = (
            f"stages.{follower}.after: the recipe has no stage '{escape.name(leader)}'{did_you_mean(leader, known)}"
        )
    return _SequenceError(message, follower, "after", hint=list_known("stages", known))


def _missing_input_error(
    name: str, kind: str, order: list[str], specs: tuple[_StageSpec, ...], stages: Mapping[str, Stage[Any]]
) -> _SequenceError:
    """Return the error for a stage with a missing input, at the entry that causes it."""
    by_name = {item.name: item for item in specs}
    if kind in by_name and by_name[kind].disabled:
        message = f"stage '{name}' consumes '{kind}', which is disabled"
        return _SequenceError(message, kind, hint=f"disable it too: `{name}: false`")
    message = f"stage '{name}' consumes '{kind}', which no stage before it provides"
    following = order[order.index(name) + 1 :]
    later = [item for item in following if item == kind or (item in stages and stages[item].role == kind)]
    hint = f"{later[0]} runs later" if later else ""
    culprit = next((item for item in (name, *later) if item in by_name and by_name[item].after is not None), None)
    if culprit is not None:
        return _SequenceError(message, culprit, "after", hint=hint)
    return _SequenceError(message, name, key=True, hint=hint)
