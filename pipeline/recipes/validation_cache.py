"""Cache of validated recipe sections, shared by the variants of a matrix.

A section is the model, the memory settings, or the options of one stage. Its content depends on the recipe and on the
matrix values inside of it: 70 x 70 combinations of options of two stages need 140 validations. Equal options become
the same object, so that later steps can share work too.
"""

from collections.abc import Sequence
from typing import Any

from pipeline.documents.overrides import Override
from pipeline.recipes.recipe import Recipe

_TOP_LEVEL = ("model", "memory")
# Path of a section, and the identities of the overrides inside of it.
_Key = tuple[tuple[str, ...], tuple[int, ...]]


class ValidationCache:
    """Validated sections of one recipe, by the overrides in each section."""

    def __init__(self) -> None:
        self._sections: dict[_Key, Any] = {}
        # Keeps the overrides alive, so that their identities stay unique.
        self._overrides: dict[int, Override] = {}

    def reuse(self, data: dict[str, Any], overrides: Sequence[Override]) -> dict[str, Any]:
        """Return the data of a recipe with cached sections in validated form."""
        sections = {
            name: self._sections.get(_key((name,), overrides), data[name]) for name in _TOP_LEVEL if name in data
        }
        stages = data.get("stages")
        if isinstance(stages, dict):
            sections["stages"] = {
                name: self._sections.get(_key(("stages", name), overrides), options) for name, options in stages.items()
            }
        return {**data, **sections}

    def store(self, recipe: Recipe, overrides: Sequence[Override]) -> None:
        """Store the sections of a recipe that was validated with these overrides."""
        self._overrides.update((id(override), override) for override in overrides)
        for name in _TOP_LEVEL:
            self._sections.setdefault(_key((name,), overrides), getattr(recipe, name))
        for name, config in recipe.stages.items():
            self._sections.setdefault(_key(("stages", name), overrides), config)


def _key(path: tuple[str, ...], overrides: Sequence[Override]) -> _Key:
    length = len(path)
    return path, tuple(id(override) for override in overrides if override.path[:length] == path[: len(override.path)])
