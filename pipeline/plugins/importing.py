"""Importing plug-ins, with errors that name the file or the distribution, and the line."""

from __future__ import annotations

import os
import traceback
from collections.abc import Mapping
from importlib import import_module
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from pipeline.artifacts.store import Artifact
from pipeline.errors import PipelineError, StageCrashed, StageFailed
from pipeline.plugins.discovery import PLUGIN_FOLDER, Plugin, Plugins, package_name, plugins_of
from pipeline.project import Project
from stages.base import StageError
from stages.messages import escape
from stages.operators.outside import Declaring
from stages.operators.table import declare


def plugin_attribute(found: Plugin, name: str) -> Any:
    """What a plug-in's module has under a name. Raises PipelineError for one that cannot be imported, or lacks it."""
    try:
        module = import_module(found.module)
    except (Exception, SystemExit) as error:
        raise PipelineError(f"plug-in {_where(found, error)}: {_what(error)}") from error
    if not hasattr(module, name):
        raise PipelineError(f"plug-in {found.display_name}: its module has no {name}")
    return getattr(module, name)


def plugin_error(
    error: BaseException, plug_ins: Plugins, consumed: Mapping[str, tuple[str, Artifact | None]], log: str
) -> StageError | None:
    """What a stage's exception says of another stage or of a plug-in; None for a bug of Firmline.

    consumed: the artifacts that the stage reads, with their roles, by the names of the stages that left them.
    """
    if isinstance(error, FileNotFoundError) and error.filename is not None:
        path = Path(os.fsdecode(error.filename))
        for name, (role, artifact) in consumed.items():
            if artifact is not None and path.is_relative_to(artifact.folder):
                hint = "" if name == role else f"who provides '{role}' leaves all files that '{role}' leaves"
                return StageError(f"stage '{name}' left no {path.name}", hint=hint)
    message = _fault(plug_ins, error)
    return StageError(message, hint=f"the traceback is in {log}" if log else "") if message else None


def stage_error(kind: str, error: BaseException, plug_ins: Plugins) -> PipelineError:
    """Return what an exception says that a stage raised before it ran: of a plug-in, or of a bug of Firmline."""
    fault = plugin_error(error, plug_ins, {}, "")
    return StageCrashed(kind, error, "") if fault is None else StageFailed(kind, fault)


def _fault(plug_ins: Plugins, error: BaseException) -> str:
    """What to say of an exception that the code of a plug-in raised, or what it called; '' when none was at work."""
    at_work = [path for path, _ in _lines(error)]
    for found in (each for kind in plug_ins.values() for each in kind.values()):
        if any(path == found.path or path.is_relative_to(found.path) for path in at_work):
            return f"plug-in {_where(found, error)}: {_what(error)}"
    return ""


def _lines(error: BaseException) -> list[tuple[Path, int | None]]:
    """Files and lines that were at work, the last one last."""
    if isinstance(error, SyntaxError) and error.filename:
        return [(Path(error.filename), error.lineno)]
    return [(Path(frame.filename), frame.lineno) for frame in traceback.extract_tb(error.__traceback__)]


def _where(found: Plugin, error: BaseException) -> str:
    """The plug-in, and the last line of its own that was at work."""
    root = found.path.parent
    own = [(path, line) for path, line in _lines(error) if path.is_relative_to(root)]
    if not own:
        return found.display_name
    path, line = own[-1]
    if path == found.path and found.display_name.endswith(path.name):
        return f"{found.display_name}:{line}"
    if found.path.is_dir() and path.is_relative_to(found.path):
        return f"{found.display_name}/{path.relative_to(found.path)}:{line}"
    return f"{found.display_name}, {path.name}:{line}"


def _what(error: BaseException) -> str:
    if isinstance(error, SyntaxError):
        return f"SyntaxError: {error.msg}"
    if isinstance(error, ValidationError):
        fields = "; ".join(f"{'.'.join(map(str, one['loc']))}: {one['msg']}" for one in error.errors()[:2])
        return f"{error.title}: {escape.line(fields)}"
    return f"{type(error).__name__}: {escape.line(str(error).partition(chr(10))[0])}"


def declare_operators(project: Project) -> None:
    """Say which operators there are from outside; their modules are imported when one of them is needed."""
    folder = project.root / PLUGIN_FOLDER

    def declaring(found: Plugin) -> Declaring:
        package = (package_name(folder), str(folder)) if found.path.is_relative_to(folder) else None
        return Declaring(
            found.display_name, found.module, found.path, lambda: plugin_attribute(found, "OPERATORS"), package
        )

    declare([declaring(found) for found in plugins_of(project)["operators"].values()])
