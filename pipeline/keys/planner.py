"""Planning: the actions of a recipe, with their keys.

    key = sha256 of { stage, code of the stage, options, content of consumed artifacts, digests of external files,
                      versions of tools, fields of the target that the stage reads, the model entry if it reads it,
                      files of plug-ins }

A key depends on the content of consumed artifacts, not on their keys: if a stage runs again and writes the same bytes,
later stages do not run. So a key is known only after the consumed artifacts exist. Before, an action has an identity:
a digest of its ingredients and of the identities of the actions that it consumes, back to the model.
"""

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
from pipeline.keys.recipe_options import with_recipe_options
from pipeline.keys.tools import Tools
from pipeline.plugins.discovery import plugins_of
from pipeline.plugins.importing import stage_error
from pipeline.project import Project, project_of
from pipeline.recipes.loader import LoadedRecipe
from pipeline.recipes.stage_sequence import Link
from stages.backends.targets.spec import Target
from stages.base import ActionInputs, Stage, StageConfig, StageError, Tool, ToolIdentity
from stages.ir.models.sources import ModelSource
from stages.ir.models.spec import models_in
from stages.support.messages import escape
from stages.support.system.loaded_code import class_files, package_files
from stages.support.system.pathname import located, variable_hint

_OPERATORS = "stages/ir/operators/table.py"  # code that depends on the operators of plug-ins


@dataclass(frozen=True)
class Action:
    """A stage with resolved options and inputs, except for the consumed artifacts.

    link: the stage, its name in the recipe, and the names of the stages that it consumes.
    identity: equal identities mean equal actions; different identities may still give equal keys.
    ingredients: the content of the key without `inputs`, as JSON values.
    files: absolute paths of external files.
    tools, required_tools: path and version of each tool, and the requirements.
    code: path and digest of each file of the stage's code, by its name in the key.
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
    required_tools: tuple[Tool, ...]
    code: Mapping[str, tuple[Path, str]]

    @property
    def stage(self) -> Stage[Any]:
        """The stage that runs."""
        return self.link.stage

    @property
    def kind(self) -> str:
        """The stage's name in the recipe: its kind, or the kind of the stage that it replaces."""
        return self.link.name

    @property
    def model_source(self) -> str:
        """Path or URL of the model for a stage without inputs, which reads it; else ''."""
        return "" if self.link.inputs else str(getattr(self.model, "source", ""))

    def consuming(self, contents: Mapping[str, str]) -> dict[str, Any]:
        """Return the ingredients with the content digests of consumed artifacts, by kind."""
        return {**self.ingredients, "inputs": dict(contents)}


@dataclass(frozen=True)
class Plan:
    """The actions of a recipe for one target, in order.

    recipe: its title: `name`, or `matrix:variant`.
    sources: origins of the recipe's values, for errors of stages.
    changes: overrides as typed, without duplicates and without the target.
    """

    recipe: str
    target: str
    actions: tuple[Action, ...]
    sources: Sources
    changes: tuple[str, ...] = ()
    loaded: LoadedRecipe | None = None

    @property
    def folder(self) -> Path:
        """Folder of the results, relative to build/: `recipe/target`, or `matrix/variant`."""
        name, _, variant = self.recipe.partition(":")
        return Path(name, variant or self.target)

    def __iter__(self) -> Iterator[Action]:
        return iter(self.actions)

    def __getitem__(self, kind: str) -> Action:
        return next(action for action in self.actions if action.kind == kind)


@dataclass(frozen=True)
class _Resolved:
    """An action without its consumed artifacts.

    depends_on: objects of recipe and target that it depends on; kept alive, since they are identified by `id`.
    actions: the actions derived from it, by the identities of the consumed actions.
    """

    depends_on: tuple[Any, ...]
    config: StageConfig
    ingredients: Mapping[str, Any]
    files: Mapping[str, Path]
    tools: Mapping[str, ToolIdentity]
    required_tools: tuple[Tool, ...]
    code: Mapping[str, tuple[Path, str]]
    actions: dict[tuple[tuple[str, str], ...], Action] = field(default_factory=dict)


@dataclass(frozen=True)
class StageIdentity:
    """Parts of an action that do not depend on a recipe's files; fields as in Action."""

    ingredients: Mapping[str, Any]
    tools: Mapping[str, ToolIdentity]
    required_tools: tuple[Tool, ...]
    code: Mapping[str, tuple[Path, str]]


