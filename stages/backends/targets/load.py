"""Reading one target out of pipeline.yaml without the recipe loader: for tests, benchmarks and scripts.

Recipes go through `pipeline`, which reports mistakes in the file with line and column; this expects a valid one.
"""

from __future__ import annotations

from functools import cache
from pathlib import Path

from stages.backends.targets.catalogue import Catalogue
from stages.backends.targets.places import with_places
from stages.backends.targets.spec import Target
from stages.support.messages.stage_error import StageError

PIPELINE = Path(__file__).resolve().parents[3] / "pipeline.yaml"


@cache
def load_targets(path: Path = PIPELINE) -> dict[str, Target]:
    """The cores and boards of pipeline.yaml, by name; the file is read once."""
    import yaml

    targets = Catalogue.model_validate(yaml.safe_load(path.read_text())).targets()
    return {name: with_places(target, [path.parent]) for name, target in targets.items()}


def load_target(name: str, path: Path = PIPELINE) -> Target:
    """The target `name` of pipeline.yaml. Raises StageError with the list when there is none of that name."""
    targets = load_targets(path)
    if name not in targets:
        raise StageError(f"no target '{name}' in {path.name}", hint=f"there are: {', '.join(targets)}")
    return targets[name]
