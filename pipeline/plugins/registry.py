"""The stages there are, and the chain that a recipe has unless it says otherwise (pipeline.recipes.chain).

A stage package is imported only for its `STAGE`; it imports heavy libraries inside `run`, so the whole registry loads
in milliseconds. Tests build a `Registry` of their own stages.
"""

from __future__ import annotations

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
from stages.support.options.names import why_not

_PACKAGES = (
    *("ptq", "import_model", "layout", "quantize", "count", "tensorize"),
    *("emit", "compile", "simulate", "verify", "report"),
)
# What a recipe says of any stage, beside its options.
PLACEMENT = ("after", "use")


class Registry:
    """Stages by kind: those of the usual chain, in running order, then `more` that a recipe may put into its own.

    `models` are those of plug-ins, by name.

    Raises ValueError for a chain in which a stage consumes what none before it provides, for two stages of one kind,
    and for an option with a name that every stage has in a recipe.
    """

    def __init__(
        self, chain: Iterable[Stage[Any]], more: Iterable[Stage[Any]] = (), models: Mapping[str, Plugin] | None = None
    ) -> None:
        self.models = models or {}
        self._stages: dict[str, Stage[Any]] = {}
        provided: set[str] = set()
        for stage in chain:
            missing = [kind for kind in stage.consumes if kind not in provided]
            if missing:
                raise ValueError(f"stage {stage.kind} consumes {missing} which do not run before it")
            self._add(stage)
            provided.add(stage.role)
        self.chain = tuple(self._stages)
        for stage in more:
            self._add(stage)

    def _add(self, stage: Stage[Any]) -> None:
        if stage.kind in self._stages:
            raise ValueError(f"stage {stage.kind} is given twice")
        taken = stage.config.model_fields.keys() & set(PLACEMENT)
        if taken:
            raise ValueError(f"stage {stage.kind} has an option '{min(taken)}', which means something else in recipes")
        if wrong := why_not(stage.kind):
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
        """The kinds of all stages: the usual chain in running order, then the others."""
        return tuple(self._stages)

    @property
    def named(self) -> tuple[str, ...]:
        """Those that a recipe names under `stages:`; others have their options among those of one of these."""
        return tuple(kind for kind, stage in self._stages.items() if not stage.options_of)


@cache
def default_registry() -> Registry:
    """The stages of Firmline."""
    return Registry(importlib.import_module(f"stages.{name}").STAGE for name in _PACKAGES)


@cache
def registry_of(project: Project) -> Registry:
    """The stages of Firmline, and those that plug-ins add. Raises PipelineError for a plug-in that is none."""
    usual, found = default_registry(), plugins_of(project)["stages"].values()
    more: dict[str, tuple[Stage[Any], Plugin]] = {}
    for one in found:
        stage = plugin_attribute(one, "STAGE")
        if not isinstance(stage, Stage):
            raise PipelineError(
                f"plug-in {one.display_name}: its STAGE is no stage", hint="an instance of stages.base.Stage"
            )
        for field in ("consumes", "may_consume", "sources"):
            if isinstance(getattr(stage, field), str):
                raise PipelineError(f"plug-in {one.display_name}: {field} is a text", hint='a tuple: ("import",)')
        if stage.kind in usual or stage.kind in more:
            other = more[stage.kind][1].display_name if stage.kind in more else "Firmline"
            raise PipelineError(f"plug-in {one.display_name}: a stage of {other} has the kind '{stage.kind}' too")
        more[stage.kind] = stage, one
        try:
            Registry((), [stage])
        except ValueError as error:
            raise PipelineError(f"plug-in {one.display_name}: {error}") from None
    models = plugins_of(project)["models"]
    for name, found_model in models.items():
        if name in NAMES:
            raise PipelineError(f"plug-in {found_model.display_name} has the name of a model of Firmline, '{name}'")
    return Registry(usual, [stage for stage, _ in more.values()], models) if more or models else usual
