"""Parts of a matrix's sub-recipes that are validated once, as all share them that give them the same values.

A part is the model, the limits of memory, or the options of one stage. It follows from the recipe and from the values
of the matrix that lie in it; so 70 x 70 combinations of options of two stages are 140 validations. The same options
are then the same object everywhere, and what follows from them can be shared as well.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from pipeline.documents.overrides import Override
from pipeline.recipes.recipe import Recipe

_WHOLE = ("model", "memory")
# A part's path, and the values that the matrix gives for it, by identity.
_Part = tuple[tuple[str, ...], tuple[int, ...]]


class ValidationCache:
    """The validated parts of one recipe, by the values over those of its file that lie in each."""

    def __init__(self) -> None:
        self._known: dict[_Part, Any] = {}
        # So that no other has the identity of one that counts.
        self._overrides: dict[int, Override] = {}

    def known(self, data: dict[str, Any], overrides: Sequence[Override]) -> dict[str, Any]:
        """A recipe's data, which has these overrides, with the parts that are known in their validated form."""
        found = {name: self._known.get(_part((name,), overrides), data[name]) for name in _WHOLE if name in data}
        stages = data.get("stages")
        if isinstance(stages, dict):
            found["stages"] = {
                name: self._known.get(_part(("stages", name), overrides), options) for name, options in stages.items()
            }
        return {**data, **found}

    def learn(self, recipe: Recipe, overrides: Sequence[Override]) -> None:
        """Keep the parts of a recipe that was validated with these overrides."""
        self._overrides.update((id(one), one) for one in overrides)
        for name in _WHOLE:
            self._known.setdefault(_part((name,), overrides), getattr(recipe, name))
        for name, config in recipe.stages.items():
            self._known.setdefault(_part(("stages", name), overrides), config)


def _part(path: tuple[str, ...], overrides: Sequence[Override]) -> _Part:
    length = len(path)
    return path, tuple(id(one) for one in overrides if one.path[:length] == path[: len(one.path)])
