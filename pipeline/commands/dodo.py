"""Settings and tasks for doit. The artifact store decides what is up to date."""

import sys

from pipeline.commands.command import words
from pipeline.commands.tasks import doit_config, recipe_tasks

# doit's default is the standard output at the time of its import.
DOIT_CONFIG = {**doit_config(words()), "outfile": sys.stdout}


def task_recipe():  # type: ignore[no-untyped-def]  # doit calls it; the tasks are dictionaries
    """Yield one task per stage of each recipe."""
    yield from recipe_tasks(words())
