"""What runs of recipes work with: the project, its stages, its store and what plans them."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from pipeline.artifacts.store import Store
from pipeline.keys.imports import Imports
from pipeline.keys.planner import Plan, Planner
from pipeline.keys.tools import Tools
from pipeline.plugins.registry import Registry, registry_of
from pipeline.project import Project, here, project_of
from pipeline.recipes.loader import LoadedRecipe, load_recipe, load_recipes
from stages.system.scratch import clear_abandoned


class Workspace:
    """The project, its stages and its store, as one run uses them. A context manager.

    `root`: the project (None: that of the current directory), or a folder that stands alone. `install` as of Tools.
    """

    def __init__(
        self,
        *,
        root: Path | Project | None = None,
        registry: Registry | None = None,
        store: Path | None = None,
        build: Path | None = None,
        install: Callable[[str], bool] | None = None,
    ) -> None:
        self.project = here() if root is None else project_of(root)
        self.root = root = self.project.root
        self.registry = registry or registry_of(self.project)
        self.store = Store(store or root / (os.environ.get("FIRMLINE_STORE") or ".firmline/store"))
        self.build = build or root / "build"
        folder, digests = self.store.folder, self.store.digests
        imports = Imports(self.project.installation, digests, folder / "imports.json")
        self.planner = Planner(self.project, digests, Tools(folder / "tools.json", install), imports)
        # Keys of the artifacts that this process has made.
        self.made: set[str] = set()
        self._open = ExitStack()

    def __enter__(self) -> Workspace:
        clear_abandoned()
        self._open.enter_context(self.store.in_use())
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Write the caches and let the store be trimmed again. May be called twice."""
        self.planner.imports.save()
        self._open.close()

    def shown(self, path: Path) -> str:
        """A path as messages call it: relative to the project when it lies inside."""
        return self.project.shown(path)

    def plan(
        self, source: str | Path | Mapping[str, Any], variables: Mapping[str, str] | None = None, until: str = ""
    ) -> Plan:
        """The plan of a recipe, as far as the stage `until`. Raises RecipeError, ToolError, StageFailed."""
        loaded = load_recipe(source, root=self.project, registry=self.registry, variables=variables)
        return self.planner.plan(loaded, until)

    def load(self, source: str, variables: Mapping[str, str] | None = None) -> tuple[LoadedRecipe, ...]:
        """A recipe, or the sub-recipes of a matrix. Raises RecipeError."""
        return load_recipes(source, root=self.project, registry=self.registry, variables=variables)
