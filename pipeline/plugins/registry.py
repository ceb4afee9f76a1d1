"""The registry: all stages, and the default sequence.

Importing a stage package is cheap, since stages import heavy libraries in `run`. The registry loads in milliseconds.
pipeline.recipes.stage_sequence applies the changes of a recipe to the default sequence.
"""

import importlib
from collections.abc import Iterable, Iterator, Mapping
from functools import cache
from typing import Any

from pipeline.errors import PipelineError
from pipeline.plugins.discovery import Plugin, plugins_of
from pipeline.plugins.importing import plugin_attribute
from pipeline.project import Project
from stages.base import Stage
from stages.ir.models.zoo.names import NAMES
from stages.support.options.names import invalid_name

_PACKAGES = (
    *("ptq", "import_model", "layout", "quantize", "count", "tensorize"),
    *("emit", "compile", "simulate", "verify", "report"),
)
# Keys of a stage in a recipe that are not options.
PLACEMENT_KEYS = ("after", "use")


class Registry:
    """Stages by kind: the default sequence, then stages that recipes can insert.

    default_stages: stages of the default sequence.
    more: further stages.
    models: models of plug-ins, by name.

    Raises ValueError for a stage without a provider of its inputs, for duplicate kinds, and for reserved option names.
    """

    def __init__(
        self, default: Iterable[Stage[Any]], more: Iterable[Stage[Any]] = (), models: Mapping[str, Plugin] | None = None
    ) -> None:
        self.models = models or {}
        self._stages: dict[str, Stage[Any]] = {}
        provided: set[str] = set()
        for stage in default:
            missing = [kind for kind in stage.consumes if kind not in provided]
            if missing:
                raise ValueError(f"stage {stage.kind} consumes {missing}, which no stage before it provides")
            self._add(stage)
            provided.add(stage.role)
        self.default_stages = tuple(self._stages)
        for stage in more:
            self._add(stage)

    def _add(self, stage: Stage[Any]) -> None:
        if stage.kind in self._stages:
            raise ValueError(f"duplicate stage {stage.kind}")
        reserved = stage.config.model_fields.keys() & set(PLACEMENT_KEYS)
        if reserved:
            raise ValueError(f"stage {stage.kind} has an option '{min(reserved)}', which is a reserved key of stages")
        if wrong := invalid_name(stage.kind):
            raise ValueError(wrong)
        self._stages[stage.kind] = stage

    def __iter__(self) -> Iterator[Stage[Any]]:
        return iter(self._stages.values())

    def __getitem__(self, kind: str) -> Stage[Any]:
        return self._stages[kind]

    def __contains__(self, kind: object) -> bool:
        return kind in self._stages

    @property
    def kinds(self) -> tuple[str, ...]:
        """The kinds of all stages: the default sequence in order, then the others."""
        return tuple(self._stages)

    @property
    def named(self) -> tuple[str, ...]:
        """The kinds with an entry under `stages:`; other stages use the entry of one of these."""
        return tuple(kind for kind, stage in self._stages.items() if not stage.options_of)


@cache
def default_registry() -> Registry:
    """Return the registry of built-in stages."""
    return Registry(importlib.import_module(f"stages.{name}").STAGE for name in _PACKAGES)


@cache
def registry_of(project: Project) -> Registry:
    """Return the registry of a project with its plug-ins.

    Raises PipelineError for an invalid one.
    """
    built_in, plugins = default_registry(), plugins_of(project)["stages"].values()
    more: dict[str, tuple[Stage[Any], Plugin]] = {}
    for plugin in plugins:
        stage = plugin_attribute(plugin, "STAGE")
        if not isinstance(stage, Stage):
            raise PipelineError(
                f"plug-in {plugin.display_name}: STAGE is not a stage",
                hint="it must be an instance of stages.base.Stage",
            )
        for field in ("consumes", "may_consume", "sources"):
            if isinstance(getattr(stage, field, ()), str):
                raise PipelineError(
                    f"plug-in {plugin.display_name}: {field} is a string", hint='it must be a tuple: ("import",)'
                )
        if stage.kind in built_in or stage.kind in more:
            other = more[stage.kind][1].display_name if stage.kind in more else "Firmline"
            raise PipelineError(f"plug-in {plugin.display_name}: the kind '{stage.kind}' is used by {other}")
        more[stage.kind] = stage, plugin
        try:
            Registry((), [stage])
        except ValueError as error:
            raise PipelineError(f"plug-in {plugin.display_name}: {error}") from None
    models = plugins_of(project)["models"]
    for name, model in models.items():
        if name in NAMES:
            raise PipelineError(f"plug-in {model.display_name} has the name of the built-in model '{name}'")
    return Registry(built_in, [stage for stage, _ in more.values()], models) if more or models else built_in
