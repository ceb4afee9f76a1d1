"""Parts of artifacts that several recipes share, such as compiled kernels, in the store."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pipeline.artifacts.digest import digest_of

if TYPE_CHECKING:
    from pipeline.runs.workspace import Workspace


class StoreCache:
    """Implements stages.base.Cache on the workspace's store and remote store.

    `recipe` is the running recipe.
    """

    def __init__(self, workspace: Workspace, recipe: str) -> None:
        self._workspace = workspace
        self._recipe = recipe

    def find(self, ingredients: Mapping[str, Any]) -> Path | None:
        """See stages.base.Cache."""
        artifact = self._workspace.find_or_fetch(digest_of(ingredients))
        if artifact is None:
            return None
        self._workspace.store.mark_used(artifact)
        return artifact.files

    def get(self, ingredients: Mapping[str, Any], write: Callable[[Path], None]) -> Path:
        """See stages.base.Cache. Also raises StoreError, DiskFullError."""
        files = self.find(ingredients)
        if files is not None:
            return files
        store = self._workspace.store
        artifact, _ = store.make(ingredients, lambda folder, log: write(folder), recipe=self._recipe)
        self._workspace.share(artifact)
        return artifact.files
