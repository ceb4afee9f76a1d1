"""Compare an evidence folder with the files of today."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from pipeline.commands.evidence.write import INDEX, PROVENANCE, SBOM
from pipeline.errors import PipelineError
from pipeline.plugins.registry import registry_of
from pipeline.project import Project
from pipeline.recipes.loader import LoadedRecipe, load_recipes
from pipeline.runs.publish import EVIDENCE
from stages.delivery.evidence.provenance import differences, sha256
from stages.support.messages import escape


def check(recipe: str, overrides: Mapping[str, str], *, project: Project, build: Path | None = None) -> dict[str, Any]:
    """Compare build folder, recipe, model and data with the evidence.

    Returns {recipe, target, folder, files: their number, differences: sentences, holds}. Raises PipelineError if there
    is no evidence, or if it cannot be read.
    """
    members = load_recipes(recipe, root=project, registry=registry_of(project), variables=dict(overrides))
    if len(members) != 1:
        raise PipelineError(f"evidence is for one recipe and one target, got {len(members)}")
    loaded = members[0]
    place = (build or project.root / "build") / loaded.recipe.name / (loaded.variant or loaded.target.name)
    folder = place / EVIDENCE
    shown = escape.name(project.display_path(folder))
    changes = "".join(f" {key}={escape.name(value)}" for key, value in overrides.items() if value)
    command = f"`doit evidence {escape.name(recipe)}{changes}`"
    if not (folder / INDEX).is_file():
        raise PipelineError(f"there is no evidence in {shown}", hint=f"{command} writes it")
    missing = [f"{EVIDENCE}/{name}: missing" for name in (PROVENANCE, SBOM) if not (folder / name).is_file()]
    if missing:
        return _result(loaded, project.display_path(folder), 0, missing)
    try:
        index, provenance, sbom = (json.loads((folder / name).read_text()) for name in (INDEX, PROVENANCE, SBOM))
        problems = [
            f"{EVIDENCE}/{name}: changed since it was written"
            for name, expected in index["files"].items()
            if not (folder / name).is_file() or sha256(folder / name) != expected
        ]
        problems += differences(provenance, sbom, place, project.root)
        files = len(provenance["subject"]) + len(index["files"])
    except (OSError, ValueError, KeyError, TypeError, IndexError, AttributeError):
        names = f"{INDEX}, {PROVENANCE} or {SBOM}"
        message = f"the evidence in {shown} is damaged: {names} does not have the content that was written"
        raise PipelineError(message, hint=f"{command} writes it again") from None
    return _result(loaded, project.display_path(folder), files, problems)


def _result(loaded: LoadedRecipe, folder: str, files: int, problems: list[str]) -> dict[str, Any]:
    return {
        "recipe": loaded.title,
        "target": loaded.target.name,
        "folder": folder,
        "files": files,
        "differences": problems,
        "holds": not problems,
    }
