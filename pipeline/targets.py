"""The cores and boards of pipeline.yaml: the built-in ones, and those that a project adds."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from pydantic import Field, ValidationError, model_validator

from pipeline.document import Document, load_document
from pipeline.errors import list_known
from pipeline.project import PROJECT_FILE, Project, project_of
from pipeline.sources import Sources
from pipeline.validation import first_error
from stages import escape
from stages.base import StageError
from stages.targets.catalogue import Catalogue
from stages.targets.like import KINDS, LIKE
from stages.targets.places import with_places
from stages.targets.spec import Core, Target
from stages.wording import did_you_mean


class _Additions(Catalogue):
    """The pipeline.yaml of a project, which may have boards of built-in cores only, or nothing yet.

    Without what is like another: that may be a built-in one, and is looked at together with these.
    """

    cores: dict[str, Core] = Field(default_factory=dict)

    @model_validator(mode="before")
    @classmethod
    def _without_like(cls, data: Any) -> Any:
        if not isinstance(data, Mapping):
            return data
        return {key: _complete(value) if key in KINDS else value for key, value in data.items()}


def load_targets(root: Path | Project) -> dict[str, Target]:
    """The targets of pipeline.yaml by name, the project's after the built-in ones. Raises RecipeError."""
    project = project_of(root)
    built_in = _document(project.installation, project)
    if project.alone or not (project.root / PROJECT_FILE).exists():
        return _targets(built_in.data, Sources((built_in,)), project.folders)
    own = _document(project.root, project)
    _check(_Additions, own.data, Sources((own,)))
    _refuse_twice(own, built_in)
    # Each name is in one of the two, which is where a mistake about it is shown.
    sources = Sources((own, built_in))
    both = {kind: {**_named(built_in, kind), **_named(own, kind)} for kind in KINDS}
    return _targets({"schema": 1, **both}, sources, project.folders)


def _complete(entries: Any) -> Any:
    if not isinstance(entries, Mapping):
        return entries
    return {name: entry for name, entry in entries.items() if not (isinstance(entry, Mapping) and LIKE in entry)}


def _document(folder: Path, project: Project) -> Document:
    path = folder / PROJECT_FILE
    return load_document(path, project.shown(path))


def _named(document: Document, kind: str) -> Mapping[str, Any]:
    return document.data.get(kind) or {}


def _check(model: type[Catalogue], data: Any, sources: Sources) -> Catalogue:
    try:
        return model.model_validate(data)
    except ValidationError as error:
        schema = model.model_json_schema()
        raise first_error(error, data, sources, {**schema, "definitions": schema["$defs"]}) from None


def _refuse_twice(own: Document, built_in: Document) -> None:
    """Refuse a core or board of the project that has the name of a built-in one."""
    for kind in KINDS:
        for name in _named(own, kind):
            for other, what in KINDS.items():
                if name in _named(built_in, other):
                    at = built_in.locate((other, name), key=True)
                    place = f"{built_in.name}:{at.line}:{at.column}"
                    message = f"{KINDS[kind]} '{escape.name(name)}' has the name of a built-in {what}, {place}"
                    raise own.error(message, own.locate((kind, name), key=True), hint="give it another name")


def _targets(data: Any, sources: Sources, folders: Sequence[Path]) -> dict[str, Target]:
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
    return {name: _placed(target, folders, sources) for name, target in catalogue.targets().items()}


def _placed(target: Target, folders: Sequence[Path], sources: Sources) -> Target:
    try:
        return with_places(target, folders)
    except StageError as error:
        raise sources.error(error.message, ("cores", target.core, *error.at), hint=error.hint) from None
