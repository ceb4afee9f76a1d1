"""Import of plug-ins. Errors name the file or distribution, and the line."""

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
from stages.ir.operators.plugins import PluginModule
from stages.ir.operators.table import declare
from stages.support.messages import escape


def plugin_attribute(plugin: Plugin, name: str) -> Any:
    """Import a plug-in and return an attribute of its module. Raises PipelineError."""
    try:
        module = import_module(plugin.module)
    except (Exception, SystemExit) as error:
        raise PipelineError(f"plug-in {_location(plugin, error)}: {_describe(error)}") from error
    if not hasattr(module, name):
        raise PipelineError(f"plug-in {plugin.display_name}: its module does not define {name}")
    return getattr(module, name)


def plugin_error(
    error: BaseException, plug_ins: Plugins, consumed: Mapping[str, tuple[str, Artifact | None]], log: str
) -> StageError | None:
    """Return the error for an exception caused by a plug-in or another stage, or None.

    consumed: role and artifact of each input, by the name of the stage that wrote it.
    """
    if isinstance(error, FileNotFoundError) and error.filename is not None:
        path = Path(os.fsdecode(error.filename))
        for name, (role, artifact) in consumed.items():
            if artifact is not None and path.is_relative_to(artifact.folder):
                hint = "" if name == role else f"a stage that provides '{role}' writes all files of that role"
                return StageError(f"stage '{name}' did not write {path.name}", hint=hint)
    message = _plugin_fault(plug_ins, error)
    return StageError(message, hint=f"the traceback is in {log}" if log else "") if message else None


def stage_error(kind: str, error: BaseException, plug_ins: Plugins) -> PipelineError:
    """Return the error for an exception that a stage raised before it ran."""
    fault = plugin_error(error, plug_ins, {}, "")
    return StageCrashed(kind, error, "") if fault is None else StageFailed(kind, fault)


def _plugin_fault(plug_ins: Plugins, error: BaseException) -> str:
    """Return the message for an exception with plug-in code in its traceback, or ''."""
    paths = [path for path, _ in _traceback(error)]
    for plugin in (candidate for kind in plug_ins.values() for candidate in kind.values()):
        if any(path == plugin.path or path.is_relative_to(plugin.path) for path in paths):
            return f"plug-in {_location(plugin, error)}: {_describe(error)}"
    return ""


def _traceback(error: BaseException) -> list[tuple[Path, int | None]]:
    """Return files and lines of the traceback, innermost last."""
    if isinstance(error, SyntaxError) and error.filename:
        return [(Path(error.filename), error.lineno)]
    return [(Path(frame.filename), frame.lineno) for frame in traceback.extract_tb(error.__traceback__)]


def _location(plugin: Plugin, error: BaseException) -> str:
    """Return the plug-in and its innermost line in the traceback."""
    root = plugin.path.parent
    lines = [(path, line) for path, line in _traceback(error) if path.is_relative_to(root)]
    if not lines:
        return plugin.display_name
    path, line = lines[-1]
    if path == plugin.path and plugin.display_name.endswith(path.name):
        return f"{plugin.display_name}:{line}"
    if plugin.path.is_dir() and path.is_relative_to(plugin.path):
        return f"{plugin.display_name}/{path.relative_to(plugin.path)}:{line}"
    return f"{plugin.display_name}, {path.name}:{line}"


def _describe(error: BaseException) -> str:
    if isinstance(error, SyntaxError):
        return f"SyntaxError: {error.msg}"
    if isinstance(error, ValidationError):
        fields = "; ".join(f"{'.'.join(map(str, detail['loc']))}: {detail['msg']}" for detail in error.errors()[:2])
        return f"{error.title}: {escape.line(fields)}"
    return f"{type(error).__name__}: {escape.line(str(error).partition(chr(10))[0])}"


def declare_operators(project: Project) -> None:
    """Declare the operators of plug-ins; their modules are imported when first used."""
    folder = project.root / PLUGIN_FOLDER

    def declaration_of(plugin: Plugin) -> PluginModule:
        package = (package_name(folder), str(folder)) if plugin.path.is_relative_to(folder) else None
        return PluginModule(
            plugin.display_name, plugin.module, plugin.path, lambda: plugin_attribute(plugin, "OPERATORS"), package
        )

    declare([declaration_of(plugin) for plugin in plugins_of(project)["operators"].values()])
