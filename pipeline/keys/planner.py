"""From a recipe to its actions: each stage with its options, and the key that says what its result depends on.

    key = sha256 of { stage, code of the stage, options, content of the consumed artifacts, digests of external files,
                      versions of tools, the target's fields it reads, the model entry if it reads that,
                      files of a plug-in's class, and of those that go with the target }

A key follows from what consumed artifacts hold, not from how they came to be: a stage that runs again and leaves the
same bytes is no reason for another to run. So the key of a stage is known when those are made that it consumes. What is
known before anything runs is an action's identity: all that its key follows from, back to the model.
"""

from __future__ import annotations

from collections.abc import Container, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from glob import glob
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from pipeline.artifacts.digest import DigestCache, digest_of
from pipeline.documents.sources import Sources
from pipeline.errors import PipelineError, ToolError
from pipeline.keys.imports import Imports
from pipeline.keys.tools import Tools
from pipeline.plugins.discovery import plugins_of
from pipeline.plugins.importing import stage_error
from pipeline.project import Project, project_of
from pipeline.recipes.chain import Link
from pipeline.recipes.loader import LoadedRecipe
from pipeline.recipes.recipe import Recipe
from stages.backends.targets.spec import Target
from stages.base import Stage, StageConfig, StageError, Tool, ToolIdentity
from stages.ir.models.spec import ModelSource
from stages.support.messages import escape
from stages.support.system.loaded_code import package_files
from stages.support.system.pathname import located, of_variable

_OPERATORS = "stages/ir/operators/table.py"  # who has it among its code asks plug-ins too


@dataclass(frozen=True)
class Action:
    """One stage with everything it needs resolved, but for what it consumes.

    `ingredients` is what the key is the digest of, as JSON values, without `inputs`. Actions of the same `identity` are
    the same in all respects, and so are all that they follow from; those of another may still have the same key.

    `link` has the stage, its name in the recipe and the names of those whose artifacts it reads. `files` are absolute;
    `code` has all files of the stage's code with their digests, by the names that the key has; `wanted` is what `tools`
    identifies.
    """

    link: Link
    config: StageConfig
    recipe: str
    model: ModelSource
    target: Target
    identity: str
    ingredients: Mapping[str, Any]
    files: Mapping[str, Path]
    tools: Mapping[str, ToolIdentity]
    wanted: tuple[Tool, ...]
    code: Mapping[str, tuple[Path, str]]

    @property
    def stage(self) -> Stage[Any]:
        """The stage that runs."""
        return self.link.stage

    @property
    def kind(self) -> str:
        """The stage's name in the recipe: its kind, or that of the one whose place it takes."""
        return self.link.name

    @property
    def model_source(self) -> str:
        """The path or address of the user's model, if this is a stage that reads it: one without inputs; else ''."""
        return "" if self.link.inputs else str(getattr(self.model, "source", ""))

    def consuming(self, contents: Mapping[str, str]) -> dict[str, Any]:
        """The ingredients of the key, with the contents of the consumed artifacts by kind."""
        return {**self.ingredients, "inputs": dict(contents)}


@dataclass(frozen=True)
class Plan:
    """The actions of one recipe on one target, in running order.

    `recipe` is its title: `name`, or `matrix:variant`. `sources` tell where a value that a stage blames was written.
    `changes` are the overrides as typed, each once (`run_on=` is two of them), but for the target.
    """

    recipe: str
    target: str
    actions: tuple[Action, ...]
    sources: Sources
    changes: tuple[str, ...] = ()
    loaded: LoadedRecipe | None = None

    @property
    def folder(self) -> Path:
        """Where the run's results go, below build/: `recipe/target`, or `matrix/variant`."""
        name, _, variant = self.recipe.partition(":")
        return Path(name, variant or self.target)

    def __iter__(self) -> Iterator[Action]:
        return iter(self.actions)

    def __getitem__(self, kind: str) -> Action:
        return next(action for action in self.actions if action.kind == kind)


