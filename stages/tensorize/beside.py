"""Where a recipe's own measurements lie: `net.tuning.json` beside `net.yaml`."""

from __future__ import annotations

from pathlib import Path

SUFFIX = ".tuning.json"


def tuning_beside(recipe: Path) -> Path:
    """The tuning file of a recipe's file, which need not be there."""
    return recipe.with_suffix(SUFFIX)
