"""Measurements on silicon: Firmline's file and the project's own, `silicon.yaml` beside its pipeline.yaml."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from pydantic import ValidationError

from pipeline.documents.document import load_document
from pipeline.documents.sources import Sources
from pipeline.project import Project, project_of
from pipeline.recipes.validation import validation_error
from stages.backends.targets.load import load_catalogue
from stages.backends.timing.silicon import BUILT_IN, Silicon

FILE = "silicon.yaml"


def load_silicon(root: Path | Project) -> Silicon:
    """Return all chips and rows, Firmline's first. Raises RecipeError with file, line and hint."""
    project = project_of(root)
    catalogue = load_catalogue(project.installation / "pipeline.yaml")
    known: dict[str, Any] = {"cores": [*catalogue.cores, *catalogue.timings], "boards": [*catalogue.boards]}
    silicon = _load(BUILT_IN, project, known)
    path = project.root / FILE
    if project.is_standalone or not path.exists():
        return silicon
    own = _load(path, project, {**known, "chips": silicon.chips})
    rows = (*silicon.measurements, *own.measurements)
    return silicon.model_copy(update={"chips": {**silicon.chips, **own.chips}, "measurements": rows})


def _load(path: Path, project: Project, known: dict[str, Any]) -> Silicon:
    document = load_document(path, project.display_path(path))
    try:
        return Silicon.model_validate(document.data, context=known)
    except ValidationError as error:
        schema = Silicon.model_json_schema()
        definitions = {**schema, "definitions": schema["$defs"]}
        raise validation_error(error, document.data, Sources((document,)), definitions) from None
