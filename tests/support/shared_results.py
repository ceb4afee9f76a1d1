"""Kernel objects and counts of kernels that many tests need: made once in a run of the tests.

Each test has a store of its own. What one has compiled or counted is kept in a folder that the processes of the run
share, under the digest of its key, and is copied into the store of the next test that asks for it.
"""

import shutil
from collections.abc import Callable, Mapping
from pathlib import Path
from tempfile import mkdtemp
from typing import Any

from pipeline.artifacts.digest import digest_of
from pipeline.runs.cache import StoreCache

_FIND, _GET = StoreCache.find, StoreCache.get


def share_results(folder: Path) -> None:
    """Let all stores of this process share objects and counts by way of `folder`."""

    def find(self: StoreCache, ingredients: Mapping[str, Any]) -> Path | None:
        kept = folder / digest_of(ingredients)
        found = _FIND(self, ingredients)
        if found is None and kept.is_dir():
            store, recipe = self._workspace.store, self._recipe
            return store.make(ingredients, lambda made, _log: _copy(kept, made), recipe=recipe)[0].files
        return found

    def get(self: StoreCache, ingredients: Mapping[str, Any], write: Callable[[Path], None]) -> Path:
        found = find(self, ingredients) or _GET(self, ingredients, write)
        kept = folder / digest_of(ingredients)
        if not kept.is_dir():
            part = Path(mkdtemp(dir=folder))
            _copy(found, part)
            try:
                part.rename(kept)
            except OSError:  # another process was first
                shutil.rmtree(part)
        return found

    StoreCache.find, StoreCache.get = find, get  # type: ignore[method-assign]


def keep_apart() -> None:
    """Undo `share_results`."""
    StoreCache.find, StoreCache.get = _FIND, _GET  # type: ignore[method-assign]


def _copy(source: Path, target: Path) -> None:
    shutil.copytree(source, target, dirs_exist_ok=True, copy_function=shutil.copyfile)
