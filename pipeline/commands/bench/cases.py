"""From the suite to what is run: one case for each row and target, or the reason why it is skipped."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

from pipeline.commands.bench.suite import Loose, Peer, Row
from pipeline.errors import PipelineError, list_known
from pipeline.recipes.targets import unknown_target_error
from stages.messages import escape

MODELS_VARIABLE = "FIRMLINE_MODELS"
_MODELS = "../shared/models"


@dataclass(frozen=True)
class Case:
    """One row on one target. `recipe` is a recipe as pipeline.api.run_recipe takes it; None when the case is `skipped`,
    which says why. `at_most` bounds its instructions, None where nothing does."""

    row: str
    target: str
    recipe: Mapping[str, Any] | None
    base: str
    peers: tuple[Peer, ...] = ()
    skipped: str = ""
    at_most: int | None = None

    @property
    def id(self) -> tuple[str, str]:
        """What tells cases apart, in docs/bench.json too."""
        return self.row, self.target

    @property
    def title(self) -> str:
        """How messages call it."""
        return f"{self.row} on {self.target}"


def models_folder(root: Path, environment: Mapping[str, str] = os.environ) -> Path:
    """Where the real models are: FIRMLINE_MODELS, else ../shared/models beside the project. Need not exist."""
    return root / (environment.get(MODELS_VARIABLE) or _MODELS)


def suite_cases(rows: Iterable[Row], root: Path, models: Path) -> list[Case]:
    """All cases of the suite's rows, in the suite's order."""
    return [case for row in rows for case in _row_cases(row, root, models)]


def file_cases(folder: Path, loose: Loose, root: Path) -> list[Case]:
    """One row for each *.tflite under a folder, named by its path there. Raises PipelineError when there is none."""
    if not folder.is_dir():
        raise PipelineError(f"--models {escape.name(str(folder), 200)}: there is no such folder")
    files = sorted(folder.rglob("*.tflite"))
    if not files:
        raise PipelineError(f"--models {escape.name(str(folder), 200)}: there is no *.tflite file in it")
    cases = []
    for path in files:
        name = path.relative_to(folder).with_suffix("").as_posix()
        for target in loose.targets:
            recipe = _recipe(name, loose.recipe, target, {"file": os.path.relpath(path, root)}, {})
            cases.append(Case(name, target, recipe, loose.recipe))
    return cases


def select(cases: list[Case], only: str, targets: str, known_targets: Iterable[str]) -> list[Case]:
    """Cases whose row matches one of the globs `only` and whose target is one of `targets`, both separated by commas.

    '' selects all. Raises PipelineError when nothing is left, or for an unknown target.
    """
    globs, wanted = _parts(only), _parts(targets)
    for target in wanted:
        if target not in set(known_targets):
            raise unknown_target_error(target, known_targets)
    found = [case for case in cases if not globs or any(fnmatchcase(case.row, glob) for glob in globs)]
    if not found:
        rows = dict.fromkeys(case.row for case in cases)
        raise PipelineError(f"--only {escape.name(only)}: no row is called that", hint=list_known("rows", rows))
    found = [case for case in found if not wanted or case.target in wanted]
    if not found:
        raise PipelineError(f"--targets {escape.name(targets)}: no selected row is measured on these")
    return found


def _row_cases(row: Row, root: Path, models: Path) -> Iterator[Case]:
    model, skipped = row.model, ""
    if row.file is not None:
        path = models / row.file
        model = {"file": os.path.relpath(path, root)}
        if not path.is_file():
            skipped = f"{row.file} is not in the folder of models ({MODELS_VARIABLE}, or {_MODELS})"
    for target in row.targets:
        peers = tuple(peer for peer in row.peers if target in peer.targets)
        recipe = None if skipped else _recipe(row.name, row.recipe, target, model, row.stages)
        yield Case(row.name, target, recipe, row.recipe, peers, skipped, row.at_most.get(target))


def _recipe(
    name: str, base: str, target: str, model: Mapping[str, Any] | None, stages: Mapping[str, Any]
) -> dict[str, Any]:
    """A recipe under a name of its own, so that it has its own build folder."""
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
