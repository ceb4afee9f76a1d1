"""Exports of a small network, made once for a target by the command itself, for the tests of all forms."""

import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from pipeline.api import run_recipe
from pipeline.project import Project
from stages.backends.targets.load import load_target
from stages.delivery.export.collect import Run, content_of
from stages.delivery.export.content import Content
from stages.delivery.export.form import Form
from stages.delivery.export.registry import form_of
from stages.delivery.export.render import files_of

CONV = {"op": "conv2d", "shape": [6, 6, 4], "out_channels": 8, "kernel": [3, 3]}
FEW = {"simulate": {"inputs": {"random": 1, "extremes": False}}}


def project(folder: Path, recipes: Mapping[str, str]) -> Project:
    """A project with these recipes."""
    (folder / "recipes").mkdir(parents=True)
    (folder / "pipeline.yaml").write_text("schema: 1\n")
    for name, text in recipes.items():
        (folder / "recipes" / f"{name}.yaml").write_text(f"schema: 1\n{text}")
    return Project(folder)


@cache
def _store() -> Path:
    return Path(tempfile.mkdtemp(prefix="firmline-test-export-"))


@dataclass(frozen=True)
class _Key:
    target: str
    name: str
    weights: str
    arena: str
    rows: tuple[str, ...] = ()


@cache
def _artifacts(key: _Key, model: str) -> Mapping[str, Path]:
    import ast

    emit = {"prefix": key.name, "weights": key.weights, "arena": key.arena, **dict.fromkeys(key.rows, "rows")}
    recipe: dict[str, Any] = {"schema": 1, "name": key.name, "target": key.target, "model": ast.literal_eval(model)}
    run = run_recipe({**recipe, "stages": {**FEW, "emit": emit}}, until="verify", store=_store())
    return run.artifacts


def content(
    target: str,
    name: str = "small",
    *,
    weights: str = "c",
    arena: str = "static",
    rows: tuple[str, ...] = (),
    model: Mapping[str, Any] = CONV,
    form: Form | None = None,
) -> Content:
    """What an export of the network has, verified on the target. `rows`: ports by rows, `input` or `output`."""
    made = _artifacts(_Key(target, name, weights, arena, rows), repr(dict(model)))
    described = load_target(target)
    form = form or form_of("cmake")
    return content_of([Run(made, name, arena == "caller")], described, form=form, version="0.1.0")


OTHER = {"op": "conv2d", "shape": [8, 8, 4], "out_channels": 16, "kernel": [3, 3]}
LSTM = {"op": "lstm", "shape": [2, 4], "out_channels": 8}


def pair(
    target: str,
    *,
    weights: str = "c",
    share: bool = False,
    rows: tuple[str, ...] = (),
    second: Mapping[str, Any] = OTHER,
) -> Content:
    """An export of two networks, `small` and `other`. `rows`: ports by rows of both."""
    arena = "caller" if share else "static"
    models = {"small": CONV, "other": second}
    runs = [
        Run(_artifacts(_Key(target, name, weights, arena, rows), repr(dict(model))), name, share)
        for name, model in models.items()
    ]
    form = form_of("cmake")
    return content_of(runs, load_target(target), form=form, version="0.1.0", name="small_other", share=share)


def written(folder: Path, form: str, content: Content) -> Path:
    """The folder, with the files of a form."""
    for path, data in files_of(form_of(form), content).items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_bytes(data)
    return folder
