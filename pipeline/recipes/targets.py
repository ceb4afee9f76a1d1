"""The cores and boards of pipeline.yaml, the built-in ones and those that a project adds; its remote store."""

from __future__ import annotations

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
from stages.accelerators.registry import accelerator_class
from stages.accelerators.registry import names as accelerator_names
from stages.base import StageError
from stages.kernels.places import folder_names
from stages.messages import escape
from stages.messages.wording import did_you_mean
from stages.options.names import Name
from stages.options.remote_store import RemoteStore
from stages.options.wrong_option import first_wrong
from stages.targets.catalogue import Catalogue
from stages.targets.like import KINDS, LIKE
from stages.targets.places import with_places
from stages.targets.spec import Core, Target

_BUILT_IN = {
    "kernels": tuple(folder_names()),
    "simulators": ("spike", "qemu", "native"),
    "accelerators": tuple(accelerator_names()),
}
_TIMINGS = "timings"
# The family whose disassembly each kind of timing model reads, and the simulators that can count by one.
_READ = {"thumb": "cortex_m", "riscv": "riscv"}
_TIMED = ("spike", "qemu")
_DRIVERS = ("dma", "include")  # beside kernels in emitted sources
STORE = "store"
_CALLED = {"kernels": "kernel folder", "simulators": "simulator", "accelerators": "accelerator"}


class _Additions(Catalogue):
    """The pipeline.yaml of a project, which may have boards of built-in cores only, or nothing yet.

    Without what is like another: that may be a built-in one, and is looked at together with these.
    """

    cores: dict[Name, Core] = Field(default_factory=dict)

    @model_validator(mode="before")
    @classmethod
    def _without_like(cls, data: Any) -> Any:
        if not isinstance(data, Mapping):
            return data
        return {key: _complete(value) if key in KINDS else value for key, value in data.items()}


def load_targets(root: Path | Project) -> dict[str, Target]:
    """The targets of pipeline.yaml by name, the project's after the built-in ones. Raises RecipeError.

    The project's operators are declared with them: its kernels compute them.
    """
    project = project_of(root)
    declare_operators(project)
    built_in = _document(project.installation, project)
    documents = [load_document(one.path, one.display_name) for one in plugins_of(project)["targets"].values()]
    if not project.is_standalone and (project.root / PROJECT_FILE).exists():
        documents.insert(0, _document(project.root, project))
    for number, own in enumerate(documents):
        _check(_Additions, own.data, Sources((own,)))
        for other in (built_in, *documents[:number]):
            _refuse_twice(own, other, built_in)
    # Each name is in one of them, which is where a mistake about it is shown.
    documents.append(built_in)
    if len(documents) == 1:
        return _targets(built_in.data, Sources((built_in,)), project)
    both: dict[str, dict[str, Any]] = {kind: {} for kind in KINDS}
    for one in reversed(documents):
        for kind, entries in both.items():
            entries.update(_named(one, kind))
    return _targets({"schema": 1, **both}, Sources(tuple(documents)), project)


def unknown_target_error(name: str, known: Iterable[str]) -> RecipeError:
    """The error of a name on a command line that is no target."""
    names = list(known)
    message = f"unknown target '{escape.name(name)}'{did_you_mean(name, names)}"
    return RecipeError(message, hint=list_known("targets", names))


def remote_store(root: Path | Project) -> RemoteStore | None:
    """`store:` of the project's pipeline.yaml. Raises RecipeError."""
    project = project_of(root)
    if not (project.root / PROJECT_FILE).exists():
        return None
    document = _document(project.root, project)
    if not isinstance(document.data, Mapping) or document.data.get(STORE) is None:
        return None
    try:
        return RemoteStore.model_validate(document.data[STORE])
    except ValidationError:
        return _check(_Additions, document.data, Sources((document,))).store


def _complete(entries: Any) -> Any:
    if not isinstance(entries, Mapping):
        return entries
    return {name: entry for name, entry in entries.items() if not (isinstance(entry, Mapping) and LIKE in entry)}


def _document(folder: Path, project: Project) -> Document:
    path = folder / PROJECT_FILE
    return load_document(path, project.display_path(path))


def _named(document: Document, kind: str) -> Mapping[str, Any]:
    return document.data.get(kind) or {}


def _check(model: type[Catalogue], data: Any, sources: Sources) -> Catalogue:
    try:
        return model.model_validate(data)
    except ValidationError as error:
        schema = model.model_json_schema()
        raise validation_error(error, data, sources, {**schema, "definitions": schema["$defs"]}) from None


