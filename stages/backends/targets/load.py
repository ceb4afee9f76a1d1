"""Read built-in targets without the recipe loader: for tests, benchmarks and scripts.

Recipes go through `pipeline`, which reports mistakes in the files with line and column; this expects valid ones.
"""

import re
from functools import cache
from math import inf
from pathlib import Path
from typing import Any

from stages.backends.targets.catalogue import Catalogue
from stages.backends.targets.places import with_places
from stages.backends.targets.spec import Target
from stages.support.messages.stage_error import StageError
from stages.support.system.installation import INSTALLATION

PIPELINE = INSTALLATION / "pipeline.yaml"
# A family's position in lists of targets; families without one follow, by name.
_POSITION = re.compile(rb"^position: ([0-9]+)", re.MULTILINE)
_KINDS = ("cores", "boards", "timings")


def family_files(installation: Path) -> list[Path]:
    """Return the files with cores and timing models of each family, in the order of lists."""
    files = (path for name in ("targets", "timing") for path in installation.glob(f"stages/backends/*/{name}.yaml"))
    return sorted(sorted(files), key=_position)


def _position(path: Path) -> float:
    match = _POSITION.search(path.read_bytes())
    return inf if match is None else int(match[1])


@cache
def load_catalogue(path: Path = PIPELINE) -> Catalogue:
    """Return the cores, boards and timing models of pipeline.yaml and of the families' files.

    Reads them once.
    """
    import yaml

    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)  # ten times as fast where libyaml is compiled in
    merged: dict[str, Any] = {kind: {} for kind in _KINDS}
    for file in (*family_files(path.parent), path):
        content = yaml.load(file.read_text(), loader)
        for kind in _KINDS:
            merged[kind] |= content.get(kind) or {}
    return Catalogue.model_validate({"schema": 1, **merged})


@cache
def load_targets(path: Path = PIPELINE) -> dict[str, Target]:
    """Return the targets that the catalogue declares, by name. Reads the files once."""
    targets = load_catalogue(path).targets()
    return {name: with_places(target, [path.parent]) for name, target in targets.items()}


def load_target(name: str, path: Path = PIPELINE) -> Target:
    """Return one target. Raises StageError with the list of targets for an unknown name."""
    targets = load_targets(path)
    if name not in targets:
        raise StageError(f"no target '{name}' in {path.name}", hint=f"there are: {', '.join(targets)}")
    return targets[name]