@dataclass(frozen=True)
class _Resolved:
    """An action but for what it consumes, and the `actions` that were made of it, by those that they consume.

    `of` are the objects of the recipe and the target that it follows from.
    """

    of: tuple[Any, ...]
    config: StageConfig
    ingredients: Mapping[str, Any]
    files: Mapping[str, Path]
    tools: Mapping[str, ToolIdentity]
    wanted: tuple[Tool, ...]
    code: Mapping[str, tuple[Path, str]]
    actions: dict[tuple[tuple[str, str], ...], Action] = field(default_factory=dict)


@dataclass(frozen=True)
class StageIdentity:
    """Of an action what is no recipe's: ingredients but for `files` and `inputs`; the rest as of Action."""

    ingredients: Mapping[str, Any]
    tools: Mapping[str, ToolIdentity]
    wanted: tuple[Tool, ...]
    code: Mapping[str, tuple[Path, str]]


class Planner:
    """Makes plans. What it looks up (file digests, tool versions) is kept for the next plan."""

    def __init__(self, root: Path | Project, digests: DigestCache, tools: Tools, imports: Imports) -> None:
        self._project = project_of(root)
        self._root = self._project.root
        self.digests = digests
        self.tools = tools
        self.imports = imports
        self._globs: dict[str, dict[str, Path]] = {}
        self._digests_of_code: dict[str, tuple[Path, str]] = {}
        self._codes: dict[tuple[str, ...], dict[str, tuple[Path, str]]] = {}
        self._own: dict[type, dict[str, tuple[Path, str]]] = {}
        self._known: dict[tuple[Any, ...], _Resolved] = {}

    def plan(self, loaded: LoadedRecipe, until: str = "") -> Plan:
        """The actions of a recipe, as far as the stage `until` if that is given, so that later stages' tools may lack.

        Compilers and simulators that are missing are installed where that is possible.
        Raises RecipeError, ToolError, StageFailed.
        """
        try:
            return self._plan(loaded, until)
        except ToolError:
            if not self.tools.install_missing(_tools(loaded, until)):
                raise
            return self._plan(loaded, until)

    def _plan(self, loaded: LoadedRecipe, until: str) -> Plan:
        actions: dict[str, Action] = {}
        for link in loaded.chain.until(until):
            inputs = {kind: actions[name].identity for kind, name in link.inputs.items()}
            actions[link.name] = self._action(link, loaded, inputs)
        given = [override for override in loaded.sources.overrides if not override.matrix_path]
        changes = dict.fromkeys(override.text for override in given if override.path != ("target",))
        done = tuple(actions.values())
        return Plan(loaded.title, loaded.target.name, done, loaded.sources, tuple(changes), loaded)

    def _action(self, link: Link, loaded: LoadedRecipe, inputs: dict[str, str]) -> Action:
        resolved = self._resolved(link, loaded)
        consumed = tuple(inputs.items())
        known = resolved.actions.get(consumed)
        if known is None:
            known = Action(
                link=link,
                config=resolved.config,
                recipe=loaded.title,
                model=loaded.recipe.model,
                target=loaded.target,
                identity=digest_of({**resolved.ingredients, "inputs": inputs}),
                ingredients=resolved.ingredients,
                files=resolved.files,
                tools=resolved.tools,
                wanted=resolved.wanted,
                code=resolved.code,
            )
            resolved.actions[consumed] = known
        same = known.recipe == loaded.title and known.link == link
        return known if same else replace(known, recipe=loaded.title, link=link)

    def _resolved(self, link: Link, loaded: LoadedRecipe) -> _Resolved:
        """All of a stage but what it consumes, once for the sub-recipes of a matrix in which it is the same."""
        recipe, target = loaded.recipe, loaded.target
        given = recipe.config(_named(link))
        of = (link.stage, given, recipe.model, recipe.memory, target, loaded.path)
        # What is kept holds these objects, so that no other can take their identity.
        identity = (link.name, *map(id, of))
        if identity not in self._known:
            self._known[identity] = self._resolve(link, loaded, of)
        return self._known[identity]

    def _resolve(self, link: Link, loaded: LoadedRecipe, of: tuple[Any, ...]) -> _Resolved:
        recipe, target, stage = loaded.recipe, loaded.target, link.stage
        config = _limited(recipe.config(_named(link)) or _defaults(link, loaded), recipe)
        if loaded.path is not None:
            config = link.stage.with_files_beside(config, loaded.path)
        try:
            files = stage.files(config, recipe.model, self._root)
            for folder in reversed(self._project.folders):
                files |= stage.target_files(target, folder) | stage.option_files(config, target, folder)
            known = self.identify(stage, config, recipe.model, target)
        except StageError as error:
            raise loaded.sources.stage_failure(link.name, error, stage.kind) from error
        except (PipelineError, KeyboardInterrupt):
            raise
        except BaseException as error:  # also sys.exit
            raise stage_error(link.name, error, plugins_of(self._project)) from error
        values = {
            "model": recipe.model.model_dump(mode="json"),
            "stages": {_named(link): known.ingredients["parameters"]},
        }
        digests = {name: self._file(path, link, loaded, values) for name, path in files.items()}
        return _Resolved(
            of=of,
            config=config,
            ingredients={**known.ingredients, "files": digests},
            files={name: self._root / path for name, path in files.items()},
            tools=known.tools,
            wanted=known.wanted,
            code=known.code,
        )

    def identify(self, stage: Stage[Any], config: StageConfig, model: ModelSource, target: Target) -> StageIdentity:
        """What the key of a stage has on this machine, whatever recipe it is of. Raises StageError, ToolError."""
        wanted = (*stage.tools(config, target), *stage.model_tools(model))
        patterns = (*stage.sources, *stage.target_sources(target))
        tools = {tool.name: self.tools.identify(tool) for tool in wanted}
        code = self._code(stage, patterns)
        theirs = stage.target_code(target) | stage.model_code(model)
        theirs |= self.operator_code(code)
        own = self._own_code(stage, code) | self._digested(stage, theirs)
        code |= self._digested(stage, self.imports.followed(path for path, _ in own.values()))
        fields = (*stage.target_fields, *stage.option_fields(config))
        target_dump = target.model_dump(mode="json", include=set(fields))
        ingredients: dict[str, Any] = {
            "stage": stage.kind,
            "code": {name: digest for name, (_, digest) in code.items()},
            "parameters": stage.parameters(config),
            "tools": {name: tool.version for name, tool in tools.items()},
            "target": {name: target_dump[name] for name in fields},
            "model": stage.model_entry(model),
        }
        if own:
            ingredients["plug-in"] = {name: digest for name, (_, digest) in own.items()}
        return StageIdentity(ingredients, tools, wanted, code | own)

    def display_path(self, path: Path) -> str:
        """A path as messages call it: relative to the project when it lies inside."""
        return self._project.display_path(path)

    def operator_code(self, code: Container[str]) -> dict[str, Path]:
        """The files of plug-ins that declare operators, for a stage whose `code` has the table of operators."""
        found: dict[str, Path] = {}
        if _OPERATORS in code:
            for one in plugins_of(self._project)["operators"].values():
                found |= package_files(one.path)
        return found

    def source_names(self, stage: Stage[Any], target: Target) -> set[str]:
        """The names of the files that the stage's sources match now."""
        patterns = (*stage.sources, *stage.target_sources(target))
        return {name for pattern in patterns for name in self._matching(pattern)}

    def _matching(self, pattern: str) -> dict[str, Path]:
        folder = self._project.installation
        # Twice as fast as Path.glob.
        names = sorted({*glob(pattern, root_dir=folder, recursive=True, include_hidden=True)})  # noqa: PTH207
        paths = {name: folder / name for name in names if "__pycache__" not in name.split("/")}
        return {name: path for name, path in paths.items() if path.is_file()}

    def _code(self, stage: Stage[Any], patterns: tuple[str, ...]) -> dict[str, tuple[Path, str]]:
        """The files that patterns of the stage match and the modules that they import, with their digests."""
        if patterns not in self._codes:
            code: dict[str, Path] = {}
            for pattern in patterns:
                if pattern not in self._globs:
                    self._globs[pattern] = self._matching(pattern)
                code.update(self._globs[pattern])
            if patterns and not code:
                raise PipelineError(f"stage {stage.kind}: no file matches its sources {', '.join(patterns)}")
            code |= self.imports.followed(code.values())
            # Stages have most of it in common.
            fresh = {name: path for name, path in code.items() if name not in self._digests_of_code}
            self._digests_of_code |= self._digested(stage, fresh)
            self._codes[patterns] = {name: self._digests_of_code[name] for name in code}
        return dict(self._codes[patterns])

    def _own_code(self, stage: Stage[Any], code: Mapping[str, tuple[Path, str]]) -> dict[str, tuple[Path, str]]:
        """The files of a stage's class that are not among its `code`, with their digests."""
        cls = type(stage)
        if cls not in self._own:
            try:
                files = stage.own_files({path for path, _ in code.values()})
            except LookupError as error:
                message = f"stage {stage.kind}: its class {error.args[0]} is in no file"
                raise PipelineError(message, hint="a change of it could not be seen: write it into a module") from None
            self._own[cls] = self._digested(stage, files)
        return self._own[cls]

    def _digested(self, stage: Stage[Any], files: Mapping[str, Path]) -> dict[str, tuple[Path, str]]:
        try:
            return {name: (path, self.digests.digest(path)) for name, path in files.items()}
        except OSError as error:
            shown = escape.name(self.display_path(Path(error.filename or "")), 200)
            raise PipelineError(f"stage {stage.kind}: {shown} cannot be read: {error.strerror}") from None

    def _file(self, path: Path, link: Link, loaded: LoadedRecipe, values: dict[str, Any]) -> str:
        try:
            return self.digests.digest(self._root / path)
        except OSError as error:
            reason = "does not exist" if isinstance(error, FileNotFoundError) else f"cannot be read: {error.strerror}"
            if isinstance(error, IsADirectoryError):
                reason = "is a folder, not a file" if (self._root / path).is_dir() else "is not a regular file"
            message = f"{link.name}: file {escape.name(self.display_path(path), 200)} {reason}"
            written, name = next(_paths_to(values, self._root, self._root / path), (("stages", _named(link)), ""))
            raise loaded.sources.error(message, written, hint=of_variable(name)) from None


