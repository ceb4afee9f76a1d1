"""Adapter for plug-in stages with the hooks that `Stage.inputs` and `Stage.preflight` replaced."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from stages.support.action_inputs import ActionInputs
from stages.support.system.installation import INSTALLATION
from stages.support.tool import Tool


class FormerHooks:
    """Last base of a stage class with former hooks: provides those that the class lacks; they return nothing."""

    __slots__ = ()  # a class with another layout cannot become a base of an existing class

    sources: tuple[str, ...] = ()
    target_fields: tuple[str, ...] = ()

    def tools(self, config: Any, target: Any) -> tuple[Tool, ...]:
        return ()

    def model_tools(self, model: Any) -> tuple[Tool, ...]:
        return ()

    def files(self, config: Any, model: Any, root: Path) -> Mapping[str, Path]:
        return {}

    def with_files_beside(self, config: Any, recipe: Path) -> Any:
        """Return the options with files beside the recipe, for `files` to name."""
        return config

    def model_entry(self, model: Any) -> Mapping[str, Any] | None:
        return None

    def target_files(self, target: Any, root: Path) -> Mapping[str, Path]:
        return {}

    def option_files(self, config: Any, target: Any, root: Path) -> Mapping[str, Path]:
        return {}

    def option_fields(self, config: Any) -> tuple[str, ...]:
        return ()

    def target_sources(self, target: Any) -> tuple[str, ...]:
        return ()

    def target_code(self, target: Any) -> Mapping[str, Path]:
        return {}

    def model_code(self, model: Any) -> Mapping[str, Path]:
        return {}


FORMER_HOOKS = tuple(name for name in vars(FormerHooks) if not name.startswith("_"))


def _inputs_of_hooks(stage: FormerHooks, config: Any, model: Any, target: Any) -> ActionInputs:
    def files(root: Path) -> Mapping[str, Path]:
        paths = dict(stage.files(config, model, root))
        for folder in dict.fromkeys((INSTALLATION, root)):  # files of the project win
            paths |= {**stage.target_files(target, folder), **stage.option_files(config, target, folder)}
        return paths

    return ActionInputs(
        tools=(*stage.tools(config, target), *stage.model_tools(model)),
        files=files,
        sources=(*stage.sources, *stage.target_sources(target)),
        code={**stage.target_code(target), **stage.model_code(model)},
        target_fields=(*stage.target_fields, *stage.option_fields(config)),
        model_entry=stage.model_entry(model),
    )


def adapt(cls: type[Any]) -> None:
    """Make the former hooks of a new stage class part of its `inputs`. Warns with DeprecationWarning if it has any."""
    defined = vars(cls)
    hooks = [] if "inputs" in defined else [name for name in FORMER_HOOKS if defined.get(name, ()) != ()]
    if hooks:

        def inputs(self: Any, config: Any, model: Any, target: Any) -> ActionInputs:
            inherited: ActionInputs = super(cls, self).inputs(config, model, target)
            return inherited | _inputs_of_hooks(self, config, model, target)

        cls.inputs = inputs
        if not issubclass(cls, FormerHooks):
            cls.__bases__ = (*cls.__bases__, FormerHooks)  # for `super()` in hooks
    if "foresee" in defined and "preflight" not in defined:
        cls.preflight = defined["foresee"]
        hooks.append("foresee")
    if hooks:
        names = ", ".join("preflight (foresee)" if name == "foresee" else name for name in hooks)
        message = f"stage class {cls.__qualname__}: former hooks {names}; see docs/how-to/add_stage.md for `inputs`"
        # The frames between: this function, Stage.__init_subclass__, ABCMeta.__new__.
        warnings.warn(message, DeprecationWarning, stacklevel=4)