class Planner:
    """Makes plans. File digests and tool versions are cached for later plans."""

    def __init__(self, root: Path | Project, digests: DigestCache, tools: Tools, imports: Imports) -> None:
        self._project = project_of(root)
        self._root = self._project.root
        self.digests = digests
        self.tools = tools
        self.imports = imports
        self._globs: dict[str, dict[str, Path]] = {}
        self._digests_of_code: dict[str, tuple[Path, str]] = {}
        self._codes: dict[tuple[str, ...], dict[str, tuple[Path, str]]] = {}
        self._class_files: dict[type, dict[str, tuple[Path, str]]] = {}
        self._resolved_stages: dict[tuple[Any, ...], _Resolved] = {}

    def plan(self, loaded: LoadedRecipe, until: str = "") -> Plan:
        """Return the plan of a recipe, up to the stage `until` if given.

        Installs missing compilers and simulators if possible; tools of stages after `until` are not needed.
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
        for link in loaded.sequence.until(until):
            inputs = {kind: actions[name].identity for kind, name in link.inputs.items()}
            actions[link.name] = self._action(link, loaded, inputs)
        typed = [override for override in loaded.sources.overrides if not override.matrix_path]
        changes = dict.fromkeys(override.text for override in typed if override.path != ("target",))
        action_list = tuple(actions.values())
        return Plan(loaded.title, loaded.target.name, action_list, loaded.sources, tuple(changes), loaded)

    def _action(self, link: Link, loaded: LoadedRecipe, inputs: dict[str, str]) -> Action:
        resolved = self._resolved(link, loaded)
        consumed = tuple(inputs.items())
        action = resolved.actions.get(consumed)
        if action is None:
            action = Action(
                link=link,
                config=resolved.config,
                recipe=loaded.title,
                model=loaded.recipe.model,
                target=loaded.target,
                identity=digest_of({**resolved.ingredients, "inputs": inputs}),
                ingredients=resolved.ingredients,
                files=resolved.files,
                tools=resolved.tools,
                required_tools=resolved.required_tools,
                code=resolved.code,
            )
            resolved.actions[consumed] = action
        is_same = action.recipe == loaded.title and action.link == link
        return action if is_same else replace(action, recipe=loaded.title, link=link)

    def _resolved(self, link: Link, loaded: LoadedRecipe) -> _Resolved:
        """Return a stage without its consumed artifacts; variants of a matrix share it if equal."""
        recipe, target = loaded.recipe, loaded.target
        options = recipe.config(_options_entry(link))
        depends_on = (link.stage, options, recipe.model, recipe.memory, target, loaded.path)
        # _Resolved keeps these objects alive, so that their ids stay unique.
        identity = (link.name, *map(id, depends_on))
        if identity not in self._resolved_stages:
            self._resolved_stages[identity] = self._resolve(link, loaded, depends_on)
        return self._resolved_stages[identity]

    def _resolve(self, link: Link, loaded: LoadedRecipe, depends_on: tuple[Any, ...]) -> _Resolved:
        recipe, target, stage = loaded.recipe, loaded.target, link.stage
        config = with_recipe_options(recipe.config(_options_entry(link)) or _defaults(link, loaded), recipe)
        try:
            inputs = stage.inputs(config, recipe.model, target)
            inputs = replace(inputs, tools=(*inputs.tools, *inputs.file_tools(self._root)))
            files = inputs.files(self._root)
            stage_identity = self.identify(stage, config, inputs, target)
        except StageError as error:
            raise loaded.sources.stage_failure(link.name, error, stage.kind) from error
        except (PipelineError, KeyboardInterrupt):
            raise
        except BaseException as error:  # also sys.exit
            raise stage_error(link.name, error, plugins_of(self._project)) from error
        values = {
            "model": recipe.model.model_dump(mode="json"),
            "stages": {_options_entry(link): stage_identity.ingredients["parameters"]},
        }
        digests = {name: self._file(path, link, loaded, values) for name, path in files.items()}
        return _Resolved(
            depends_on=depends_on,
            config=config,
            ingredients={**stage_identity.ingredients, "files": digests},
            files={name: self._root / path for name, path in files.items()},
            tools=stage_identity.tools,
            required_tools=stage_identity.required_tools,
            code=stage_identity.code,
        )

    def identify(self, stage: Stage[Any], config: StageConfig, inputs: ActionInputs, target: Target) -> StageIdentity:
        """Return the ingredients of a stage on this machine, without `inputs.files`.

        Raises StageError, ToolError.
        """
        tools = {tool.name: self.tools.identify(tool) for tool in inputs.tools}
        code = self._code(stage, inputs.sources)
        plugin_code = self._class_code(stage, code) | self._digested(stage, inputs.code)
        code |= self._digested(stage, self.imports.followed(path for path, _ in plugin_code.values()))
        operator_code = self._digested(stage, self.operator_code(code))  # also of a stage's own imports
        code |= self._digested(stage, self.imports.followed(path for path, _ in operator_code.values()))
        plugin_code |= operator_code
        target_dump = target.model_dump(mode="json", include=set(inputs.target_fields))
        ingredients: dict[str, Any] = {
            "stage": stage.kind,
            "code": {name: digest for name, (_, digest) in code.items()},
            "parameters": stage.parameters(config),
            "tools": {name: tool.version for name, tool in tools.items()},
            "target": {name: target_dump[name] for name in inputs.target_fields},
            "model": inputs.model_entry,
        }
        if plugin_code:
            ingredients["plug-in"] = {name: digest for name, (_, digest) in plugin_code.items()}
        return StageIdentity(ingredients, tools, inputs.tools, code | plugin_code)

    def display_path(self, path: Path) -> str:
        """Return a path for messages, relative to the project if inside."""
        return self._project.display_path(path)

    def operator_code(self, code: Container[str]) -> dict[str, Path]:
        """Return the files of operator plug-ins if `code` contains the operator table, else {}."""
        files: dict[str, Path] = {}
        if _OPERATORS in code:
            for plugin in plugins_of(self._project)["operators"].values():
                files |= package_files(plugin.path)
        return files

    def code_names(self, action: Action) -> set[str]:
        """Return the names of the code that the action's stage uses at present.

        Omits modules that the code imports.
        """
        inputs = action.stage.inputs(action.config, action.model, action.target)
        matches = (name for pattern in inputs.sources for name in self._matching(pattern))
        return {*matches, *inputs.code, *self.operator_code(action.code)}

    def _matching(self, pattern: str) -> dict[str, Path]:
        folder = self._project.installation
        # glob is twice as fast as Path.glob.
        names = sorted({*glob(pattern, root_dir=folder, recursive=True, include_hidden=True)})  # noqa: PTH207
        paths = {name: folder / name for name in names if "__pycache__" not in name.split("/")}
        return {name: path for name, path in paths.items() if path.is_file()}

    def _code(self, stage: Stage[Any], patterns: tuple[str, ...]) -> dict[str, tuple[Path, str]]:
        """Return path and digest of files that match the patterns and of modules they import."""
        if patterns not in self._codes:
            code: dict[str, Path] = {}
            for pattern in patterns:
                if pattern not in self._globs:
                    self._globs[pattern] = self._matching(pattern)
                code.update(self._globs[pattern])
            if patterns and not code:
                raise PipelineError(f"stage {stage.kind}: no file matches its sources {', '.join(patterns)}")
            code |= self.imports.followed(code.values())
            # Stages share most files.
            missing = {name: path for name, path in code.items() if name not in self._digests_of_code}
            self._digests_of_code |= self._digested(stage, missing)
            self._codes[patterns] = {name: self._digests_of_code[name] for name in code}
        return dict(self._codes[patterns])

    def _class_code(self, stage: Stage[Any], code: Mapping[str, tuple[Path, str]]) -> dict[str, tuple[Path, str]]:
        """Return path and digest of the files of a stage's class that are not in `code`."""
        cls = type(stage)
        if cls not in self._class_files:
            try:
                files = class_files(cls, {path for path, _ in code.values()}, Stage.__mro__)
            except LookupError as error:
                message = f"stage {stage.kind}: the class {error.args[0]} is not defined in a file"
                raise PipelineError(message, hint="move it into a module, so that changes of it are detected") from None
            self._class_files[cls] = self._digested(stage, files)
        return self._class_files[cls]

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
            value_path, name = next(
                _paths_to(values, self._root, self._root / path), (("stages", _options_entry(link)), "")
            )
            hints = (models_in(self._root / path) if value_path[0] == "model" else "", variable_hint(name))
            raise loaded.sources.error(message, value_path, hint="\n".join(filter(None, hints))) from None


