"""What doit asks for: its settings and tasks. doit orders the stages; the artifact store says which are up to date."""

from __future__ import annotations

import sys

from pipeline.commands.command import words
from pipeline.commands.tasks import doit_config, recipe_tasks

# doit's own default is what standard output was when doit was imported.
DOIT_CONFIG = {**doit_config(words()), "outfile": sys.stdout}


def task_recipe():  # type: ignore[no-untyped-def]  # doit calls it; the tasks are dictionaries
    """One task per stage of each recipe."""
    yield from recipe_tasks(words())
