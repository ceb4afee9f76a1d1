"""What stages keep for other recipes, in the artifact store: objects of kernels, for example."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pipeline.artifacts.digest import digest_of

if TYPE_CHECKING:
    from pipeline.runs.workspace import Workspace


class StoreCache:
    """stages.base.Cache over the workspace's store and its remote store. `recipe` is the one that runs."""

    def __init__(self, workspace: Workspace, recipe: str) -> None:
        self._workspace = workspace
        self._recipe = recipe

    def find(self, ingredients: Mapping[str, Any]) -> Path | None:
        """As stages.base.Cache says."""
        artifact = self._workspace.brought(digest_of(ingredients))
        if artifact is None:
            return None
        self._workspace.store.mark_used(artifact)
        return artifact.files

    def get(self, ingredients: Mapping[str, Any], write: Callable[[Path], None]) -> Path:
        """As stages.base.Cache says. Raises StoreError, DiskFullError too."""
        found = self.find(ingredients)
        if found is not None:
            return found
        store = self._workspace.store
        artifact, _ = store.make(ingredients, lambda folder, log: write(folder), recipe=self._recipe)
        self._workspace.share(artifact)
        return artifact.files
