"""The sides of `doit compare`: report file, recipe, recipe on a target, git revision."""

import os
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pipeline.errors import PipelineError
from pipeline.keys.package_groups import install_group
from pipeline.project import Project
from pipeline.runs.publish import ON_BOARD
from pipeline.terminal.progress import ProgressDisplay
from stages.support.messages import escape
from stages.support.system.installation import is_clone
from stages.support.system.json_text import parsed_json
from stages.support.system.scratch import temporary_folder

GIT = "git:"
_NAME = "report.json"


@dataclass(frozen=True)
class Side:
    """A side's name and its report.json."""

    name: str
    report: Mapping[str, Any]


def sides(words: tuple[str, str], project: Project, store: Path) -> tuple[Side, Side]:
    """Return both sides. Runs stages that are not up to date. Raises PipelineError.

    `git:REV` without a recipe means the recipe of the other side.
    """
    revisions = [word.startswith(GIT) and ":" not in word.removeprefix(GIT) for word in words]
    if all(revisions):
        raise PipelineError("one of the revisions needs a recipe", hint="doit compare git:HEAD~1:NAME git:HEAD")
    specifications = []
    for word, bare, other in zip(words, revisions, reversed(words), strict=True):
        if bare:
            recipe = other.removeprefix(GIT).partition(":")[2] if other.startswith(GIT) else other
            if _report_file(recipe, project) is not None:
                hint = f"doit compare {escape.name(other)} {escape.name(word)}:NAME"
                raise PipelineError(f"{escape.name(other)} is a file, so {word} needs a recipe", hint=hint)
            specifications.append(f"{word}:{recipe}")
        else:
            specifications.append(word)
    return _side(specifications[0], project, store), _side(specifications[1], project, store)


def _side(word: str, project: Project, store: Path) -> Side:
    if word.startswith(GIT):
        revision, _, recipe = word.removeprefix(GIT).partition(":")
        return Side(f"{recipe} at {revision}", _at_revision(revision, recipe, project, store))
    path = _report_file(word, project)
    if path is not None:
        return Side(project.display_path(path), _read(path, project.display_path(path)))
    from pipeline.api import run_recipe

    name, overrides = _recipe(word)
    display = ProgressDisplay(sys.stderr)
    try:
        report = run_recipe(name, overrides, root=project, store=store, install=install_group, display=display).report
    finally:
        display.close()
    if report is None:
        raise PipelineError(f"{escape.name(word)} has no report", hint="its recipe omits the stage report")
    return Side(word, report)


def _recipe(word: str) -> tuple[str, dict[str, str]]:
    """Split `kws_rvp@rv32-rvp` into the recipe and its overrides."""
    name, _, target = word.partition("@")
    return name, {"target": target} if target else {}


def _report_file(word: str, project: Project) -> Path | None:
    """Return the report.json that a word names, itself or its folder; None if there is none."""
    path = project.root / word
    if word.endswith(".json"):
        return path
    return path / _NAME if word and (path / _NAME).is_file() else None


def _read(path: Path, shown: str) -> Mapping[str, Any]:
    try:
        report = parsed_json(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise PipelineError(f"{escape.name(shown)} cannot be read: {error.strerror}") from None
    except ValueError as error:
        raise PipelineError(f"{escape.name(shown)} is not valid JSON: {escape.line(str(error))}") from None
    parts = ("format", "model", "target", "instructions", "memory", "layers")
    if not isinstance(report, dict) or any(part not in report for part in parts):
        raise PipelineError(
            f"{escape.name(shown)} is not a report of a run", hint="use a file such as build/RECIPE/TARGET/report.json"
        )
    return report


def _at_revision(revision: str, recipe: str, project: Project, store: Path) -> Mapping[str, Any]:
    """Run a recipe of a git revision (in a clone, with its code) and return its report.

    Its artifacts go to the current store.
    """
    if not revision or revision.startswith("-"):
        raise PipelineError(f"{GIT}{escape.name(revision)} is not a revision", hint=f"{GIT}HEAD~1, {GIT}v1.2")
    name, overrides = _recipe(recipe)
    with temporary_folder("compare") as folder:
        worktree = folder / project.root.name
        _git(
            project.root, "worktree", "add", "--detach", "--quiet", str(worktree), revision, what=f"revision {revision}"
        )
        try:
            prefix = Path(_git(project.root, "rev-parse", "--show-prefix", what="the project's place").strip())
            return _run(worktree / prefix, name, overrides, revision, project, store)
        finally:
            subprocess.run(
                ["git", "worktree", "remove", "--force", str(worktree)],
                cwd=project.root,
                capture_output=True,
                check=False,
            )


def _run(
    folder: Path, name: str, overrides: Mapping[str, str], revision: str, project: Project, store: Path
) -> Mapping[str, Any]:
    built = project.installation / ".firmline"
    if is_clone(folder) and built.is_dir():
        (folder / ".firmline").symlink_to(built)  # tools compiled for this machine, by digest
    module = "pipeline" if is_clone(folder) else "firmline"
    command = [sys.executable, "-m", module, "run", name, *(f"{key}={value}" for key, value in overrides.items())]
    environment = {**os.environ, "FIRMLINE_STORE": str(store.resolve())}
    process = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)
    reports = sorted(path for path in folder.glob("build/**/report.json") if path.parent.name != ON_BOARD)
    if process.returncode or len(reports) != 1:
        output = "\n".join(process.stderr.strip().splitlines()[:4])
        message = f"{escape.name(name)} fails at revision {escape.name(revision)}"
        raise PipelineError(f"{message}\n{escape.message(output)}" if output else message)
    return _read(reports[0], f"{revision}:report.json")


def _git(root: Path, *words: str, what: str) -> str:
    try:
        process = subprocess.run(["git", *words], cwd=root, capture_output=True, text=True, check=False)
    except OSError as error:
        raise PipelineError(f"git cannot be run: {error.strerror}", hint="install git to compare revisions") from None
    if process.returncode:
        output = process.stderr.strip().splitlines()[-1:]
        if "not a git repository" in "".join(output):
            raise PipelineError(
                f"{escape.name(str(root), 200)} is not in a git repository", hint="git init creates one"
            )
        raise PipelineError(f"git finds no {escape.name(what)}: {escape.line(''.join(output))}")
    return process.stdout
