"""Importing plug-ins, with errors that name the file or the distribution, and the line."""

from __future__ import annotations

import traceback
from importlib import import_module
from pathlib import Path
from typing import Any

from pipeline.errors import PipelineError
from pipeline.outside import Found
from stages import escape


def attribute(found: Found, name: str) -> Any:
    """What a plug-in's module has under a name. Raises PipelineError for one that cannot be imported, or lacks it."""
    try:
        module = import_module(found.module)
    except Exception as error:
        raise PipelineError(f"plug-in {_where(found, error)}: {_what(error)}") from error
    if not hasattr(module, name):
        raise PipelineError(f"plug-in {found.shown}: its module has no {name}")
    return getattr(module, name)


def _where(found: Found, error: Exception) -> str:
    """The plug-in, and the last line of its own that was at work."""
    root = found.place.parent
    if isinstance(error, SyntaxError) and error.filename:
        lines = [(Path(error.filename), error.lineno)]
    else:
        lines = [(Path(frame.filename), frame.lineno) for frame in traceback.extract_tb(error.__traceback__)]
    own = [(path, line) for path, line in lines if path.is_relative_to(root)]
    if not own:
        return found.shown
    path, line = own[-1]
    if path == found.place and found.shown.endswith(path.name):
        return f"{found.shown}:{line}"
    if found.place.is_dir() and path.is_relative_to(found.place):
        return f"{found.shown}/{path.relative_to(found.place)}:{line}"
    return f"{found.shown}, {path.name}:{line}"


def _what(error: Exception) -> str:
    if isinstance(error, SyntaxError):
        return f"SyntaxError: {error.msg}"
    return f"{type(error).__name__}: {escape.line(str(error).partition(chr(10))[0])}"
