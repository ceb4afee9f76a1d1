"""Run recipes from Python."""

from __future__ import annotations

import firmline  # noqa: F401 - adds pipeline to the path
from pipeline.api import RunResult, run_recipe

__all__ = ["RunResult", "run_recipe"]
