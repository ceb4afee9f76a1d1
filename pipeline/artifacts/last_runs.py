"""What each recipe had when it ran last: its keys and overrides, for `doit explain`."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pipeline.artifacts.folders import remove
from stages.system.asides import write_whole
from stages.system.json_text import parsed_json

_FORMAT = 1


@dataclass(frozen=True)
class LastRun:
    """What a recipe had when it ran last: `when` in seconds since 1970, its overrides as typed, its keys by kind."""

    target: str
    when: float
    changes: tuple[str, ...]
    keys: Mapping[str, str]


class LastRuns:
    """A folder with a file `<recipe>@<target>.json` for each recipe and target."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def find(self, recipe: str, target: str) -> LastRun | None:
        """The last run of a recipe: on this target, or else on the one it ran on most recently."""
        own = self._folder / _run_file(recipe, target)
        others = sorted(self._folder.glob(_run_file(recipe, "*")), key=_changed, reverse=True)
        for path in [own, *others]:
            noted = _noted(path)
            if noted is not None:
                on = path.stem.rpartition("@")[2]
                return LastRun(on, path.stat().st_mtime, tuple(noted["changes"]), noted["keys"])
        return None

    def note(self, recipe: str, target: str, keys: Mapping[str, str], changes: Sequence[str] = ()) -> None:
        """Note the keys of stages that are done, over those noted before, and the overrides of the run."""
        path = self._folder / _run_file(recipe, target)
        before = _noted(path)
        keys = {**(before["keys"] if before is not None else {}), **keys}
        # Only `doit explain` reads this; a run does not fail for it.
        with contextlib.suppress(OSError):
            if path.is_dir():
                remove(path)
            write_whole(path, json.dumps({"format": _FORMAT, "changes": list(changes), "keys": keys}))


def _noted(path: Path) -> dict[str, Any] | None:
    """The keys and overrides noted in a file of runs/; None when it has none."""
    try:
        noted = parsed_json(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None
    if not isinstance(noted, dict) or noted.get("format") != _FORMAT:
        return None
    keys, changes = noted.get("keys"), noted.get("changes")
    strings = [*keys.values(), *changes] if isinstance(keys, dict) and isinstance(changes, list) else [None]
    return noted if all(isinstance(text, str) for text in strings) else None


def _run_file(recipe: str, target: str) -> str:
    """A name without folders: `layers%conv3x3@cortex-m4.json`."""
    return f"{recipe.replace('/', '%')}@{target}.json"


def _changed(path: Path) -> int:
    try:
        return path.stat().st_mtime_ns
    except OSError:
        return 0
