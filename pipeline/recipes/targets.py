"""Targets of pipeline.yaml, built-in and of a project, and the setting of the remote store."""

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from pydantic import Field, ValidationError, model_validator

from pipeline.documents.document import Document, load_document
from pipeline.documents.sources import Sources
from pipeline.errors import PipelineError, RecipeError, list_known
from pipeline.plugins.discovery import Plugin, plugins_of
from pipeline.plugins.importing import declare_operators
from pipeline.project import PROJECT_FILE, Project, project_of
from pipeline.recipes.validation import validation_error
from stages.backends.accelerators.registry import accelerator_class
from stages.backends.accelerators.registry import names as accelerator_names
from stages.backends.kernels.places import folder_names
from stages.backends.targets.catalogue import Catalogue
from stages.backends.targets.like import KINDS, LIKE
from stages.backends.targets.load import family_files
from stages.backends.targets.places import with_places
from stages.backends.targets.spec import Core, Target
from stages.backends.targets.timing import decoders
from stages.base import StageError
from stages.support.messages import escape
from stages.support.messages.wording import did_you_mean
from stages.support.options.names import Name
from stages.support.options.remote_store import RemoteStore
from stages.support.options.wrong_option import first_wrong

_BUILT_IN = {
    "kernels": tuple(folder_names()),
    "simulators": ("spike", "qemu", "native"),
    "accelerators": tuple(accelerator_names()),
}
_TIMINGS = "timings"
# Simulators that support timing models.
_TIMING_SIMULATORS = ("spike", "qemu")
_DRIVERS = ("dma", "include")  # folders of emitted sources beside kernels
STORE = "store"
_KIND_NAMES = {"kernels": "kernel folder", "simulators": "simulator", "accelerators": "accelerator"}


class _ProjectCatalogue(Catalogue):
    """The pipeline.yaml of a project; it may be empty, or have boards of built-in cores only.

    Entries with `like` are ignored here: they may refer to built-in entries and are validated with these.
    """

    cores: dict[Name, Core] = Field(default_factory=dict)

    @model_validator(mode="before")
    @classmethod
    def _without_like(cls, data: Any) -> Any:
        if not isinstance(data, Mapping):
            return data
        return {key: _without_like_entries(value) if key in KINDS else value for key, value in data.items()}


def load_targets(root: Path | Project) -> dict[str, Target]:
    """Return all targets by name, built-in ones first. Raises RecipeError.

    Also declares the operators of plug-ins, which kernels of the project may compute.
    """
    return declared_targets(root)[0]


def declared_targets(root: Path | Project) -> tuple[dict[str, Target], tuple[Document, ...]]:
    """As `load_targets`, with the documents that declare the targets."""
    project = project_of(root)
    declare_operators(project)
    built_in = [_document(project.installation, project)]
    built_in = [*(_load(path, project) for path in family_files(project.installation)), *built_in]
    documents = [load_document(extra.path, extra.display_name) for extra in plugins_of(project)["targets"].values()]
    if not project.is_standalone and (project.root / PROJECT_FILE).exists():
        documents.insert(0, _document(project.root, project))
    for number, document in enumerate(documents):
        _check(_ProjectCatalogue, document.data, Sources((document,)))
        for other in (*built_in, *documents[:number]):
            _check_duplicates(document, other, is_built_in=other in built_in)
    # Each name is in exactly one document, so errors have the right position.
    documents += reversed(built_in)
    sources = Sources(tuple(documents))
    if len(documents) == 1:
        return _targets(documents[0].data, sources, project), sources.documents
    merged: dict[str, dict[str, Any]] = {kind: {} for kind in KINDS}
    for extra in reversed(documents):
        for kind, entries in merged.items():
            entries.update(_entries(extra, kind))
    return _targets({"schema": 1, **merged}, sources, project), sources.documents


def unknown_target_error(name: str, known: Iterable[str]) -> RecipeError:
    """Return the error for an unknown target on the command line."""
    names = list(known)
    message = f"unknown target '{escape.name(name)}'{did_you_mean(name, names)}"
    return RecipeError(message, hint=list_known("targets", names))


def remote_store(root: Path | Project) -> RemoteStore | None:
    """Return the remote store of the project's pipeline.yaml, or None. Raises RecipeError."""
    project = project_of(root)
    if not (project.root / PROJECT_FILE).exists():
        return None
    document = _document(project.root, project)
    if not isinstance(document.data, Mapping) or document.data.get(STORE) is None:
        return None
    try:
        return RemoteStore.model_validate(document.data[STORE])
    except ValidationError:
        return _check(_ProjectCatalogue, document.data, Sources((document,))).store


def _without_like_entries(entries: Any) -> Any:
    if not isinstance(entries, Mapping):
        return entries
    return {name: entry for name, entry in entries.items() if not (isinstance(entry, Mapping) and LIKE in entry)}


def _document(folder: Path, project: Project) -> Document:
    return _load(folder / PROJECT_FILE, project)


def _load(path: Path, project: Project) -> Document:
    return load_document(path, project.display_path(path))


def _entries(document: Document, kind: str) -> Mapping[str, Any]:
    return document.data.get(kind) or {}


def _check(model: type[Catalogue], data: Any, sources: Sources) -> Catalogue:
    try:
        return model.model_validate(data)
    except ValidationError as error:
        schema = model.model_json_schema()
        raise validation_error(error, data, sources, {**schema, "definitions": schema["$defs"]}) from None