def _refuse_twice(own: Document, before: Document, built_in: Document) -> None:
    """Refuse a core or board that has the name of one in an earlier document."""
    a_built_in = "a built-in" if before is built_in else "another"
    for kind in KINDS:
        for name in _named(own, kind):
            for other, what in KINDS.items():
                if (kind == _TIMINGS) == (other == _TIMINGS) and name in _named(before, other):
                    at = before.locate((other, name), key=True)
                    place = f"{before.name}:{at.line}:{at.column}"
                    message = f"{KINDS[kind]} '{escape.name(name)}' has the name of {a_built_in} {what}, {place}"
                    raise own.error(message, (kind, name), key=True, hint="give it another name")


def _targets(data: Any, sources: Sources, project: Project) -> dict[str, Target]:
    catalogue = _check(Catalogue, data, sources)
    for name, board in catalogue.boards.items():
        if board.core not in catalogue.cores:
            message = f"unknown core '{board.core}'{did_you_mean(board.core, catalogue.cores)}"
            raise sources.error(message, ("boards", name, "core"), hint=list_known("cores", catalogue.cores))
        if name in catalogue.cores:
            raise sources.error(f"board '{name}' has the name of a core", ("boards", name), key=True)
        if catalogue.cores[board.core].memory is None:
            message = f"core '{board.core}' runs under an operating system, it has no boards"
            raise sources.error(message, ("boards", name, "core"))
    _check_timings(catalogue, sources)
    return {name: _placed(target, project, sources) for name, target in catalogue.targets().items()}


def _check_timings(catalogue: Catalogue, sources: Sources) -> None:
    """Each timing model that is named is there, is of the core's instructions, and its simulator can count by it."""
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
        if _READ[model.instructions] != core.family:
            message = f"timing model '{name}' is of {model.instructions} instructions, the family is {core.family}"
            raise sources.error(message, at)
        if core.simulator.kind not in _TIMED:
            raise sources.error(f"no timing model can be used with the simulator {core.simulator.kind}", at)


def _placed(target: Target, project: Project, sources: Sources) -> Target:
    own = {}
    at: tuple[str | int, ...]
    for number, name in enumerate(target.kernels):
        at = ("cores", target.core, "kernels", number)
        own[f"kernels/{name}"] = _plugin("kernels", name, project, sources, at)
    name = target.simulator.kind
    at = ("cores", target.core, "simulator", "kind")
    own[f"simulators/{name}"] = _plugin("simulators", name, project, sources, at)
    if target.accelerator is not None:
        name, at = target.accelerator.kind, ("boards", target.name, "accelerator")
        own[f"accelerators/{name}"] = plugin = _plugin("accelerators", name, project, sources, (*at, "kind"))
        if name in (*_BUILT_IN["kernels"], *target.kernels, *_DRIVERS):  # all are folders of the emitted sources
            message = f"accelerator '{escape.name(name)}' has the name of a folder of kernels or drivers"
            raise sources.error(message, (*at, "kind"), hint="its C would lie among theirs in the emitted sources")
        if plugin is None:  # a plug-in's are looked at when it is used: nothing imports it before
            _check_parameters(name, target.accelerator.parameters, sources, (*at, "parameters"))
    found = plugins_of(project)
    update = {
        "places": {name: one.path for name, one in own.items() if one is not None},
        "modules": {name: one.module for name, one in own.items() if one is not None},
    }
    folders = [project.root, *dict.fromkeys(one.path.parent for one in found["targets"].values())]
    try:
        return with_places(target.model_copy(update=update), [*folders, project.installation])
    except StageError as error:
        raise sources.error(error.message, ("cores", target.core, *error.at), hint=error.hint) from None


def _check_parameters(name: str, given: Mapping[str, Any], sources: Sources, at: tuple[str | int, ...]) -> None:
    options = accelerator_class(name).parameters
    try:
        options.model_validate(given)
    except ValidationError as error:
        wrong = first_wrong(error, options)
        hint = f"Parameters of {name}: {', '.join(options.model_fields) or 'none'}"
        message = f"accelerator {name}: {wrong.message}"
        raise sources.error(message, (*at, *wrong.at), key=wrong.key, hint=hint) from None


def _plugin(kind: str, name: str, project: Project, sources: Sources, at: tuple[str | int, ...]) -> Plugin | None:
    """The plug-in that a core or board names at `at`, None for what Firmline has. RecipeError for what nobody has."""
    plugins, built_in = plugins_of(project)[kind], _BUILT_IN[kind]
    if name not in plugins and name not in built_in:
        known = [*plugins, *built_in]
        message = f"unknown {_CALLED[kind]} '{escape.name(name)}'{did_you_mean(name, known)}"
        raise sources.error(message, at, hint=list_known(f"{_CALLED[kind]}s", known))
    if name in plugins and name in built_in:
        raise PipelineError(f"plug-in {plugins[name].display_name} has the name of Firmline's {_CALLED[kind]} '{name}'")
    return plugins.get(name)
