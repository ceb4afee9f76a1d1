"""Where the files lie that a target names as paths, and which they are: plug-ins of its simulator."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from stages.base import StageError

if TYPE_CHECKING:
    from stages.targets.spec import Target


def with_places(target: Target, folders: Sequence[Path]) -> Target:
    """The target with the places of its paths, which start at one of the folders.

    Raises StageError, which blames the value as seen from the core, for one that is not there.
    """
    places = {}
    for name in target.simulator.outside:
        found = next((folder / name for folder in folders if (folder / name).exists()), None)
        if found is None:
            at = ("simulator", "plugins", target.simulator.plugins.index(name))
            raise StageError(f"there is no plug-in {name}", hint="paths start at the folder of this file", at=at)
        places[name] = found
    return target.model_copy(update={"places": places}) if places else target


def plugin_code(target: Target) -> dict[str, Path]:
    """The files of the plug-ins of the target's simulator that are not Firmline's, by name."""
    return {
        name if path == place else f"{name}/{path.name}": path
        for name in target.simulator.outside
        for place in [target.places[name]]
        for path in plugin_files(place)
    }


def plugin_files(place: Path) -> list[Path]:
    """The files of one plug-in: those in its folder, or the one that it is."""
    if not place.is_dir():
        return [place]
    return sorted(path for path in place.iterdir() if path.is_file() and not path.name.startswith("."))
