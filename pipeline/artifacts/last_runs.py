"""Keys and overrides of each recipe's last run, for `doit explain`."""

import contextlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pipeline.artifacts.folders import remove
from stages.support.system.atomic_write import write_atomically
from stages.support.system.json_text import parsed_json

_FORMAT = 1


@dataclass(frozen=True)
class LastRun:
    """A recipe's last run: `when` in seconds since 1970, overrides as typed, keys by stage."""

    target: str
    when: float
    changes: tuple[str, ...]
    keys: Mapping[str, str]


class LastRuns:
    """A folder with a file `<recipe>@<target>.json` per recipe and target."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def find(self, recipe: str, target: str) -> LastRun | None:
        """Return a recipe's last run on this target, else its last run on any, else None."""
        path_of_target = self._folder / _run_file(recipe, target)
        others = sorted(self._folder.glob(_run_file(recipe, "*")), key=_changed, reverse=True)
        for path in [path_of_target, *others]:
            content = _read_run(path)
            if content is not None:
                on = path.stem.rpartition("@")[2]
                return LastRun(on, path.stat().st_mtime, tuple(content["changes"]), content["keys"])
        return None

    def note(self, recipe: str, target: str, keys: Mapping[str, str], changes: Sequence[str] = ()) -> None:
        """Note the keys of finished stages, merged with earlier ones, and the run's overrides."""
        path = self._folder / _run_file(recipe, target)
        before = _read_run(path)
        keys = {**(before["keys"] if before is not None else {}), **keys}
        # Only `doit explain` reads this; a run does not fail for it.
        with contextlib.suppress(OSError):
            if path.is_dir():
                remove(path)
            write_atomically(path, json.dumps({"format": _FORMAT, "changes": list(changes), "keys": keys}))


def _read_run(path: Path) -> dict[str, Any] | None:
    """Read a file of runs/; None if it is missing or invalid."""
    try:
        content = parsed_json(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None
    if not isinstance(content, dict) or content.get("format") != _FORMAT:
        return None
    keys, changes = content.get("keys"), content.get("changes")
    strings = [*keys.values(), *changes] if isinstance(keys, dict) and isinstance(changes, list) else [None]
    return content if all(isinstance(text, str) for text in strings) else None


def _run_file(recipe: str, target: str) -> str:
    """Return a file name without folders: `layers%conv3x3@cortex-m4.json`."""
    return f"{recipe.replace('/', '%')}@{target}.json"


def _changed(path: Path) -> int:
    try:
        return path.stat().st_mtime_ns
    except OSError:
        return 0
