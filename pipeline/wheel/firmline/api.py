"""Running a recipe from Python."""

from __future__ import annotations

import firmline  # noqa: F401 - makes the next one known
from pipeline.api import RunResult, run_recipe

__all__ = ["RunResult", "run_recipe"]
