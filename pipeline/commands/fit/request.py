"""Arguments of `doit fit`: the boards, and the recipe for each."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

from pipeline.commands.new_project import base_recipe
from pipeline.commands.new_recipe import check_model, model_entry
from pipeline.documents.overrides import Override
from pipeline.errors import PipelineError, RecipeError, list_known
from pipeline.plugins.registry import Registry
from pipeline.project import Project
from pipeline.recipes.loader import LoadedRecipe, load_recipe
from pipeline.recipes.recipe_files import is_path, recipe_names
from pipeline.recipes.targets import load_targets
from stages.backends.targets.spec import Target
from stages.base import StageError
from stages.ir.models.sources import ModelSource
from stages.ir.models.spec import MODEL_FILES, is_onnx
from stages.support.messages import escape
from stages.support.messages.wording import did_you_mean
from stages.support.options.names import as_name
from stages.support.system.pathname import located

_CALIBRATE = {"mode": "calibrate", "data": {"random": {}}}
CALIBRATED = (
    "float network, quantized to int8 with random calibration data: sizes and times are valid, its accuracy is not"
)
# Types of ONNX operators of quantized networks contain one of these.
_QUANTIZED = ("QuantizeLinear", "QLinear", "Integer")
_ONNX_FLOAT = 1


@dataclass(frozen=True)
class Request:
    """A network and the boards to try, each with the recipe that `doit run target=BOARD` runs.

    name   of the network, for titles and the page's file
    notes  sentences about the network
    """

    name: str
    targets: tuple[Target, ...]
    recipe: str | Mapping[str, Any]
    variables: Mapping[str, str]
    notes: tuple[str, ...] = ()
    applied: tuple[Override, ...] = ()

    def load(
        self, target: Target, project: Project, registry: Registry, arena_limit: int | None = None
    ) -> LoadedRecipe:
        """Return the recipe for a board, with a limit of the arena in bytes. Raises RecipeError."""
        variables = dict(self.variables)
        if arena_limit is not None:
            option = f"memory.arena_limit={arena_limit}"
            variables["set"] = ",".join(filter(None, (variables.get("set", ""), option)))
        if isinstance(self.recipe, str):
            variables["target"] = target.name
            return load_recipe(self.recipe, root=project, registry=registry, variables=variables)
        base = base_recipe(target)
        data = {**self.recipe, "target": target.name, **({"extends": base} if base else {})}
        return load_recipe(data, root=project, registry=registry, variables=variables, applied=self.applied)


def request_of(words: Sequence[str], variables: Mapping[str, str], project: Project, registry: Registry) -> Request:
    """Return the request of the command line.

    words      boards, globs of boards and, unless `recipe` or `model` is among the variables, a recipe or model file
    variables  may have recipe, model, target, board and set

    Raises PipelineError.
    """
    targets = load_targets(project)
    values = dict(variables)
    typed = values.pop("target", "") or values.pop("board", "")
    names = [name.strip() for word in (*words, *typed.split(",")) for name in word.split(",") if name.strip()]
    recipe, model = values.pop("recipe", ""), values.get("model", "")
    if not recipe and not model:
        others = [name for name in names if not _matching(name, targets) and _is_network(name, project)]
        names = [name for name in names if name not in others]
        if len(others) > 1:
            raise PipelineError(f"doit fit takes one network, got {', '.join(map(escape.name, others))}")
        if others and _is_model(others[0]):
            model = values["model"] = others[0]
        elif others:
            recipe = others[0]
        elif not names:
            raise PipelineError("no network is named: use `doit fit model=net.tflite` or `doit fit RECIPE`")
    boards = _boards(names, targets, needs_network=not recipe and not model, project=project)
    if recipe:
        return _of_recipe(recipe, values, boards, project, registry)
    return _of_model(values.pop("model"), values, boards, project, registry)


def _is_model(name: str) -> bool:
    return name.lower().endswith(MODEL_FILES) or name.startswith("zoo:")


def _is_network(name: str, project: Project) -> bool:
    return (
        is_path(name) or _is_model(name) or name.partition(":")[0] in recipe_names(project, abstract=True, nested=True)
    )


def _matching(name: str, targets: Mapping[str, Target]) -> list[Target]:
    """Return the target of a name, or the boards that match a glob."""
    if name in targets:
        return [targets[name]]
    return [target for target in targets.values() if target.board is not None and fnmatchcase(target.name, name)]


def _boards(
    names: Sequence[str], targets: Mapping[str, Target], *, needs_network: bool, project: Project
) -> tuple[Target, ...]:
    """Return the named targets, by default all boards. Raises PipelineError."""
    if not names:
        boards = tuple(target for target in targets.values() if target.board is not None)
        if not boards:
            raise PipelineError("no board is declared", hint="name a core, or add boards to pipeline.yaml")
        return boards
    selected: dict[str, Target] = {}
    for name in names:
        matches = _matching(name, targets)
        if not matches:
            raise _unknown(name, targets, project if needs_network else None)
        selected |= {target.name: target for target in matches}
    if needs_network:
        raise PipelineError("no network is named: use `doit fit model=net.tflite` or `doit fit RECIPE`")
    for target in selected.values():
        if target.memory is None:
            raise PipelineError(
                f"{target.name} has no memory sizes: its programs run on an operating system",
                hint="name boards, or cores with a memory map (`doit boards`)",
            )
    return tuple(selected.values())


def _unknown(name: str, targets: Mapping[str, Target], project: Project | None) -> PipelineError:
    """Return the error for a name that is no board; with `project` it may be meant as a recipe."""
    boards = [target.name for target in targets.values() if target.board is not None]
    if "*" in name:
        return RecipeError(f"no board matches '{escape.name(name)}'", hint=list_known("boards", boards))
    if project is not None and located(name, project.root).is_dir():
        model_entry(name, project)  # raises RecipeError for a folder
    recipes = [] if project is None else recipe_names(project, abstract=True)
    what = "board" if project is None else "board or recipe"
    guess = did_you_mean(name, [*targets, *recipes])
    return RecipeError(f"unknown {what} '{escape.name(name)}'{guess}", hint=list_known("boards", boards))


def _of_recipe(
    name: str, variables: Mapping[str, str], boards: tuple[Target, ...], project: Project, registry: Registry
) -> Request:
    if "," in name:
        raise PipelineError(f"recipe={escape.name(name)}: doit fit takes one recipe")
    if "model" in variables:
        model_entry(variables["model"], project)  # raises RecipeError for a missing file
    request = Request(name, boards, name, dict(variables))
    loaded = request.load(boards[0], project, registry)
    _check(loaded, project)
    return replace(request, name=loaded.title, notes=(CALIBRATED,) if _has_random_data(loaded) else ())


def _of_model(
    text: str, variables: Mapping[str, str], boards: tuple[Target, ...], project: Project, registry: Registry
) -> Request:
    entry = model_entry(text, project)
    name = as_name(Path(str(next(iter(entry.values()))).partition("?")[0]).stem) or "network"
    recipe: dict[str, Any] = {"schema": 1, "name": name, "model": entry}
    applied = (Override(f"model={text}", ("model",), None),)
    request = Request(name, boards, recipe, dict(variables), applied=applied)
    loaded = request.load(boards[0], project, registry)
    _check(loaded, project)
    if "stages.quantize" not in variables.get("set", "") and _is_float(loaded.recipe.model, project.root):
        recipe["stages"] = {"quantize": _CALIBRATE}
        return replace(request, notes=(CALIBRATED,))
    return request


def _check(loaded: LoadedRecipe, project: Project) -> None:
    """Raise RecipeError for a model that no board can have."""
    try:
        check_model(loaded.recipe.model, project)
    except StageError as error:
        first, *rest = error.message.splitlines()
        raise loaded.sources.error(first, ("model",), hint="\n".join([*rest, *error.hint.splitlines()])) from None


def _has_random_data(loaded: LoadedRecipe) -> bool:
    options = loaded.recipe.config("quantize")
    data = getattr(options, "data", None)
    return data is not None and data.random is not None


def _is_float(model: ModelSource, root: Path) -> bool:
    """Return whether a local model is a float network that the stage ptq can quantize."""
    from stages.ir.models.local_model import local_bytes, sound_model
    from stages.ptq.float_model import check_float

    if is_onnx(model):
        data = local_bytes(model, root)
        return data is not None and _is_float_onnx(data, str(getattr(model, "source", "")))
    info = sound_model(model, root)
    try:
        if info is not None:
            check_float(info, "the model")
    except StageError:
        return False
    return info is not None


def _is_float_onnx(data: bytes, name: str) -> bool:
    from stages.ir.models.onnx_parse import parsed

    graph = parsed(data, name).graph
    constants = {tensor.name for tensor in graph.initializer}
    inputs = [port for port in graph.input if port.name not in constants]
    is_quantized = any(part in node.op_type for node in graph.node for part in _QUANTIZED)
    return not is_quantized and all(port.type.tensor_type.elem_type == _ONNX_FLOAT for port in inputs)
