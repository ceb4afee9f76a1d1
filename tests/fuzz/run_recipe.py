"""Loads and plans a mutated recipe, and runs it where that takes a moment, in the worker's process."""

import re
from pathlib import Path
from random import Random

from pipeline.errors import PipelineError
from pipeline.recipes.loader import LoadedRecipe
from pipeline.runs.workspace import Workspace
from stages.ir.models.spec import FileModel, OpModel
from stages.support.messages import escape
from tests.fuzz.mutate_recipe import recipe_mutant
from tests.fuzz.outcome import Outcome, message_faults
from tests.fuzz.run_model import Bench, judged

_PLACE = re.compile(r"\.yaml(:\d+:\d+)?: ")
_LARGEST_FILE = 1 << 20
_SHARE = 6  # one of so many recipes that get that far is run to the end


def run_recipe(bench: Bench, seed: int, index: int) -> Outcome:
    """Mutant `index`: loaded and planned; a small one runs to tensorize, or to the end on the host."""
    mutant = recipe_mutant(seed, index)
    path = bench.folder / "recipes" / f"r{index}.yaml"
    path.parent.mkdir(exist_ok=True)
    path.write_bytes(mutant.data)
    try:
        with Workspace(store=bench.store, build=bench.build) as workspace:
            loaded = workspace.load(str(path))
            for one in (loaded[0], loaded[-1]):
                workspace.planner.plan(one)
    except PipelineError as error:
        path.unlink()
        message = escape.message(str(error))
        return Outcome("refused", message, (*message_faults(message, _PLACE), *bench.leftovers()))
    try:
        first = loaded[0]
        if len(loaded) > 1 or not _is_small(first):
            return Outcome("planned", "", bench.leftovers())
        whole = first.target.name == "host" and Random(f"run {seed} {index}").randrange(_SHARE) == 0
        return judged(bench, path, "" if whole else "tensorize", _PLACE)
    finally:
        path.unlink()


def _is_small(loaded: LoadedRecipe) -> bool:
    """Whether a run takes a second: one operator, or a small file, and few inferences."""
    model, simulate = loaded.recipe.model, loaded.recipe.config("simulate")
    inputs = getattr(simulate, "inputs", None)
    if inputs is not None and inputs.random > 100:
        return False
    if isinstance(model, OpModel):
        return True
    if not isinstance(model, FileModel):
        return False
    file = Path(model.file)
    return not file.is_file() or file.stat().st_size < _LARGEST_FILE
