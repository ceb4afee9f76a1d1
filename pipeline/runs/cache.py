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

    def get(self, ingredients: Mapping[str, Any], write: Callable[[Path], None]) -> Path:
        """As stages.base.Cache says. Raises StoreError, DiskFullError too."""
        store = self._workspace.store
        artifact = self._workspace.brought(digest_of(ingredients))
        if artifact is None:
            artifact, _ = store.make(ingredients, lambda folder, log: write(folder), recipe=self._recipe)
            self._workspace.share(artifact)
        store.mark_used(artifact)
        return artifact.files
