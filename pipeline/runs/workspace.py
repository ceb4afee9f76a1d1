"""What runs of recipes work with: the project, its stages, its store and what plans them."""

from __future__ import annotations

import os
from collections.abc import Callable, Container, Mapping
from contextlib import ExitStack
from functools import cached_property
from pathlib import Path
from typing import Any

from pipeline.artifacts.manifest import ORIGIN
from pipeline.artifacts.store import Artifact, Store
from pipeline.keys.imports import Imports
from pipeline.keys.package_groups import install_command
from pipeline.keys.planner import Plan, Planner
from pipeline.keys.tools import Tools
from pipeline.plugins.registry import Registry, registry_of
from pipeline.project import Project, current_project, project_of
from pipeline.recipes.loader import LoadedRecipe, load_recipe, load_recipes
from pipeline.recipes.targets import remote_store
from pipeline.remote.opening import open_remote
from pipeline.remote.remote import Remote
from pipeline.remote.settings import remote_settings
from pipeline.runs.elsewhere import Elsewhere
from pipeline.runs.executor import Executor, Local
from stages.system.scratch import clear_abandoned


class Workspace:
    """The project, its stages and its store, as one run uses them. A context manager.

    `root`: the project (None: that of the current directory), or a folder that stands alone. `install` and
    `locked_version` as of Tools. `executor` says where stages run; here unless given.
    """

    def __init__(
        self,
        *,
        root: Path | Project | None = None,
        registry: Registry | None = None,
        store: Path | None = None,
        build: Path | None = None,
        install: Callable[[str], bool] | None = None,
        locked_version: Callable[[str], str] | None = None,
        executor: Executor | None = None,
    ) -> None:
        self.project = current_project() if root is None else project_of(root)
        self.root = root = self.project.root
        self.registry = registry or registry_of(self.project)
        self.store = Store(store or root / (os.environ.get("FIRMLINE_STORE") or ".firmline/store"))
        self.build = build or root / "build"
        self.executor: Executor = executor or Local()
        folder, digests = self.store.folder, self.store.digests
        imports = Imports(self.project.installation, digests, folder / "imports.json")
        self.planner = Planner(self.project, digests, Tools(folder / "tools.json", install, locked_version), imports)
        # Keys of the artifacts that this process has made, and of those that came from the remote store.
        self.made: set[str] = set()
        self.fetched: set[str] = set()
        # Those that workers have made for this process, and whose files nobody has read here yet.
        self.elsewhere: dict[str, Elsewhere] = {}
        self._install = install
        self._open = ExitStack()

    def __enter__(self) -> Workspace:
        clear_abandoned()
        self._open.enter_context(self.store.in_use())
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        if kind is None or issubclass(kind, Exception):
            self.flush()
        self.close()

    @cached_property
    def remote(self) -> Remote | None:
        """The remote store, if there is one; made when the store first lacks something. Raises RecipeError."""
        settings = remote_settings(remote_store(self.project))
        if settings is None:
            return None
        return Remote(settings, self.store, lambda one: open_remote(one, self._install, install_command))

    def find(self, key: str) -> Artifact | None:
        """The artifact of a key: from the store, or from the remote store by way of it; None where neither has it.

        What a worker has made for this process is taken as it is.
        """
        return self.elsewhere.get(key) or self.brought(key)

    def brought(self, key: str) -> Artifact | None:
        """The artifact of a key in the store, for which it is fetched where only the remote store has it."""
        found = self.store.find(key)
        if found is None and self.remote is not None:
            found = self.remote.fetch(key)
            if found is not None:
                self.fetched.add(key)
        return found

    def why_not(self, key: str) -> str:
        """Why what was not found will not come from the remote store either; '' where it may, or there is none."""
        return "" if self.remote is None else self.remote.why_not(key)

    def manifest_elsewhere(self, key: str) -> Mapping[str, Any] | None:
        """The manifest of an artifact that the remote store has."""
        return None if self.remote is None else self.remote.manifest(key)

    def described(self, key: str) -> tuple[Mapping[str, Any], str] | None:
        """The manifest and the log of an artifact that one of the stores has; no other file is looked at."""
        manifest = self.store.manifest(key)
        if manifest is not None:
            return manifest, Artifact(self.store.path(key), manifest).log
        return None if self.remote is None else self.remote.described(key)

    def share(self, artifact: Artifact) -> None:
        """Have an artifact that was made here sent to the remote store, meanwhile."""
        if ORIGIN not in artifact.manifest and self.remote is not None:
            self.remote.send(artifact)

    def flush(self, waiting: Callable[[int], None] = lambda left: None, keys: Container[str] | None = None) -> None:
        """Wait until the remote store has what was made here, or those of `keys`; `waiting` hears how many are left."""
        if self.used_remote is not None:
            self.used_remote.flush(waiting, keys)

    @property
    def used_remote(self) -> Remote | None:
        """The remote store if anything was asked of it."""
        return vars(self).get("remote")

    def close(self) -> None:
        """Write the caches and let the store be trimmed again. May be called twice."""
        if self.used_remote is not None:
            self.used_remote.close()
        self.planner.imports.save()
        self._open.close()

    def display_path(self, path: Path) -> str:
        """A path as messages call it: relative to the project when it lies inside."""
        return self.project.display_path(path)

    def plan(
        self, source: str | Path | Mapping[str, Any], variables: Mapping[str, str] | None = None, until: str = ""
    ) -> Plan:
        """The plan of a recipe, as far as the stage `until`. Raises RecipeError, ToolError, StageFailed."""
        loaded = load_recipe(source, root=self.project, registry=self.registry, variables=variables)
        return self.planner.plan(loaded, until)

    def load(self, source: str, variables: Mapping[str, str] | None = None) -> tuple[LoadedRecipe, ...]:
        """A recipe, or the variants of a matrix. Raises RecipeError."""
        return load_recipes(source, root=self.project, registry=self.registry, variables=variables)
