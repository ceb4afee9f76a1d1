"""The nine stages, in the order in which they run.

A stage package is imported only for its `STAGE`; it imports heavy libraries inside `run`, so the whole registry loads
in milliseconds. Tests build a `Registry` of their own stages.
"""

from __future__ import annotations

import importlib
from collections.abc import Iterable, Iterator
from functools import cache
from typing import Any

from stages.base import Stage

_PACKAGES = ("import_model", "layout", "quantize", "tensorize", "emit", "compile", "simulate", "verify", "report")


class Registry:
    """Stages by kind, in running order. Raises ValueError when a stage consumes one that does not run before it."""

    def __init__(self, stages: Iterable[Stage[Any]]) -> None:
        self._stages: dict[str, Stage[Any]] = {}
        for stage in stages:
            missing = [kind for kind in stage.consumes if kind not in self._stages]
            if missing or stage.kind in self._stages:
                raise ValueError(f"stage {stage.kind} is given twice, or consumes {missing} which do not run before it")
            self._stages[stage.kind] = stage

    def __iter__(self) -> Iterator[Stage[Any]]:
        return iter(self._stages.values())

    def __getitem__(self, kind: str) -> Stage[Any]:
        return self._stages[kind]

    @property
    def kinds(self) -> tuple[str, ...]:
        """The kinds of all stages, in running order."""
        return tuple(self._stages)


@cache
def default_registry() -> Registry:
    """The stages of this project."""
    return Registry(importlib.import_module(f"stages.{name}").STAGE for name in _PACKAGES)
