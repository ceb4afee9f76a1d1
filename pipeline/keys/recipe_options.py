"""Options of a stage that other parts of the recipe set."""

from __future__ import annotations

from pipeline.recipes.recipe import Recipe
from stages.base import StageConfig


def with_recipe_options(config: StageConfig, recipe: Recipe) -> StageConfig:
    """Return the options of a stage with those that follow from the recipe's `memory` and from emit's options."""
    return _with_blob(_with_memory(config, recipe), recipe)


def _with_memory(config: StageConfig, recipe: Recipe) -> StageConfig:
    """Set `arena_limit` and `memory_rules` of a stage from the recipe's `memory`, if unset."""
    memory = {"arena_limit": recipe.memory.arena_limit, "memory_rules": recipe.memory.rules}
    limits = {
        name: value
        for name, value in memory.items()
        if value is not None and name in type(config).model_fields and getattr(config, name) is None
    }
    return config.model_copy(update=limits) if limits else config


def _with_blob(config: StageConfig, recipe: Recipe) -> StageConfig:
    """Turn off what depends on the values of weights, unless the recipe sets it, if the caller provides the weights."""
    if not getattr(recipe.config("emit"), "is_blob", False):
        return config
    fields = {"simplify", "narrow_weights"} & type(config).model_fields.keys() - config.model_fields_set
    return config.model_copy(update=dict.fromkeys(fields, False)) if fields else config
