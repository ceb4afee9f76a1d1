"""Reading one target out of pipeline.yaml without the recipe loader: for tests, benchmarks and scripts.

Recipes go through `pipeline`, which reports mistakes in the file with line and column; this expects a valid one.
"""

from __future__ import annotations

from pathlib import Path

from stages.base import StageError
from stages.targets.spec import Target

PIPELINE = Path(__file__).resolve().parents[2] / "pipeline.yaml"


def load_target(name: str, path: Path = PIPELINE) -> Target:
    """The target `name` of pipeline.yaml. Raises StageError with the list when there is none of that name."""
    import yaml

    targets = yaml.safe_load(path.read_text())["targets"]
    if name not in targets:
        raise StageError(f"no target '{name}' in {path.name}", hint=f"there are: {', '.join(targets)}")
    return Target.model_validate({"name": name, **targets[name]})
