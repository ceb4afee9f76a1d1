"""The artifact store, as stages see it."""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Protocol


class Cache(Protocol):
    """Results that stages share with other recipes and runs: the artifact store."""

    def find(self, ingredients: Mapping[str, Any]) -> Path | None:
        """Return the folder that `get` would return; None if there is no result."""

    def get(self, ingredients: Mapping[str, Any], write: Callable[[Path], None]) -> Path:
        """Return the read-only folder with the result of these ingredients.

        `write(folder)` computes a missing result; its exceptions pass through. `ingredients` are JSON values:
        everything that the result depends on, and the kind of result as "stage". Several threads may call this method.
        """
