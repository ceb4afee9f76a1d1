"""Cases of the suite: one per row and target, or the reason for skipping it."""

import os
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

from pipeline.commands.bench.suite import ModelFiles, PublishedBaseline, Row
from pipeline.errors import PipelineError, list_known
from pipeline.recipes.targets import unknown_target_error
from stages.support.messages import escape

MODELS_VARIABLE = "FIRMLINE_MODELS"
_MODELS = "../shared/models"


@dataclass(frozen=True)
class Case:
    """One row on one target.

    recipe   for pipeline.api.run_recipe; None if the case is skipped
    skipped  why it is skipped, else ''
    at_most  the limit of its instructions, None for no limit
    note     shown instead of baselines where there are none
    """

    row: str
    target: str
    recipe: Mapping[str, Any] | None
    base: str
    baselines: tuple[PublishedBaseline, ...] = ()
    skipped: str = ""
    at_most: int | None = None
    note: str = ""

    @property
    def id(self) -> tuple[str, str]:
        """The key of the case, also in docs/bench.json."""
        return self.row, self.target

    @property
    def title(self) -> str:
        """The name in messages."""
        return f"{self.row} on {self.target}"


def models_folder(root: Path, environment: Mapping[str, str] = os.environ) -> Path:
    """Return the folder of real models: FIRMLINE_MODELS, else ../shared/models. May not exist."""
    return root / (environment.get(MODELS_VARIABLE) or _MODELS)


def suite_cases(rows: Iterable[Row], root: Path, models: Path) -> list[Case]:
    """Return all cases of the rows, in the suite's order."""
    return [case for row in rows for case in _row_cases(row, root, models)]


def file_cases(folder: Path, options: ModelFiles, root: Path) -> list[Case]:
    """Return a case per target and *.tflite file below a folder. Raises PipelineError."""
    if not folder.is_dir():
        raise PipelineError(f"model={escape.name(str(folder), 200)}: no such folder")
    files = sorted(folder.rglob("*.tflite"))
    if not files:
        raise PipelineError(f"model={escape.name(str(folder), 200)}: no *.tflite file in it")
    cases = []
    for path in files:
        name = path.relative_to(folder).with_suffix("").as_posix()
        for target in options.targets:
            recipe = _recipe(name, options.recipe, target, {"file": os.path.relpath(path, root)}, {})
            cases.append(Case(name, target, recipe, options.recipe))
    return cases


def select(cases: list[Case], only: str, targets: str, known_targets: Iterable[str]) -> list[Case]:
    """Return the cases that match a glob of `only` and a target of `targets`.

    Both are lists separated by commas; '' selects all. Raises PipelineError for an unknown target, or if no case
    matches.
    """
    globs, target_names = _parts(only), _parts(targets)
    for target in target_names:
        if target not in set(known_targets):
            raise unknown_target_error(target, known_targets)
    matches = [case for case in cases if not globs or any(fnmatchcase(case.row, glob) for glob in globs)]
    if not matches:
        rows = dict.fromkeys(case.row for case in cases)
        raise PipelineError(f"only={escape.name(only)}: no row matches", hint=list_known("rows", rows))
    matches = [case for case in matches if not target_names or case.target in target_names]
    if not matches:
        raise PipelineError(f"target={escape.name(targets)}: no selected row has such a target")
    return matches


def _row_cases(row: Row, root: Path, models: Path) -> Iterator[Case]:
    model, skipped = row.model, ""
    if row.file is not None:
        path = models / row.file
        model = {"file": os.path.relpath(path, root)}
        if not path.is_file():
            skipped = f"{row.file} is not in the models folder ({MODELS_VARIABLE}, or {_MODELS})"
    for target in row.targets:
        baselines = tuple(peer for peer in row.peers if target in peer.targets)
        recipe = None if skipped else _recipe(row.name, row.recipe, target, model, row.stages)
        yield Case(row.name, target, recipe, row.recipe, baselines, skipped, row.at_most.get(target), row.note)


def _recipe(
    name: str, base: str, target: str, model: Mapping[str, Any] | None, stages: Mapping[str, Any]
) -> dict[str, Any]:
    """Return a recipe with a separate name, and so a separate build folder."""
    recipe = {
        "schema": 1,
        "name": re.sub(r"[^A-Za-z0-9_.+-]", "_", name).lstrip("_.+-") or "model",
        "extends": base,
        "target": target,
        "stages": dict(stages),
    }
    return {**recipe, "model": dict(model)} if model is not None else recipe


def _parts(text: str) -> list[str]:
    return [part.strip() for part in text.split(",") if part.strip()]