def _check_duplicates(document: Document, earlier: Document, *, is_built_in: bool) -> None:
    """Raise RecipeError for a core or board with a name of an earlier document."""
    a_built_in = "a built-in" if is_built_in else "another"
    for kind in KINDS:
        for name in _entries(document, kind):
            for other, kind_name in KINDS.items():
                if (kind == _TIMINGS) == (other == _TIMINGS) and name in _entries(earlier, other):
                    at = earlier.locate((other, name), key=True)
                    location = f"{earlier.name}:{at.line}:{at.column}"
                    message = (
                        f"{KINDS[kind]} '{escape.name(name)}' has the name of {a_built_in} {kind_name}, {location}"
                    )
                    raise document.error(message, (kind, name), key=True, hint="rename it")


def _targets(data: Any, sources: Sources, project: Project) -> dict[str, Target]:
    catalogue = _check(Catalogue, data, sources)
    for name, board in catalogue.boards.items():
        if board.core not in catalogue.cores:
            message = f"unknown core '{board.core}'{did_you_mean(board.core, catalogue.cores)}"
            raise sources.error(message, ("boards", name, "core"), hint=list_known("cores", catalogue.cores))
        if name in catalogue.cores:
            raise sources.error(f"board '{name}' has the name of a core", ("boards", name), key=True)
        if catalogue.cores[board.core].memory is None:
            message = f"core '{board.core}' runs under an operating system and cannot have boards"
            raise sources.error(message, ("boards", name, "core"))
    _check_timings(catalogue, sources)
    return {name: _with_plugins(target, project, sources) for name, target in catalogue.targets().items()}


def _check_timings(catalogue: Catalogue, sources: Sources) -> None:
    """Raise RecipeError for a timing model that is unknown or does not fit core or simulator."""
    named = [
        (("cores", name, "timing"), core.timing, core) for name, core in catalogue.cores.items() if core.timing
    ] + [
        (("boards", name, "timing"), board.timing, catalogue.cores[board.core])
        for name, board in catalogue.boards.items()
        if board.timing
    ]
    for at, name, core in named:
        model = catalogue.timings.get(name)
        if model is None:
            message = f"unknown timing model '{escape.name(name)}'{did_you_mean(name, catalogue.timings)}"
            raise sources.error(message, at, hint=list_known("timing models", catalogue.timings))
        if decoders()[model.instructions] != core.family:
            message = (
                f"timing model '{name}' is for {model.instructions} instructions, not for the family {core.family}"
            )
            raise sources.error(message, at)
        if core.simulator.kind not in _TIMING_SIMULATORS:
            raise sources.error(f"the simulator {core.simulator.kind} does not support timing models", at)


def _with_plugins(target: Target, project: Project, sources: Sources) -> Target:
    plugins = {}
    at: tuple[str | int, ...]
    for number, name in enumerate(target.kernels):
        at = ("cores", target.core, "kernels", number)
        plugins[f"kernels/{name}"] = _plugin("kernels", name, project, sources, at)
    name = target.simulator.kind
    at = ("cores", target.core, "simulator", "kind")
    plugins[f"simulators/{name}"] = _plugin("simulators", name, project, sources, at)
    if target.accelerator is not None:
        name, at = target.accelerator.kind, ("boards", target.name, "accelerator")
        plugins[f"accelerators/{name}"] = plugin = _plugin("accelerators", name, project, sources, (*at, "kind"))
        if name in (*_BUILT_IN["kernels"], *target.kernels, *_DRIVERS):  # folders of emitted sources
            message = f"accelerator '{escape.name(name)}' has the name of a folder of kernels or drivers"
            raise sources.error(message, (*at, "kind"), hint="rename it: emitted sources have a folder of that name")
        if plugin is None:  # parameters of a plug-in are checked when it is imported
            _check_parameters(name, target.accelerator.parameters, sources, (*at, "parameters"))
    all_plugins = plugins_of(project)
    update = {
        "places": {name: plug_in.path for name, plug_in in plugins.items() if plug_in is not None},
        "modules": {name: plug_in.module for name, plug_in in plugins.items() if plug_in is not None},
    }
    folders = [project.root, *dict.fromkeys(plug_in.path.parent for plug_in in all_plugins["targets"].values())]
    try:
        return with_places(target.model_copy(update=update), [*folders, project.installation])
    except StageError as error:
        raise sources.error(error.message, ("cores", target.core, *error.at), hint=error.hint) from None


def _check_parameters(name: str, parameters: Mapping[str, Any], sources: Sources, at: tuple[str | int, ...]) -> None:
    options = accelerator_class(name).parameters
    try:
        options.model_validate(parameters)
    except ValidationError as error:
        wrong = first_wrong(error, options)
        hint = f"Parameters of {name}: {', '.join(options.model_fields) or 'none'}"
        message = f"accelerator {name}: {wrong.message}"
        raise sources.error(message, (*at, *wrong.at), key=wrong.key, hint=hint) from None


def _plugin(kind: str, name: str, project: Project, sources: Sources, at: tuple[str | int, ...]) -> Plugin | None:
    """Return the plug-in that a target names, None for a built-in.

    Raises RecipeError if unknown.
    """
    plugins, built_in = plugins_of(project)[kind], _BUILT_IN[kind]
    if name not in plugins and name not in built_in:
        known = [*plugins, *built_in]
        message = f"unknown {_KIND_NAMES[kind]} '{escape.name(name)}'{did_you_mean(name, known)}"
        raise sources.error(message, at, hint=list_known(f"{_KIND_NAMES[kind]}s", known))
    if name in plugins and name in built_in:
        raise PipelineError(
            f"plug-in {plugins[name].display_name} has the name of Firmline's {_KIND_NAMES[kind]} '{name}'"
        )
    return plugins.get(name)
