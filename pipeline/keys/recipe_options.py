"""Options of a stage that other parts of the recipe set."""

from pipeline.recipes.recipe import Recipe
from stages.base import StageConfig


def with_recipe_options(config: StageConfig, recipe: Recipe) -> StageConfig:
    """Return the options of a stage, with options from other parts of the recipe.

    These parts are `memory`, `report` and the options of emit.
    """
    return _with_ports_by_rows(_with_blob(_with_recipe(config, recipe), recipe), recipe)


def _with_recipe(config: StageConfig, recipe: Recipe) -> StageConfig:
    """Set a stage's options that the recipe has in other places, if unset.

    They are `arena_limit`, `memory_rules`, `streaming`, `overwrite_input` and `class_names`.
    """
    values = {
        "arena_limit": recipe.memory.arena_limit,
        "memory_rules": recipe.memory.rules,
        "streaming": recipe.memory.streaming,
        "overwrite_input": recipe.memory.overwrite_input or None,
        "class_names": getattr(recipe.config("report"), "classes", None) or None,
    }
    changes = {
        name: value
        for name, value in values.items()
        if value is not None and name in type(config).model_fields and getattr(config, name) is None
    }
    return config.model_copy(update=changes) if changes else config


def _with_blob(config: StageConfig, recipe: Recipe) -> StageConfig:
    """Turn off options that depend on weight values if the caller provides the weights.

    Options that the recipe sets are kept.
    """
    if not getattr(recipe.config("emit"), "is_blob", False):
        return config
    fields = {"simplify", "narrow_weights"} & type(config).model_fields.keys() - config.model_fields_set
    return config.model_copy(update=dict.fromkeys(fields, False)) if fields else config


def _with_ports_by_rows(config: StageConfig, recipe: Recipe) -> StageConfig:
    """Let layers run by rows if the application passes input or receives output by rows."""
    ports = [port for port in ("input", "output") if getattr(recipe.config("emit"), port, "image") == "rows"]
    changes = {name: True for port in ports if (name := f"{port}_rows") in type(config).model_fields}
    return config.model_copy(update=changes) if changes else config
