"""The artifact store as code of the stages sees it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Protocol


class Cache(Protocol):
    """Results that stages share with other recipes and other runs: the artifact store, as a stage sees it."""

    def find(self, ingredients: Mapping[str, Any]) -> Path | None:
        """As `get`; None where there is no result."""

    def get(self, ingredients: Mapping[str, Any], write: Callable[[Path], None]) -> Path:
        """The folder with the result of these ingredients, read-only; `write(folder)` makes it where there is none.

        `ingredients` are JSON values: all that the result depends on, and under "stage" what kind of result it is. May
        be called from several threads. What `write` raises passes through.
        """
