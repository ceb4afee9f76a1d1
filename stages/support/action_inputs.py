"""Everything that a stage reads: the result of `Stage.inputs`."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from stages.support.tool import Tool


def _no_files(root: Path) -> Mapping[str, Path]:
    return {}


def _no_tools(root: Path) -> tuple[Tool, ...]:
    return ()


@dataclass(frozen=True)
class ActionInputs:
    """Inputs of `run` other than options and consumed artifacts.

    All of it is part of the action key.

    tools          programs and Python packages; `Job.tools` has their paths and versions. A missing or too old tool is
                   an error before the run, with its name, the versions and `install`
    file_tools     function of the project's folder that returns tools which depend on the content of the model's file
    files          function of the project's folder that returns external files by name; `Job.files` has copies of them.
                   Relative paths start at the project's folder. It does not check whether the files exist: a missing
                   file is reported at its line of the recipe. Called on the machine that plans, not on workers
    sources        globs, relative to Firmline's folder, of its code. Modules which that code imports are included; name
                   those that are imported under a computed name, and files that are not Python
    code           files of plug-ins of the target or the model, by a name that does not depend on their location.
                   `run` reads them in place. The files of the stage's own class need not be named
    target_fields  top-level fields of the target
    model_entry    values of the recipe's model entry; None: `run` does not read the entry

    `a | b` has the inputs of both; values of `b` win. Raises TypeError for a string in place of a tuple.
    """

    tools: tuple[Tool, ...] = ()
    file_tools: Callable[[Path], tuple[Tool, ...]] = _no_tools
    files: Callable[[Path], Mapping[str, Path]] = _no_files
    sources: tuple[str, ...] = ()
    code: Mapping[str, Path] = field(default_factory=dict)
    target_fields: tuple[str, ...] = ()
    model_entry: Mapping[str, Any] | None = None

    def __post_init__(self) -> None:
        for name in ("sources", "target_fields"):
            if isinstance(getattr(self, name), str):
                raise TypeError(f'ActionInputs: {name} is a string; it must be a tuple: ("{getattr(self, name)}",)')

    def __or__(self, other: ActionInputs) -> ActionInputs:
        return ActionInputs(
            tools=_union(self.tools, other.tools),
            file_tools=lambda root: _union(self.file_tools(root), other.file_tools(root)),
            files=lambda root: {**self.files(root), **other.files(root)},
            sources=_union(self.sources, other.sources),
            code={**self.code, **other.code},
            target_fields=_union(self.target_fields, other.target_fields),
            model_entry=self.model_entry if other.model_entry is None else other.model_entry,
        )


def _union(first: tuple[Any, ...], second: tuple[Any, ...]) -> tuple[Any, ...]:
    return tuple(dict.fromkeys((*first, *second)))
