"""From a recipe to its actions: each stage with its options, and the key that says what its result depends on.

    key = sha256 of { stage, code of the stage, options, keys of the consumed stages, digests of external files,
                      versions of tools, the target's fields it reads, the model entry if it reads that }

A key follows from keys, not from results, so the whole plan is known before anything runs.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from pipeline.digest import DigestCache, digest_of
from pipeline.errors import PipelineError, StageFailed
from pipeline.loader import LoadedRecipe
from pipeline.recipe import Recipe
from pipeline.registry import Registry
from pipeline.tools import Tools
from stages.base import Stage, StageConfig, StageError, ToolIdentity
from stages.models.spec import ModelSource
from stages.targets.spec import Target


@dataclass(frozen=True)
class Action:
    """One stage with everything it needs resolved. `ingredients` is what `key` is the digest of, as JSON values."""

    stage: Stage[Any]
    config: StageConfig
    recipe: str
    model: ModelSource
    target: Target
    key: str
    ingredients: Mapping[str, Any]
    files: Mapping[str, Path]
    tools: Mapping[str, ToolIdentity]

    @property
    def kind(self) -> str:
        """The stage's kind."""
        return self.stage.kind

    @property
    def inputs(self) -> Mapping[str, str]:
        """Keys of the consumed artifacts, by kind."""
        inputs: Mapping[str, str] = self.ingredients["inputs"]
        return inputs


@dataclass(frozen=True)
class Plan:
    """The actions of one recipe on one target, in running order.

    `recipe` is its title: `name`, or `matrix:variant`. `changes` are the overrides as typed, but for the target.
    """

    recipe: str
    target: str
    actions: tuple[Action, ...]
    changes: tuple[str, ...] = ()

    @property
    def folder(self) -> Path:
        """Where the run's results go, below build/: `recipe/target`, or `matrix/variant`."""
        name, _, variant = self.recipe.partition(":")
        return Path(name, variant or self.target)

    def __iter__(self) -> Iterator[Action]:
        return iter(self.actions)

    def __getitem__(self, kind: str) -> Action:
        return next(action for action in self.actions if action.kind == kind)


class Planner:
    """Makes plans. What it looks up (file digests, tool versions) is kept for the next plan."""

    def __init__(self, root: Path, registry: Registry, digests: DigestCache, tools: Tools) -> None:
        self._root = root
        self._registry = registry
        self._digests = digests
        self._tools = tools
        self._globs: dict[str, dict[str, str]] = {}

    def plan(self, loaded: LoadedRecipe, until: str = "") -> Plan:
        """The actions of a recipe, as far as the stage `until` if that is given, so that later stages' tools may lack.

        Raises RecipeError, ToolError, StageFailed.
        """
        actions: dict[str, Action] = {}
        for stage in self._registry:
            inputs = {kind: actions[kind].key for kind in stage.consumes}
            actions[stage.kind] = self._action(stage, loaded, inputs)
            if stage.kind == until:
                break
        given = (override for override in loaded.sources.overrides if not override.place)
        changes = tuple(override.text for override in given if override.path != ("target",))
        return Plan(loaded.title, loaded.target.name, tuple(actions.values()), changes)

    def _action(self, stage: Stage[Any], loaded: LoadedRecipe, inputs: dict[str, str]) -> Action:
        recipe, target = loaded.recipe, loaded.target
        config = _limited(recipe.config(stage.kind) or _defaults(stage, loaded), recipe)
        parameters = config.model_dump(mode="json", exclude={"kind"})
        try:
            files = stage.files(config, recipe.model, self._root) | stage.target_files(target, self._root)
            wanted = stage.tools(config, target)
        except StageError as error:
            raise StageFailed(stage.kind, error) from error
        tools = {tool.name: self._tools.identify(tool) for tool in wanted}
        target_dump = target.model_dump(mode="json")
        model = recipe.model.model_dump(mode="json")
        ingredients: dict[str, Any] = {
            "stage": stage.kind,
            "code": self._code(stage),
            "parameters": parameters,
            "inputs": inputs,
            "files": {
                name: self._file(path, stage.kind, loaded, {"model": model, "stages": {stage.kind: parameters}})
                for name, path in files.items()
            },
            "tools": {name: tool.version for name, tool in tools.items()},
            "target": {name: target_dump[name] for name in stage.target_fields},
            "model": stage.model_entry(recipe.model),
        }
        return Action(
            stage, config, loaded.title, recipe.model, target, digest_of(ingredients), ingredients, files, tools
        )

    def _code(self, stage: Stage[Any]) -> dict[str, str]:
        """Digests of the stage's own sources, by path."""
        code: dict[str, str] = {}
        for pattern in stage.sources:
            if pattern not in self._globs:
                found = sorted(p for p in self._root.glob(pattern) if "__pycache__" not in p.parts and p.is_file())
                self._globs[pattern] = {str(p.relative_to(self._root)): self._digests.digest(p) for p in found}
            code.update(self._globs[pattern])
        if not code:
            raise PipelineError(f"stage {stage.kind}: no file matches its sources {', '.join(stage.sources)}")
        return code

    def _file(self, path: Path, kind: str, loaded: LoadedRecipe, values: dict[str, Any]) -> str:
        try:
            return self._digests.digest(self._root / path)
        except OSError as error:
            reason = "does not exist" if isinstance(error, FileNotFoundError) else f"cannot be read: {error.strerror}"
            if isinstance(error, IsADirectoryError):
                reason = "is a folder, not a file" if (self._root / path).is_dir() else "is not a regular file"
            shown = path.relative_to(self._root) if path.is_relative_to(self._root) else path
            message = f"{kind}: file {shown} {reason}"
            written = next(_paths_to(values, self._root, self._root / path), None)
            raise loaded.sources.error(message, written or ("stages", kind)) from None


def _defaults(stage: Stage[Any], loaded: LoadedRecipe) -> StageConfig:
    """The options of a stage that the recipe does not name."""
    try:
        return stage.config()
    except ValidationError as error:
        needed = ", ".join(".".join(map(str, detail["loc"])) for detail in error.errors())
        raise loaded.sources.error(f"stage '{stage.kind}' has no defaults for: {needed}", ("stages",)) from None


def _limited(config: StageConfig, recipe: Recipe) -> StageConfig:
    """A stage's options with the limits of the recipe's `memory`, where it has options of these names not given."""
    limits = {
        name: value
        for name, value in recipe.memory
        if value is not None and name in type(config).model_fields and getattr(config, name) is None
    }
    return config.model_copy(update=limits) if limits else config


def _paths_to(value: Any, root: Path, wanted: Path) -> Iterator[tuple[str | int, ...]]:
    """Paths in a recipe's values at which a string names the file `wanted`."""
    if isinstance(value, str) and value and root / value == wanted:
        yield ()
    elif isinstance(value, dict | list):
        for part, child in value.items() if isinstance(value, dict) else enumerate(value):
            for rest in _paths_to(child, root, wanted):
                yield (part, *rest)
