"""Run recipes from Python."""

import firmline  # noqa: F401 - adds pipeline to the path
from pipeline.api import RunResult, run_recipe

__all__ = ["RunResult", "run_recipe"]
