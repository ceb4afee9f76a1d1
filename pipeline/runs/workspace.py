"""Context of runs: the project, its stages, its store and the planner."""

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
from pipeline.remote.open_transport import open_transport
from pipeline.remote.remote import Remote
from pipeline.remote.settings import remote_settings
from pipeline.runs.worker_artifacts import WorkerArtifact
from stages.support.system.scratch import clear_abandoned


class Workspace:
    """The project, its stages and its store, as one run uses them. A context manager.

    root            the project (None: the current directory's), or a folder that is a project by itself
    install         see Tools
    locked_version  see Tools
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
    ) -> None:
        self.project = current_project() if root is None else project_of(root)
        self.root = root = self.project.root
        self.registry = registry or registry_of(self.project)
        self.store = Store(store or root / (os.environ.get("FIRMLINE_STORE") or ".firmline/store"))
        self.build = build or root / "build"
        folder, digests = self.store.folder, self.store.digests
        imports = Imports(self.project.installation, digests, folder / "imports.json")
        self.planner = Planner(self.project, digests, Tools(folder / "tools.json", install, locked_version), imports)
        # Keys of artifacts that this process made, and of those from the remote store.
        self.made_keys: set[str] = set()
        self.fetched_keys: set[str] = set()
        # Artifacts that workers made for this process, with files that may not be here yet.
        self.worker_artifacts: dict[str, WorkerArtifact] = {}
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
        """The remote store, None without one; opened on first use. Raises RecipeError."""
        settings = remote_settings(remote_store(self.project))
        if settings is None:
            return None
        return Remote(settings, self.store, lambda settings: open_transport(settings, self._install, install_command))

    def find(self, key: str) -> Artifact | None:
        """Return a worker's artifact, or one of the store or remote store; None if there is none."""
        return self.worker_artifacts.get(key) or self.find_or_fetch(key)

    def find_or_fetch(self, key: str) -> Artifact | None:
        """Return the store's artifact of a key; fetch it from the remote store if necessary.

        None if both lack it.
        """
        artifact = self.store.find(key)
        if artifact is None and self.remote is not None:
            artifact = self.remote.fetch(key)
            if artifact is not None:
                self.fetched_keys.add(key)
        return artifact

    def fetch_error(self, key: str) -> str:
        """Return why the remote store cannot provide an artifact; '' if it may, or there is none."""
        return "" if self.remote is None else self.remote.fetch_error(key)

    def remote_manifest(self, key: str) -> Mapping[str, Any] | None:
        """Return the manifest of a remote store's artifact, None if it has none."""
        return None if self.remote is None else self.remote.manifest(key)

    def manifest_and_log(self, key: str) -> tuple[Mapping[str, Any], str] | None:
        """Return manifest and log of an artifact in one of the stores, without reading other files."""
        manifest = self.store.manifest(key)
        if manifest is not None:
            return manifest, Artifact(self.store.path(key), manifest).log
        return None if self.remote is None else self.remote.manifest_and_log(key)

    def share(self, artifact: Artifact) -> None:
        """Send a local artifact to the remote store in the background."""
        if ORIGIN not in artifact.manifest and self.remote is not None:
            self.remote.send(artifact)

    def flush(self, waiting: Callable[[int], None] = lambda count: None, keys: Container[str] | None = None) -> None:
        """Wait until the remote store has all artifacts made here, or those of `keys`.

        `waiting` is called with the number of artifacts still to send.
        """
        if self.opened_remote is not None:
            self.opened_remote.flush(waiting, keys)

    @property
    def opened_remote(self) -> Remote | None:
        """The remote store if it was used, else None."""
        return vars(self).get("remote")

    def close(self) -> None:
        """Write the caches and unlock the store. May be called twice."""
        if self.opened_remote is not None:
            self.opened_remote.close()
        self.planner.imports.save()
        self._open.close()

    def display_path(self, path: Path) -> str:
        """Return a path for messages: relative to the project if it is inside."""
        return self.project.display_path(path)

    def plan(
        self, source: str | Path | Mapping[str, Any], variables: Mapping[str, str] | None = None, until: str = ""
    ) -> Plan:
        """Return a recipe's plan up to `until`. Raises RecipeError, ToolError, StageFailed."""
        loaded = load_recipe(source, root=self.project, registry=self.registry, variables=variables)
        return self.planner.plan(loaded, until)

    def load(self, source: str, variables: Mapping[str, str] | None = None) -> tuple[LoadedRecipe, ...]:
        """Return a recipe, or the variants of a matrix. Raises RecipeError."""
        return load_recipes(source, root=self.project, registry=self.registry, variables=variables)
