"""Measurements on silicon: Firmline's file and the project's.

The project's is `silicon.yaml` beside its pipeline.yaml.
"""

from pathlib import Path
from typing import Any

from pydantic import ValidationError

from pipeline.documents.document import Document, load_document
from pipeline.documents.sources import Sources
from pipeline.project import Project, project_of
from pipeline.recipes.targets import load_targets
from pipeline.recipes.validation import validation_error
from stages.backends.targets.load import load_catalogue
from stages.backends.timing.silicon import BUILT_IN, Silicon

FILE = "silicon.yaml"


def load_silicon(root: Path | Project) -> Silicon:
    """Return all chips and rows, Firmline's first. Raises RecipeError with file, line and hint."""
    project = project_of(root)
    silicon = _validated(load_document(BUILT_IN, project.display_path(BUILT_IN)), _known(project))
    _, own = load_own(project)
    if own is None:
        return silicon
    rows = (*silicon.measurements, *own.measurements)
    return silicon.model_copy(update={"chips": {**silicon.chips, **own.chips}, "measurements": rows})


def load_own(project: Project) -> tuple[str, Silicon | None]:
    """Return text and content of the project's file; '' and None without it.

    Raises RecipeError.
    """
    path = project.root / FILE
    if not path.exists():
        return "", None
    document = load_document(path, project.display_path(path))
    return document.text, _own(document, project)


def checked(text: str, path: Path, project: Project) -> Silicon:
    """Parse and validate `text` as the project's silicon.yaml. Raises RecipeError."""
    from pipeline.documents.parsing import parse_yaml_document

    name = project.display_path(path)
    return _own(Document(name, text, parse_yaml_document(name, text)), project)


def _own(document: Document, project: Project) -> Silicon:
    built_in = load_document(BUILT_IN, project.display_path(BUILT_IN))
    known = _known(project)
    return _validated(document, {**known, "chips": _validated(built_in, known).chips})


def _known(project: Project) -> dict[str, Any]:
    """Return the context of `Silicon`, with cores, timing models and boards of the project too."""
    targets = load_targets(project)
    timings = load_catalogue(project.installation / "pipeline.yaml").timings
    boards = {name: each.flash.region if each.flash else () for name, each in targets.items() if each.board}
    timed = {target.timing: target for target in reversed(targets.values()) if target.timing}
    regions = {name: list(each.memory.regions) for name, each in {**timed, **targets}.items() if each.memory}
    return {"cores": list(dict.fromkeys([*targets, *timings, *timed])), "boards": boards, "regions": regions}


def _validated(document: Document, known: dict[str, Any]) -> Silicon:
    try:
        return Silicon.model_validate(document.data, context=known)
    except ValidationError as error:
        schema = Silicon.model_json_schema()
        definitions = {**schema, "definitions": schema["$defs"]}
        raise validation_error(error, document.data, Sources((document,)), definitions) from None