def _named(link: Link) -> str:
    """The name under which the recipe has a stage's options."""
    return link.stage.options_of or link.name


def _tools(loaded: LoadedRecipe, until: str) -> list[Tool]:
    """What the stages of a recipe need."""
    tools: list[Tool] = []
    for link in loaded.chain.until(until):
        config = loaded.recipe.config(_named(link)) or _defaults(link, loaded)
        with suppress(Exception):  # the plan reports what a stage raises
            tools += [*link.stage.tools(config, loaded.target), *link.stage.model_tools(loaded.recipe.model)]
    return tools


def _defaults(link: Link, loaded: LoadedRecipe) -> StageConfig:
    """The options of a stage that the recipe does not name."""
    try:
        return link.stage.config()
    except ValidationError as error:
        needed = ", ".join(".".join(map(str, detail["loc"])) for detail in error.errors())
        raise loaded.sources.error(f"stage '{link.name}' has no defaults for: {needed}", ("stages",)) from None


def _limited(config: StageConfig, recipe: Recipe) -> StageConfig:
    """A stage's options with what the recipe's `memory` says, where it has options for that which are not given."""
    memory = {"arena_limit": recipe.memory.arena_limit, "memory_rules": recipe.memory.rules}
    given = {
        name: value
        for name, value in memory.items()
        if value is not None and name in type(config).model_fields and getattr(config, name) is None
    }
    return config.model_copy(update=given) if given else config


def _names(text: str, root: Path) -> Path | None:
    try:
        return located(text, root)
    except RuntimeError:
        # The home folder of nobody.
        return None


def _paths_to(value: Any, root: Path, wanted: Path) -> Iterator[tuple[tuple[str | int, ...], str]]:
    """Paths in a recipe's values at which a string names the file `wanted`, with the string."""
    if isinstance(value, str) and value and _names(value, root) == wanted:
        yield (), value
    elif isinstance(value, dict | list):
        for part, child in value.items() if isinstance(value, dict) else enumerate(value):
            for rest, name in _paths_to(child, root, wanted):
                yield (part, *rest), name
