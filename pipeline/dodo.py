"""doit's task file: `doit run recipe=NAME`. doit orders the stages; the artifact store says which are up to date."""

from __future__ import annotations

import os
import sys
from pathlib import Path

_ROOT = Path(__file__).resolve().parents[1]
# doit puts this folder on the path and makes it current; modules of the project are found from its root, and relative
# paths in recipes and on the command line start there.
sys.path[:] = [str(_ROOT), *(entry for entry in sys.path if Path(entry or ".").resolve() != _ROOT / "pipeline")]
os.chdir(_ROOT)

from pipeline.tasks import doit_config, recipe_tasks  # noqa: E402 - needs the path set above

DOIT_CONFIG = doit_config(sys.argv[1:])


def task_recipe():  # type: ignore[no-untyped-def]  # doit calls it; the tasks are dictionaries
    """One task per stage of each recipe."""
    yield from recipe_tasks(sys.argv[1:])
