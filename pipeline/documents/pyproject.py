"""Read pyproject.toml of this installation: names of commands, version, optional packages."""

import tomllib
from collections.abc import Mapping
from typing import Any

from pipeline.errors import PipelineError, first_line
from stages.support.system.installation import INSTALLATION

DECLARED = "pyproject.toml"


def pyproject_table(*path: str) -> Mapping[str, Any]:
    """Return the table at a path of keys. Raises PipelineError."""
    try:
        table: Any = tomllib.loads((INSTALLATION / DECLARED).read_text(encoding="utf-8"))
        for part in path:
            table = table[part]
    except (OSError, ValueError, KeyError) as error:
        # tomllib's errors are ValueErrors.
        raise PipelineError(f"{DECLARED} cannot be read: {first_line(error)}") from None
    named: Mapping[str, Any] = table
    return named