def _options_entry(link: Link) -> str:
    """Return the name of the recipe entry with a stage's options."""
    return link.stage.options_of or link.name


def _tools(loaded: LoadedRecipe, until: str) -> list[Tool]:
    """Return the tools of a recipe's stages."""
    tools: list[Tool] = []
    for link in loaded.sequence.until(until):
        config = loaded.recipe.config(_options_entry(link)) or _defaults(link, loaded)
        with suppress(Exception):  # the plan reports exceptions of stages
            tools += link.stage.inputs(config, loaded.recipe.model, loaded.target).tools
    return tools


def _defaults(link: Link, loaded: LoadedRecipe) -> StageConfig:
    """Return the default options of a stage. Raises RecipeError if one has no default."""
    try:
        return link.stage.config()
    except ValidationError as error:
        needed = ", ".join(".".join(map(str, detail["loc"])) for detail in error.errors())
        raise loaded.sources.error(f"stage '{link.name}' needs a value for: {needed}", ("stages",)) from None


def _resolved_path(text: str, root: Path) -> Path | None:
    try:
        return located(text, root)
    except RuntimeError:
        # Unknown user in `~user`.
        return None


def _paths_to(value: Any, root: Path, file: Path) -> Iterator[tuple[tuple[str | int, ...], str]]:
    """Yield path and text of each value that names a file."""
    if isinstance(value, str) and value and _resolved_path(value, root) == file:
        yield (), value
    elif isinstance(value, dict | list):
        for part, child in value.items() if isinstance(value, dict) else enumerate(value):
            for rest, name in _paths_to(child, root, file):
                yield (part, *rest), name
